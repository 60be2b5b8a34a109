//! `rowgate tail`: follows the stream of events, over broken connections and restarts of the server.

mod show;

use std::time::Duration;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, ValueEnum};
use rowgate_core::backoff;

use crate::context::Context;
use crate::failure::Failure;
use crate::http::client::{Api, piece};
use crate::http::request::Request;
use crate::interrupt::interrupted;
use crate::output::notice::notice;
use crate::output::stdout::{Output, is_closed};
use crate::sse::{SseEvent, SseParser};

/// Unless the server says otherwise.
const RECONNECT: Duration = Duration::from_secs(1);
const MAX_RECONNECT: Duration = Duration::from_secs(30);
/// How often is looked whether the reader of standard output has left.
const LOOK: Duration = Duration::from_millis(500);

/// The flags of `tail`.
#[derive(Debug, Clone, Args)]
#[command(
    after_help = "Each event is one JSON object on a line. The line {\"type\": \"reset\", \"cursor\": ...} says that
events before it are no longer kept: read the rows again. After a broken connection the command
goes on behind the last event, without a gap or a repeat. It ends with Ctrl-C, and then prints the
cursor that --since takes, or when the reader of its output ends.

Examples:
  rowgate tail orders
  rowgate tail orders --since 1.4.17 | jq -c '{EventId, op, key}'
  rowgate tail orders --ops insert --since start -o table"
)]
pub(crate) struct TailFlags {
    /// Entities, separated by commas [default: all whose events the key may read]
    #[arg(value_name = "ENTITY", value_parser = NonEmptyStringValueParser::new(), value_delimiter = ',')]
    entities: Vec<String>,
    /// Begin behind this cursor or EventId, or at the `start` of what is kept [default: now]
    #[arg(long, value_name = "CURSOR")]
    since: Option<String>,
    /// Some of insert, update, delete, truncate, separated by commas
    #[arg(long, value_name = "OPS", value_delimiter = ',')]
    ops: Vec<String>,
    /// The format of the output
    #[arg(long, short, value_name = "FORMAT", value_enum, default_value_t = EventFormat::Json)]
    output: EventFormat,
}

/// How events are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum EventFormat {
    /// One JSON object on each line
    Json,
    /// Time, operation, entity, key and row, cut to the width of the terminal
    Table,
}

/// How far the events have been printed.
#[derive(Debug, Default)]
struct Follower {
    cursor: Option<String>,
    /// The last id of a stream, rather than what --since says.
    is_id: bool,
}

pub(crate) async fn run(flags: TailFlags, context: &mut Context) -> Result<(), Failure> {
    let api = context.api()?;
    let mut follower = Follower { cursor: flags.since.clone(), is_id: false };
    let end = tokio::select! {
        end = follower.follow(&api, &flags, &mut context.output) => end,
        () = reader_left() => Err(Failure::OutputClosed),
        () = interrupted() => Err(Failure::Interrupted(None)),
    };
    let end = end.map_err(|failure: Failure| {
        failure.hinted(|problem| {
            (problem.code == "InvalidCursor").then(|| "a cursor is given with --since".to_owned())
        })
    });
    match (end, follower.cursor) {
        (Err(Failure::Interrupted(_)), Some(cursor)) => {
            Err(Failure::Interrupted(Some(format!("stopped; --since {cursor} goes on from here"))))
        }
        (end, _) => end,
    }
}

/// A reader such as `head` leaves while no event comes, which no write would notice.
async fn reader_left() {
    while !is_closed() {
        tokio::time::sleep(LOOK).await;
    }
}

