//! Stands between a data plane and PostgreSQL's socket and notes what passes: the tags of the messages, by writes.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};

use crate::scratch::Scratch;

/// The socket's name in its folder, as PostgreSQL has it.
const SOCKET: &str = ".s.PGSQL.5432";

/// Belongs to the runtime that made it.
#[derive(Debug)]
pub struct Recorder {
    scratch: Scratch,
    said: Arc<Mutex<Vec<Said>>>,
}

/// What arrived in one piece. Much more than a socket takes at once comes in several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    /// Connections are counted from 0.
    pub connection: usize,
    pub by: Side,
    /// The tags of the messages that ended in it; a startup message has none and is not noted.
    pub tags: String,
    /// It ended with a message.
    pub is_whole: bool,
    /// What the connection was opened with: names and values, a zero byte after each.
    pub startup: Arc<str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Client,
    Server,
}

impl Recorder {
    /// Listens in a folder of its own, before the socket in `folder`.
    #[must_use]
    pub fn before(folder: &Path) -> Recorder {
        let scratch = Scratch::new();
        let listener = UnixListener::bind(scratch.path().join(SOCKET)).expect("the folder is ours");
        let (there, said) = (folder.join(SOCKET), Arc::default());
        let noted = Arc::clone(&said);
        tokio::spawn(async move {
            let mut n_connections = 0;
            while let Ok((near, _)) = listener.accept().await {
                let far = UnixStream::connect(&there).await.expect("the server is up");
                tokio::spawn(between(n_connections, near, far, Arc::clone(&noted)));
                n_connections += 1;
            }
        });
        Recorder { scratch, said }
    }

    /// The folder of the socket, as `--control` takes it.
    #[must_use]
    pub fn folder(&self) -> PathBuf {
        self.scratch.path().to_owned()
    }

    /// What was said since this was asked last. A message is noted before it is passed on.
    #[must_use]
    pub fn take(&self) -> Vec<Said> {
        std::mem::take(&mut self.said.lock())
    }
}

async fn between(connection: usize, near: UnixStream, far: UnixStream, noted: Arc<Mutex<Vec<Said>>>) {
    let (mut client, to_client) = near.into_split();
    let (server, mut to_server) = far.into_split();
    // The startup message: its length, its version, its parameters. A request to cancel looks the same.
    let Ok(length) = client.read_u32().await else { return };
    let mut message = length.to_be_bytes().to_vec();
    message.resize(length as usize, 0);
    if client.read_exact(&mut message[4..]).await.is_err() || to_server.write_all(&message).await.is_err() {
        return;
    }
    let startup: Arc<str> = String::from_utf8_lossy(&message[8..]).into();
    let said = Said { connection, by: Side::Client, tags: String::new(), is_whole: true, startup };
    let answers = Said { by: Side::Server, ..said.clone() };
    tokio::join!(pass(client, to_server, said, Arc::clone(&noted)), pass(server, to_client, answers, noted));
}

async fn pass(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, template: Said, noted: Arc<Mutex<Vec<Said>>>) {
    let (mut piece, mut left) = (vec![0; 256 << 10], Vec::new());
    while let Ok(n @ 1..) = from.read(&mut piece).await {
        left.extend_from_slice(&piece[..n]);
        let tags = tags(&mut left);
        let said = Said { tags, is_whole: left.is_empty(), ..template.clone() };
        noted.lock().push(said);
        if to.write_all(&piece[..n]).await.is_err() {
            return;
        }
    }
}

/// Takes the whole messages out of `bytes`.
fn tags(bytes: &mut Vec<u8>) -> String {
    let (mut tags, mut at) = (String::new(), 0);
    while let Some(&[tag, a, b, c, d]) = bytes[at..].first_chunk() {
        let end = at + 1 + u32::from_be_bytes([a, b, c, d]) as usize;
        if bytes.len() < end {
            break;
        }
        tags.push(char::from(tag));
        at = end;
    }
    bytes.drain(..at);
    tags
}
