//! Messages of the server as they come off a stream, every length checked.

use bytes::{Buf as _, BytesMut};
use futures_util::FutureExt as _;
use postgres_protocol::message::backend::{self, Header};
use tokio::io::{AsyncRead, AsyncReadExt as _};

use crate::wire::exchange::session_settings;
use crate::wire::failure::{Malformed, Stop};

/// Before authentication nothing of the server's is long.
const STARTUP_LIMIT: usize = 64 << 10;
/// No row is longer.
pub(crate) const LIMIT: usize = 64 << 20;
/// No message but a row is longer: an error, whose words a tenant's code may choose, or a description of 1,600 columns.
const OTHER_LIMIT: usize = 1 << 20;
/// Rows that say who a key is, which a tenant's code may have replaced.
const KEY_LIMIT: usize = 64 << 10;
/// Room that is kept for the next answer; a buffer that one long row made is given back.
pub(crate) const KEEP: usize = 256 << 10;
const CHUNK: usize = 16 << 10;

/// Reads one message after the other.
pub(crate) struct Inbox {
    buffer: BytesMut,
    /// Length of the message that was handed out last, still in the buffer.
    taken: usize,
    limit: usize,
    is_of_standby: bool,
    has_deviated: bool,
}

impl Inbox {
    pub(crate) fn new() -> Inbox {
        Inbox {
            buffer: BytesMut::with_capacity(CHUNK),
            taken: 0,
            limit: STARTUP_LIMIT,
            is_of_standby: false,
            has_deviated: false,
        }
    }

    /// The server is who it says it is: rows may come.
    pub(crate) fn trust(&mut self) {
        self.limit = LIMIT;
    }

    /// Until [`Inbox::trust`]: a key's row comes next.
    pub(crate) fn expect_key(&mut self) {
        self.limit = KEY_LIMIT;
    }

    /// The next message, its tag and its body. Notices and the like mean nothing here and are left out.
    pub(crate) async fn next<S>(&mut self, stream: &mut S) -> Result<(u8, &[u8]), Stop>
    where
        S: AsyncRead + Unpin,
    {
        loop {
            self.buffer.advance(std::mem::take(&mut self.taken));
            let header = self.fill(stream).await?;
            self.taken = header.len() as usize + 1;
            if header.tag() == backend::PARAMETER_STATUS_TAG {
                self.note();
            }
            if !is_aside(header.tag()) {
                return Ok((header.tag(), &self.buffer[5..self.taken]));
            }
        }
    }

    /// Whether the server has said that it repeats what another one does. It says so before the first ReadyForQuery, and
    /// what is no standby then never becomes one.
    pub(crate) fn is_of_standby(&self) -> bool {
        self.is_of_standby
    }

    /// Whether the session has reported a setting that is not as we opened it. That stands before the ReadyForQuery of the
    /// exchange in which it was changed.
    pub(crate) fn has_deviated(&self) -> bool {
        self.has_deviated
    }

    /// The message that was just taken is a ParameterStatus.
    fn note(&mut self) {
        let body = &self.buffer[5..self.taken];
        self.is_of_standby |= body == b"in_hot_standby\0on\0";
        self.has_deviated |= session_settings::deviates(body);
    }

    /// Reads until the next message is whole.
    async fn fill<S>(&mut self, stream: &mut S) -> Result<Header, Stop>
    where
        S: AsyncRead + Unpin,
    {
        loop {
            if let Some(header) = Header::parse(&self.buffer).map_err(|_| Malformed("a length below 4"))? {
                let len = header.len() as usize + 1;
                let is_row = header.tag() == backend::DATA_ROW_TAG;
                if self.limit < len || (!is_row && OTHER_LIMIT < len) {
                    return Err(Stop::TooLong);
                }
                if len <= self.buffer.len() {
                    return Ok(header);
                }
            }
            if self.buffer.capacity() - self.buffer.len() < CHUNK / 2 {
                self.buffer.reserve(CHUNK);
            }
            if stream.read_buf(&mut self.buffer).await? == 0 {
                return Err(Stop::Io(std::io::ErrorKind::UnexpectedEof.into()));
            }
        }
    }

    /// Reads what has arrived, without waiting. False: the stream has ended.
    pub(crate) fn look<S: AsyncRead + Unpin>(&mut self, stream: &mut S) -> bool {
        match stream.read_buf(&mut self.buffer).now_or_never() {
            None => true,
            Some(Ok(n_bytes)) => 0 < n_bytes,
            Some(Err(_)) => false,
        }
    }

    /// Whether nothing has been read that no exchange asked for.
    pub(crate) fn is_drained(&mut self) -> bool {
        loop {
            self.buffer.advance(std::mem::take(&mut self.taken));
            match Header::parse(&self.buffer) {
                Ok(Some(header)) if is_aside(header.tag()) && (header.len() as usize) < self.buffer.len() => {
                    self.taken = header.len() as usize + 1;
                }
                _ => return self.buffer.first().is_none_or(|tag| is_aside(*tag)),
            }
        }
    }

    /// Gives back the room of an unusually long answer.
    pub(crate) fn shrink(&mut self) {
        self.buffer.advance(std::mem::take(&mut self.taken));
        if KEEP < self.buffer.capacity() {
            let rest = std::mem::take(&mut self.buffer);
            self.buffer = BytesMut::with_capacity(rest.len().max(CHUNK));
            self.buffer.extend_from_slice(&rest);
        }
    }
}

