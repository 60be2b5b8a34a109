//! A client's connection that is closed only when what the client still sends has come in: closing on unread bytes resets
//! it, and a client that writes a large body before it reads would never see why it was refused.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// How long, and for how many bytes, the rest may still come in.
const LINGER_TIMEOUT: Duration = Duration::from_secs(2);
const MAX_LINGER_BYTES: usize = 16 << 20;

/// Shuts down in two steps: says that no more comes, and reads on while there is something to read.
pub(crate) struct LingeringClose<S> {
    stream: S,
    /// Since the shutdown, once something came in after it.
    rest: Option<Drain>,
    is_shut_down: bool,
}

struct Drain {
    taken: usize,
    end: Pin<Box<Sleep>>,
}

impl<S> LingeringClose<S> {
    pub(crate) fn new(stream: S) -> LingeringClose<S> {
        LingeringClose { stream, rest: None, is_shut_down: false }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for LingeringClose<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for LingeringClose<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if !this.is_shut_down {
            ready!(Pin::new(&mut this.stream).poll_shutdown(cx))?;
            this.is_shut_down = true;
        }
        let mut waste = [0; 16 * 1024];
        loop {
            let mut buf = ReadBuf::new(&mut waste);
            match Pin::new(&mut this.stream).poll_read(cx, &mut buf) {
                // A client that sends nothing is not waited for.
                Poll::Pending if this.rest.is_none() => return Poll::Ready(Ok(())),
                Poll::Pending => {}
                Poll::Ready(Err(_)) => return Poll::Ready(Ok(())),
                Poll::Ready(Ok(())) if buf.filled().is_empty() => return Poll::Ready(Ok(())),
                Poll::Ready(Ok(())) => {
                    let n = buf.filled().len();
                    let new = || Drain { taken: 0, end: Box::pin(sleep(LINGER_TIMEOUT)) };
                    let rest = this.rest.get_or_insert_with(new);
                    rest.taken += n;
                    if rest.taken < MAX_LINGER_BYTES && rest.end.as_mut().poll(cx).is_pending() {
                        continue;
                    }
                    return Poll::Ready(Ok(()));
                }
            }
            let rest = this.rest.as_mut().expect("without one it has returned");
            return rest.end.as_mut().poll(cx).map(Ok);
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

    use super::*;

    #[tokio::test]
    async fn what_still_comes_is_taken_up_to_a_bound_and_silence_is_not_waited_for() {
        for (n_bytes, closes) in [(0, false), (1, true), (200_000, true), (MAX_LINGER_BYTES + 100_000, false)]
        {
            let (server, mut client) = duplex(64 * 1024);
            let mut server = LingeringClose::new(server);
            let sending = tokio::spawn(async move {
                let sent = client.write_all(&vec![b'x'; n_bytes]).await;
                if closes {
                    client.shutdown().await.expect("a duplex");
                    let mut rest = Vec::new();
                    client.read_to_end(&mut rest).await.expect("a duplex");
                }
                sent.is_ok()
            });
            // The first bytes are there before the server closes.
            if 0 < n_bytes {
                let mut first = [0];
                server.read_exact(&mut first).await.expect("a byte");
            }
            server.shutdown().await.expect("a duplex");
            drop(server);
            assert_eq!(sending.await.expect("no panic"), n_bytes <= MAX_LINGER_BYTES, "{n_bytes}");
        }
    }
}
