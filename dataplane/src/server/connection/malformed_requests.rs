//! What is no HTTP gets an answer in our shape. No handler sees it: hyper answers by itself, with a status and nothing else.
//!
//! What comes in is looked at and passed on as it is. What goes out is replaced where it is exactly hyper's own answer; each
//! of ours has an `x-request-id`.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::http::Uri;
use axum::response::IntoResponse as _;
use rowgate_core::problem::{Code, Problem};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::server::respond::{Refusal, RequestId, finish, problem_json};

/// So much of a request line is kept to say what is wrong with it.
const MAX_LINE_LEN: usize = 1024;
/// Hyper's own answer is shorter.
const MAX_OWN_LEN: usize = 200;

/// A connection whose answers to what is no HTTP are ours.
pub(crate) struct ExplainMalformed<S> {
    stream: S,
    /// The first line of what came in since something was written.
    line: Vec<u8>,
    line_is_over: bool,
    /// What is written in place of hyper's answer, and how much of it is out.
    answer: Option<(Vec<u8>, usize)>,
}

impl<S> ExplainMalformed<S> {
    pub(crate) fn new(stream: S) -> ExplainMalformed<S> {
        ExplainMalformed { stream, line: Vec::new(), line_is_over: false, answer: None }
    }

    fn note(&mut self, came: &[u8]) {
        // a client may end what it sent before with an empty line
        let start =
            if self.line.is_empty() { came.iter().take_while(|it| b"\r\n".contains(it)).count() } else { 0 };
        let most = came.len().min(start + MAX_LINE_LEN - self.line.len());
        let came = &came[start..most];
        let end = came.iter().position(|byte| *byte == b'\n');
        self.line.extend_from_slice(&came[..end.unwrap_or(came.len())]);
        self.line_is_over = end.is_some() || self.line.len() == MAX_LINE_LEN;
    }

    /// Takes `written` for itself where it is hyper's own answer.
    fn takes(&mut self, written: &[u8]) -> bool {
        let own = Own::of(written).filter(|_| self.answer.is_none());
        if let Some(own) = &own {
            self.answer = Some((own.explained(&self.line), 0));
        }
        self.line.clear();
        self.line_is_over = false;
        own.is_some()
    }
}

impl<S: AsyncWrite + Unpin> ExplainMalformed<S> {
    fn poll_answer(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while let Some((answer, n_out)) = &mut self.answer {
            if *n_out == answer.len() {
                break;
            }
            match ready!(Pin::new(&mut self.stream).poll_write(cx, &answer[*n_out..]))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                n => *n_out += n,
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for ExplainMalformed<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
        if !self.line_is_over {
            self.note(&buf.filled()[before..]);
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for ExplainMalformed<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        if self.takes(buf) {
            return Poll::Ready(Ok(buf.len()));
        }
        ready!(self.poll_answer(cx))?;
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let first = if let [first] = bufs { &first[..] } else { &[] };
        if self.takes(first) {
            return Poll::Ready(Ok(first.len()));
        }
        ready!(self.poll_answer(cx))?;
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_answer(cx))?;
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_answer(cx))?;
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// An answer that hyper has made by itself: a status line, and no headers but these.
struct Own<'a> {
    status: &'a str,
    code: Code,
    date: &'a str,
}

impl Own<'_> {
    fn of(written: &[u8]) -> Option<Own<'_>> {
        if MAX_OWN_LEN < written.len() || !written.starts_with(b"HTTP/1.") {
            return None;
        }
        let head = std::str::from_utf8(written).ok()?.strip_suffix("\r\n\r\n")?;
        let mut lines = head.split("\r\n");
        let status = lines.next()?;
        let code = match status.split(' ').nth(1)? {
            "400" => Code::BadRequest,
            "414" => Code::UriTooLong,
            "431" => Code::HeadersTooLarge,
            _ => return None,
        };
        let mut date = "";
        for line in lines {
            match line {
                "connection: close" | "content-length: 0" => {}
                line if line.starts_with("date: ") => date = line,
                _ => return None,
            }
        }
        Some(Own { status, code, date })
    }

    /// What is sent in its place, to who sent `line`.
    fn explained(&self, line: &[u8]) -> Vec<u8> {
        let problem = match self.code {
            Code::BadRequest => Problem::new(Code::BadRequest, fault(line)),
            code => Problem::new(
                code,
                "the URL and the headers together are larger than 16 KiB, or there are more than 100 headers; send \
                 fewer or shorter ones",
            ),
        };
        let id = RequestId::now();
        tracing::info!(
            request_id = id.as_str(),
            status = problem.code.status(),
            "a connection did not send HTTP"
        );
        let body = problem_json(&problem, &id);
        let response = finish(Refusal(problem).into_response(), &id);
        let mut answer = format!("{}\r\n", self.status).into_bytes();
        for (name, value) in response.headers() {
            answer.extend([name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat());
        }
        let end = format!("content-length: {}\r\nconnection: close\r\n{}\r\n\r\n", body.len(), self.date);
        answer.extend(end.as_bytes());
        if !line.starts_with(b"HEAD ") {
            answer.extend(body.as_bytes());
        }
        answer
    }
}

