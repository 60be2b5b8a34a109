//! Opening a connection: startup, SCRAM-SHA-256 and nothing else.

use std::fmt;
use std::io;

use bytes::BytesMut;
use postgres_protocol::authentication::sasl::ScramSha256;
use postgres_protocol::message::{backend, frontend};
use rowgate_core::scram;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use super::channel_binding::Binding;
use super::frames::{Fields, Inbox};
use super::transport::{self, Socket, dial};
use super::{Connection, Session, answer};
use crate::connect::login::Login;
use crate::connect::login_failure::{LoginCause, LoginFailure, Route};
use crate::wire::exchange::session_settings::{ISOLATION, LOOKED_AFTER, REPORTED};
use crate::wire::failure::{Malformed, STANDBY, ServerError, Stop};
use crate::wire::request_pool::Sessions;

/// Why there is no connection, for the log. It never holds the password.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectError {
    #[error("cannot reach PostgreSQL: {0}")]
    Unreachable(#[source] io::Error),
    #[error("{0}")]
    Refused(Box<ServerError>),
    /// The role may not come in: not any more, or not yet.
    #[error("{0}")]
    NoLogin(Box<ServerError>),
    #[error("PostgreSQL asked for {0}: set scram-sha-256 for this role in pg_hba.conf")]
    NotScram(Method),
    #[error("{0}")]
    Tls(String),
    #[error("SCRAM failed, so this may be a different server: {0}")]
    Scram(#[source] io::Error),
    /// The role was given another password than ours, with so many rounds.
    #[error("the role's password takes {0} rounds of SCRAM to log in, and at most {max} are made", max = scram::MAX_ROUNDS)]
    Rounds(u64),
    #[error("{STANDBY}")]
    Standby,
    #[error("PostgreSQL sent {0} while a connection was opened")]
    Malformed(&'static str),
}

/// What a server asks for that is not SCRAM.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Method {
    NoPassword,
    ClearText,
    Md5,
    OtherSasl,
    Other,
}

/// Opens and authenticates a connection for requests; the caller bounds the time. `answers`: where a pooler takes clients in
/// before it has a server for them, it counts once a statement was answered.
pub(crate) async fn connect(
    login: &Login,
    sessions: Sessions,
    answers: bool,
) -> Result<Connection<Socket>, LoginFailure> {
    let mut route = route(login, sessions);
    let opened = async {
        let (stream, binding) = dial(&login.endpoint).await?;
        route = match (route, transport::local_address(&stream)) {
            (Route::Tcp(_), from) => Route::Tcp(from),
            (Route::Tls(_), from) => Route::Tls(from),
            (route, _) => route,
        };
        let mut connection = open(stream, login, binding, sessions, &[]).await?;
        if answers && sessions == Sessions::Pooled {
            connection.ask_nothing().await?;
        }
        Ok(connection)
    };
    opened.await.map_err(|error: ConnectError| LoginFailure::new(error.cause(), route, &error.to_string()))
}

/// What is said when that took too long.
pub(crate) fn late(login: &Login, sessions: Sessions) -> LoginFailure {
    let said = "PostgreSQL did not accept a connection in time";
    LoginFailure::new(LoginCause::TimedOut, route(login, sessions), said)
}

fn route(login: &Login, sessions: Sessions) -> Route {
    match sessions {
        Sessions::Own => Route::of(&login.endpoint),
        Sessions::Pooled => Route::Pooler,
    }
}

/// Opens a connection with settings that the session begins with and that a reset brings back.
pub(crate) async fn connect_with(
    login: &Login,
    sessions: Sessions,
    settings: &[(&str, &str)],
) -> Result<Connection<Socket>, ConnectError> {
    let (stream, binding) = dial(&login.endpoint).await?;
    open(stream, login, binding, sessions, settings).await
}

/// Asks the server to cancel what runs in `session`, and waits until it has passed that on; the caller bounds the time.
/// The session is hit by whatever it runs then: it must be nobody else's yet, nor ever again.
pub(crate) async fn cancel(login: &Login, session: Session) -> Result<(), ConnectError> {
    let (mut stream, _) = dial(&login.endpoint).await?;
    let mut out = BytesMut::new();
    frontend::cancel_request(session.pid, session.secret, &mut out);
    send(&mut stream, &mut out).await?;
    // The server says nothing and closes; within TLS, without a word of that either.
    match stream.read(&mut [0]).await {
        Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => Err(ConnectError::Unreachable(error)),
        _ => Ok(()),
    }
}

/// Authenticates on `stream`, whatever carries it.
pub(crate) async fn open<S>(
    mut stream: S,
    login: &Login,
    binding: Binding,
    sessions: Sessions,
    more: &[(&str, &str)],
) -> Result<Connection<S>, ConnectError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut inbox = Inbox::new();
    let mut out = BytesMut::new();
    let who = [
        ("user", login.role.as_str()),
        ("database", login.database.as_str()),
        ("application_name", "rowgate"),
    ];
    let settings = REPORTED.into_iter().chain([LOOKED_AFTER, ISOLATION]);
    let n_known = if sessions == Sessions::Pooled { 1 } else { usize::MAX };
    let parameters = who.into_iter().chain(settings.take(n_known)).chain(more.iter().copied());
    frontend::startup_message(parameters, &mut out).map_err(ConnectError::Unreachable)?;
    send(&mut stream, &mut out).await?;

    authenticate(&mut stream, &mut inbox, &mut out, login, binding).await?;
    let mut session = None;
    loop {
        match answer(&mut inbox, &mut stream).await? {
            (backend::BACKEND_KEY_DATA_TAG, body) => {
                session = Some(Session::parse(body).map_err(Stop::from)?)
            }
            (backend::READY_FOR_QUERY_TAG, b"I") => break,
            _ => return Err(ConnectError::Malformed("a message that is not ReadyForQuery")),
        }
    }
    if inbox.is_of_standby() {
        return Err(ConnectError::Standby);
    }
    let session = session.ok_or(ConnectError::Malformed("no BackendKeyData"))?;
    inbox.trust();
    Ok(Connection::new(stream, inbox, session, sessions))
}

