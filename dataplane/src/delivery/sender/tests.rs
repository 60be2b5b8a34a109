//! The sender against real sockets on this machine: whom it reaches, what it reads, and when it stops.

use std::future::{pending, ready};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use super::*;

mod answers;
mod guard;
mod tls;

/// Long enough for a busy machine, where a test expects an answer.
const LONG: Duration = Duration::from_secs(60);
/// Where a test expects none.
const SHORT: Duration = Duration::from_millis(200);

fn policy() -> Policy {
    let ranges = ["127.0.0.0/8", "::1/128"].map(|range| range.parse().expect("a range"));
    Policy { allow_http: true, ranges: ranges.to_vec() }
}

/// A resolver that gives one list after the other, the last one again and again, and counts.
fn resolver(answers: &[&[&str]]) -> (Resolve, Arc<AtomicUsize>) {
    let parse = |texts: &&[&str]| -> Vec<IpAddr> {
        texts.iter().map(|text| text.parse().expect("an address")).collect()
    };
    let answers: Vec<_> = answers.iter().map(parse).collect();
    let n_asked = Arc::new(AtomicUsize::new(0));
    let asked = n_asked.clone();
    let resolve: Resolve = Arc::new(move |_: &str| {
        let i = asked.fetch_add(1, Ordering::SeqCst);
        Box::pin(ready(Ok(answers[i.min(answers.len() - 1)].clone())))
    });
    (resolve, n_asked)
}

fn sender(answers: &[&[&str]], deadline: Duration, max_age: Duration) -> Sender {
    Sender::with(policy().ranges, resolver(answers).0, Roots::system(), deadline, max_age)
}

fn destination(url: &str) -> Destination {
    Destination::parse(url, &policy()).expect("a URL of a test")
}

async fn post(sender: &Sender, url: &str) -> Result<Answer, SendFailure> {
    let body = Bytes::from_static(b"{}");
    sender.post(&destination(url), &policy(), HeaderMap::new(), body).await.result
}

async fn status(sender: &Sender, url: &str) -> Result<u16, SendFailure> {
    post(sender, url).await.map(|answer| answer.status)
}

#[track_caller]
fn refused(result: &Result<u16, SendFailure>, word: &str) {
    match result {
        Err(SendFailure::Refused(text)) if text.contains(word) => {}
        other => panic!("{other:?} is no refusal of {word}"),
    }
}

#[track_caller]
fn unreachable(result: &Result<u16, SendFailure>, word: &str) {
    match result {
        Err(SendFailure::Unreachable(text)) if text.contains(word) => {}
        other => panic!("{other:?} does not say {word}"),
    }
}

/// A receiver of a test: it listens on this machine and does with each connection what the test says.
struct Receiver {
    address: SocketAddr,
    n_connections: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Receiver {
    /// On 127.0.0.1. `handle` gets each connection and how many came before.
    async fn start<F, Fut>(handle: F) -> Receiver
    where
        F: Fn(TcpStream, usize) -> Fut + Send + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port is free");
        let address = listener.local_addr().expect("it is bound");
        let n_connections = Arc::new(AtomicUsize::new(0));
        let counted = n_connections.clone();
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(handle(stream, counted.fetch_add(1, Ordering::SeqCst)));
            }
        });
        Receiver { address, n_connections, task }
    }

    /// Answers every request of every connection with `answer`, and keeps what it has read.
    async fn answering(answer: &'static str) -> (Receiver, Arc<Mutex<Vec<String>>>) {
        let requests = Arc::new(Mutex::new(Vec::new()));
        let kept = requests.clone();
        let receiver = Receiver::start(move |mut stream, _| {
            let kept = kept.clone();
            async move {
                while let Some(request) = read(&mut stream).await {
                    kept.lock().push(request);
                    if stream.write_all(answer.as_bytes()).await.is_err() {
                        return;
                    }
                }
            }
        });
        (receiver.await, requests)
    }

    /// A URL of a name that the test's resolver knows.
    fn url(&self, rest: &str) -> String {
        format!("http://hook.example:{}{rest}", self.address.port())
    }

    fn n_connections(&self) -> usize {
        self.n_connections.load(Ordering::SeqCst)
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// One request, head and body; None: the connection has ended.
async fn read(stream: &mut (impl AsyncRead + Unpin)) -> Option<String> {
    let mut bytes = Vec::new();
    loop {
        bytes.push(stream.read_u8().await.ok()?);
        let Some(head) = bytes.strip_suffix(b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(head).into_owned();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let mut body = vec![0; length.map_or(0, |length| length.parse().expect("a number"))];
        stream.read_exact(&mut body).await.ok()?;
        return Some(format!("{head}\r\n\r\n{}", String::from_utf8_lossy(&body)));
    }
}

/// Reads a request and writes `text`.
async fn answer(stream: &mut (impl AsyncRead + AsyncWrite + Unpin), text: &str) {
    if read(stream).await.is_some() {
        let _ = stream.write_all(text.as_bytes()).await;
    }
}
