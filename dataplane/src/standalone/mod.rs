//! Everything in one process for a newcomer and for tests: PostgreSQL, reconciling a folder, serving.

pub mod check;
pub mod flags;
pub(crate) mod found;
mod given;
mod greeting;
pub mod lock;
mod narrator;
pub mod postgres;
pub mod psql;
pub mod roots;
mod run;
mod server;
mod state;
mod verdict;

use std::io::{self, Write as _};

pub use flags::StandaloneFlags;
pub use run::{StandaloneError, run};

/// A line for the person at the terminal. Nobody is left to tell when standard error is closed.
fn say(line: &str) {
    let _told = writeln!(io::stderr().lock(), "{line}");
}

/// What was asked for: the lines to paste.
fn tell(text: &str) {
    let mut stdout = io::stdout().lock();
    let _told = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
}
