//! Where bytes go: counted, and compressed as a stream.

use std::io::{self, Write};

use flate2::write::GzEncoder;

use crate::Compression;

/// Of whole files and of Parquet pages: fast, and still a third to a fifth of the size of text.
pub(crate) const ZSTD_LEVEL: i32 = 1;
/// As fast as gzip is before its size grows.
pub(crate) const GZIP_LEVEL: u32 = 4;
/// Bytes that are held before the sink gets them.
const CHUNK: usize = 64 << 10;

/// Counts what a sink has taken.
pub(crate) struct Counted<W> {
    into: W,
    n_bytes: u64,
    /// The file was given up: an end that would make it look whole is not written.
    is_given_up: bool,
}

impl<W: Write> Counted<W> {
    pub(crate) fn new(into: W) -> Counted<W> {
        Counted { into, n_bytes: 0, is_given_up: false }
    }

    pub(crate) fn n_bytes(&self) -> u64 {
        self.n_bytes
    }

    pub(crate) fn into_inner(self) -> W {
        self.into
    }
}

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.is_given_up {
            return Err(io::Error::other("the file was given up"));
        }
        let n_bytes = self.into.write(bytes)?;
        self.n_bytes += n_bytes as u64;
        Ok(n_bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.into.flush()
    }
}

/// Text on its way into a file, compressed.
pub(crate) struct Sink<W: Write> {
    held: Vec<u8>,
    stream: Stream<W>,
}

enum Stream<W: Write> {
    Plain(Counted<W>),
    Gzip(Gzip<W>),
    Zstd(zstd::Encoder<'static, Counted<W>>),
}

/// A gzip encoder writes its end when it is dropped. This one does so only when it is finished.
struct Gzip<W: Write>(Option<GzEncoder<Counted<W>>>);

impl<W: Write> Sink<W> {
    pub(crate) fn new(compression: Compression, into: W) -> io::Result<Sink<W>> {
        let into = Counted::new(into);
        let stream = match compression {
            Compression::None => Stream::Plain(into),
            Compression::Gzip => {
                let level = flate2::Compression::new(GZIP_LEVEL);
                Stream::Gzip(Gzip(Some(GzEncoder::new(into, level))))
            }
            Compression::Zstd => {
                let mut encoder = zstd::Encoder::new(into, ZSTD_LEVEL)?;
                encoder.include_checksum(true)?;
                Stream::Zstd(encoder)
            }
        };
        Ok(Sink { held: Vec::with_capacity(CHUNK), stream })
    }

    /// What was added and not passed on yet; the next text is appended to it.
    pub(crate) fn text(&mut self) -> &mut Vec<u8> {
        &mut self.held
    }

    /// Passes on what is held, if it is enough; called after each row.
    pub(crate) fn end_row(&mut self) -> io::Result<()> {
        if self.held.len() < CHUNK { Ok(()) } else { self.pass_on() }
    }

    pub(crate) fn n_bytes(&self) -> u64 {
        match &self.stream {
            Stream::Plain(into) => into.n_bytes(),
            Stream::Gzip(gzip) => gzip.0.as_ref().map_or(0, |encoder| encoder.get_ref().n_bytes()),
            Stream::Zstd(encoder) => encoder.get_ref().n_bytes(),
        }
    }

    pub(crate) fn finish(mut self) -> io::Result<W> {
        self.pass_on()?;
        let into = match self.stream {
            Stream::Plain(into) => into,
            Stream::Gzip(mut gzip) => gzip.0.take().expect("it is taken here only").finish()?,
            Stream::Zstd(encoder) => encoder.finish()?,
        };
        Ok(into.into_inner())
    }

    fn pass_on(&mut self) -> io::Result<()> {
        match &mut self.stream {
            Stream::Plain(into) => into.write_all(&self.held)?,
            Stream::Gzip(gzip) => gzip.0.as_mut().expect("it is not finished").write_all(&self.held)?,
            Stream::Zstd(encoder) => encoder.write_all(&self.held)?,
        }
        self.held.clear();
        // what one long row made is given back
        self.held.shrink_to(2 * CHUNK);
        Ok(())
    }
}

impl<W: Write> Drop for Gzip<W> {
    fn drop(&mut self) {
        if let Some(encoder) = &mut self.0 {
            encoder.get_mut().is_given_up = true;
        }
    }
}
