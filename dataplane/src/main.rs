//! The `rowgate-dataplane` binary: reads settings, then hands over to the library.

use std::fmt::Display;
use std::io::Write as _;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use rowgate_dataplane::app::{self, AppConfig, AppError, Listeners};
use rowgate_dataplane::cli::retained::{self, RetainedFlags};
use rowgate_dataplane::cli::revoke::{self, RevokeFlags};
use rowgate_dataplane::cli::rotate_signing_key;
use rowgate_dataplane::config::{ControlFlags, ServeFlags, ServeSettings};
use rowgate_dataplane::standalone::{self, StandaloneFlags, check::CheckFlags, psql::PsqlFlags};
use rowgate_program::{log, signals};
use tokio_util::sync::CancellationToken;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Serves each tenant's PostgreSQL database as an API, with the database deciding what a key may see.
///
/// A setting is read from its flag, else from its ROWGATE_* variable, else from the file that --config names.
#[derive(Debug, Parser)]
#[command(name = "rowgate-dataplane", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve the tenants that a control database lists
    Serve(Box<ServeFlags>),
    /// Everything in one process, from a folder of manifests: PostgreSQL, reconciling, serving
    Standalone(Box<StandaloneFlags>),
    /// Revoke an API key permanently and at once, with all its tokens; works without the operator
    Revoke(RevokeFlags),
    /// Rotate the key that signs tokens: publish the next one, sign with it in an hour, remove the old one an hour later
    RotateSigningKey(ControlFlags),
    /// List the databases that were retained when their Tenants were deleted, hand one over to another namespace, or drop one
    Retained(RetainedFlags),
    /// Open a tenant's database with psql, as the owner of its tables; standalone must be running
    Psql(PsqlFlags),
    /// Report what is wrong with a folder of manifests, without a database
    Check(CheckFlags),
}

/// Exit code of a mistake in the settings, a busy port included.
const MISTAKE: u8 = 2;

fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Serve(flags) => match flags.settings() {
            Ok(settings) => serve(settings),
            Err(mistakes) => failed(&mistakes, MISTAKE),
        },
        Command::Standalone(flags) => standalone::run(*flags),
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
        Command::Psql(flags) => standalone::psql::run(&flags),
        Command::Check(flags) => standalone::check::run(&flags),
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

/// Runs a command that does one thing, and prints what it did.
#[tokio::main(flavor = "current_thread")]
async fn said<T: Display, E: Display>(work: impl Future<Output = Result<T, E>>) -> ExitCode {
    match work.await {
        Ok(done) => {
            // The work is done even when standard output is closed.
            let _closed = writeln!(std::io::stdout(), "{done}");
            ExitCode::SUCCESS
        }
        Err(error) => failed(&error, 1),
    }
}

async fn run(settings: ServeSettings) -> Result<(), AppError> {
    let listeners = Listeners::bind(&settings.server).await?;
    let config = AppConfig {
        listeners,
        control: settings.control.endpoint,
        root: settings.control.root,
        trusted_proxies: settings.server.trusted_proxies.clone(),
        lane: settings.server.lane,
        calls: settings.server.calls,
        per_server: settings.server.per_server,
        pooler: settings.pooler,
        body_memory: settings.server.body_memory,
        client_timeout: settings.server.client_timeout,
        drain: settings.server.drain,
        last_used_interval: settings.server.last_used_interval,
    };
    let shutdown = CancellationToken::new();
    let running = app::run(config, shutdown.clone());
    let stop_on_signal = async {
        if let Err(error) = signals::asked_to_stop().await {
            tracing::error!(cause = %error, "signals cannot be awaited");
        }
        shutdown.cancel();
        std::future::pending().await
    };
    tokio::select! {
        ended = running => ended,
        () = stop_on_signal => unreachable!("it waits forever"),
    }
}

fn failed(why: &dyn Display, code: u8) -> ExitCode {
    // Standard error may be closed.
    let _closed = writeln!(std::io::stderr(), "{why}");
    ExitCode::from(code)
}
