//! A server of few words: it answers a batch as PostgreSQL does, and what is to happen to one answer happens.

use std::fmt::Write as _;
use std::sync::Arc;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;

/// Turns an answer's messages into what is done.
pub(super) type Fault = Arc<dyn Fn(Vec<Vec<u8>>) -> Vec<Step> + Send + Sync>;

#[derive(Debug)]
pub(super) enum Step {
    /// The client has time to read it before the next step.
    Send(Vec<u8>),
    Close,
    /// Nothing more is said, and nothing closed.
    Silence,
}

/// How many keys there are; a question's is the remainder of its number.
pub(super) const KEYS: u8 = 3;

/// The role of the key of a question.
pub(super) fn role(number: u8) -> String {
    format!("role{}", number % KEYS)
}

/// The number of the key whose secret this is: the last digit of its time.
fn key(secret: &[u8]) -> u8 {
    secret[9] - b'0'
}

/// Id and text of each row that a question gets.
fn rows(number: u8) -> Vec<(i32, String)> {
    let (n_rows, width) = if number < super::LONG { (2, 3) } else { (11, 13_000) };
    (0..n_rows).map(|row| (i32::from(number), format!("{number}.{row} ") + &"x".repeat(width))).collect()
}

/// The rows as they are told to callers.
pub(super) fn json(number: u8) -> String {
    rows(number).iter().fold(String::new(), |mut json, (id, text)| {
        let comma = if json.is_empty() { "" } else { "," };
        write!(json, "{comma}{{\"id\":{id},\"text\":\"{text}\"}}").expect("a String takes it");
        json
    })
}

pub(super) fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    let len = u32::try_from(body.len() + 4).expect("a short message").to_be_bytes();
    [&[tag][..], &len, body].concat()
}

pub(super) fn error(severity: &str, sqlstate: &str) -> Vec<u8> {
    message(b'E', format!("SERROR\0V{severity}\0C{sqlstate}\0Mno\0RRevalidateCachedQuery\0\0").as_bytes())
}

pub(super) fn notice() -> Vec<u8> {
    message(b'N', b"SWARNING\0VWARNING\0C01000\0Mwell\0\0")
}

pub(super) fn parameter_status() -> Vec<u8> {
    message(b'S', b"TimeZone\0UTC\0")
}

/// Answers batch after batch; `fault` happens to the answer with this number.
pub(super) async fn serve(mut stream: UnixStream, faulty: usize, fault: Fault) {
    for number in 0.. {
        let Some(batch) = batch(&mut stream).await else { return };
        let messages = answer(&batch);
        let steps = match number == faulty {
            true => fault(messages),
            false => vec![Step::Send(messages.concat())],
        };
        for step in steps {
            match step {
                Step::Send(bytes) => {
                    if stream.write_all(&bytes).await.is_err() {
                        return;
                    }
                    for _ in 0..3 {
                        tokio::task::yield_now().await;
                    }
                }
                Step::Close => return,
                Step::Silence => std::future::pending().await,
            }
        }
    }
}

/// The messages up to a Sync or a Flush; `None`: the client has closed.
async fn batch(stream: &mut UnixStream) -> Option<Vec<(u8, Vec<u8>)>> {
    let mut batch = Vec::new();
    loop {
        let tag = stream.read_u8().await.ok()?;
        let len = stream.read_u32().await.ok()?;
        let mut body = vec![0; len as usize - 4];
        stream.read_exact(&mut body).await.ok()?;
        batch.push((tag, body));
        if tag == b'S' || tag == b'H' {
            return Some(batch);
        }
    }
}

fn answer(batch: &[(u8, Vec<u8>)]) -> Vec<Vec<u8>> {
    let mut messages = Vec::new();
    let (mut statement, mut last) = (String::new(), Vec::new());
    for (tag, body) in batch {
        match tag {
            b'P' => messages.push(message(b'1', b"")),
            b'B' => {
                (statement, last) = bound(body);
                messages.push(message(b'2', b""));
            }
            b'C' => messages.push(message(b'3', b"")),
            b'D' => {
                messages.push(message(b't', b"\0\x01\0\0\0\x17"));
                messages.push(message(b'T', &described(&[23, 25])));
            }
            b'E' => {
                match statement.as_str() {
                    "key" | "write_key" => {
                        let role = role(key(&last));
                        let id = b"01k9zv5n2m8q4r6t0w3y7b1d5f";
                        messages.push(row(&[Some(id), Some(role.as_bytes()), None, Some(b"1"), Some(b"15")]));
                    }
                    "watch" => messages.push(row(&[Some(&0_i64.to_be_bytes())])),
                    _ => {
                        let number = String::from_utf8(last.clone()).expect("digits");
                        for (id, text) in rows(number.parse().expect("a number")) {
                            messages.push(row(&[Some(&id.to_be_bytes()), Some(text.as_bytes())]));
                        }
                    }
                }
                messages.push(message(b'C', b"SELECT 1\0"));
            }
            b'S' => messages.push(message(b'Z', b"I")),
            b'H' => {}
            other => panic!("no such message is sent: {other}"),
        }
    }
    messages
}

/// Statement and last value of a Bind.
fn bound(body: &[u8]) -> (String, Vec<u8>) {
    let mut texts = body.splitn(3, |byte| *byte == 0).skip(1);
    let statement = String::from_utf8(texts.next().expect("a name").to_vec()).expect("a name");
    let rest = texts.next().expect("formats");
    let n_formats = usize::from(u16::from_be_bytes([rest[0], rest[1]]));
    let mut rest = &rest[2 + 2 * n_formats..];
    let n_values = u16::from_be_bytes([rest[0], rest[1]]);
    rest = &rest[2..];
    let mut last = Vec::new();
    for _ in 0..n_values {
        let len = u32::from_be_bytes([rest[0], rest[1], rest[2], rest[3]]) as usize;
        last = rest[4..4 + len].to_vec();
        rest = &rest[4 + len..];
    }
    (statement, last)
}

fn row(values: &[Option<&[u8]>]) -> Vec<u8> {
    let mut body = (values.len() as u16).to_be_bytes().to_vec();
    for value in values {
        let len = value.map_or(-1, |value| value.len() as i32);
        body.extend_from_slice(&len.to_be_bytes());
        body.extend_from_slice(value.unwrap_or_default());
    }
    message(b'D', &body)
}

fn described(oids: &[u32]) -> Vec<u8> {
    let mut body = (oids.len() as u16).to_be_bytes().to_vec();
    for oid in oids {
        body.extend_from_slice(b"name\0\0\0\0\0\0\0");
        body.extend_from_slice(&oid.to_be_bytes());
        body.extend_from_slice(&[0; 8]);
    }
    body
}
