//! Sends requests to one server with one key, retries those that may be, and sorts the refusals.

use std::error::Error as _;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::header::{
    ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue, LOCATION, RETRY_AFTER, USER_AGENT,
};
use hyper::{Method, Response, StatusCode};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;

use super::address::{Base, Target};
use super::connector::{self, Connector};
use super::problem::Problem;
use super::request::{At, Request};
use super::retry::{self, Reason};
use crate::failure::Failure;
use crate::output::notice::notice;
use crate::profiles::connection::Connection;
use crate::profiles::key::Scheme;

const AGENT: &str = concat!("rowgate/", env!("CARGO_PKG_VERSION"));
const X_API_KEY: HeaderName = HeaderName::from_static("x-api-key");
/// Between two pieces of a body. The server's streams have a heartbeat each 15 seconds.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);
/// Pauses that are longer are announced.
const QUIET_PAUSE: Duration = Duration::from_secs(2);

/// Of a request that does something, and whose answer was lost.
const IN_DOUBT: &str = "; the request may have been carried out, check before you repeat it";

/// One server, and the key for it.
pub(crate) struct Api {
    http: Client<Connector, Full<Bytes>>,
    base: Base,
    credential: (HeaderName, HeaderValue),
    /// Where the key came from, in words.
    source: String,
    retries: u32,
    timeout: Duration,
}

/// An answer that is not a refusal, read whole.
#[derive(Debug)]
pub(crate) struct Answer {
    /// `Null` without a body.
    pub(crate) value: Value,
}

/// What one try led to, if not to an answer that counts.
enum Failed {
    Again(Reason, Failure),
    Final(Failure),
}

impl Failed {
    fn failure(self) -> Failure {
        match self {
            Failed::Again(_, failure) | Failed::Final(failure) => failure,
        }
    }
}

impl Api {
    pub(crate) fn new(connection: &Connection) -> Result<Api, Failure> {
        let connector = connector::connector(connection.ca.as_deref()).map_err(Failure::Usage)?;
        let http = Client::builder(TokioExecutor::new()).build(connector);
        let mut credential = match connection.key.scheme() {
            Scheme::ApiKey => (X_API_KEY, connection.key.reveal().to_owned()),
            Scheme::Bearer => (AUTHORIZATION, format!("Bearer {}", connection.key.reveal())),
        };
        let mut value = HeaderValue::from_str(&std::mem::take(&mut credential.1))
            .map_err(|_| Failure::Usage("the key holds characters that no key has".to_owned()))?;
        value.set_sensitive(true);
        Ok(Api {
            http,
            base: connection.base.clone(),
            credential: (credential.0, value),
            source: connection.source.clone(),
            retries: connection.retries,
            timeout: connection.timeout,
        })
    }

    #[must_use]
    pub(crate) fn base(&self) -> &Base {
        &self.base
    }

    #[must_use]
    pub(crate) fn retries(&self) -> u32 {
        self.retries
    }

    /// The whole answer, as JSON.
    pub(crate) async fn json(&self, request: &Request) -> Result<Answer, Failure> {
        let mut n = 0;
        loop {
            let failed = match self.try_once(request).await {
                Ok(response) => match bytes(response.into_body()).await {
                    Ok(bytes) => return parsed(&bytes),
                    // a body that breaks off is asked for again as well
                    Err(failure) => Failed::Again(Reason::NoAnswer, failure),
                },
                Err(failed) => failed,
            };
            n += 1;
            self.wait(request, failed, n).await?;
        }
    }

    /// The answer with its body unread.
    pub(crate) async fn open(&self, request: &Request) -> Result<Response<Incoming>, Failure> {
        let mut n = 0;
        loop {
            match self.try_once(request).await {
                Ok(response) => return Ok(response),
                Err(failed) => {
                    n += 1;
                    self.wait(request, failed, n).await?;
                }
            }
        }
    }

    /// Waits until the next try, or gives up.
    async fn wait(&self, request: &Request, failed: Failed, n: u32) -> Result<(), Failure> {
        let (reason, failure) = match failed {
            Failed::Again(reason, failure) if request.is_repeatable => (reason, failure),
            Failed::Again(_, failure) | Failed::Final(failure) => return Err(failure),
        };
        let Some(pause) = retry::pause(reason, n, self.retries, rand::random()) else { return Err(failure) };
        if QUIET_PAUSE <= pause {
            notice(&format!("{failure}\nretrying in {} s", pause.as_secs_f64().ceil()));
        }
        tokio::time::sleep(pause).await;
        Ok(())
    }

    async fn try_once(&self, request: &Request) -> Result<Response<Incoming>, Failed> {
        let response = self.send(request).await?;
        match response.status().is_success() {
            true => Ok(response),
            false => Err(match sorted(response).await {
                // Of several keys it is said which one was refused.
                Failed::Final(failure @ Failure::Unauthorized(_)) => {
                    Failed::Final(failure.hinted(|_| Some(format!("the key is that of {}", self.source))))
                }
                failed => failed,
            }),
        }
    }

    /// One try, and whatever the answer is. Only a missing answer is a failure.
    pub(crate) async fn raw(&self, request: &Request) -> Result<Response<Incoming>, Failure> {
        self.send(request).await.map_err(Failed::failure)
    }

