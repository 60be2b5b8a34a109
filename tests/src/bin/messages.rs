//! `make messages`: prints every message that a user can read, as `file:line: text`.

use std::io::{self, Write as _};
use std::path::Path;

use rowgate_tests::messages::messages;

fn main() -> io::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the tests stand in the workspace");
    let mut out = io::stdout().lock();
    for message in messages(root) {
        writeln!(out, "{}:{}: {}", message.path.display(), message.line, message.text)?;
    }
    Ok(())
}
