//! `rowgate completions`: what a shell reads to complete commands and flags.

use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

use crate::cli::Cli;
use crate::context::Context;
use crate::failure::Failure;

/// The flags of `completions`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:
  rowgate completions bash > ~/.local/share/bash-completion/completions/rowgate
  rowgate completions zsh > ~/.zfunc/_rowgate
  rowgate completions fish > ~/.config/fish/completions/rowgate.fish")]
pub(crate) struct CompletionFlags {
    /// The shell
    #[arg(value_name = "SHELL", value_parser = clap::value_parser!(Shell))]
    shell: Shell,
}

pub(crate) fn run(flags: &CompletionFlags, context: &mut Context) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(flags.shell, &mut Cli::command(), "rowgate", &mut script);
    context.output.write(&String::from_utf8_lossy(&script))?;
    context.output.flush()
}
