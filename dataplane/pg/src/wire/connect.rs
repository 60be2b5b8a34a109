//! Opening a connection: Unix socket or TCP, startup, SCRAM-SHA-256 and nothing else.

use std::io;

use bytes::BytesMut;
use postgres_protocol::authentication::sasl::{ChannelBinding, SCRAM_SHA_256, ScramSha256};
use postgres_protocol::message::{backend, frontend};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpStream, UnixStream};
use tokio_util::either::Either;

use super::connection::{Connection, Session, answer};
use super::failure::{Malformed, Stop};
use super::frames::{Fields, Inbox};
use crate::login::{Endpoint, Login};

/// A connection's stream.
pub(super) type Socket = Either<UnixStream, TcpStream>;

/// Why there is no connection, for the log. It never holds the password.
#[derive(Debug, thiserror::Error)]
pub(super) enum ConnectError {
    #[error("cannot reach PostgreSQL: {0}")]
    Unreachable(#[source] io::Error),
    #[error("{0}")]
    Refused(String),
    #[error("PostgreSQL asked for {0}: set scram-sha-256 for this role in pg_hba.conf")]
    NotScram(&'static str),
    #[error("SCRAM failed, this may be another server than ours: {0}")]
    Scram(#[source] io::Error),
    #[error("PostgreSQL sent {0} while a connection was opened")]
    Malformed(&'static str),
}

/// Opens and authenticates a connection; the caller bounds the time.
pub(super) async fn connect(login: &Login) -> Result<Connection<Socket>, ConnectError> {
    let stream = dial(&login.endpoint).await.map_err(ConnectError::Unreachable)?;
    open(stream, login).await
}

/// Asks the server to cancel what runs in `session`, and waits until it has passed that on; the caller bounds the time.
/// The session is hit by whatever it runs then: it must be nobody else's yet, nor ever again.
pub(super) async fn cancel(login: &Login, session: Session) -> io::Result<()> {
    let mut stream = dial(&login.endpoint).await?;
    let mut out = BytesMut::new();
    frontend::cancel_request(session.pid, session.secret, &mut out);
    stream.write_all(&out).await?;
    stream.flush().await?;
    // The server says nothing and closes.
    stream.read(&mut [0]).await.map(drop)
}

async fn dial(endpoint: &Endpoint) -> io::Result<Socket> {
    match endpoint {
        Endpoint::Unix { directory, port } => {
            let path = directory.join(format!(".s.PGSQL.{port}"));
            Ok(Either::Left(UnixStream::connect(path).await?))
        }
        Endpoint::Tcp { host, port } => {
            let stream = TcpStream::connect((host.as_str(), *port)).await?;
            stream.set_nodelay(true)?;
            Ok(Either::Right(stream))
        }
    }
}

/// Authenticates on `stream`, whatever carries it.
pub(super) async fn open<S>(mut stream: S, login: &Login) -> Result<Connection<S>, ConnectError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut inbox = Inbox::new();
    let mut out = BytesMut::new();
    let parameters = [
        ("user", login.role.as_str()),
        ("database", login.database.as_str()),
        ("client_encoding", "UTF8"),
        ("application_name", "rowgate"),
        // A statement whose replica is gone ends within this, though it neither writes nor is cancelled.
        ("client_connection_check_interval", "1s"),
    ];
    frontend::startup_message(parameters, &mut out).map_err(ConnectError::Unreachable)?;
    send(&mut stream, &mut out).await?;

    let scram = ScramSha256::new(login.password.reveal().as_bytes(), ChannelBinding::unsupported());
    authenticate(&mut stream, &mut inbox, &mut out, scram).await?;
    let mut session = None;
    loop {
        match answer(&mut inbox, &mut stream).await? {
            (backend::BACKEND_KEY_DATA_TAG, body) => {
                session = Some(Session::parse(body).map_err(Stop::from)?)
            }
            (backend::READY_FOR_QUERY_TAG, b"I") => break,
            _ => return Err(ConnectError::Malformed("another message than ReadyForQuery")),
        }
    }
    let session = session.ok_or(ConnectError::Malformed("no BackendKeyData"))?;
    inbox.trust();
    Ok(Connection::new(stream, inbox, session))
}

/// The server must prove that it knows the password's verifier; a server that asks for less is not ours.
async fn authenticate<S>(
    stream: &mut S,
    inbox: &mut Inbox,
    out: &mut BytesMut,
    mut scram: ScramSha256,
) -> Result<(), ConnectError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mechanisms = request(inbox, stream, Request::Sasl).await?;
    if !mechanisms.split(|&byte| byte == 0).any(|name| name == SCRAM_SHA_256.as_bytes()) {
        return Err(ConnectError::NotScram("another SASL mechanism than SCRAM-SHA-256"));
    }
    frontend::sasl_initial_response(SCRAM_SHA_256, scram.message(), out).map_err(ConnectError::Scram)?;
    send(stream, out).await?;

    scram.update(request(inbox, stream, Request::SaslContinue).await?).map_err(ConnectError::Scram)?;
    frontend::sasl_response(scram.message(), out).map_err(ConnectError::Scram)?;
    send(stream, out).await?;

    scram.finish(request(inbox, stream, Request::SaslFinal).await?).map_err(ConnectError::Scram)?;
    request(inbox, stream, Request::Ok).await?;
    Ok(())
}

/// The requests of a SCRAM exchange, in order, with their codes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Request {
    Sasl = 10,
    SaslContinue = 11,
    SaslFinal = 12,
    Ok = 0,
}

/// What follows the code of the authentication request `expected`.
async fn request<'a, S>(
    inbox: &'a mut Inbox,
    stream: &mut S,
    expected: Request,
) -> Result<&'a [u8], ConnectError>
where
    S: AsyncRead + Unpin,
{
    let (tag, body) = answer(inbox, stream).await?;
    if tag != backend::AUTHENTICATION_TAG {
        return Err(ConnectError::Malformed("another message than an authentication request"));
    }
    let mut fields = Fields::new(body);
    let code = i32::from_be_bytes(fields.bytes().map_err(Stop::from)?);
    match code {
        _ if code == expected as i32 => Ok(fields.rest()),
        0 => Err(ConnectError::NotScram("no password")),
        3 => Err(ConnectError::NotScram("a password in clear text")),
        5 => Err(ConnectError::NotScram("an MD5 password")),
        10..=12 => Err(ConnectError::Malformed("a SCRAM message out of turn")),
        _ => Err(ConnectError::NotScram("an authentication that is not a password")),
    }
}

async fn send<S: AsyncWrite + Unpin>(stream: &mut S, out: &mut BytesMut) -> Result<(), ConnectError> {
    stream.write_all(out).await.map_err(ConnectError::Unreachable)?;
    stream.flush().await.map_err(ConnectError::Unreachable)?;
    out.clear();
    Ok(())
}

impl From<Stop> for ConnectError {
    fn from(stop: Stop) -> ConnectError {
        match stop {
            Stop::Io(error) => ConnectError::Unreachable(error),
            Stop::Malformed(Malformed(what)) => ConnectError::Malformed(what),
            Stop::Server(error) => ConnectError::Refused(error.to_string()),
        }
    }
}