    async fn send(&self, request: &Request) -> Result<Response<Incoming>, Failed> {
        let target = match &request.at {
            At::Path(path) => self.base.at(path),
            At::Link(target) => target.clone(),
        };
        let built = self.build(request, &target).map_err(Failed::Final)?;
        let answered = tokio::time::timeout(self.timeout, self.http.request(built));
        let unavailable = |what: String| Failed::Again(Reason::NoAnswer, Failure::Unavailable(what));
        let in_doubt = if request.method == Method::POST && !request.is_repeatable { IN_DOUBT } else { "" };
        match answered.await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(error)) => {
                let in_doubt = if error.is_connect() { "" } else { in_doubt };
                Err(unavailable(unreachable(&self.base, &target, &error) + in_doubt))
            }
            // Not again: what was slow, such as a query, would run once more beside the first.
            Err(_) => {
                let seconds = self.timeout.as_secs();
                let what = format!("no answer within {seconds} s; --timeout allows more{in_doubt}");
                Err(Failed::Final(Failure::Unavailable(what)))
            }
        }
    }

    fn build(&self, request: &Request, target: &Target) -> Result<hyper::Request<Full<Bytes>>, Failure> {
        let mut built = hyper::Request::builder().method(&request.method).uri(&target.url);
        built = built.header(USER_AGENT, AGENT);
        if target.is_ours {
            built = built.header(&self.credential.0, self.credential.1.clone());
        }
        for (name, value) in &request.headers {
            built = built.header(*name, value);
        }
        if !request.headers.iter().any(|(name, _)| *name == ACCEPT) {
            built = built.header(ACCEPT, "application/json, */*;q=0.1");
        }
        let body = match &request.body {
            None => Bytes::new(),
            Some(body) => {
                built = built.header(CONTENT_TYPE, "application/json");
                Bytes::from(body.to_string())
            }
        };
        built
            .body(Full::new(body))
            .map_err(|_| Failure::Usage(format!("{} is not an address that can be requested", target.url)))
    }
}

/// The next piece of a body; `None` at its end.
pub(crate) async fn piece(body: &mut Incoming) -> Result<Option<Bytes>, Failure> {
    loop {
        let frame = match tokio::time::timeout(IDLE_TIMEOUT, body.frame()).await {
            Ok(None) => return Ok(None),
            Ok(Some(Ok(frame))) => frame,
            Ok(Some(Err(_))) => {
                return Err(Failure::Unavailable("the connection broke within the answer".to_owned()));
            }
            Err(_) => {
                let what = format!("the server sent nothing for {} s", IDLE_TIMEOUT.as_secs());
                return Err(Failure::Unavailable(what));
            }
        };
        if let Ok(data) = frame.into_data() {
            return Ok(Some(data));
        }
    }
}

async fn bytes(mut body: Incoming) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    while let Some(piece) = piece(&mut body).await? {
        bytes.extend_from_slice(&piece);
    }
    Ok(bytes)
}

fn parsed(bytes: &[u8]) -> Result<Answer, Failure> {
    if bytes.is_empty() {
        return Ok(Answer { value: Value::Null });
    }
    let value = serde_json::from_slice(bytes);
    let value = value.map_err(|_| Failure::refused("the answer is not JSON; is this the URL of Rowgate?"))?;
    Ok(Answer { value })
}

/// Why an answer with another status than success is a failure.
pub(crate) async fn refusal(response: Response<Incoming>) -> Failure {
    sorted(response).await.failure()
}

async fn sorted(response: Response<Incoming>) -> Failed {
    let (status, headers) = (response.status(), response.headers().clone());
    let header = |name| headers.get(name).and_then(|value| value.to_str().ok());
    if status.is_redirection() {
        let to = header(LOCATION).unwrap_or("another address");
        let what = format!("the server redirects to {to}; the key is not sent there, give the right --url");
        return Failed::Final(Failure::refused(what));
    }
    let body = bytes(response.into_body()).await.unwrap_or_default();
    let (problem, is_ours) = Problem::of_answer(status.as_u16(), &body);
    // Time enters here.
    let asked = header(RETRY_AFTER).and_then(|text| retry::retry_after(text, SystemTime::now()));
    match status {
        StatusCode::UNAUTHORIZED => {
            const HINT: &str = "`rowgate whoami` prints which server and tenant are used; a key is stored with `rowgate profile add NAME`, or given in ROWGATE_KEY";
            Failed::Final(Failure::Unauthorized(problem).hinted(|_| Some(HINT.to_owned())))
        }
        // Too many requests are no outage: once the retries are over, it is the refusal that it is.
        StatusCode::TOO_MANY_REQUESTS => Failed::Again(Reason::Unavailable(asked), Failure::Refused(problem)),
        StatusCode::SERVICE_UNAVAILABLE => {
            Failed::Again(Reason::Unavailable(asked), Failure::Unavailable(problem.to_string()))
        }
        StatusCode::BAD_GATEWAY | StatusCode::GATEWAY_TIMEOUT if !is_ours => {
            Failed::Again(Reason::Unavailable(asked), Failure::Unavailable(problem.to_string()))
        }
        _ => Failed::Final(Failure::Refused(problem)),
    }
}

/// The innermost cause says it best: `Connection refused`, or what is wrong with a certificate.
fn unreachable(base: &Base, target: &Target, error: &hyper_util::client::legacy::Error) -> String {
    let mut cause = error.source();
    while let Some(next) = cause.and_then(|cause| cause.source()) {
        cause = Some(next);
    }
    let why = cause.map_or_else(|| error.to_string(), ToString::to_string);
    // as rustls says that the answer is none of TLS
    let why = match why.contains("InvalidContentType") {
        true => "it does not speak TLS; write http:// if that is meant".to_owned(),
        false => why,
    };
    let server = if target.is_ours { base.to_string() } else { origin(&target.url) };
    match error.is_connect() {
        true => format!("cannot connect to {server}: {why}"),
        false => format!("{server} gave no answer: {why}"),
    }
}

/// Of a link to another server without its path and query, which may be signed.
fn origin(link: &str) -> String {
    url::Url::parse(link).map_or_else(|_| "the server".to_owned(), |url| url.origin().ascii_serialization())
}

#[cfg(test)]
mod tests;
