//! The `rowgate-operator` binary: reads the command line and calls the library.

use std::fmt::Display;
use std::io::Write as _;
use std::process::ExitCode;

use clap::Parser;
use rowgate_operator::config::Flags;
use rowgate_operator::run;
use rowgate_program::log;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Applies the Tenants and ApiKeys of a Kubernetes cluster to PostgreSQL and reports the result in their status.
///
/// Each setting comes from its flag, else from its ROWGATE_* variable. In a pod, the operator uses the API server of its
/// cluster; elsewhere, the one that kubectl would use.
#[derive(Debug, Parser)]
#[command(name = "rowgate-operator", version)]
struct Cli {
    #[command(flatten)]
    flags: Flags,
}

/// Exit code of a mistake in the settings, a busy port included.
const EXIT_MISTAKE: u8 = 2;

#[tokio::main]
async fn main() -> ExitCode {
    let settings = match Cli::parse().flags.settings() {
        Ok(settings) => settings,
        Err(mistakes) => return failed(&mistakes, EXIT_MISTAKE),
    };
    log::start(settings.log_format);
    // An operator that knows ten thousand keys holds small values all over its memory, and the kernel would give a huge
    // page to each place where there is one. Where it does not let us say so, it is larger.
    #[cfg(target_os = "linux")]
    let _small = nix::sys::prctl::set_thp_disable(true);
    match Box::pin(run::run(settings)).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error @ run::RunError::Listen { .. }) => failed(&error, EXIT_MISTAKE),
        Err(error) => failed(&error, 1),
    }
}

fn failed(why: &dyn Display, code: u8) -> ExitCode {
    // When standard error is closed, there is nowhere to report it.
    let _told = writeln!(std::io::stderr(), "{why}");
    ExitCode::from(code)
}
