//! Stands between sqlx and a tenant's database. sqlx reads a message whole before we see it, and a tenant's code decides
//! how long rows, errors and notices are; so each is bounded here, on its way ([`frames`]). sqlx takes no stream of ours: it
//! connects to a socket of this process, which no file names and no other process may use.

use std::io;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgDatabaseError, PgSslMode};
use sqlx::{ConnectOptions as _, Connection as _};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::AbortHandle;
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

use crate::connect::login::Login;
use crate::connect::session;
use crate::failure::PgError;
use crate::wire::{Socket, dial_for_sqlx};

mod frames;

use frames::{Frames, refusal};

/// For reaching the server.
const DIAL_TIMEOUT: Duration = Duration::from_secs(10);
/// For ending a session there.
const TERMINATE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the end of the process waits for connections: as long as the end of a session may take, and a little.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(11);
const CHUNK: usize = 16 << 10;
/// Where an error of ours says that PostgreSQL's source has raised it: no code of a tenant's can say that.
const FILE: &str = "rowgate";
/// PostgreSQL's own word for a server that starts; ours where nothing listens yet.
const STARTING: &str = "57P03";

/// Connections outlive their gate, and the session of one that broke off is still to be ended: the process waits for them,
/// not the gate.
static CONNECTIONS: LazyLock<TaskTracker> = LazyLock::new(TaskTracker::new);

/// A way to one login's database. Connections stay when it is dropped, which ends accepting.
#[derive(Debug)]
pub(crate) struct Gate {
    directory: String,
    accepting: AbortHandle,
}

impl Gate {
    /// Opens it, within a runtime.
    pub(crate) fn open(login: &Login) -> io::Result<Gate> {
        let directory = format!("\0rowgate-{}-{:032x}", std::process::id(), rand::random::<u128>());
        let listener = UnixListener::bind(format!("{directory}/.s.PGSQL.1"))?;
        let accepting = tokio::spawn(accept(listener, login.clone())).abort_handle();
        Ok(Gate { directory, accepting })
    }

