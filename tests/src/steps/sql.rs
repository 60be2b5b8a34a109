//! Stands before a PostgreSQL, at a Unix socket, and reads along in its protocol.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};

use super::Steps;
use crate::scratch::Scratch;
use crate::servers::postgres::{Endpoint, Server};

/// The protocol's version in the first message of a session; what begins otherwise is no session.
const SESSION: u32 = 196_608;

/// Listens in a folder of its own, which it gives, as long as the runtime lives.
pub(super) fn stand(steps: Steps, server: &Server) -> PathBuf {
    let Endpoint::Unix { directory, port } = server.endpoint() else { panic!("test servers have a socket") };
    let scratch = Scratch::new();
    let folder = scratch.path().to_owned();
    let socket = format!(".s.PGSQL.{port}");
    let listener = UnixListener::bind(folder.join(&socket)).expect("the folder is ours");
    let server = directory.join(socket);
    tokio::spawn(async move {
        let _scratch = scratch;
        while let Ok((near, _)) = listener.accept().await {
            let (steps, server) = (steps.clone(), server.clone());
            // either side ends sessions as it likes
            tokio::spawn(async move { drop(session(&steps, near, &server).await) });
        }
    });
    folder
}

/// What the client has asked for since the server was ready last.
#[derive(Debug, Default)]
struct Asked {
    /// By the names of prepared statements.
    prepared: HashMap<Vec<u8>, String>,
    bound: String,
    run: Vec<String>,
}

async fn session(steps: &Steps, mut near: UnixStream, server: &Path) -> io::Result<()> {
    let mut far = UnixStream::connect(server).await?;
    let length = near.read_u32().await?;
    let mut first = vec![0; length.saturating_sub(4) as usize];
    near.read_exact(&mut first).await?;
    far.write_u32(length).await?;
    far.write_all(&first).await?;
    let counts = first.starts_with(&SESSION.to_be_bytes()) && reconciles(&first[4..]);
    let (mut client, mut to_client) = near.split();
    let (mut server, mut to_server) = far.split();
    let asked = Mutex::new(Asked::default());
    let lock = || asked.lock();
    let there = pass(&mut client, &mut to_server, |kind, body| {
        lock().note(kind, body);
        true
    });
    let back = pass(&mut server, &mut to_client, |kind, _| {
        let run = if kind == b'Z' { std::mem::take(&mut lock().run) } else { Vec::new() };
        let is_step = counts && !run.is_empty();
        !is_step || steps.done(format!("SQL {}", run.join("; ")))
    });
    tokio::select! {
        ended = there => ended,
        ended = back => ended,
    }
}

/// Whether a session's parameters name one of the roles that reconciling logs in as.
fn reconciles(parameters: &[u8]) -> bool {
    let mut parts = parameters.split(|byte| *byte == 0);
    let user = parts.by_ref().find(|part| *part == b"user").and_then(|_| parts.next()).unwrap_or_default();
    user == b"rowgate_operator" || [&b"_owner"[..], b"_dl", b"_keys"].iter().any(|end| user.ends_with(end))
}

/// Passes messages on, each as `look` allows.
async fn pass(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    mut look: impl FnMut(u8, &[u8]) -> bool,
) -> io::Result<()> {
    loop {
        let kind = from.read_u8().await?;
        let length = from.read_u32().await?;
        let mut message = vec![0; length as usize + 1];
        message[0] = kind;
        message[1..5].copy_from_slice(&length.to_be_bytes());
        from.read_exact(&mut message[5..]).await?;
        if !look(kind, &message[5..]) {
            return Ok(());
        }
        to.write_all(&message).await?;
    }
}

impl Asked {
    fn note(&mut self, kind: u8, body: &[u8]) {
        let mut texts = body.split(|byte| *byte == 0);
        let mut next = || texts.next().unwrap_or_default();
        let text = |bytes: &[u8]| called(&String::from_utf8_lossy(bytes));
        let is_work = |called: &String| !called.is_empty();
        match kind {
            b'Q' => self.run.extend(Some(text(next())).filter(is_work)),
            b'P' => drop(self.prepared.insert(next().to_owned(), text(next()))),
            b'B' => {
                let (_portal, statement) = (next(), next());
                self.bound = self.prepared.get(statement).cloned().unwrap_or_default();
            }
            b'E' => self.run.extend(Some(self.bound.clone()).filter(is_work)),
            _ => {}
        }
    }
}

/// What a statement is called: no name that is made for one object, and nothing that may be a secret. Nothing, if it looks
/// for who serves and who leads, which goes on beside the work.
fn called(text: &str) -> String {
    if ["control.replicas", "control.served", "from control.leader"].iter().any(|table| text.contains(table))
    {
        return String::new();
    }
    let text = text.split(['\'', '$']).next().unwrap_or_default();
    let words = text.split_whitespace().map(|word| {
        let is_id = |part: &str| 20 < part.len() && part.chars().any(|c| c.is_ascii_digit());
        let parts = word.split('_').map(|part| if is_id(part) { "ID" } else { part });
        parts.collect::<Vec<_>>().join("_")
    });
    words.take(9).collect::<Vec<_>>().join(" ")
}
