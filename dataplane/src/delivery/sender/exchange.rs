//! One HTTP/1.1 connection: a request and its answer at a time, driven by the one who waits for the answer.
//!
//! No task runs beside it: what is dropped at the deadline is closed.

use std::net::SocketAddr;
use std::time::Duration;

use axum::http::header::RETRY_AFTER;
use axum::http::{HeaderMap, Request, Response};
use bytes::Bytes;
use futures_util::FutureExt as _;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use jiff::Timestamp;
use rowgate_core::webhook::retry::parse_retry_after;
use tokio::time::Instant;

use super::SendFailure;
use super::connect::Stream;

/// How much of an answer is read, in bytes.
pub const MAX_ANSWER_LEN: usize = 64 * 1024;
const MAX_HEADERS: usize = 100;
/// Of the status line and the headers together.
const MAX_HEAD_LEN: usize = 64 * 1024;

type Io = TokioIo<Box<dyn Stream>>;

#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub retry_after: Option<Duration>,
    pub body: Vec<u8>,
    /// The receiver sent more than [`MAX_ANSWER_LEN`].
    pub truncated: bool,
}

pub(super) struct Connection {
    requests: SendRequest<Full<Bytes>>,
    /// None: it has ended.
    driver: Option<http1::Connection<Io, Full<Bytes>>>,
    peer: SocketAddr,
    opened: Instant,
    /// The last answer was read to its end.
    is_clean: bool,
}

impl Connection {
    pub(super) async fn new(io: Io, peer: SocketAddr) -> Result<Connection, SendFailure> {
        let mut builder = http1::Builder::new();
        builder.max_headers(MAX_HEADERS).max_buf_size(MAX_HEAD_LEN);
        let (requests, driver) = builder.handshake(io).await.map_err(|error| broken(&error))?;
        Ok(Connection { requests, driver: Some(driver), peer, opened: Instant::now(), is_clean: true })
    }

    /// The address at the other end.
    pub(super) fn peer(&self) -> SocketAddr {
        self.peer
    }

    pub(super) fn age(&self) -> Duration {
        self.opened.elapsed()
    }

    /// Whether another request can be sent, as far as is known: the receiver may have closed it.
    pub(super) fn is_reusable(&mut self) -> bool {
        if let Some(driver) = &mut self.driver
            && driver.now_or_never().is_some()
        {
            self.driver = None;
        }
        self.is_clean && self.driver.is_some() && self.requests.is_ready()
    }

    pub(super) async fn send(&mut self, request: Request<Full<Bytes>>) -> Result<Answer, SendFailure> {
        self.is_clean = false;
        let requests = &mut self.requests;
        let answer = async {
            let response = requests.send_request(request).await.map_err(|error| broken(&error))?;
            read(response).await
        };
        tokio::pin!(answer);
        let answer = match &mut self.driver {
            None => answer.await,
            Some(driver) => tokio::select! {
                biased;
                answer = &mut answer => answer,
                // it ended; what it has read before is still to be had
                _ = driver => {
                    self.driver = None;
                    answer.await
                }
            },
        }?;
        self.is_clean = !answer.truncated;
        Ok(answer)
    }
}

async fn read(response: Response<Incoming>) -> Result<Answer, SendFailure> {
    let (head, mut incoming) = response.into_parts();
    let (status, retry_after) = (head.status.as_u16(), retry_after(&head.headers));
    let mut body = Vec::new();
    while let Some(frame) = incoming.frame().await {
        let frame = frame.map_err(|error| broken(&error))?;
        let Some(data) = frame.data_ref() else { continue };
        let room = MAX_ANSWER_LEN - body.len();
        body.extend_from_slice(&data[..data.len().min(room)]);
        if room < data.len() {
            return Ok(Answer { status, retry_after, body, truncated: true });
        }
    }
    Ok(Answer { status, retry_after, body, truncated: false })
}

fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    parse_retry_after(headers.get(RETRY_AFTER)?.to_str().ok()?, Timestamp::now())
}

fn broken(error: &hyper::Error) -> SendFailure {
    let text = match error.is_parse() {
        true => "the receiver's answer is not valid HTTP/1.1",
        false => "the receiver closed the connection before its answer was complete",
    };
    SendFailure::Unreachable(text.to_owned())
}