impl Follower {
    /// Until the server refuses, or the output is closed.
    async fn follow(&mut self, api: &Api, flags: &TailFlags, output: &mut Output) -> Result<(), Failure> {
        if self.cursor.is_none() {
            // Where "now" is, so that nothing is lost if the connection breaks before the first event.
            let page = api.json(&flags.request("/api/ddl/events", &[("limit", "1".to_owned())])).await?.value;
            self.cursor = page["cursor"].as_str().map(str::to_owned);
        }
        let (mut n_failed, mut was_connected) = (0, false);
        loop {
            let request = self.request(flags);
            // Later connections are tried for as long as it takes, and by the loop here.
            let request = if was_connected { request.once() } else { request };
            let (failure, retry) = match api.open(&request).await {
                Ok(response) => {
                    if 0 < n_failed {
                        notice("connected again");
                    } else if !was_connected {
                        notice(&format!("{}; Ctrl-C stops", self.following()));
                    }
                    (n_failed, was_connected) = (0, true);
                    let (mut body, mut parser) = (response.into_body(), SseParser::default());
                    let failure = loop {
                        match piece(&mut body).await {
                            Ok(Some(bytes)) => self.print(&parser.push(&bytes), flags.output, output)?,
                            Ok(None) => break None,
                            Err(failure) => break Some(failure),
                        }
                    };
                    (failure, parser.retry())
                }
                Err(failure) if was_connected && may_pass(&failure) => (Some(failure), None),
                Err(failure) => return Err(failure),
            };
            if let (Some(failure), 0) = (&failure, n_failed) {
                notice(&format!("{failure}; connecting again"));
            }
            let pause = backoff::nth(retry.unwrap_or(RECONNECT), MAX_RECONNECT, n_failed);
            n_failed += u32::from(failure.is_some());
            tokio::time::sleep(pause.mul_f64(1.0 - rand::random::<f64>() / 4.0)).await;
        }
    }

    fn following(&self) -> String {
        match self.cursor.as_deref() {
            None => "following the events from now on".to_owned(),
            Some("start") => "following all events that are kept".to_owned(),
            Some(cursor) => format!("following the events after {cursor}"),
        }
    }

    fn request(&self, flags: &TailFlags) -> Request {
        const STREAM: &str = "/api/ddl/events/stream";
        let request = match (&self.cursor, self.is_id) {
            (Some(id), true) => flags.request(STREAM, &[]).header("last-event-id", id.clone()),
            (Some(after), false) => flags.request(STREAM, &[("after", after.clone())]),
            (None, _) => flags.request(STREAM, &[]),
        };
        request.header("accept", "text/event-stream".to_owned())
    }

    /// The cursor moves when the events are printed, so that none is passed over.
    fn print(
        &mut self,
        events: &[SseEvent],
        format: EventFormat,
        output: &mut Output,
    ) -> Result<(), Failure> {
        for event in events {
            if let Some(line) = show::line(event, format, output.width()) {
                output.write(&line)?;
                output.write("\n")?;
            }
        }
        output.flush()?;
        if let Some(id) = events.last().and_then(|event| event.id.clone()).filter(|id| !id.is_empty()) {
            (self.cursor, self.is_id) = (Some(id), true);
        }
        Ok(())
    }
}

/// Whether another connection may have what this one was refused.
fn may_pass(failure: &Failure) -> bool {
    match failure {
        Failure::Unavailable(_) => true,
        Failure::Refused(problem) => problem.code == "RateLimited",
        _ => false,
    }
}

impl TailFlags {
    fn request(&self, path: &str, more: &[(&'static str, String)]) -> Request {
        let lists = [("tables", &self.entities), ("ops", &self.ops)];
        let lists = lists.into_iter().filter(|(_, list)| !list.is_empty());
        let parameters: Vec<_> =
            lists.map(|(name, list)| (name, list.join(","))).chain(more.iter().cloned()).collect();
        Request::get(path.to_owned()).query(&parameters)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags() -> TailFlags {
        let entities = ["orders", "customers"].map(str::to_owned).into();
        TailFlags { entities, since: None, ops: vec!["insert".to_owned()], output: EventFormat::Json }
    }

    #[test]
    fn the_first_connection_begins_at_the_cursor_and_later_ones_behind_the_last_id() {
        let mut follower = Follower { cursor: Some("1.4.17".to_owned()), is_id: false };
        let path = "/api/ddl/events/stream?tables=orders%2Ccustomers&ops=insert";
        let accepts = |path: String| Request::get(path);
        let sse = "text/event-stream".to_owned();
        let first = accepts(format!("{path}&after=1.4.17")).header("accept", sse.clone());
        assert_eq!(follower.request(&flags()), first);
        follower = Follower { cursor: Some("1.4.18".to_owned()), is_id: true };
        let again =
            accepts(path.to_owned()).header("last-event-id", "1.4.18".to_owned()).header("accept", sse);
        assert_eq!(follower.request(&flags()), again);
    }

    #[test]
    fn refusals_end_a_stream_and_outages_do_not() {
        assert!(may_pass(&Failure::Unavailable(String::new())));
        assert!(!may_pass(&Failure::refused("no")) && !may_pass(&Failure::OutputClosed));
    }
}