/// The server must prove that it knows the password's verifier; a server that asks for less is not ours.
async fn authenticate<S>(
    stream: &mut S,
    inbox: &mut Inbox,
    out: &mut BytesMut,
    login: &Login,
    binding: Binding,
) -> Result<(), ConnectError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let (mechanism, binding) = binding.choose(request(inbox, stream, Request::Sasl).await?)?;
    let mut proof = ScramSha256::new(login.password.reveal().as_bytes(), binding);
    frontend::sasl_initial_response(mechanism, proof.message(), out).map_err(ConnectError::Scram)?;
    send(stream, out).await?;

    let challenge = request(inbox, stream, Request::SaslContinue).await?;
    if let Some(rounds) = scram::beyond_rounds(challenge) {
        return Err(ConnectError::Rounds(rounds));
    }
    proof.update(challenge).map_err(ConnectError::Scram)?;
    frontend::sasl_response(proof.message(), out).map_err(ConnectError::Scram)?;
    send(stream, out).await?;

    proof.finish(request(inbox, stream, Request::SaslFinal).await?).map_err(ConnectError::Scram)?;
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
        return Err(ConnectError::Malformed("a message that is not an authentication request"));
    }
    let mut fields = Fields::new(body);
    let code = i32::from_be_bytes(fields.bytes().map_err(Stop::from)?);
    match code {
        _ if code == expected as i32 => Ok(fields.rest()),
        0 => Err(ConnectError::NotScram(Method::NoPassword)),
        3 => Err(ConnectError::NotScram(Method::ClearText)),
        5 => Err(ConnectError::NotScram(Method::Md5)),
        10..=12 => Err(ConnectError::Malformed("a SCRAM message out of turn")),
        _ => Err(ConnectError::NotScram(Method::Other)),
    }
}

async fn send<S: AsyncWrite + Unpin>(stream: &mut S, out: &mut BytesMut) -> Result<(), ConnectError> {
    stream.write_all(out).await.map_err(ConnectError::Unreachable)?;
    stream.flush().await.map_err(ConnectError::Unreachable)?;
    out.clear();
    Ok(())
}

impl ConnectError {
    fn cause(&self) -> LoginCause {
        match self {
            ConnectError::Unreachable(_) => LoginCause::Unreachable,
            ConnectError::Refused(error) | ConnectError::NoLogin(error) => {
                error.login_cause().unwrap_or(LoginCause::Refused)
            }
            ConnectError::NotScram(Method::NoPassword) => LoginCause::NoPassword,
            ConnectError::NotScram(Method::ClearText) => LoginCause::ClearText,
            ConnectError::NotScram(Method::Md5) => LoginCause::Md5,
            ConnectError::NotScram(Method::OtherSasl | Method::Other) => LoginCause::OtherMethod,
            ConnectError::Tls(_) => LoginCause::Tls,
            ConnectError::Scram(_) => LoginCause::Unproven,
            ConnectError::Rounds(_) => LoginCause::WrongPassword,
            ConnectError::Standby | ConnectError::Malformed(_) => LoginCause::Refused,
        }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Method::NoPassword => "no password",
            Method::ClearText => "a password in clear text",
            Method::Md5 => "an MD5 password",
            Method::OtherSasl => "a SASL mechanism that is not SCRAM-SHA-256",
            Method::Other => "an authentication that is not a password",
        })
    }
}

impl From<Stop> for ConnectError {
    fn from(stop: Stop) -> ConnectError {
        match stop {
            Stop::Io(error) => ConnectError::Unreachable(error),
            Stop::Malformed(Malformed(what)) => ConnectError::Malformed(what),
            Stop::Server(error) if error.sqlstate.starts_with("28") || error.sqlstate == "42501" => {
                ConnectError::NoLogin(Box::new(error))
            }
            Stop::Server(error) => ConnectError::Refused(Box::new(error)),
            Stop::Standby => ConnectError::Standby,
            Stop::TooLong => ConnectError::Malformed("a message that exceeds the size limit"),
        }
    }
}
