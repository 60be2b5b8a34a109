//! What standard error is told beside the result: notes that a script may ignore.

use std::io::Write as _;

use crate::output::escape;

/// A note. Texts of the server in it cannot control the terminal.
pub(crate) fn notice(text: &str) {
    // a closed standard error changes nothing
    let _closed = writeln!(std::io::stderr(), "{}", escape::lines(text));
}
