//! The `rowgate` binary: reads the command line and calls the library.

use std::process::ExitCode;

use clap::Parser as _;
use rowgate_client::cli::{self, Cli};

fn main() -> ExitCode {
    cli::run(Cli::parse())
}
