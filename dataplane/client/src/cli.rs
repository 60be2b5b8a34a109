//! The command line, and from a command to its exit code.

use std::io::Write as _;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::commands::completions::{self, CompletionFlags};
use crate::commands::export::{self, ExportFlags};
use crate::commands::exports::{self, ExportsFlags};
use crate::commands::get::{self, GetFlags};
use crate::commands::profile::{self, ProfileFlags};
use crate::commands::query::{self, QueryFlags};
use crate::commands::tail::{self, TailFlags};
use crate::commands::webhooks::{self, WebhooksFlags};
use crate::commands::whoami;
use crate::context::Context;
use crate::failure::{EXIT_CODES, Failure};
use crate::interrupt::or_interrupted;
use crate::profiles::connection::ConnectionFlags;

/// Reads rows, runs SQL, exports tables, follows events and manages webhooks of a Rowgate API.
///
/// The server and the key come from a profile, or from ROWGATE_URL and ROWGATE_KEY. A key is never an argument.
#[derive(Debug, Parser)]
#[command(name = "rowgate", version, after_help = AFTER_HELP.as_str())]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    connection: ConnectionFlags,
}

static AFTER_HELP: std::sync::LazyLock<String> = std::sync::LazyLock::new(|| {
    format!(
        "Examples:
  rowgate profile add shop --url http://127.0.0.1:8080
  rowgate get orders --filter \"state eq 'new'\" --top 10
  rowgate query 'select state, count(*) from orders group by state'
  rowgate export orders --format parquet -o orders.parquet

{EXIT_CODES}"
    )
});

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a SELECT and print its rows
    Query(QueryFlags),
    /// Print rows of an entity, or one row
    Get(GetFlags),
    /// Export an entity or the result of a SELECT to a file
    Export(Box<ExportFlags>),
    /// List export jobs, or cancel one
    Exports(ExportsFlags),
    /// Follow the changes of rows, one line for each event
    Tail(TailFlags),
    /// Manage webhook subscriptions
    Webhooks(WebhooksFlags),
    /// Manage profiles: servers and the keys for them
    Profile(ProfileFlags),
    /// Print which server and tenant are used, and what the key may do there
    #[command(after_help = whoami::EXAMPLES)]
    Whoami,
    /// Print completions for a shell
    Completions(CompletionFlags),
}

/// Runs the command, and reports why it failed on standard error.
#[must_use]
pub fn run(cli: Cli) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let done = match runtime {
        Ok(runtime) => {
            let done = runtime.block_on(dispatch(cli));
            // a prompt or a connection that still waits does not hold up the end
            runtime.shutdown_background();
            done
        }
        Err(error) => Err(Failure::Local(format!("cannot start: {error}"))),
    };
    let Err(failure) = done else { return ExitCode::SUCCESS };
    if let Some(report) = failure.report() {
        // a closed standard error changes nothing
        let _closed = writeln!(std::io::stderr(), "{report}");
    }
    ExitCode::from(failure.exit_code())
}

async fn dispatch(cli: Cli) -> Result<(), Failure> {
    let mut context = Context::new(cli.connection);
    match cli.command {
        // These two say by themselves what an interruption leaves behind.
        Command::Export(flags) => Box::pin(export::run(*flags, &mut context)).await,
        Command::Tail(flags) => tail::run(flags, &mut context).await,
        Command::Query(flags) => or_interrupted(query::run(flags, &mut context)).await,
        Command::Get(flags) => or_interrupted(get::run(flags, &mut context)).await,
        Command::Exports(flags) => or_interrupted(exports::run(flags, &mut context)).await,
        Command::Webhooks(flags) => or_interrupted(Box::pin(webhooks::run(flags, &mut context))).await,
        Command::Whoami => or_interrupted(whoami::run(&mut context)).await,
        Command::Profile(flags) => profile::run(flags, &mut context),
        Command::Completions(flags) => completions::run(&flags, &mut context),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_has_an_example_and_none_takes_a_key() {
        fn walk(command: &clap::Command, path: &str) {
            for argument in command.get_arguments() {
                let name = argument.get_long().unwrap_or_default();
                assert!(!["key", "secret", "password", "token"].contains(&name), "{path} --{name}");
            }
            for command in command.get_subcommands() {
                let path = format!("{path} {}", command.get_name());
                let help = command.clone().render_long_help().to_string();
                let has_commands = command.has_subcommands();
                assert!(has_commands || help.contains("xample"), "{path} has no example");
                walk(command, &path);
            }
        }
        walk(&Cli::command(), "rowgate");
    }
}
