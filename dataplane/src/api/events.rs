//! `GET /api/ddl/events`: row changes in the order in which they became visible, as pages that go on behind a cursor.

pub(crate) mod follow;
pub(crate) mod given;
pub(crate) mod request;
pub(crate) mod shared;
pub(crate) mod stream;

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::HeaderValue;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse as _, Response};
use rowgate_core::problem::{Code, Problem};
use rowgate_core::secret::Credential;
use rowgate_pg::failure::PgError;
use rowgate_pg::tenant::events::{self, Page, Position, Tick};
use rowgate_pg::tenant::lookups::Acquired;
use rowgate_sql::catalog::Entity;
use tokio::time::{Instant, sleep_until};

use crate::api::rest::target::RequestTarget;
use crate::app::App;
use crate::auth::credential::Caller;
use crate::auth::key_context::KeyContext;
use crate::execute::retry;
use crate::server::respond::Refusal;
use crate::tenants::tenant::Tenant;
use given::Given;
use request::{After, EventsRequest, Source};

/// Between two looks whether the key of a request that waits still lives.
const CHECK: Duration = Duration::from_secs(1);

/// `GET /api/ddl/events?tables=&ops=&after=&limit=&wait=`
pub(crate) async fn page(
    caller: Caller,
    State(app): State<Arc<App>>,
    target: RequestTarget,
) -> Result<Response, Refusal> {
    let parsed = |context: &_| EventsRequest::parse(context, target.query());
    let context = retry::may(&caller, |context| parsed(context).map(drop)).await?;
    let EventsRequest { sources, ops, after, limit, wait, .. } = parsed(&context)?;
    let (mut checked, deadline) = (Instant::now(), Instant::now() + wait);
    let mut ticks = None;
    let (mut tick, _, mut from) = begin(&caller, after).await?;
    let mut newest = tick.generation;
    loop {
        let page = read(&caller, from, &sources, &ops, limit).await?.ok_or_else(gone)?;
        let has_more = page.next.tick <= tick.number;
        let generation = page.generation;
        from = page.next;
        let given = Given::ask(&caller, &sources, &page).await?;
        given.count(&caller.tenant.event_tail.counts);
        let is_over = deadline <= Instant::now() || app.draining.is_cancelled();
        if !given.is_empty() || has_more || is_over {
            return Ok(answer(&given, cursor(generation, from), has_more));
        }
        let ticks = ticks.get_or_insert_with(|| caller.tenant.ticks());
        let is_newer = |tick: &Tick| tick.generation != newest || from.tick <= tick.number;
        let newer = ticks.wait_for(|tick| tick.as_ref().is_some_and(is_newer));
        tokio::select! {
            Ok(newer) = newer => tick = newer.unwrap_or(tick),
            () = sleep_until(deadline.min(checked + CHECK)) => {}
            () = app.draining.cancelled() => {}
        }
        if tick.generation != newest {
            if !holds(&caller, generation, from).await? {
                return Err(gone().into());
            }
            newest = tick.generation;
        }
        // the key may have died meanwhile, or lost its rights
        if CHECK <= checked.elapsed() {
            checked = Instant::now();
            let context = caller.tenant.authenticate_fresh(&caller.credential).await?;
            parsed(&context)?;
        }
    }
}

/// The newest tick, and where the reader goes on: the generation of that position, and the position.
async fn begin(caller: &Caller, after: After) -> Result<(Tick, i32, Position), Problem> {
    let tick = caller.tenant.make_tick().await?;
    let (generation, from) = match after {
        After::Now => (tick.generation, Position { tick: tick.number + 1, seq: 0 }),
        After::Start => {
            look(caller, move |mut conn| async move {
                let start = events::start(&mut conn, tick).await;
                conn.done(start)
            })
            .await?
        }
        After::Position { generation, at } if holds(caller, generation, at).await? => (generation, at),
        After::Position { .. } => return Err(gone()),
    };
    Ok((tick, generation, from))
}

/// Whether a reader goes on exactly behind this position.
async fn holds(caller: &Caller, generation: i32, at: Position) -> Result<bool, Problem> {
    look(caller, move |mut conn| async move {
        let holds = events::holds(&mut conn, generation, at).await;
        conn.done(holds)
    })
    .await
}

async fn look<T: Send + 'static, F>(
    caller: &Caller,
    ask: impl FnOnce(Acquired) -> F + Send + 'static,
) -> Result<T, Problem>
where
    F: Future<Output = Result<T, PgError>> + Send,
{
    let tenant = &caller.tenant;
    // a delivery waits for other deliveries, and no request waits for one
    if matches!(caller.credential, Credential::Owner(_)) {
        let look = async { ask(tenant.deliveries.connections.acquire_warm().await?).await };
        return tenant.run_attached(look).await;
    }
    let pool = tenant.look_ups.clone();
    tenant.run_detached(async move { ask(pool.acquire().await?).await }).await
}

fn gone() -> Problem {
    let what = "the events behind this position are no longer kept, or the database was replaced by a copy; read the rows again, \
                and go on with after=start or without after";
    Problem::new(Code::InvalidCursor, what)
}

async fn read(
    caller: &Caller,
    from: Position,
    sources: &[Source],
    ops: &[String],
    limit: i32,
) -> Result<Option<Page>, Problem> {
    let tables: Vec<u32> = sources.iter().map(|source| source.table).collect();
    let ops = ops.to_vec();
    look(caller, move |mut conn| async move {
        let page = events::page(&mut conn, from, &tables, &ops, limit).await;
        conn.done(page)
    })
    .await
}

/// Where the events begin that a reader of the rows of now does not have yet. `None`: the key is given none of this entity.
pub(crate) async fn cursor_of_now(
    tenant: &Tenant,
    context: &KeyContext,
    entity: &Entity,
) -> Result<Option<String>, Problem> {
    let scope = context.snapshot.scope(&context.key);
    if request::readable(&context.snapshot.catalog, &scope, entity).is_none() {
        return Ok(None);
    }
    let tick = tenant.make_tick().await?;
    Ok(Some(cursor(tick.generation, Position { tick: tick.number + 1, seq: 0 })))
}

/// The position as callers write it. That of an event is its EventId.
pub(crate) fn cursor(generation: i32, at: Position) -> String {
    format!("{generation}.{}.{}", at.tick, at.seq)
}

fn answer(given: &Given, cursor: String, has_more: bool) -> Response {
    let json = format!("{{\"events\":[{}],\"cursor\":\"{cursor}\",\"hasMore\":{has_more}}}", given.json());
    let mut response = json.into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("private, no-store"));
    response
}
