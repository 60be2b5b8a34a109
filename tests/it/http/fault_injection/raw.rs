//! A client of bare bytes with a connection that it keeps, and how it looks at an answer.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::fixture::{IDS, OWNERS};
use crate::postgres::wire::encoders::Random;

/// Rows of a question for many.
const MANY: u64 = 100;

/// What is asked, by whom, and what only its own answer looks like.
#[derive(Debug, Clone)]
pub(super) struct Question {
    /// Names the request; the server says it again.
    pub(super) name: String,
    owner: usize,
    id: u64,
    /// A hundred rows from `id` on, which leave in several chunks.
    pub(super) many: bool,
}

/// An answer, as it was on the wire.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    head: String,
    body: Vec<u8>,
}

impl Question {
    /// A question of any of the owners, one in 32 for many rows.
    pub(super) fn draw(name: String, random: &mut Random) -> Question {
        let owner = (random.next() % OWNERS.len() as u64) as usize;
        let many = random.next().is_multiple_of(32);
        Question { name, owner, id: 1 + random.next() % (IDS - MANY), many }
    }

    /// The same question of another owner.
    pub(super) fn of(self, owner: &str) -> Question {
        let owner = OWNERS.iter().position(|it| *it == owner).expect("one of them");
        Question { owner, ..self }
    }

    /// The request to `tenant`, whose `keys` are in the order of the owners.
    pub(super) fn bytes(&self, tenant: &str, keys: &[String]) -> Vec<u8> {
        let Question { name, owner, id, many } = self;
        let (compare, first, select) = match many {
            true => ("ge", MANY, "id,owner,body,filler"),
            false => ("eq", 10, "id,owner,body"),
        };
        let query = format!("$filter=id%20{compare}%20{id}&$first={first}&$orderby=id&$select={select}");
        let key = &keys[*owner];
        format!(
            "GET /auth/{tenant}/api/notes?{query} HTTP/1.1\r\nHost: 127.0.0.1\r\nX-API-Key: {key}\r\n\
             X-Request-Id: {name}\r\n\r\n"
        )
        .into_bytes()
    }

    /// Whether `answer` is this question's own, to the last row. A refusal has no rows.
    pub(super) fn check(&self, answer: &Answer) {
        let id = answer.header("x-request-id");
        assert_eq!(id, Some(&*self.name), "{self:?} got {answer:?}");
        let body: Value = serde_json::from_slice(&answer.body).unwrap_or_else(|e| panic!("{e}: {answer:?}"));
        if answer.status != 200 {
            assert!(body["value"].is_null() && !body["error"]["code"].is_null(), "{self:?} got {body}");
            return;
        }
        let rows = body["value"].as_array().expect("rows");
        assert_eq!(rows.len() as u64, if self.many { MANY } else { 1 }, "{self:?} got {body}");
        let owner = OWNERS[self.owner];
        for (row, id) in rows.iter().zip(self.id..) {
            let is_own = row["id"] == id && row["owner"] == owner && row["body"] == format!("{owner} {id}");
            assert!(is_own, "{self:?} got {row}");
        }
    }
}

impl Answer {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (found, value) = line.split_once(": ")?;
            found.eq_ignore_ascii_case(name).then_some(value)
        })
    }
}

/// A connection, opened again whenever there is none.
pub(super) struct Client {
    address: SocketAddr,
    stream: Option<TcpStream>,
}

impl Client {
    pub(super) fn new(address: SocketAddr) -> Client {
        Client { address, stream: None }
    }

    /// Asks and reads the whole answer. After an error the connection is gone.
    pub(super) async fn ask(&mut self, request: &[u8]) -> io::Result<Answer> {
        let mut stream = self.stream().await?;
        stream.write_all(request).await?;
        let answer = read(&mut stream).await?;
        self.stream = Some(stream);
        Ok(answer)
    }

    /// Sends what there is of a request and has no patience beyond `after`; it goes with a FIN or, where `reset`, a RST.
    pub(super) async fn abort(&mut self, request: &[u8], after: Duration, reset: bool) -> io::Result<()> {
        let mut stream = self.stream().await?;
        stream.write_all(request).await?;
        let _whatever_came = timeout(after, stream.read_to_end(&mut Vec::new())).await;
        if reset {
            stream.set_zero_linger()?;
        }
        Ok(())
    }

    async fn stream(&mut self) -> io::Result<TcpStream> {
        match self.stream.take() {
            Some(stream) => Ok(stream),
            None => {
                let stream = TcpStream::connect(self.address).await?;
                stream.set_nodelay(true)?;
                Ok(stream)
            }
        }
    }
}

async fn read(stream: &mut TcpStream) -> io::Result<Answer> {
    let mut bytes = Vec::new();
    let body_at = loop {
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break at + 4;
        }
        more(stream, &mut bytes).await?;
    };
    let head = String::from_utf8(bytes[..body_at].to_vec()).map_err(io::Error::other)?;
    let status = head.get(9..12).and_then(|it| it.parse().ok()).ok_or(io::ErrorKind::InvalidData)?;
    let mut answer = Answer { status, head, body: Vec::new() };
    let length = answer.header("content-length").map(|it| it.parse::<usize>().expect("a number"));
    // A chunked body of ours is JSON, which holds no such line.
    while length.map_or(!bytes.ends_with(b"\r\n0\r\n\r\n"), |length| bytes.len() < body_at + length) {
        more(stream, &mut bytes).await?;
    }
    answer.body = match length {
        Some(length) if bytes.len() != body_at + length => return Err(io::ErrorKind::InvalidData.into()),
        Some(_) => bytes.split_off(body_at),
        None => unchunked(&bytes[body_at..]).ok_or(io::ErrorKind::InvalidData)?,
    };
    Ok(answer)
}

async fn more(stream: &mut TcpStream, bytes: &mut Vec<u8>) -> io::Result<()> {
    bytes.reserve(16 << 10);
    match stream.read_buf(bytes).await? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        _ => Ok(()),
    }
}

fn unchunked(mut rest: &[u8]) -> Option<Vec<u8>> {
    let mut whole = Vec::new();
    loop {
        let end = rest.windows(2).position(|two| two == b"\r\n")?;
        let size = usize::from_str_radix(str::from_utf8(&rest[..end]).ok()?, 16).ok()?;
        if size == 0 {
            return Some(whole);
        }
        whole.extend_from_slice(rest.get(end + 2..end + 2 + size)?);
        rest = rest.get(end + 2 + size + 2..)?;
    }
}
