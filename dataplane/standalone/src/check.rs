//! `check --manifests DIR`: reports every mistake in a folder of manifests, without a database.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use rowgate_reconcile::source::dir::check;

use crate::terminal::{print, say};

#[derive(Debug, Clone, Args)]
pub struct CheckFlags {
    /// Folder with the YAML manifests of Tenants and ApiKeys [example: examples/shop]
    #[arg(long, env = "ROWGATE_MANIFESTS", value_name = "FOLDER")]
    pub manifests: PathBuf,
}

/// Prints every problem and returns exit code 1, or reports that there is none.
pub fn run(flags: &CheckFlags) -> ExitCode {
    let problems = check(&flags.manifests);
    if problems.is_empty() {
        say(&format!("all manifests in {} are valid", flags.manifests.display()));
        return ExitCode::SUCCESS;
    }
    for problem in &problems {
        print(&format!("{problem}\n"));
    }
    ExitCode::FAILURE
}
