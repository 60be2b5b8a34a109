//! Compressed files, and sinks that take nothing.

use std::io::{self, Read as _, Write};
use std::sync::atomic::{AtomicUsize, Ordering};

use flate2::read::GzDecoder;
use parquet::file::reader::FileReader as _;
use rowgate_sql::shape::Encoding;

use super::{column, encode, reader, row};
use crate::{Compression, EncodeError, Encoder, FileFormat};

const FORMATS: [FileFormat; 3] =
    [FileFormat::Csv { safe: false }, FileFormat::JsonLines, FileFormat::Parquet];

#[test]
fn text_is_compressed_as_a_whole() {
    let texts: Vec<String> = (0..20_000).map(|i| format!("row {i}")).collect();
    let rows: Vec<_> = texts.iter().map(|text| vec![Some(text.as_bytes())]).collect();
    for format in [FileFormat::Csv { safe: false }, FileFormat::JsonLines] {
        let plain = encode(format, vec![column("a", Encoding::Text)], &rows).expect("a file");
        for compression in [Compression::Gzip, Compression::Zstd] {
            let columns = vec![column("a", Encoding::Text)];
            let mut encoder = Encoder::new(format, compression, columns, Vec::new()).expect("an encoder");
            for values in &rows {
                encoder.push(&row(values)).expect("a row");
            }
            let so_far = encoder.n_bytes();
            let file = encoder.finish().expect("a file");
            assert!(so_far <= file.len() as u64 && file.len() < plain.len() / 2);
            let read = match compression {
                Compression::Gzip => {
                    let mut read = Vec::new();
                    GzDecoder::new(&file[..]).read_to_end(&mut read).expect("gzip");
                    read
                }
                _ => zstd::decode_all(&file[..]).expect("zstd"),
            };
            assert!(read == plain, "{format:?} {compression:?}");
        }
    }
}

#[test]
fn parquet_compresses_its_pages() {
    let text = "abc".repeat(1000);
    for (compression, codec) in
        [(Compression::None, "UNCOMPRESSED"), (Compression::Gzip, "GZIP"), (Compression::Zstd, "ZSTD")]
    {
        let columns = vec![column("a", Encoding::Text)];
        let mut encoder =
            Encoder::new(FileFormat::Parquet, compression, columns, Vec::new()).expect("an encoder");
        encoder.push(&row(&[Some(text.as_bytes())])).expect("a row");
        let reader = reader(encoder.finish().expect("a file"));
        let used = format!("{:?}", reader.metadata().row_group(0).column(0).compression());
        assert!(used.starts_with(codec), "{used}");
        let mut rows = reader.get_row_iter(None).expect("rows");
        let read = rows.next().expect("a row").expect("it is read");
        assert_eq!(read.to_string(), format!("{{a: \"{text}\"}}"));
    }
}

/// Takes so many bytes and no more.
struct Full(usize);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0 < bytes.len() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.0 -= bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_sink_that_refuses_is_reported_as_it_says() {
    for format in FORMATS {
        for compression in [Compression::None, Compression::Gzip, Compression::Zstd] {
            let columns = vec![column("a", Encoding::Text)];
            let written = Encoder::new(format, compression, columns, Full(3)).and_then(|mut encoder| {
                encoder.push(&row(&[Some(b"text that is not empty")]))?;
                encoder.finish()
            });
            match written.map(|_| ()) {
                Err(EncodeError::Io(error)) => assert_eq!(error.kind(), io::ErrorKind::StorageFull),
                other => panic!("{format:?} {compression:?}: {other:?}"),
            }
        }
    }
}

/// Counts what it takes.
struct Shared<'a>(&'a AtomicUsize);

impl Write for Shared<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.fetch_add(bytes.len(), Ordering::Relaxed);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_file_that_is_given_up_gets_no_end() {
    for format in FORMATS {
        for compression in [Compression::None, Compression::Gzip, Compression::Zstd] {
            let taken = AtomicUsize::new(0);
            let columns = vec![column("a", Encoding::Text)];
            let mut encoder = Encoder::new(format, compression, columns, Shared(&taken)).expect("an encoder");
            let chunk = row(&[Some(&[b'x'; 1000])]).repeat(100);
            encoder.push(&chunk).expect("rows");
            let n_bytes = encoder.n_bytes();
            drop(encoder);
            // Parquet's writer passes on what it buffers, which is no end
            let limit = if format == FileFormat::Parquet { n_bytes + 4 } else { n_bytes };
            assert!(taken.load(Ordering::Relaxed) as u64 <= limit, "{format:?} {compression:?}");
        }
    }
}
