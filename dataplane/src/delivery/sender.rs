//! Sends one request to a webhook's destination: to an address that was judged, under one deadline, and never further.
//!
//! The host is resolved here, every address that it has is judged, and the connection goes to one of those addresses: nothing
//! looks the name up a second time. Redirects are answers like others, and no proxy is known. [`HostLimits`] says how many
//! requests one host gets at a time.

use std::sync::Arc;
use std::time::Duration;

use axum::http::HeaderMap;
use bytes::Bytes;
use ipnet::IpNet;
use rowgate_core::name::Ulid;
use rowgate_core::webhook::destination::{Destination, Policy, host_of};
use tokio::time::{Instant, timeout};

mod connect;
mod exchange;
mod host_limits;
mod idle;
mod request;
mod resolve;
pub(crate) mod trust;

#[cfg(test)]
mod tests;

pub use exchange::{Answer, MAX_ANSWER_LEN};
pub use host_limits::{HostLimits, HostPermit};
use idle::{Idle, Key};
pub use resolve::{Addresses, Resolve};
pub use trust::Roots;

/// Over everything: resolving, connecting, TLS, the request and its answer.
pub const DEADLINE: Duration = Duration::from_secs(15);
/// A connection is not used again when it is older, so that a change of the host's addresses is seen.
const MAX_CONNECTION_AGE: Duration = Duration::from_secs(30);

/// One for the process.
pub struct Sender {
    ranges: Vec<IpNet>,
    resolve: Resolve,
    roots: Roots,
    deadline: Duration,
    max_connection_age: Duration,
    idle: Idle,
    hosts: Arc<HostLimits>,
}

/// What became of one request.
#[derive(Debug)]
pub struct Posted {
    pub took: Duration,
    pub result: Result<Answer, SendFailure>,
}

/// Why there is no answer. The texts hold no secret and no address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SendFailure {
    /// By the guard of destinations.
    Refused(String),
    TimedOut,
    Unreachable(String),
}

impl Sender {
    /// Asks the resolver of the system and trusts the authorities of the system (`SSL_CERT_FILE` names others). `ranges` are
    /// those that the installation allows.
    #[must_use]
    pub fn new(ranges: Vec<IpNet>) -> Sender {
        Sender::with(ranges, resolve::system(), Roots::system(), DEADLINE, MAX_CONNECTION_AGE)
    }

    /// With another resolver, other authorities and other bounds.
    #[must_use]
    pub fn with(
        ranges: Vec<IpNet>,
        resolve: Resolve,
        roots: Roots,
        deadline: Duration,
        max_connection_age: Duration,
    ) -> Sender {
        let (idle, hosts) = (Idle::default(), HostLimits::new());
        Sender { ranges, resolve, roots, deadline, max_connection_age, idle, hosts }
    }

    /// What the installation allows beside public addresses, for [`Policy::ranges`].
    #[must_use]
    pub fn ranges(&self) -> &[IpNet] {
        &self.ranges
    }

    /// How many replicas live: together they send at most 16 requests at a time to one host.
    pub fn set_replicas(&self, n_live: usize) {
        self.hosts.set_replicas(n_live);
    }

    /// Waits for one of the requests that the host of `url` gets at a time. Tenants that wait for one host take turns. The wait
    /// is no fault of the receiver and is outside the deadline.
    pub async fn place(&self, url: &str, tenant: &Ulid) -> HostPermit {
        self.hosts.permit(&host_of(url).unwrap_or_default(), tenant).await
    }

    /// Posts `body`. What the receiver answers is taken as it is, a redirect, too.
    pub async fn post(
        &self,
        destination: &Destination,
        policy: &Policy,
        headers: HeaderMap,
        body: Bytes,
    ) -> Posted {
        let begun = Instant::now();
        let result = timeout(self.deadline, self.exchange(destination, policy, headers, body)).await;
        Posted { took: begun.elapsed(), result: result.unwrap_or(Err(SendFailure::TimedOut)) }
    }

    async fn exchange(
        &self,
        destination: &Destination,
        policy: &Policy,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Answer, SendFailure> {
        let request = request::of(destination, policy, headers, body)?;
        let key = Key::of(destination);
        // A receiver may close an idle connection just as it is used again; the request goes out on a new one then.
        if let Some(mut connection) = self.idle.take(&key, self.max_connection_age) {
            connect::judge(connection.peer().ip(), policy)?;
            if let Ok(answer) = connection.send(request.clone()).await {
                self.idle.put(key, connection, self.max_connection_age);
                return Ok(answer);
            }
        }
        let addresses = resolve::vetted(&self.resolve, destination, policy).await?;
        let mut connection = connect::open(destination, policy, &addresses, &self.roots).await?;
        let answer = connection.send(request).await?;
        self.idle.put(key, connection, self.max_connection_age);
        Ok(answer)
    }
}