    /// `options` by way of it. TLS, where it is wanted, lies behind it.
    pub(crate) fn through(&self, options: PgConnectOptions) -> PgConnectOptions {
        options.ssl_mode(PgSslMode::Disable).socket(&self.directory).port(1)
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// Waits until every connection that went through a gate has closed and every session that it left busy has been ended, at
/// most 11 s. A program calls it last, when it opens no more connections.
pub async fn closed() {
    CONNECTIONS.close();
    if timeout(CLOSE_TIMEOUT, CONNECTIONS.wait()).await.is_err() {
        tracing::warn!(
            connections = CONNECTIONS.len(),
            "connections to tenants' databases were still open at the end"
        );
    }
}

/// What an error of ours stands for; `None`: it is PostgreSQL's.
pub(crate) fn said(error: &sqlx::Error) -> Option<PgError> {
    let sqlx::Error::Database(said) = error else { return None };
    let said = said.try_downcast_ref::<PgDatabaseError>().filter(|said| said.file() == Some(FILE))?;
    let message = said.message().to_owned();
    let source = match said.routine()? {
        // as PostgreSQL says it of a password that is wrong
        "rounds" => return None,
        "beyond" => return Some(PgError::Beyond { what: "a tenant's database", held: message }),
        "unreachable" if said.code() == STARTING => {
            sqlx::Error::Io(io::Error::new(io::ErrorKind::ConnectionRefused, message))
        }
        "unreachable" => sqlx::Error::Io(io::Error::other(message)),
        "tls" => {
            let source = Some(sqlx::Error::Tls(message.clone().into()));
            return Some(PgError::Unavailable { reason: message, source });
        }
        _ => sqlx::Error::Protocol(message),
    };
    Some(PgError::Unavailable { reason: source.to_string(), source: Some(source) })
}

async fn accept(listener: UnixListener, login: Login) {
    loop {
        let Ok((client, _)) = listener.accept().await else { return };
        let is_ours = client.peer_cred().is_ok_and(|it| it.pid() == i32::try_from(std::process::id()).ok());
        if is_ours {
            CONNECTIONS.spawn(Box::pin(carry(client, login.clone())));
        }
    }
}

async fn carry(mut client: UnixStream, login: Login) {
    let dialed = timeout(DIAL_TIMEOUT, Box::pin(dial_for_sqlx(&login.endpoint))).await;
    let server = match dialed.unwrap_or_else(|_| Err(io::Error::from(io::ErrorKind::TimedOut).into())) {
        Ok(server) => server,
        Err(undialed) => {
            // what it begins with; then it listens
            let _anything = client.read(&mut [0; 1024]).await;
            let _may_be_gone = client.write_all(&undialed.refusal()).await;
            return;
        }
    };
    let session = Session::default();
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = tokio::io::split::<Socket>(server);
    let left = tokio::select! {
        left = session.up(from_client, to_server) => left,
        () = session.down(from_server, to_client) => true,
    };
    // the client has gone, or its answer was too long: what still runs there may run without end
    let pid = session.pid.load(Ordering::Acquire);
    if left && pid != 0 && session.is_busy.load(Ordering::Acquire) {
        end(&login, pid).await;
    }
}

/// What is known of the session behind.
#[derive(Default)]
struct Session {
    is_busy: AtomicBool,
    pid: AtomicI32,
}

impl Session {
    /// True: the client has gone without a word.
    async fn up(&self, mut client: impl AsyncRead + Unpin, mut server: impl AsyncWrite + Unpin) -> bool {
        const TERMINATE: &[u8] = b"X\0\0\0\x04";
        let mut chunk = vec![0; CHUNK];
        let mut said_so = false;
        loop {
            match client.read(&mut chunk).await {
                Ok(n) if 0 < n => {
                    said_so = chunk[..n].ends_with(TERMINATE);
                    if !said_so {
                        self.is_busy.store(true, Ordering::Release);
                    }
                    if server.write_all(&chunk[..n]).await.is_err() || server.flush().await.is_err() {
                        // it has ended, and its last word may still have to be passed on
                        return std::future::pending().await;
                    }
                }
                _ => {
                    let _either_way_it_ends = server.shutdown().await;
                    return !said_so;
                }
            }
        }
    }

    async fn down(&self, mut server: impl AsyncRead + Unpin, mut client: impl AsyncWrite + Unpin) {
        let mut frames = Frames::default();
        let (mut chunk, mut out) = (vec![0; CHUNK], Vec::with_capacity(CHUNK));
        loop {
            let n = match server.read(&mut chunk).await {
                Ok(n) if 0 < n => n,
                _ => {
                    self.is_busy.store(false, Ordering::Release);
                    return;
                }
            };
            out.clear();
            let fed = frames.feed(&chunk[..n], &mut out);
            self.pid.store(frames.pid, Ordering::Release);
            if frames.is_ready {
                self.is_busy.store(false, Ordering::Release);
            }
            if let Err(beyond) = &fed {
                self.is_busy.store(true, Ordering::Release);
                let (code, routine) = beyond.error();
                out.extend(refusal(code, &beyond.to_string(), FILE, routine));
            }
            if client.write_all(&out).await.is_err() || fed.is_err() {
                return;
            }
        }
    }
}

/// Ends a session of the login's own role, which may do that. Nothing of the tenant's runs in the one that asks for it; and
/// a cancellation could be trapped.
async fn end(login: &Login, pid: i32) {
    let ended = async {
        let mut conn = session::options(login).connect().await?;
        sqlx::query("select pg_catalog.pg_terminate_backend($1)").bind(pid).execute(&mut conn).await?;
        conn.close().await
    };
    // else it has ended by itself, or the server has
    if let Ok(Ok(())) = timeout(TERMINATE_TIMEOUT, Box::pin(ended)).await {
        tracing::debug!(role = %login.role, pid, "ended a statement without a waiting client");
    }
}

/// Why there is no way to the server.
pub(crate) struct Undialed {
    code: &'static str,
    routine: &'static str,
    reason: String,
}

impl Undialed {
    pub(crate) fn tls(reason: String) -> Undialed {
        Undialed { code: "08006", routine: "tls", reason }
    }

    pub(crate) fn other(reason: String) -> Undialed {
        Undialed { code: "08006", routine: "other", reason }
    }

    fn refusal(&self) -> Vec<u8> {
        refusal(self.code, &self.reason, FILE, self.routine)
    }
}

impl From<io::Error> for Undialed {
    fn from(error: io::Error) -> Undialed {
        if let Some(why) = crate::connect::tls::explain(&error) {
            return Undialed::tls(why);
        }
        let code = if error.kind() == io::ErrorKind::ConnectionRefused { STARTING } else { "08006" };
        Undialed { code, routine: "unreachable", reason: error.to_string() }
    }
}
