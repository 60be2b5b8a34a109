//! The load: some connections, each with one request in flight, over raw HTTP/1.1, so that the generator costs little
//! and the same for every server.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Makes the bytes of the n-th request.
pub(crate) type Requests = Arc<dyn Fn(u64) -> Vec<u8> + Send + Sync>;

/// What came of one run.
#[derive(Debug, Clone, Default)]
pub(crate) struct Outcome {
    /// Answers of status 200 and 201.
    pub(crate) n_answers: u64,
    pub(crate) n_failures: u64,
    pub(crate) seconds: f64,
    /// Of each answer, sorted, in microseconds.
    pub(crate) latencies: Vec<u32>,
}

/// Keeps `n_connections` busy for `time`. The connections are open before the clock starts.
pub(crate) fn run(
    address: SocketAddr,
    requests: &Requests,
    n_connections: usize,
    time: Duration,
) -> io::Result<Outcome> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut streams = Vec::new();
        for _ in 0..n_connections {
            let stream = TcpStream::connect(address).await?;
            stream.set_nodelay(true)?;
            streams.push(stream);
        }
        let began = Instant::now();
        let end = began + time;
        let tasks: Vec<_> = streams
            .into_iter()
            .enumerate()
            .map(|(i, stream)| tokio::spawn(one(stream, requests.clone(), i, n_connections, end)))
            .collect();
        let mut outcome = Outcome::default();
        for task in tasks {
            let (latencies, n_failures) = task.await.map_err(io::Error::other)??;
            outcome.n_answers += latencies.len() as u64;
            outcome.n_failures += n_failures;
            outcome.latencies.extend(latencies);
        }
        outcome.seconds = began.elapsed().as_secs_f64();
        outcome.latencies.sort_unstable();
        Ok(outcome)
    })
}

async fn one(
    mut stream: TcpStream,
    requests: Requests,
    first: usize,
    step: usize,
    end: Instant,
) -> io::Result<(Vec<u32>, u64)> {
    let (mut latencies, mut n_failures, mut buffer) = (Vec::new(), 0, Vec::new());
    // Each connection has numbers of its own, far from those of the others.
    let mut n = (first as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    while Instant::now() < end {
        let began = Instant::now();
        stream.write_all(&requests(n)).await?;
        match answer(&mut stream, &mut buffer).await? {
            200 | 201 => latencies.push(u32::try_from(began.elapsed().as_micros()).unwrap_or(u32::MAX)),
            _ => n_failures += 1,
        }
        n = n.wrapping_add(step as u64);
    }
    Ok((latencies, n_failures))
}

/// Asks once; the body, whatever the status.
pub(crate) async fn ask(address: SocketAddr, request: &[u8]) -> io::Result<(u16, Vec<u8>)> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(request).await?;
    let mut buffer = Vec::new();
    let (status, head) = head(&mut stream, &mut buffer).await?;
    let length = rest(&mut stream, &mut buffer, &head).await?;
    let body = &buffer[head.length..head.length + length];
    Ok((status, if head.chunked { unchunked(body)? } else { body.to_vec() }))
}

struct Head {
    length: usize,
    content: usize,
    chunked: bool,
}

/// Reads a whole answer; its status.
pub(crate) async fn answer(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> io::Result<u16> {
    buffer.clear();
    let (status, head) = head(stream, buffer).await?;
    rest(stream, buffer, &head).await?;
    Ok(status)
}

async fn head(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> io::Result<(u16, Head)> {
    loop {
        if let Some(end) = buffer.windows(4).position(|four| four == b"\r\n\r\n") {
            let text = std::str::from_utf8(&buffer[..end]).map_err(io::Error::other)?;
            let status = text.get(9..12).and_then(|it| it.parse().ok());
            let mut head = Head { length: end + 4, content: 0, chunked: false };
            for line in text.lines().skip(1) {
                let Some((name, value)) = line.split_once(':') else { continue };
                if name.eq_ignore_ascii_case("content-length") {
                    head.content = value.trim().parse().map_err(io::Error::other)?;
                } else if name.eq_ignore_ascii_case("transfer-encoding") {
                    head.chunked = value.contains("chunked");
                }
            }
            return Ok((status.ok_or_else(|| io::Error::other("no status"))?, head));
        }
        more(stream, buffer).await?;
    }
}

/// Reads the body to its end; its length in `buffer`.
async fn rest(stream: &mut TcpStream, buffer: &mut Vec<u8>, head: &Head) -> io::Result<usize> {
    loop {
        let there = buffer.len() - head.length;
        if head.chunked && buffer[head.length..].ends_with(b"0\r\n\r\n")
            || !head.chunked && there >= head.content
        {
            return Ok(there);
        }
        more(stream, buffer).await?;
    }
}

async fn more(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> io::Result<()> {
    buffer.reserve(16 * 1024);
    match stream.read_buf(buffer).await? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        _ => Ok(()),
    }
}

fn unchunked(mut body: &[u8]) -> io::Result<Vec<u8>> {
    let mut whole = Vec::new();
    loop {
        let end = body.windows(2).position(|two| two == b"\r\n").ok_or(io::ErrorKind::InvalidData)?;
        let size = std::str::from_utf8(&body[..end]).ok().and_then(|it| usize::from_str_radix(it, 16).ok());
        let size = size.ok_or(io::ErrorKind::InvalidData)?;
        if size == 0 {
            return Ok(whole);
        }
        let chunk = body.get(end + 2..end + 2 + size).ok_or(io::ErrorKind::InvalidData)?;
        whole.extend_from_slice(chunk);
        body = &body[end + 2 + size + 2..];
    }
}
