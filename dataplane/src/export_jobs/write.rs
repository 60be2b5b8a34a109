//! Rows into a file, on a thread of its own: encoding takes as much time as PostgreSQL takes to give them.

use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rowgate_core::problem::{Code, Problem};
use rowgate_export::{Compression, EncodeError, Encoder, FileFormat};
use tokio::sync::mpsc::UnboundedReceiver;

use super::Running;
use super::ahead::Chunk;
use super::storage::objects::is_of_storage;
use super::storage::{Storage, Writer};
use super::typing::ExportTyping;

/// What is written, and where.
#[derive(Clone)]
pub(super) struct Target {
    pub(super) storage: Storage,
    /// Of the file where it is downloaded.
    pub(super) name: String,
    pub(super) running: Arc<Running>,
    pub(super) typing: Arc<ExportTyping>,
    pub(super) format: FileFormat,
    pub(super) compression: Compression,
}

/// A file whose end is not written.
pub(super) struct Unfinished {
    target: Target,
    encoder: Option<Encoder<Writer>>,
}

/// Why there is no file.
#[derive(Debug, thiserror::Error)]
pub(super) enum WriteError {
    #[error(transparent)]
    Encode(#[from] EncodeError),
    #[error("the file could not be written: {0}")]
    File(#[from] std::io::Error),
    #[error("the job was stopped")]
    Stopped,
}

impl Target {
    /// Writes what comes, until nothing does any more.
    pub(super) async fn write(self, chunks: UnboundedReceiver<Chunk>) -> Result<Unfinished, WriteError> {
        let writing = tokio::task::spawn_blocking(move || self.write_all(chunks));
        writing.await.map_err(std::io::Error::other)?
    }

    fn write_all(self, mut chunks: UnboundedReceiver<Chunk>) -> Result<Unfinished, WriteError> {
        let mut unfinished = Unfinished { target: self, encoder: None };
        while let Some(chunk) = chunks.blocking_recv() {
            unfinished.push(&chunk.rows)?;
        }
        Ok(unfinished)
    }
}

impl Unfinished {
    /// Writes the last rows and the end, and makes the file one that can be given out. Gives its rows and its length.
    pub(super) async fn finish(self, last: Vec<u8>) -> Result<(u64, u64), WriteError> {
        let writing = tokio::task::spawn_blocking(move || self.end(&last));
        writing.await.map_err(std::io::Error::other)?
    }

    fn push(&mut self, chunk: &[u8]) -> Result<(), WriteError> {
        let running = self.target.running.clone();
        if running.stop.is_cancelled() {
            return Err(WriteError::Stopped);
        }
        let encoder = self.encoder()?;
        encoder.push(chunk)?;
        running.rows.store(encoder.n_rows(), Ordering::Relaxed);
        running.bytes.store(encoder.n_bytes(), Ordering::Relaxed);
        Ok(())
    }

    fn encoder(&mut self) -> Result<&mut Encoder<Writer>, WriteError> {
        if self.encoder.is_none() {
            let Target { storage, name, running, typing, format, compression } = &self.target;
            let file = storage.begin(&running.id, running.fence, name)?;
            let columns = typing.columns().unwrap_or_default();
            self.encoder = Some(Encoder::new(*format, *compression, columns, file)?);
        }
        Ok(self.encoder.as_mut().expect("it was made above"))
    }

    fn end(mut self, last: &[u8]) -> Result<(u64, u64), WriteError> {
        self.push(last)?;
        self.encoder()?;
        let (Some(encoder), Target { storage, running, .. }) = (self.encoder, self.target) else {
            return Err(WriteError::Stopped);
        };
        let n_rows = encoder.n_rows();
        let file = encoder.finish()?;
        if running.stop.is_cancelled() {
            return Err(WriteError::Stopped);
        }
        Ok((n_rows, storage.finish(&running.id, running.fence, file)?))
    }
}

impl WriteError {
    /// What the key that asked for the file is told.
    pub(super) fn problem(&self) -> Problem {
        let io = match self {
            WriteError::Encode(unfit @ EncodeError::Unfit { .. }) => {
                return Problem::new(Code::InvalidValue, unfit.to_string());
            }
            WriteError::Encode(long @ EncodeError::TooLong) => {
                return Problem::new(Code::TooLarge, long.to_string());
            }
            WriteError::Encode(EncodeError::Io(error)) | WriteError::File(error) if is_of_storage(error) => {
                tracing::warn!(cause = %error, "object storage does not take the file of an export");
                return Problem::new(Code::Unavailable, "the storage of exports does not take the file");
            }
            WriteError::Encode(EncodeError::Io(error)) | WriteError::File(error) => Some(error.kind()),
            WriteError::Stopped => return Problem::unavailable(),
            WriteError::Encode(_) => None,
        };
        match io {
            Some(ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge) => {
                let what = "the disk for exports is full; delete exports that are not needed any more, or export fewer rows or columns";
                Problem::new(Code::TooLarge, what)
            }
            _ => {
                tracing::error!(cause = %self, "the file of an export cannot be written");
                Problem::internal()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_named() {
        for error in [ErrorKind::StorageFull, ErrorKind::QuotaExceeded, ErrorKind::FileTooLarge] {
            let told = WriteError::Encode(EncodeError::Io(error.into())).problem();
            assert!(told.code == Code::TooLarge && told.message.contains("disk for exports is full"));
            assert_eq!(WriteError::File(error.into()).problem(), told);
        }
        assert_eq!(WriteError::File(ErrorKind::PermissionDenied.into()).problem(), Problem::internal());
    }
}
