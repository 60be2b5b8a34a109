//! The addresses of a host, all of them judged: one that is refused refuses the host, as a mixed answer is made on purpose.

use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;

use rowgate_core::webhook::destination::{Destination, Policy};

use super::{SendFailure, connect};

/// What looking up a name gives.
pub type Addresses = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;

/// Looks up the addresses of a name.
pub type Resolve = Arc<dyn Fn(&str) -> Addresses + Send + Sync>;

/// The resolver of the system.
pub(super) fn system() -> Resolve {
    Arc::new(|name| {
        let name = name.to_owned();
        Box::pin(async move {
            let found = tokio::net::lookup_host((name, 0)).await?;
            Ok(found.map(|found| found.ip()).collect())
        })
    })
}

/// Where `destination` may be connected to. Empty is not among the answers.
pub(super) async fn vetted(
    resolve: &Resolve,
    destination: &Destination,
    policy: &Policy,
) -> Result<Vec<SocketAddr>, SendFailure> {
    let unknown = || SendFailure::Unreachable("the host name cannot be resolved".to_owned());
    let found = match destination.address() {
        Some(address) => vec![address],
        None => resolve(destination.host()).await.map_err(|_| unknown())?,
    };
    if found.is_empty() {
        return Err(unknown());
    }
    for address in &found {
        connect::judge(*address, policy)?;
    }
    Ok(found.into_iter().map(|address| SocketAddr::new(address, destination.port())).collect())
}
