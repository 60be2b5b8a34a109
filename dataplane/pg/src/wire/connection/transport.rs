//! The stream to a server: Unix socket, TCP, or TCP with TLS.

use std::io;
use std::net::IpAddr;

use bytes::BytesMut;
use postgres_protocol::message::frontend;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_util::either::Either;

use super::channel_binding::Binding;
use super::connect::ConnectError;
use crate::connect::login::Endpoint;
use crate::connect::tls::{self, Authorities, Tls};

/// A connection's stream.
pub(crate) type Socket = Either<UnixStream, Either<TcpStream, Box<TlsStream<TcpStream>>>>;

/// Connects, and says what a proof of the password can be bound to.
pub(crate) async fn dial(endpoint: &Endpoint) -> Result<(Socket, Binding), ConnectError> {
    match endpoint {
        Endpoint::Unix { directory, port } => {
            let path = directory.join(format!(".s.PGSQL.{port}"));
            let stream = UnixStream::connect(path).await.map_err(ConnectError::Unreachable)?;
            Ok((Either::Left(stream), Binding::None))
        }
        Endpoint::Tcp { host, port, tls } => {
            let stream = TcpStream::connect((host.as_str(), *port)).await;
            let stream = stream.map_err(ConnectError::Unreachable)?;
            stream.set_nodelay(true).map_err(ConnectError::Unreachable)?;
            match tls {
                Tls::Disable => Ok((Either::Right(Either::Left(stream)), Binding::None)),
                Tls::VerifyFull(authorities) => {
                    // Boxed: the task of every exchange would have to hold room for a handshake.
                    let (stream, binding) = Box::pin(secure(stream, host, authorities)).await?;
                    Ok((Either::Right(Either::Right(Box::new(stream))), binding))
                }
            }
        }
    }
}

/// The address of ours that the server sees, unless something between changes it.
pub(crate) fn local_address(socket: &Socket) -> Option<IpAddr> {
    let stream = match socket {
        Either::Left(_) => return None,
        Either::Right(Either::Left(stream)) => stream,
        Either::Right(Either::Right(stream)) => stream.get_ref().0,
    };
    Some(stream.local_addr().ok()?.ip().to_canonical())
}

/// Asks for TLS and shakes hands; the server must be `host`.
async fn secure(
    mut stream: TcpStream,
    host: &str,
    authorities: &Authorities,
) -> Result<(TlsStream<TcpStream>, Binding), ConnectError> {
    let name = ServerName::try_from(host.to_owned())
        .map_err(|_| ConnectError::Tls(format!("{host:?} is not a name that a certificate can contain")))?;
    let mut out = BytesMut::new();
    frontend::ssl_request(&mut out);
    stream.write_all(&out).await.map_err(ConnectError::Unreachable)?;
    stream.flush().await.map_err(ConnectError::Unreachable)?;

    // One byte, and then it is our turn: whatever stands behind it was put there by somebody else, who wants it to be
    // taken for the server's once the connection is encrypted.
    let mut answer = [0; 2];
    match stream.read(&mut answer).await.map_err(ConnectError::Unreachable)? {
        0 => return Err(ConnectError::Unreachable(io::ErrorKind::UnexpectedEof.into())),
        1 => {}
        _ if answer[0] == b'S' => {
            return Err(ConnectError::Malformed("data before the TLS handshake"));
        }
        _ => {}
    }
    match answer[0] {
        b'S' => {}
        b'N' => return Err(ConnectError::Tls(tls::NOT_OFFERED.to_owned())),
        // An error message, which is not to be believed before we know whose it is.
        b'E' => {
            return Err(ConnectError::Tls(
                "PostgreSQL answered the request for TLS with an error".to_owned(),
            ));
        }
        _ => return Err(ConnectError::Malformed("no answer to the request for TLS")),
    }

    let shaken = TlsConnector::from(authorities.config()).connect(name, stream).await;
    let stream = shaken.map_err(|error| match tls::explain(&error) {
        Some(why) => ConnectError::Tls(why),
        None => ConnectError::Unreachable(error),
    })?;
    let certificate = stream.get_ref().1.peer_certificates().and_then(|chain| chain.first());
    let certificate = certificate.expect("a handshake without a certificate fails");
    let binding = Binding::of_certificate(certificate);
    Ok((stream, binding))
}
