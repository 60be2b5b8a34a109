//! Rows that wait for the encoder, bounded by their bytes: a chunk ends behind a row, which may be long.

use std::sync::Arc;

use tokio::sync::mpsc::{Receiver, UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bytes that wait, but for a chunk that is longer, which waits alone. The encoder takes nothing while it writes a row group of Parquet, for about 50 ms,
/// and PostgreSQL goes on meanwhile.
const MAX_BYTES: usize = 6 << 20;

/// Rows, and the room that they take until this is dropped.
pub(super) struct Chunk {
    pub(super) rows: Vec<u8>,
    _room: OwnedSemaphorePermit,
}

/// Takes chunks from `read` as they come, until one of the two ends is gone. To be run beside what reads and what encodes.
pub(super) struct Ahead {
    read: Receiver<Vec<u8>>,
    to: UnboundedSender<Chunk>,
    room: Arc<Semaphore>,
}

impl Ahead {
    /// With where the encoder takes them.
    pub(super) fn of(read: Receiver<Vec<u8>>) -> (Ahead, UnboundedReceiver<Chunk>) {
        let (to, chunks) = unbounded_channel();
        (Ahead { read, to, room: Arc::new(Semaphore::new(MAX_BYTES)) }, chunks)
    }

    pub(super) async fn run(mut self) {
        loop {
            let rows = tokio::select! {
                rows = self.read.recv() => rows,
                () = self.to.closed() => None,
            };
            let Some(rows) = rows else { return };
            let n_bytes = u32::try_from(rows.len().min(MAX_BYTES)).unwrap_or(u32::MAX);
            let Ok(room) = self.room.clone().acquire_many_owned(n_bytes).await else { return };
            if self.to.send(Chunk { rows, _room: room }).is_err() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc::channel;
    use tokio::task::yield_now;

    use super::*;

    /// How many of these chunks wait while the encoder takes none.
    async fn n_waiting(len: usize) -> usize {
        let (sender, read) = channel(1);
        let (ahead, mut chunks) = Ahead::of(read);
        let sending = async {
            for _ in 0..100 {
                if sender.send(vec![0; len]).await.is_err() {
                    return;
                }
            }
        };
        let looking = async {
            for _ in 0..1000 {
                yield_now().await;
            }
            let n_waiting = chunks.len();
            let mut n_taken = 0;
            while chunks.try_recv().is_ok() {
                n_taken += 1;
            }
            assert_eq!(n_taken, n_waiting);
            // each that was taken has made room
            for _ in 0..1000 {
                yield_now().await;
            }
            assert_eq!(chunks.len(), n_waiting);
            drop(chunks);
            n_waiting
        };
        tokio::join!(sending, ahead.run(), looking).2
    }

    /// Seen to fail with a bound of chunks.
    #[tokio::test]
    async fn what_waits_is_bounded_by_its_bytes_and_a_long_chunk_waits_alone() {
        assert_eq!(n_waiting(256 << 10).await, 24);
        assert_eq!(n_waiting(60 << 20).await, 1);
    }
}
