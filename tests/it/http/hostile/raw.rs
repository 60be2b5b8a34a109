//! Bytes to a server as nobody's client would send them, and every answer that comes back.

use std::net::SocketAddr;

use rowgate_tests::wait::DEADLINE;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// One answer, as far as it came.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// Lines after the status line, in lower case.
    pub(crate) headers: Vec<String>,
    pub(crate) body: Vec<u8>,
}

/// Sends `bytes` and reads until the server closes; `ends` closes our side after them. An answer may come, and the
/// connection may go, before all was sent.
pub(crate) async fn exchange(to: SocketAddr, bytes: &[u8], ends: bool) -> Vec<Answer> {
    let mut stream = TcpStream::connect(to).await.expect("the server listens");
    let (mut from_server, mut to_server) = stream.split();
    let mut answers = Vec::new();
    let sending = async {
        let sent = to_server.write_all(bytes).await;
        if ends && sent.is_ok() {
            // It may be gone already, which is fine.
            let _gone = to_server.shutdown().await;
        }
    };
    let reading = async {
        // A reset is an end too.
        let _end = from_server.read_to_end(&mut answers).await;
    };
    let both = async { tokio::join!(sending, reading) };
    if timeout(DEADLINE, both).await.is_err() {
        let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(200)]).into_owned();
        panic!("the server left the connection open after {shown:?}");
    }
    split(&answers)
}

/// Each answer of ours has a Content-Length, or nothing after its headers.
fn split(mut bytes: &[u8]) -> Vec<Answer> {
    let mut answers = Vec::new();
    while !bytes.is_empty() {
        let shown = String::from_utf8_lossy(bytes);
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
        let end = end.unwrap_or_else(|| panic!("an answer without an end: {shown}"));
        let head = std::str::from_utf8(&bytes[..end]).expect("our headers are ASCII");
        let mut lines = head.split("\r\n");
        let status = lines.next().and_then(|line| line.strip_prefix("HTTP/1.")?.get(2..5)?.parse().ok());
        let headers: Vec<String> = lines.map(str::to_ascii_lowercase).collect();
        let length = headers.iter().find_map(|line| line.strip_prefix("content-length:"));
        let length = length.map_or(0, |length| length.trim().parse().expect("a number"));
        bytes = &bytes[end + 4..];
        let (body, rest) = bytes.split_at(length);
        answers.push(Answer {
            status: status.unwrap_or_else(|| panic!("no status line: {shown}")),
            headers,
            body: body.to_vec(),
        });
        bytes = rest;
    }
    answers
}

impl Answer {
    /// Everything but the time.
    pub(crate) fn tellable(&self) -> Answer {
        let mut all = self.clone();
        all.headers.retain(|line| !line.starts_with("date:"));
        all
    }

    pub(crate) fn has(&self, header: &str) -> bool {
        self.headers.iter().any(|line| line.split(':').next() == Some(header))
    }
}