/// Whether a message may come at any time and means nothing here.
fn is_aside(tag: u8) -> bool {
    matches!(
        tag,
        backend::NOTICE_RESPONSE_TAG | backend::PARAMETER_STATUS_TAG | backend::NOTIFICATION_RESPONSE_TAG
    )
}

/// Walks through the body of a message, or through a value that is made of others.
pub struct Fields<'a> {
    rest: &'a [u8],
    /// Values of the row that are not read yet.
    left: usize,
}

impl<'a> Fields<'a> {
    /// A body that is no DataRow, or a value.
    #[must_use]
    pub fn new(body: &'a [u8]) -> Fields<'a> {
        Fields { rest: body, left: 0 }
    }

    /// A DataRow.
    ///
    /// # Errors
    ///
    /// It does not hold its number of values.
    #[inline]
    pub fn of_row(body: &'a [u8]) -> Result<Fields<'a>, Malformed> {
        let mut fields = Fields::new(body);
        fields.left = usize::from(u16::from_be_bytes(fields.bytes()?));
        Ok(fields)
    }

    /// How many values of the row are not read yet.
    #[must_use]
    pub fn n_values(&self) -> usize {
        self.left
    }

    /// The next value of the row; `None` is NULL.
    ///
    /// # Errors
    ///
    /// There is none, or its length is wrong.
    #[inline]
    pub fn value(&mut self) -> Result<Option<&'a [u8]>, Malformed> {
        self.left = self.left.checked_sub(1).ok_or(Malformed("a row with too few values"))?;
        self.sized()
    }

    /// A value with its length before it; `None` is NULL.
    ///
    /// # Errors
    ///
    /// The length is missing, negative, or more than is there.
    #[inline]
    pub fn sized(&mut self) -> Result<Option<&'a [u8]>, Malformed> {
        match i32::from_be_bytes(self.bytes()?) {
            -1 => Ok(None),
            len => {
                let len = usize::try_from(len).map_err(|_| Malformed("a negative length"))?;
                self.take(len).map(Some)
            }
        }
    }

    /// The next `N` bytes.
    ///
    /// # Errors
    ///
    /// There are fewer.
    #[inline]
    pub fn bytes<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (head, rest) =
            self.rest.split_first_chunk::<N>().ok_or(Malformed("a message that ends early"))?;
        self.rest = rest;
        Ok(*head)
    }

    /// Up to the next zero byte, which is eaten.
    pub(crate) fn text(&mut self) -> Result<&'a [u8], Malformed> {
        let end = self
            .rest
            .iter()
            .position(|&byte| byte == 0)
            .ok_or(Malformed("a string without its terminator"))?;
        let text = self.take(end)?;
        self.rest = &self.rest[1..];
        Ok(text)
    }

    /// What is not read yet.
    #[must_use]
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    #[inline]
    fn take(&mut self, len: usize) -> Result<&'a [u8], Malformed> {
        let (head, rest) = self.rest.split_at_checked(len).ok_or(Malformed("a message that ends early"))?;
        self.rest = rest;
        Ok(head)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read(bytes: &[u8]) -> Result<Vec<(u8, Vec<u8>)>, Stop> {
        let (mut inbox, mut stream) = (Inbox::new(), bytes);
        let mut all = Vec::new();
        loop {
            match inbox.next(&mut stream).await {
                Ok((tag, body)) => all.push((tag, body.to_vec())),
                Err(Stop::Io(error)) if error.kind() == std::io::ErrorKind::UnexpectedEof => return Ok(all),
                Err(stop) => return Err(stop),
            }
        }
    }

    #[tokio::test]
    async fn messages_come_one_by_one_and_bad_lengths_are_refused() {
        let whole = read(b"Z\0\0\0\x05IN\0\0\0\x04\x31\0\0\0\x04C\0\0\0\x09half")
            .await
            .expect("two messages and a half");
        assert_eq!(whole, [(b'Z', b"I".to_vec()), (b'1', vec![])]);
        for wrong in [b"D\0\0\0\x03", b"D\xff\xff\xff\xff"] {
            assert!(matches!(read(wrong).await, Err(Stop::Malformed(_))), "{wrong:?}");
        }
        for long in [b"D\x7f\xff\xff\xff", b"D\0\x01\0\0"] {
            assert!(matches!(read(long).await, Err(Stop::TooLong)), "{long:?}");
        }
    }

    #[test]
    fn a_row_that_lies_about_its_lengths_is_an_error() {
        let whole = b"\0\x02\0\0\0\x01x\xff\xff\xff\xff";
        let mut fields = Fields::of_row(whole).expect("a count");
        assert_eq!(fields.value().expect("a value"), Some(&b"x"[..]));
        assert_eq!(fields.value().expect("a NULL"), None);
        assert!(fields.value().is_err());
        for end in 0..whole.len() {
            let read = Fields::of_row(&whole[..end]).and_then(|mut fields| {
                fields.value()?;
                fields.value()
            });
            assert!(read.is_err(), "{end}");
        }
        let negative = Fields::of_row(b"\0\x01\xff\xff\xff\xfe").expect("a count").value();
        assert!(negative.is_err());
    }
}
