//! A client of bare bytes, which reads when it likes.

use rowgate_tests::world::World;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};

/// One connection and one request.
pub(super) struct Raw(TcpStream);

impl Raw {
    /// Sends a GET and reads nothing. The kernel takes little for it.
    pub(super) async fn get(world: &World, key: &str, path: &str) -> Raw {
        let address = world.url().replace("http://", "").parse().expect("an address");
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.set_recv_buffer_size(16 << 10).expect("a size");
        let mut stream = socket.connect(address).await.expect("the server listens");
        let head = format!(
            "GET {path} HTTP/1.1\r\nHost: {address}\r\nX-API-Key: {key}\r\nX-Request-Id: raw-1\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.expect("a request is small");
        Raw(stream)
    }

    /// Reads this many bytes.
    pub(super) async fn take(&mut self, n_bytes: usize) -> Vec<u8> {
        let mut bytes = vec![0; n_bytes];
        self.0.read_exact(&mut bytes).await.expect("there are as many");
        bytes
    }

    /// Reads up to the mark that ends a body.
    pub(super) async fn whole(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        while !has_end(&bytes) {
            assert_ne!(self.0.read_buf(&mut bytes).await.expect("nobody cuts it"), 0);
        }
        bytes
    }

    /// Reads up to the end of the connection, whatever ends it.
    pub(super) async fn rest(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        // A connection that is cut may be reset; what had come before is kept.
        let _however_it_ended = self.0.read_to_end(&mut bytes).await;
        bytes
    }
}

/// What says that a body of unknown length is whole.
pub(super) fn has_end(bytes: &[u8]) -> bool {
    bytes.ends_with(b"0\r\n\r\n")
}
