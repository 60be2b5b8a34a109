//! What the terminal shows: results on standard output, what happens on standard error.

mod greeting;
pub(crate) mod narrator;
mod verdict;

use std::io::{self, Write as _};

/// Prints a line on standard error. A closed standard error is no reason to stop.
pub(crate) fn say(line: &str) {
    let _closed = writeln!(io::stderr().lock(), "{line}");
}

/// Prints text that a person or a script copies, on standard output.
pub(crate) fn print(text: &str) {
    let mut stdout = io::stdout().lock();
    let _closed = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
}
