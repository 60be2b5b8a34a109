//! What is checked of a subscription before it is stored: where it goes, what it is sent, and as what.

use std::net::IpAddr;
use std::time::Duration;

use rowgate_core::problem::{Code, Problem};
use rowgate_core::webhook::destination::{Destination, Policy, Refusal, address_allowed};
use rowgate_pg::tenant::subscriptions::Spec;
use tokio::net::lookup_host;
use tokio::time::timeout;

use crate::api::events::request;
use crate::app::App;
use crate::auth::credential::Caller;
use crate::auth::key_context::KeyContext;
use crate::delivery::payload::{PayloadError, PayloadQueries};
use crate::execute::retry::{self, Attempt, RetryReason};

/// For the addresses of a host.
const RESOLVE_TIMEOUT: Duration = Duration::from_secs(5);

/// Where webhooks of the tenant may go.
pub(super) fn policy(app: &App, context: &KeyContext) -> Policy {
    let allow_http = context.snapshot.catalog.limits.webhooks_allow_http;
    Policy { allow_http, ranges: app.sender.ranges().to_vec() }
}

/// Refuses a URL to which nothing may be sent, by its form and by the addresses that its host has now. Each connect looks again.
pub(super) async fn url(text: &str, policy: &Policy) -> Result<(), Problem> {
    let refused = |refusal: Refusal| Problem::new(Code::InvalidDestination, format!("url: {refusal}"));
    let destination = Destination::parse(text, policy).map_err(refused)?;
    // an address was judged with the form
    if destination.address().is_some() {
        return Ok(());
    }
    let name = destination.host();
    let unknown = || {
        let what = "url: the host does not resolve to an address; check its spelling, or try again later";
        Problem::new(Code::InvalidDestination, what)
    };
    let found = timeout(RESOLVE_TIMEOUT, lookup_host((name, destination.port()))).await;
    let addresses: Vec<IpAddr> =
        found.map_err(|_| unknown())?.map_err(|_| unknown())?.map(|address| address.ip()).collect();
    if addresses.is_empty() {
        return Err(unknown());
    }
    addresses.into_iter().try_for_each(|address| address_allowed(address, policy)).map_err(refused)
}

/// Refuses a payload query that cannot run as the key for each of these tables.
pub(super) async fn payload_query(
    caller: &Caller,
    context: &KeyContext,
    spec: &Spec,
    tables: &[u32],
) -> Result<(), Problem> {
    let problem = |error: PayloadError| match error {
        PayloadError::OwnerInactive => Problem::unauthorized(),
        PayloadError::OwnerChanged | PayloadError::Unavailable(_) => Problem::unavailable(),
        PayloadError::Query(what) => Problem::new(Code::InvalidPayloadQuery, format!("payloadQuery: {what}")),
    };
    let text = spec.payload_query.as_deref();
    let Some(queries) = PayloadQueries::new(context, text, tables).map_err(problem)? else { return Ok(()) };
    queries.check(&caller.tenant, context).await.map_err(problem)
}

/// The tables of which it is sent events, by the catalog of now. All must be the key's to read.
pub(super) async fn tables(
    caller: &Caller,
    tables: Option<&[String]>,
) -> Result<(KeyContext, Vec<u32>), Problem> {
    let context = caller.reauthenticate().await?;
    retry::run(caller, context, &Sources { tables: tables.map(|tables| tables.join(",")) }).await
}

struct Sources {
    tables: Option<String>,
}

impl Attempt for Sources {
    type Answer = (KeyContext, Vec<u32>);

    async fn attempt(
        &self,
        _: &Caller,
        context: &KeyContext,
        _: bool,
    ) -> Result<(KeyContext, Vec<u32>), RetryReason> {
        let scope = context.snapshot.scope(&context.key);
        let sources = request::sources(context, &scope, self.tables.as_deref()).map_err(|problem| {
            let message = format!("filter.tables: {}", problem.message);
            RetryReason::Refused(Problem { message, ..problem })
        })?;
        Ok((context.clone(), sources.iter().map(|source| source.table).collect()))
    }
}