/// What is wrong with a request that begins with this line, as far as the line shows it.
fn fault(line: &[u8]) -> String {
    // a handshake of TLS
    if line.starts_with(&[0x16, 3]) {
        return "this port serves HTTP without TLS; use http:// instead of https://, or a proxy in front of it that terminates TLS".to_owned();
    }
    let unfit = address(line).and_then(|address| {
        // what may stand in an address, and what a part of one is divided by
        let may = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@/?%[]#".contains(byte);
        let is_address = Uri::try_from(address).is_ok();
        address.iter().copied().find(|byte| *byte == b' ' || !is_address && !may(byte))
    });
    match unfit {
        Some(byte) => {
            let what = match byte {
                b' ' => "a space".to_owned(),
                0x21..0x7f => format!("the character {}", char::from(byte)),
                _ => format!("the byte {byte:#04x}"),
            };
            format!(
                "the URL contains {what} that is not percent-encoded; write it as %{byte:02X}, or let the client \
                 encode the URL (curl -G --data-urlencode '$filter=...')"
            )
        }
        None => "the request is not valid HTTP/1.1; check its request line and its headers, or send it with an HTTP client"
            .to_owned(),
    }
}

/// The address in a request line.
fn address(line: &[u8]) -> Option<&[u8]> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let start = line.iter().position(|byte| *byte == b' ')?;
    let (method, rest) = (&line[..start], &line[start + 1..]);
    let end = rest.windows(6).rposition(|six| six == b" HTTP/").unwrap_or(rest.len());
    (!method.is_empty() && method.iter().all(u8::is_ascii_alphabetic)).then_some(&rest[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_an_address_is_named() {
        for (line, words) in [
            (&b"GET /a?$filter=name eq 'x' HTTP/1.1\r"[..], "a space that is not"),
            (
                b"GET /a?$filter=name%20eq%20\"x\" HTTP/1.1\r",
                "the character \" that is not percent-encoded; write it as %22",
            ),
            (b"GET /a?$filter=id<3 HTTP/1.1\r", "%3C"),
            (b"GET /a?b=\x01 HTTP/1.1\r", "the byte 0x01 that is not percent-encoded; write it as %01"),
            (b"GET /a?b=\xff HTTP/1.1\r", "%FF"),
            (b"GET /a b", "a space"),
            (b"\x16\x03\x01\x02", "without TLS"),
            (b"GET /a?b=c HTTP/1.1\r", "request line"),
            (b"GET /\xc3\xa4 HTTP/1.1\r", "request line"),
            (b"", "request line"),
            (b"GET", "request line"),
            (b" / HTTP/1.1", "request line"),
            (b"{\"a\": 1}", "request line"),
        ] {
            assert!(fault(line).contains(words), "{}: {}", String::from_utf8_lossy(line), fault(line));
        }
    }

    #[test]
    fn only_hypers_own_answers_are_replaced() {
        let date = "date: Sun, 22 Nov 2026 12:15:56 GMT";
        let own = |status: &str, more: &str| {
            format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: 0\r\n{more}{date}\r\n\r\n")
        };
        for (written, is_own) in [
            (own("400 Bad Request", ""), true),
            (own("431 Request Header Fields Too Large", ""), true),
            (own("400 Bad Request", "x-request-id: a\r\n"), false),
            (own("404 Not Found", ""), false),
            (own("200 OK", ""), false),
            (own("400 Bad Request", "").replace("th: 0", "th: 1"), false),
            (format!("x{}", own("400 Bad Request", "")), false),
            (format!("{}x", own("400 Bad Request", "")), false),
            (String::new(), false),
        ] {
            assert_eq!(Own::of(written.as_bytes()).is_some(), is_own, "{written}");
        }
    }

    #[test]
    fn the_first_line_is_kept_however_it_comes_and_no_more_than_that() {
        for step in [1, 2, 7, 5000] {
            let mut seen = ExplainMalformed::new(());
            for part in b"\r\n\r\nGET /a b HTTP/1.1\r\nHost: x\r\n\r\n".chunks(step) {
                if !seen.line_is_over {
                    seen.note(part);
                }
            }
            assert_eq!(seen.line, b"GET /a b HTTP/1.1\r", "{step}");
            let mut seen = ExplainMalformed::new(());
            for part in vec![b'x'; 10_000].chunks(step) {
                if !seen.line_is_over {
                    seen.note(part);
                }
            }
            assert_eq!(seen.line.len(), MAX_LINE_LEN, "{step}");
        }
    }
}
