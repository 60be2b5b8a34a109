//! Requests that no client library sends, byte for byte.

use std::time::Duration;

use rowgate_tests::wait::DEADLINE;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// What came back until the server closed the connection. `bytes` should ask it to; a server that waits for more is
/// broken after a while.
pub(crate) async fn send(url: &str, bytes: &[u8]) -> String {
    let address = url.strip_prefix("http://").expect("our servers speak HTTP");
    let stream = TcpStream::connect(address).await.expect("it listens");
    let (mut read, mut write) = stream.into_split();
    // A server that has had enough may close while we still write.
    let writing = async { write.write_all(bytes).await.is_ok() };
    let mut answer = Vec::new();
    let reading = async {
        let limit: Duration = DEADLINE;
        tokio::time::timeout(limit, read.read_to_end(&mut answer)).await.expect("the server closes in time")
    };
    let (_all_was_taken, ended) = tokio::join!(writing, reading);
    ended.expect("what the server said can be read to its end");
    String::from_utf8(answer).expect("our answers are UTF-8")
}

/// As [`send`], for a client that does not look before it has sent everything.
pub(super) async fn send_then_read(url: &str, bytes: &[u8]) -> String {
    let address = url.strip_prefix("http://").expect("our servers speak HTTP");
    let mut stream = TcpStream::connect(address).await.expect("it listens");
    let talking = async {
        stream.write_all(bytes).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        Ok::<_, std::io::Error>(answer)
    };
    let answer = tokio::time::timeout(DEADLINE, talking).await.expect("the server closes in time");
    answer.expect("everything is taken, and what the server said can be read to its end")
}
