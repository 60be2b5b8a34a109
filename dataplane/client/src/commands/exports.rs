//! `rowgate exports`: lists export jobs, and cancels one.

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand};

use super::{print_rows, take_rows};
use crate::context::Context;
use crate::failure::Failure;
use crate::http::address;
use crate::http::request::Request;
use crate::output::Format;

/// The flags of `exports`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "`rowgate export --resume ID -o FILE` downloads the file of a job in this list.

Examples:
  rowgate exports
  rowgate exports cancel 01JDGX...")]
pub(crate) struct ExportsFlags {
    #[command(subcommand)]
    act: Option<Act>,
    /// The format of the list [default: table on a terminal, else json]
    #[arg(long, short, value_name = "FORMAT")]
    output: Option<Format>,
}

#[derive(Debug, Clone, Subcommand)]
enum Act {
    /// Cancel a job, and delete its file [example: rowgate exports cancel 01JDGX...]
    Cancel {
        /// The id of the job
        #[arg(value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
        id: String,
    },
}

/// The path of a job.
#[must_use]
pub(crate) fn path(id: &str) -> String {
    address::path(&["api", "ddl", "exports", id])
}

/// A refusal in the words of HTTP, with what to do on a command line.
pub(crate) fn listed(failure: Failure) -> Failure {
    failure.hinted(|problem| {
        (problem.code == "NotFound").then(|| "`rowgate exports` prints that list".to_owned())
    })
}

pub(crate) async fn run(flags: ExportsFlags, context: &mut Context) -> Result<(), Failure> {
    let api = context.api()?;
    if let Some(Act::Cancel { id }) = flags.act {
        let cancelled = api.json(&Request::delete(path(&id))).await;
        return cancelled.map(|_| ()).map_err(listed);
    }
    let mut answer = api.json(&Request::get("/api/ddl/exports".to_owned())).await?.value;
    let rows = take_rows(&mut answer, "value")?;
    let columns =
        ["id", "status", "rows", "bytes", "file", "queuePosition", "progress", "createdAt", "expiresAt"];
    let format = Format::or_default(flags.output, context.output.is_terminal);
    print_rows(&mut context.output, format, Some(&columns), &rows)
}
