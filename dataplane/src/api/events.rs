//! `GET /api/ddl/events`: row changes in the order in which they became visible, as pages that go on behind a cursor.

pub(crate) mod follow;
pub(crate) mod given;
pub(crate) mod request;
pub(crate) mod stream;

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::HeaderValue;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse as _, Response};
use rowgate_core::problem::{Code, Problem};
use rowgate_pg::tenant::events::{self, Page, Position, Tick};
use tokio::time::{Instant, sleep_until};

use crate::api::rest::target::RequestTarget;
use crate::app::App;
use crate::auth::credential::Caller;
use crate::execute::retry;
use crate::server::respond::Refusal;
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
    let (mut tick, mut from) = begin(&caller, after).await?;
    let generation = tick.generation;
    loop {
        let page = read(&caller, from, &sources, &ops, limit).await?;
        let has_more = page.next.tick <= tick.number;
        from = page.next;
        let given = Given::ask(&caller, &sources, &page, tick.generation).await?;
        let is_over = deadline <= Instant::now() || app.draining.is_cancelled();
        if !given.is_empty() || has_more || is_over {
            return Ok(answer(&given, cursor(tick.generation, from), has_more));
        }
        let ticks = ticks.get_or_insert_with(|| caller.tenant.ticks());
        let newer = ticks.wait_for(|newest| newest.is_some_and(|newest| from.tick <= newest.number));
        tokio::select! {
            Ok(newest) = newer => tick = newest.unwrap_or(tick),
            () = sleep_until(deadline.min(checked + CHECK)) => {}
            () = app.draining.cancelled() => {}
        }
        if tick.generation != generation {
            return Err(gone().into());
        }
        // the key may have died meanwhile, or lost its rights
        if CHECK <= checked.elapsed() {
            checked = Instant::now();
            let context = caller.tenant.authenticate_fresh(&caller.credential).await?;
            parsed(&context)?;
        }
    }
}

/// The newest tick, and where the reader goes on.
async fn begin(caller: &Caller, after: After) -> Result<(Tick, Position), Problem> {
    let tick = caller.tenant.make_tick().await?;
    let from = match after {
        After::Now => Position { tick: tick.number + 1, seq: 0 },
        After::Start => Position { tick: tick.floor + 1, seq: 0 },
        After::Position { generation, at } => {
            let is_known = generation == tick.generation && at.tick <= tick.number + 1;
            if !is_known || at.tick <= tick.floor {
                return Err(gone());
            }
            at
        }
    };
    Ok((tick, from))
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
) -> Result<Page, Problem> {
    let tables: Vec<u32> = sources.iter().map(|source| source.table).collect();
    let (pool, ops) = (caller.tenant.look_ups.clone(), ops.to_vec());
    let look = async move {
        let mut conn = pool.acquire().await?;
        let page = events::page(&mut conn, from, &tables, &ops, limit).await;
        conn.done(page)
    };
    caller.tenant.run_detached(look).await
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
