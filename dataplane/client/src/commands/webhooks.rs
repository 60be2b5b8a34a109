//! `rowgate webhooks`: subscriptions that send changes of rows to a URL.

mod create;
mod requests;

use std::path::PathBuf;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand};
use serde_json::Value;

use self::create::CreateFlags;
use self::requests::{PageFlags, ReplayFlags};
use super::{print_rows, take_rows};
use crate::context::Context;
use crate::failure::Failure;
use crate::output::notice::notice;
use crate::output::{Format, escape};

/// The flags of `webhooks`.
#[derive(Debug, Clone, Args)]
pub(crate) struct WebhooksFlags {
    #[command(subcommand)]
    act: Act,
    /// The format of lists [default: table on a terminal, else json]
    #[arg(long, short, global = true, value_name = "FORMAT")]
    output: Option<Format>,
}

#[derive(Debug, Clone, Subcommand)]
pub(super) enum Act {
    /// List the subscriptions of the key [example: rowgate webhooks list]
    List,
    /// Print a subscription [example: rowgate webhooks get 01JDGW...]
    Get(Id),
    /// Subscribe a URL; the answer has the signing secret, this once
    Create(Box<CreateFlags>),
    /// Change the members that a file has, such as {"filter": {"ops": ["insert"]}} [example: rowgate webhooks update 01JDGW... --file change.json]
    Update {
        #[command(flatten)]
        id: Id,
        /// The members to change, as JSON; - is standard input
        #[arg(long, value_name = "FILE")]
        file: PathBuf,
    },
    /// Send nothing until the subscription is resumed [example: rowgate webhooks suspend 01JDGW...]
    Suspend(Id),
    /// Go on with a suspended or disabled subscription where it was [example: rowgate webhooks resume 01JDGW...]
    Resume(Id),
    /// Delete a subscription and its dead letters [example: rowgate webhooks delete 01JDGW...]
    Delete(Id),
    /// Send a message without events; exit code 1 if it is not delivered [example: rowgate webhooks test 01JDGW...]
    Test(Id),
    /// Make a new signing secret and print it, this once; the one before signs beside it for 24 hours
    /// [example: rowgate webhooks rotate-secret 01JDGW...]
    RotateSecret(Id),
    /// Send events once more
    Replay(ReplayFlags),
    /// List the newest requests [example: rowgate webhooks deliveries 01JDGW... --limit 10]
    Deliveries(PageFlags),
    /// List batches that were given up, or print one with its changes [example: rowgate webhooks dead-letters 01JDGW...]
    DeadLetters {
        #[command(flatten)]
        page: PageFlags,
        /// The dead letter to print
        #[arg(value_name = "DEAD_LETTER", value_parser = NonEmptyStringValueParser::new(), conflicts_with_all = ["limit", "before"])]
        dead_letter: Option<String>,
    },
    /// Send a dead letter once more, or all of them [example: rowgate webhooks redrive 01JDGW... --all]
    Redrive {
        #[command(flatten)]
        id: Id,
        /// The dead letter
        #[arg(value_name = "DEAD_LETTER", value_parser = NonEmptyStringValueParser::new(), required_unless_present = "all", conflicts_with = "all")]
        dead_letter: Option<String>,
        /// All dead letters of the subscription
        #[arg(long)]
        all: bool,
    },
}

#[derive(Debug, Clone, Args)]
pub(super) struct Id {
    /// The id of the subscription, as `rowgate webhooks list` prints it
    #[arg(value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    id: String,
}

/// The member of a list, and the columns of its table.
type List = (&'static str, &'static [&'static str]);

pub(crate) async fn run(flags: WebhooksFlags, context: &mut Context) -> Result<(), Failure> {
    let api = context.api()?;
    let answer = api.json(&flags.act.request()?).await;
    let mut answer = answer.map_err(|failure| flags.act.hinted(failure))?.value;
    let output = &mut context.output;
    if let Some((member, columns)) = flags.act.list() {
        let has_more = answer["hasMore"] == true;
        let rows = take_rows(&mut answer, member)?;
        let format = Format::or_default(flags.output, output.is_terminal);
        print_rows(output, format, Some(columns), &rows)?;
        if let Some(last) = rows.last().and_then(|row| row.get("id")).filter(|_| has_more) {
            let last = last.as_str().map_or_else(|| last.to_string(), str::to_owned);
            notice(&format!("there are more; --before {last} lists them"));
        }
        return Ok(());
    }
    if !answer.is_null() {
        output.line(&escape::pretty(&answer))?;
    }
    match flags.act {
        Act::Create(_) | Act::RotateSecret(_) => {
            notice("store the secret where the receiver verifies; it is not shown again");
        }
        Act::Test(_) if answer["delivered"] != true => {
            let why = answer["error"].as_str().unwrap_or("the receiver did not answer with 2xx");
            return Err(Failure::refused(format!("the test message was not delivered: {why}")));
        }
        _ => {}
    }
    Ok(())
}

impl Act {
    /// A refusal in the words of HTTP, with what to do on a command line.
    fn hinted(&self, failure: Failure) -> Failure {
        failure.hinted(|problem| match (problem.code.as_str(), self) {
            ("NotFound", Act::DeadLetters { dead_letter: Some(_), page: PageFlags { id, .. } })
            | ("NotFound", Act::Redrive { dead_letter: Some(_), id, .. })
                if problem.message.contains("dead") =>
            {
                Some(format!("`rowgate webhooks dead-letters {}` prints that list", id.id))
            }
            ("NotFound", _) => Some("`rowgate webhooks list` prints that list".to_owned()),
            (_, Act::Replay(_)) if problem.message.contains("fromUtc") => {
                Some("fromUtc is --from-time".to_owned())
            }
            (_, Act::Replay(_)) if problem.message.contains("fromEventId") => {
                Some("fromEventId is --from-event".to_owned())
            }
            _ => None,
        })
    }

    fn list(&self) -> Option<List> {
        match self {
            Act::List => Some((
                "subscriptions",
                &["id", "name", "url", "state", "delivering", "lagEvents", "deadLetters", "lastError"],
            )),
            Act::Deliveries(_) => Some((
                "deliveries",
                &["id", "at", "batch", "attempt", "events", "status", "durationMs", "error"],
            )),
            Act::DeadLetters { dead_letter: None, .. } => Some((
                "deadLetters",
                &["id", "at", "events", "attempts", "lastStatus", "lastError", "deliveredAt"],
            )),
            _ => None,
        }
    }
}

/// Members that have a value.
fn object(members: impl IntoIterator<Item = (&'static str, Option<Value>)>) -> Value {
    let members = members.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Value::Object(members.collect())
}
