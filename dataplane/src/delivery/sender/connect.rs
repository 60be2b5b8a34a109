//! Opens a connection to one of the addresses that were judged, and judges the one that it has reached.

use std::io::{Error, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use hyper_util::rt::TokioIo;
use rowgate_core::webhook::destination::{self, Destination, Policy};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::exchange::Connection;
use super::{Roots, SendFailure};

/// How long one address may take while there are others.
const ADDRESS_TIMEOUT: Duration = Duration::from_secs(4);
const MAX_ADDRESSES: usize = 4;

pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// A connection to the first of `addresses` that answers; all of them were judged.
pub(super) async fn open(
    destination: &Destination,
    policy: &Policy,
    addresses: &[SocketAddr],
    roots: &Roots,
) -> Result<Connection, SendFailure> {
    let (stream, peer) = reach(addresses, policy).await?;
    let stream: Box<dyn Stream> = match destination.is_https() {
        true => Box::new(roots.handshake(destination.host(), stream).await?),
        false => Box::new(stream),
    };
    Connection::new(TokioIo::new(stream), peer).await
}

async fn reach(addresses: &[SocketAddr], policy: &Policy) -> Result<(TcpStream, SocketAddr), SendFailure> {
    let mut failure = SendFailure::TimedOut;
    let addresses = &addresses[..addresses.len().min(MAX_ADDRESSES)];
    for (i, address) in addresses.iter().enumerate() {
        let connected = match i + 1 == addresses.len() {
            true => TcpStream::connect(address).await,
            false => timeout(ADDRESS_TIMEOUT, TcpStream::connect(address))
                .await
                .unwrap_or_else(|_| Err(Error::from(ErrorKind::TimedOut))),
        };
        match connected {
            Ok(stream) => {
                let peer = stream.peer_addr().map_err(|error| unreachable(&error))?;
                judge(peer.ip(), policy)?;
                // a request is written at once
                let _ = stream.set_nodelay(true);
                return Ok((stream, peer));
            }
            Err(error) => failure = unreachable(&error),
        }
    }
    Err(failure)
}

/// The one judgement of addresses, in the words of a delivery.
pub(super) fn judge(address: IpAddr, policy: &Policy) -> Result<(), SendFailure> {
    destination::address_allowed(address, policy).map_err(|refusal| SendFailure::Refused(refusal.to_string()))
}

fn unreachable(error: &Error) -> SendFailure {
    let text = match error.kind() {
        ErrorKind::TimedOut => return SendFailure::TimedOut,
        ErrorKind::ConnectionRefused => "the receiver refused the connection",
        ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable => "there is no route to the receiver",
        _ => "the connection to the receiver could not be opened",
    };
    SendFailure::Unreachable(text.to_owned())
}
