//! The `rowgate-dataplane` binary: reads the command line and calls the library.

use std::fmt::Display;
use std::io::Write as _;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use rowgate_dataplane::app::{self, AppConfig, AppError, Listeners};
use rowgate_dataplane::cli::rebind::{self, RebindFlags};
use rowgate_dataplane::cli::retained::{self, RetainedFlags};
use rowgate_dataplane::cli::revoke::{self, RevokeFlags};
use rowgate_dataplane::cli::rotate_signing_key;
use rowgate_dataplane::config::{ControlFlags, ServeFlags, ServeSettings};
use rowgate_dataplane::standalone;
use rowgate_pg::connect;
use rowgate_program::{log, signals};
use rowgate_standalone::adopt::{self, AdoptFlags};
use rowgate_standalone::check::{self, CheckFlags};
use rowgate_standalone::psql::{self, PsqlFlags};
use rowgate_standalone::relationships::{self, SetRelationshipFlags};
use tokio_util::sync::CancellationToken;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Serves each tenant's PostgreSQL database as an API; the database itself decides what an API key may see.
///
/// Each setting comes from its flag, else from its ROWGATE_* variable, else from the file that --config names.
#[derive(Debug, Parser)]
#[command(name = "rowgate-dataplane", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve the tenants listed in a control database
    Serve(Box<ServeFlags>),
    /// Run everything in one process, from a folder of manifests: PostgreSQL, reconciliation and the API
    Standalone(Box<standalone::Flags>),
    /// Revoke an API key and all its tokens permanently and immediately; the operator need not run
    Revoke(RevokeFlags),
    /// Replace the key that signs tokens: publish the new key now, sign with it after one hour, remove the old key one hour later
    RotateSigningKey(ControlFlags),
    /// Manage databases retained after their Tenants were deleted: list them, hand one to another namespace, or drop one
    Retained(RetainedFlags),
    /// Say that a PostgreSQL cluster became another one by pg_upgrade or a restore; without arguments, list the clusters
    Rebind(RebindFlags),
    /// Open a tenant's database with psql as the owner of its tables; standalone must be running
    Psql(PsqlFlags),
    /// Write the manifest of a Relationship, or of one for each foreign key: print it, or add it to a folder of manifests
    SetRelationship(SetRelationshipFlags),
    /// Read the database of an application and write a first manifest for it: a Tenant, a key and Relationships; nothing is changed there
    Adopt(AdoptFlags),
    /// Report every mistake in a folder of manifests, without a database
    Check(CheckFlags),
}

/// Exit code for invalid settings, including a port that is in use.
const MISTAKE: u8 = 2;

fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Serve(flags) => match flags.settings() {
            Ok(settings) => serve(settings),
            Err(mistakes) => failed(&mistakes, MISTAKE),
        },
        Command::Standalone(flags) => match flags.settings() {
            Ok((server, console, mut settings)) => {
                log::start(server.log_format);
                settings.webhook_ranges.clone_from(&server.webhook_ranges);
                rowgate_standalone::run(settings, async || standalone::Bound::new(server, console).await)
            }
            Err(mistakes) => failed(&mistakes, MISTAKE),
        },
        Command::Revoke(flags) => match flags.control.settings() {
            Ok(control) => said(revoke::run(&flags.key_id, &control)),
            Err(mistakes) => failed(&mistakes, MISTAKE),
        },
        Command::RotateSigningKey(flags) => match flags.settings() {
            Ok(control) => said(rotate_signing_key::run(&control)),
            Err(mistakes) => failed(&mistakes, MISTAKE),
        },
        Command::Retained(flags) => match flags.command() {
            Ok(command) => said(retained::run(command)),
            Err(mistakes) => failed(&mistakes, MISTAKE),
        },
        Command::Rebind(flags) => match flags.command() {
            Ok(command) => said(rebind::run(command)),
            Err(mistakes) => failed(&mistakes, MISTAKE),
        },
        Command::Psql(flags) => psql::run(&flags),
        Command::SetRelationship(flags) => relationships::run(&flags),
        Command::Adopt(flags) => adopt::run(&flags),
        Command::Check(flags) => check::run(&flags),
    }
}

#[tokio::main]
async fn serve(settings: ServeSettings) -> ExitCode {
    log::start(settings.server.log_format);
    match run(settings).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error @ AppError::Listen { .. }) => failed(&error, MISTAKE),
        Err(error) => failed(&error, 1),
    }
}

/// Runs a command that does one thing, and prints its result.
#[tokio::main(flavor = "current_thread")]
async fn said<T: Display, E: Display>(work: impl Future<Output = Result<T, E>>) -> ExitCode {
    match work.await {
        Ok(done) => {
            // the work is done even if standard output is closed
            let _closed = writeln!(std::io::stdout(), "{done}");
            ExitCode::SUCCESS
        }
        Err(error) => failed(&error, 1),
    }
}

async fn run(settings: ServeSettings) -> Result<(), AppError> {
    let listeners = Listeners::bind(&settings.server).await?;
    let ServeSettings { server, control, pooler } = settings;
    let (control, root) = (control.endpoint, control.root);
    let config = AppConfig { listeners, settings: server, control, root, pooler, console: None };
    let shutdown = CancellationToken::new();
    let running = app::run(config, shutdown.clone());
    let stop_on_signal = async {
        if let Err(error) = signals::asked_to_stop().await {
            tracing::error!(cause = %error, "cannot listen for signals");
        }
        shutdown.cancel();
        std::future::pending().await
    };
    tokio::select! {
        ended = running => {
            connect::closed().await;
            ended
        }
        () = stop_on_signal => unreachable!("it waits forever"),
    }
}

fn failed(why: &dyn Display, code: u8) -> ExitCode {
    // a closed standard error changes nothing
    let _closed = writeln!(std::io::stderr(), "{why}");
    ExitCode::from(code)
}
