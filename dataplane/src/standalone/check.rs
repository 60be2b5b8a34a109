//! `check --manifests DIR`: everything that is wrong with a folder, without a database.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use rowgate_reconcile::source::dir::check;

use super::{say, tell};

#[derive(Debug, Clone, Args)]
pub struct CheckFlags {
    /// The folder with the YAML of tenants and keys [example: examples/shop]
    #[arg(long, env = "ROWGATE_MANIFESTS", value_name = "FOLDER")]
    pub manifests: PathBuf,
}

/// Prints every problem and ends with 1, or says that there is none.
pub fn run(flags: &CheckFlags) -> ExitCode {
    let problems = check(&flags.manifests);
    if problems.is_empty() {
        say(&format!("every manifest in {} is good", flags.manifests.display()));
        return ExitCode::SUCCESS;
    }
    for problem in &problems {
        tell(&format!("{problem}\n"));
    }
    ExitCode::FAILURE
}
