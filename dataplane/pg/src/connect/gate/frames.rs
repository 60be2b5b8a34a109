//! What of a server's messages is passed on, and how much. Pure: bytes in, bytes out, whatever pieces they come in.

use std::fmt;

use rowgate_core::scram::{self, MAX_ROUNDS};

use crate::tenant::read_limits::{MAX_ERROR, MAX_ROW, MAX_ROWS, MAX_SETTING, MAX_TOTAL};

/// Between two messages, or in the middle of one.
#[derive(Debug, Default)]
pub(super) struct Frames {
    /// Tag and length of the message under way, as far as they have come.
    head: Vec<u8>,
    /// What is still to come of it.
    left: usize,
    then: Then,
    /// Bytes and rows since the last moment without a transaction, and since the last statement.
    n_bytes: usize,
    n_rows: usize,
    /// Of the server's process.
    pub(super) pid: i32,
    /// The last message that came to its end says that the server waits for the next statement.
    pub(super) is_ready: bool,
}

/// What becomes of a message's body.
#[derive(Debug, Default)]
enum Then {
    #[default]
    Pass,
    Skip,
    /// It is short, and both passed on and looked at; or an error, of which so much is kept.
    Keep(Vec<u8>),
}

/// More than is read. It holds figures alone.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Beyond {
    Row(usize),
    Rows,
    Total,
    /// Of SCRAM, which a password that is none of ours asks for.
    Rounds(u64),
}

/// AuthenticationSASLContinue.
const SASL_CONTINUE: [u8; 4] = [0, 0, 0, 11];

impl Beyond {
    /// Code and routine of the error that stands for it. A password that is none of ours is a wrong one, and is set again.
    pub(super) fn error(&self) -> (&'static str, &'static str) {
        match self {
            Beyond::Row(_) | Beyond::Rows | Beyond::Total => ("54000", "beyond"),
            Beyond::Rounds(_) => ("28P01", "rounds"),
        }
    }
}

impl fmt::Display for Beyond {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Beyond::Row(n) => write!(f, "a row takes {n} bytes, and at most {MAX_ROW} are read"),
            Beyond::Rows => {
                write!(f, "there are more than {MAX_ROWS} rows, which is the maximum that is read")
            }
            Beyond::Total => {
                write!(f, "with it the tenant takes more than {MAX_TOTAL} bytes, which is as much as is read")
            }
            Beyond::Rounds(n) => {
                write!(
                    f,
                    "the role's password takes {n} rounds of SCRAM to log in, and at most {MAX_ROUNDS} are made"
                )
            }
        }
    }
}

impl Frames {
    /// Takes what has come, and adds what is to be passed on.
    pub(super) fn feed(&mut self, mut chunk: &[u8], out: &mut Vec<u8>) -> Result<(), Beyond> {
        while !chunk.is_empty() {
            if self.head.len() < 5 {
                let n = chunk.len().min(5 - self.head.len());
                self.head.extend_from_slice(&chunk[..n]);
                chunk = &chunk[n..];
                if self.head.len() < 5 {
                    return Ok(());
                }
                self.begin(out)?;
            }
            let n = chunk.len().min(self.left);
            let (body, rest) = chunk.split_at(n);
            match &mut self.then {
                Then::Pass => out.extend_from_slice(body),
                Then::Skip => {}
                Then::Keep(kept) => {
                    let room = MAX_ERROR.saturating_sub(kept.len()).min(n);
                    kept.extend_from_slice(&body[..room]);
                }
            }
            (chunk, self.left) = (rest, self.left - n);
            if self.left == 0 {
                self.end(out)?;
            }
        }
        Ok(())
    }

    /// A message's tag and length are known.
    fn begin(&mut self, out: &mut Vec<u8>) -> Result<(), Beyond> {
        let length = self.head[1..].iter().fold(0, |length, byte| (length << 8) | usize::from(*byte));
        self.left = length.saturating_sub(4);
        self.is_ready = false;
        self.then = match self.head[0] {
            // notices and notifications, which nobody waits for
            b'N' | b'A' => Then::Skip,
            b'S' if MAX_SETTING < self.left => Then::Skip,
            b'R' if MAX_ERROR < self.left => return Err(Beyond::Row(self.left)),
            b'E' | b'Z' | b'K' | b'R' => Then::Keep(Vec::new()),
            tag => {
                self.n_rows += usize::from(tag == b'D');
                self.n_bytes += self.left + 5;
                if MAX_ROW < self.left {
                    return Err(Beyond::Row(self.left));
                }
                if MAX_ROWS < self.n_rows {
                    return Err(Beyond::Rows);
                }
                if MAX_TOTAL < self.n_bytes {
                    return Err(Beyond::Total);
                }
                Then::Pass
            }
        };
        if matches!(self.then, Then::Pass) {
            out.extend_from_slice(&self.head);
        }
        Ok(())
    }

    /// A message has come to its end.
    fn end(&mut self, out: &mut Vec<u8>) -> Result<(), Beyond> {
        let tag = self.head[0];
        if let Then::Keep(kept) = std::mem::take(&mut self.then) {
            if tag == b'R'
                && let Some(challenge) = kept.strip_prefix(&SASL_CONTINUE)
                && let Some(rounds) = scram::beyond_rounds(challenge)
            {
                return Err(Beyond::Rounds(rounds));
            }
            let body = if tag == b'E' { whole_fields(kept) } else { kept };
            out.push(tag);
            out.extend(u32::try_from(body.len() + 4).expect("it is short").to_be_bytes());
            out.extend_from_slice(&body);
            match (tag, &body[..]) {
                (b'K', [a, b, c, d, ..]) => self.pid = i32::from_be_bytes([*a, *b, *c, *d]),
                (b'Z', state) => {
                    self.is_ready = true;
                    if state == b"I" {
                        self.n_bytes = 0;
                    }
                }
                _ => {}
            }
        }
        if matches!(tag, b'C' | b's' | b'Z') {
            self.n_rows = 0;
        }
        self.head.clear();
        Ok(())
    }
}

/// An error of which the end may be missing, as one that is whole: the last field is cut, or left out.
fn whole_fields(mut kept: Vec<u8>) -> Vec<u8> {
    if kept.ends_with(b"\0\0") {
        return kept;
    }
    // in the middle of a field, unless it stopped right behind one
    if kept.last() != Some(&0) {
        let text = kept.iter().rposition(|byte| *byte == 0).map_or(0, |at| at + 1);
        // a character of UTF-8 is cut off as a whole
        let cut = match std::str::from_utf8(&kept[text..]) {
            Ok(_) => kept.len(),
            Err(error) => text + error.valid_up_to(),
        };
        kept.truncate(cut);
        if kept.last().is_some_and(|byte| *byte != 0) {
            kept.push(0);
        }
    }
    kept.push(0);
    kept
}

/// An error as PostgreSQL would send it.
pub(super) fn refusal(code: &str, message: &str, file: &str, routine: &str) -> Vec<u8> {
    let mut body = Vec::new();
    let fields =
        [(b'S', "FATAL"), (b'V', "FATAL"), (b'C', code), (b'M', message), (b'F', file), (b'R', routine)];
    for (field, value) in fields {
        body.push(field);
        body.extend(value.bytes().filter(|byte| *byte != 0));
        body.push(0);
    }
    body.push(0);
    let mut message = vec![b'E'];
    message.extend(u32::try_from(body.len() + 4).expect("it is short").to_be_bytes());
    message.extend(body);
    message
}

#[cfg(test)]
mod tests;
