//! A receiver of webhooks on loopback: it records each request and answers as the test says.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::sleep;

/// Between two bytes of [`Answer::Slowly`].
const PAUSE: Duration = Duration::from_millis(1);

/// One request, whole.
#[derive(Debug, Clone)]
pub struct Request {
    pub path: String,
    /// By names in lower case.
    pub headers: BTreeMap<String, String>,
    pub body: String,
}

/// What the receiver does with a request.
#[derive(Debug, Clone)]
pub enum Answer {
    Status(u16),
    /// With this header, and this body.
    Full(u16, String, String),
    /// Byte by byte.
    Slowly(u16),
    /// Nothing, until the sender goes.
    Hang,
    /// The connection ends without an answer.
    Close,
}

/// Belongs to the runtime that made it.
#[derive(Clone)]
pub struct Receiver {
    address: SocketAddr,
    noted: Arc<Mutex<Noted>>,
}

#[derive(Default)]
struct Noted {
    requests: Vec<Request>,
    /// Requests that came and are not answered yet.
    n_open: usize,
    /// The most that there were of them.
    peak: usize,
}

type Decide = Arc<dyn Fn(Request) -> BoxFuture<'static, Answer> + Send + Sync>;

impl Request {
    /// The body, which is JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).expect("a message is JSON")
    }

    /// Its events.
    #[must_use]
    pub fn events(&self) -> Vec<Value> {
        self.json()["events"].as_array().cloned().unwrap_or_default()
    }
}

impl Receiver {
    /// Answers everything with 200.
    pub async fn good() -> Receiver {
        Receiver::at("127.0.0.1", |_| Box::pin(async { Answer::Status(200) })).await
    }

    /// Answers with the status that `status` gives when a request comes, once its gate is open, which it `is_open` at first.
    pub async fn gated(
        is_open: bool,
        status: impl Fn() -> u16 + Send + Sync + 'static,
    ) -> (Receiver, watch::Sender<bool>) {
        let (gate, opened) = watch::channel(is_open);
        let receiver = Receiver::at("127.0.0.1", move |_| {
            let (mut opened, status) = (opened.clone(), status());
            Box::pin(async move {
                let _gone = opened.wait_for(|is_open| *is_open).await;
                Answer::Status(status)
            })
        })
        .await;
        (receiver, gate)
    }

    /// At a free port of this address of loopback. `decide` is asked for each request.
    pub async fn at(
        host: &str,
        decide: impl Fn(Request) -> BoxFuture<'static, Answer> + Send + Sync + 'static,
    ) -> Receiver {
        let listener = TcpListener::bind((host, 0)).await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let (noted, decide): (Arc<Mutex<Noted>>, Decide) = (Arc::default(), Arc::new(decide));
        let receiver = Receiver { address, noted: noted.clone() };
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, noted.clone(), decide.clone()));
            }
        });
        receiver
    }

    /// Where it listens, with this path.
    #[must_use]
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// All that came so far, in its order.
    #[must_use]
    pub fn requests(&self) -> Vec<Request> {
        self.noted.lock().requests.clone()
    }

    #[must_use]
    pub fn n_requests(&self) -> usize {
        self.noted.lock().requests.len()
    }

    /// Requests that are not answered now, and the most that there were at a time.
    #[must_use]
    pub fn open(&self) -> (usize, usize) {
        let noted = self.noted.lock();
        (noted.n_open, noted.peak)
    }
}

async fn serve(mut stream: TcpStream, noted: Arc<Mutex<Noted>>, decide: Decide) {
    let mut bytes = Vec::new();
    let request = loop {
        if let Some(request) = whole(&bytes) {
            break request;
        }
        match stream.read_buf(&mut bytes).await {
            Ok(n) if n > 0 => {}
            _ => return,
        }
    };
    {
        let mut noted = noted.lock();
        noted.requests.push(request.clone());
        noted.n_open += 1;
        noted.peak = noted.peak.max(noted.n_open);
    }
    let mut rest = [0; 1];
    let decided = tokio::select! {
        decided = decide(request) => Some(decided),
        // a sender that gives up closes
        _ = stream.read(&mut rest) => None,
    };
    if let Some(decided) = decided {
        let _gone = answer(&mut stream, decided).await;
    }
    noted.lock().n_open -= 1;
}

async fn answer(stream: &mut TcpStream, answer: Answer) -> std::io::Result<()> {
    let end = "Connection: close\r\n\r\n";
    match answer {
        Answer::Status(status) => {
            let head = format!("HTTP/1.1 {status} Answer\r\nContent-Length: 0\r\n{end}");
            stream.write_all(head.as_bytes()).await?;
        }
        Answer::Full(status, header, body) => {
            let len = body.len();
            let text =
                format!("HTTP/1.1 {status} Answer\r\n{header}\r\nContent-Length: {len}\r\n{end}{body}");
            stream.write_all(text.as_bytes()).await?;
        }
        Answer::Slowly(status) => {
            let head = format!("HTTP/1.1 {status} Answer\r\nContent-Length: 0\r\n{end}");
            for byte in head.bytes() {
                stream.write_all(&[byte]).await?;
                stream.flush().await?;
                sleep(PAUSE).await;
            }
        }
        Answer::Hang => {
            let mut rest = Vec::new();
            stream.read_to_end(&mut rest).await?;
        }
        Answer::Close => {}
    }
    stream.shutdown().await
}

/// The request, once all of it is there.
fn whole(bytes: &[u8]) -> Option<Request> {
    let text = std::str::from_utf8(bytes).ok()?;
    let (head, body) = text.split_once("\r\n\r\n")?;
    let mut lines = head.lines();
    let path = lines.next()?.split(' ').nth(1)?.to_owned();
    let header = |line: &str| {
        let (name, value) = line.split_once(':')?;
        Some((name.to_ascii_lowercase(), value.trim().to_owned()))
    };
    let headers: BTreeMap<String, String> = lines.filter_map(header).collect();
    let len = headers.get("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
    (len <= body.len()).then(|| Request { path, headers, body: body.to_owned() })
}
