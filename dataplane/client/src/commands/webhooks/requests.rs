//! From the commands of webhooks to requests.

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use serde_json::{Value, json};

use super::{Act, Id, create, object};
use crate::failure::Failure;
use crate::http::address;
use crate::http::request::Request;

const ROOT: [&str; 4] = ["api", "ddl", "events", "webhooks"];

/// The flags of `webhooks replay`.
#[derive(Debug, Clone, Args)]
#[command(
    after_help = "A replay never goes forward, and enables a disabled subscription. Messages have \"replay\": true.

Examples:
  rowgate webhooks replay 01JDGW... --from-time 2026-11-25T08:00:00Z --dry-run
  rowgate webhooks replay 01JDGW... --from-start"
)]
#[command(group = clap::ArgGroup::new("from").required(true))]
pub(in crate::commands) struct ReplayFlags {
    #[command(flatten)]
    id: Id,
    /// From the oldest event that is kept
    #[arg(long, group = "from")]
    from_start: bool,
    /// From this event on, itself included
    #[arg(long, group = "from", value_name = "EVENT_ID")]
    from_event: Option<String>,
    /// Events of this time and later, in UTC [example: 2026-11-25T08:00:00Z]
    #[arg(long, group = "from", value_name = "TIME")]
    from_time: Option<String>,
    /// Only count the events
    #[arg(long)]
    dry_run: bool,
}

/// A page of a list.
#[derive(Debug, Clone, Args)]
pub(in crate::commands) struct PageFlags {
    #[command(flatten)]
    pub(super) id: Id,
    /// At most so many
    #[arg(long, value_name = "N")]
    limit: Option<u32>,
    /// Those before this one, of which the page before was the last
    #[arg(long, value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    before: Option<String>,
}

impl Act {
    /// What is asked of the server.
    pub(super) fn request(&self) -> Result<Request, Failure> {
        let at = |parts: &[&str]| address::path(&[&ROOT, parts].concat());
        Ok(match self {
            Act::List => Request::get(at(&[])),
            Act::Get(Id { id }) => Request::get(at(&[id])),
            Act::Create(flags) => Request::post(at(&[]), Some(flags.body()?)),
            Act::Update { id, file } => Request::patch(at(&[&id.id]), create::file(file)?),
            Act::Suspend(Id { id }) => Request::patch(at(&[id]), json!({"suspend": true})),
            Act::Resume(Id { id }) => Request::patch(at(&[id]), json!({"suspend": false})),
            Act::Delete(Id { id }) => Request::delete(at(&[id])),
            Act::Test(Id { id }) => Request::post(at(&[id, "test"]), None),
            Act::RotateSecret(Id { id }) => Request::post(at(&[id, "secret", "rotate"]), None),
            Act::Replay(flags) => Request::post(at(&[&flags.id.id, "replay"]), Some(flags.body())),
            Act::Deliveries(page) => Request::get(at(&[&page.id.id, "deliveries"])).query(&page.parameters()),
            Act::DeadLetters { page, dead_letter: None } => {
                Request::get(at(&[&page.id.id, "dead-letters"])).query(&page.parameters())
            }
            Act::DeadLetters { page, dead_letter: Some(one) } => {
                Request::get(at(&[&page.id.id, "dead-letters", one]))
            }
            Act::Redrive { id, dead_letter: Some(one), .. } => {
                Request::post(at(&[&id.id, "dead-letters", one, "redrive"]), None)
            }
            Act::Redrive { id, dead_letter: None, .. } => {
                Request::post(at(&[&id.id, "dead-letters", "redrive"]), None)
            }
        })
    }
}

impl ReplayFlags {
    fn body(&self) -> Value {
        object([
            ("fromRetentionStart", self.from_start.then_some(json!(true))),
            ("fromEventId", self.from_event.as_ref().map(|id| json!(id))),
            ("fromUtc", self.from_time.as_ref().map(|time| json!(time))),
            ("dryRun", self.dry_run.then_some(json!(true))),
        ])
    }
}

impl PageFlags {
    fn parameters(&self) -> Vec<(&'static str, String)> {
        let limit = self.limit.map(|limit| ("limit", limit.to_string()));
        let before = self.before.clone().map(|before| ("before", before));
        limit.into_iter().chain(before).collect()
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::commands::webhooks::WebhooksFlags;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        flags: WebhooksFlags,
    }

    fn parsed(line: &str) -> Result<Request, clap::Error> {
        let words = ["webhooks"].into_iter().chain(line.split(' '));
        Ok(Line::try_parse_from(words)?.flags.act.request().expect("a request"))
    }

    #[test]
    fn each_command_has_its_route() {
        let root = "/api/ddl/events/webhooks";
        let get = |path: &str| Request::get(format!("{root}{path}"));
        let post = |path: &str, body| Request::post(format!("{root}{path}"), body);
        for (line, request) in [
            ("list", get("")),
            ("get W", get("/W")),
            ("suspend W", Request::patch(format!("{root}/W"), json!({"suspend": true}))),
            ("resume W", Request::patch(format!("{root}/W"), json!({"suspend": false}))),
            ("delete W", Request::delete(format!("{root}/W"))),
            ("test W", post("/W/test", None)),
            ("rotate-secret W", post("/W/secret/rotate", None)),
            ("replay W --from-start", post("/W/replay", Some(json!({"fromRetentionStart": true})))),
            (
                "replay W --from-event 1.4.17 --dry-run",
                post("/W/replay", Some(json!({"fromEventId": "1.4.17", "dryRun": true}))),
            ),
            ("replay W --from-time T", post("/W/replay", Some(json!({"fromUtc": "T"})))),
            ("deliveries W --limit 5 --before 9", get("/W/deliveries?limit=5&before=9")),
            ("dead-letters W", get("/W/dead-letters")),
            ("dead-letters W D", get("/W/dead-letters/D")),
            ("redrive W D", post("/W/dead-letters/D/redrive", None)),
            ("redrive W --all", post("/W/dead-letters/redrive", None)),
        ] {
            assert_eq!(parsed(line).expect(line), request, "{line}");
        }
    }

    #[test]
    fn what_acts_twice_is_sent_once() {
        for line in ["test W", "rotate-secret W", "replay W --from-start", "redrive W --all"] {
            assert!(!parsed(line).expect(line).is_repeatable, "{line}");
        }
    }

    #[test]
    fn half_a_command_is_refused() {
        for line in
            ["replay W", "replay W --from-start --from-event 1", "redrive W", "redrive W D --all", "create"]
        {
            assert!(parsed(line).is_err(), "{line}");
        }
    }
}
