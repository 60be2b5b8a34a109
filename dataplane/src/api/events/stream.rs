//! `GET /api/ddl/events/stream`: the same events as server-sent events, as long as the key lives.

use std::convert::Infallible;
use std::fmt::Write as _;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::header::CACHE_CONTROL;
use axum::http::{HeaderMap, HeaderValue};
use axum::response::Response;
use futures_util::stream::unfold;
use rowgate_core::problem::{Code, Problem};

use super::follow::{Follower, Step};
use super::request::EventsRequest;
use crate::api::rest::target::RequestTarget;
use crate::app::App;
use crate::auth::credential::Caller;
use crate::execute::retry;
use crate::server::access_log::Endless;
use crate::server::compress::Uncompressed;
use crate::server::respond::{MediaType, Refusal};

/// After this many milliseconds a reader connects again, and where the replica goes away at once. The comment tells a
/// reader that it is connected.
const BEGINNING: &str = "retry: 1000\n:open\n\n";
const DRAINING: &str = "retry: 100\n:draining\n\n";

/// `GET /api/ddl/events/stream?tables=&ops=&after=`, with `Last-Event-ID` of a reader that connects again.
pub(crate) async fn open(
    caller: Result<Caller, Refusal>,
    State(app): State<Arc<App>>,
    target: RequestTarget,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let last = headers.get("last-event-id").map(HeaderValue::as_bytes);
    let last = last.filter(|last| !last.is_empty()).map(|last| String::from_utf8_lossy(last).into_owned());
    match begin(caller, app, &target, last.as_deref()).await {
        Err(Refusal(problem)) if last.is_some() => later(&problem).ok_or(Refusal(problem)),
        begun => begun,
    }
}

async fn begin(
    caller: Result<Caller, Refusal>,
    app: Arc<App>,
    target: &RequestTarget,
    last: Option<&str>,
) -> Result<Response, Refusal> {
    let caller = caller?;
    let parsed = |context: &_| EventsRequest::of_stream(context, target.query(), last);
    let context = retry::may(&caller, |context| parsed(context).map(drop)).await?;
    let EventsRequest { tables, ops, after, .. } = parsed(&context)?;
    let (follower, is_kept) = Follower::open(caller, app, &context, tables, ops, after).await?;
    let mut first = BEGINNING.to_owned();
    if !is_kept {
        reset(&mut first, &follower.cursor());
    }
    Ok(respond(first, follower, piece))
}

/// An empty stream in place of a refusal that time mends. EventSource gives up for good when it is answered with anything
/// but 200, and a reader that connects again has no program beside it that would begin another.
fn later(problem: &Problem) -> Option<Response> {
    let seconds = match problem.code {
        Code::Unavailable => 1,
        Code::RateLimited => problem.retry_after.unwrap_or(1),
        _ => return None,
    };
    let milliseconds = u64::from(seconds) * 1000;
    let text = format!("retry: {milliseconds}\n:{}\n\n", problem.message.replace(['\r', '\n'], " "));
    Some(label(Response::new(Body::from(text))))
}

fn piece(step: Step) -> Piece {
    let mut text = String::new();
    match step {
        Step::Events(events) => {
            events.each().for_each(|(cursor, event)| block(&mut text, Some(&cursor), "change", event));
        }
        Step::Reset(floor) => reset(&mut text, &floor),
        Step::Quiet(cursor) => {
            text.push_str(HEARTBEAT);
            if let Some(cursor) = cursor {
                block(&mut text, Some(&cursor), "position", "{}");
            }
        }
        Step::Draining => return Piece::Last(DRAINING.to_owned()),
        Step::Ended(_) => return Piece::Last(text),
    }
    Piece::More(text)
}

/// The reader lost events: those that are left begin here.
fn reset(text: &mut String, floor: &str) {
    block(text, Some(floor), "reset", &format!("{{\"floor\":\"{floor}\"}}"));
}

/// What is sent of a step.
pub(crate) enum Piece {
    More(String),
    Last(String),
}

/// How an answer of server-sent events is labelled.
pub(crate) const EVENT_STREAM: MediaType = MediaType(HeaderValue::from_static("text/event-stream"));
/// A comment.
pub(crate) const HEARTBEAT: &str = ":\n\n";

/// An answer of server-sent events. Each piece is made when the reader has taken the one before.
pub(crate) fn respond(
    first: String,
    follower: Follower,
    piece: impl FnMut(Step) -> Piece + Send + 'static,
) -> Response {
    let pieces = unfold((Some(first), Some((follower, piece))), |(first, rest)| async move {
        if let Some(first) = first {
            return Some((Ok::<_, Infallible>(first), (None, rest)));
        }
        let (mut follower, mut piece) = rest?;
        match piece(follower.next().await) {
            Piece::More(text) => Some((Ok(text), (None, Some((follower, piece))))),
            Piece::Last(text) => Some((Ok(text), (None, None))),
        }
    });
    label(Response::new(Body::from_stream(pieces)))
}

fn label(mut response: Response) -> Response {
    // compression would hold events back
    response.extensions_mut().insert(Uncompressed);
    response.extensions_mut().insert(Endless);
    response.extensions_mut().insert(EVENT_STREAM);
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("private, no-store"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

/// One server-sent event. A line end within JSON is white space, and stands between two lines of data.
pub(crate) fn block(text: &mut String, id: Option<&str>, event: &str, data: &str) {
    if let Some(id) = id {
        let _never_fails = writeln!(text, "id: {id}");
    }
    let _never_fails = writeln!(text, "event: {event}");
    for line in data.split(['\n', '\r']) {
        let _never_fails = writeln!(text, "data: {line}");
    }
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_that_time_mends_is_told_as_a_comment() {
        let (unavailable, limited) =
            (Problem::new(Code::Unavailable, "a\r\ndata: b"), Problem::rate_limited(5));
        let text = |problem: &Problem| {
            let body = later(problem)?.into_body();
            let bytes = futures_util::FutureExt::now_or_never(axum::body::to_bytes(body, 1000));
            Some(String::from_utf8(bytes?.ok()?.to_vec()).expect("text"))
        };
        assert_eq!(text(&unavailable).as_deref(), Some("retry: 1000\n:a  data: b\n\n"));
        assert!(text(&limited).is_some_and(|text| text.starts_with("retry: 5000\n:")));
        assert_eq!(text(&Problem::unauthorized()), None);
    }

    #[test]
    fn no_data_can_end_an_event() {
        let mut text = String::new();
        block(&mut text, Some("1.2.3"), "change", "{\"a\":\r\n\n{}}");
        assert_eq!(text, "id: 1.2.3\nevent: change\ndata: {\"a\":\ndata: \ndata: \ndata: {}}\n\n");
    }
}
