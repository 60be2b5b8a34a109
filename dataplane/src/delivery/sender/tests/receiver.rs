//! A receiver of a test: it listens on this machine and does with each connection what the test says.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

pub(super) struct Receiver {
    pub(super) address: SocketAddr,
    n_connections: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Receiver {
    /// On 127.0.0.1. `handle` gets each connection and how many came before.
    pub(super) async fn start<F, Fut>(handle: F) -> Receiver
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
    pub(super) async fn answering(answer: &'static str) -> (Receiver, Arc<Mutex<Vec<String>>>) {
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
    pub(super) fn url(&self, rest: &str) -> String {
        format!("http://hook.example:{}{rest}", self.address.port())
    }

    pub(super) fn n_connections(&self) -> usize {
        self.n_connections.load(Ordering::SeqCst)
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// One request, head and body; None: the connection has ended.
pub(super) async fn read(stream: &mut (impl AsyncRead + Unpin)) -> Option<String> {
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
pub(super) async fn answer(stream: &mut (impl AsyncRead + AsyncWrite + Unpin), text: &str) {
    if read(stream).await.is_some() {
        let _ = stream.write_all(text.as_bytes()).await;
    }
}
