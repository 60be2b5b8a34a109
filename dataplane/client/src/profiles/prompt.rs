//! Asks for a key on the terminal, without showing it.

use std::io::{self, Read as _, Stdin, Write as _};

use nix::sys::termios::{
    LocalFlags, SetArg, SpecialCharacterIndices as Character, Termios, tcgetattr, tcsetattr,
};

use crate::failure::Failure;

/// What a terminal sends for Ctrl-C where that is no signal.
const CTRL_C: u8 = 3;
/// Longer than any key or token.
const MAX_LEN: usize = 64 << 10;

/// The terminal as it was, which comes back at the end.
struct Silent {
    stdin: Stdin,
    before: Termios,
}

impl Silent {
    /// Nothing is shown. Ctrl-C ends the line instead of the process, which would leave the terminal silent.
    fn new() -> nix::Result<Silent> {
        let stdin = io::stdin();
        let before = tcgetattr(&stdin)?;
        let mut silent = before.clone();
        silent.local_flags.remove(LocalFlags::ECHO | LocalFlags::ISIG);
        silent.control_chars[Character::VEOL as usize] = CTRL_C;
        tcsetattr(&stdin, SetArg::TCSAFLUSH, &silent)?;
        Ok(Silent { stdin, before })
    }
}

impl Drop for Silent {
    fn drop(&mut self) {
        // without a terminal there is nothing to bring back
        let _gone = tcsetattr(&self.stdin, SetArg::TCSAFLUSH, &self.before);
    }
}

/// The line that is typed or pasted.
pub(crate) fn ask(what: &str) -> Result<String, Failure> {
    let failed = |error: io::Error| Failure::Local(format!("cannot read from the terminal: {error}"));
    let silent = Silent::new().map_err(|error| failed(error.into()))?;
    let mut stderr = io::stderr();
    write!(stderr, "{what}: ").and_then(|()| stderr.flush()).map_err(failed)?;
    let line = line(silent.stdin.lock().bytes());
    drop(silent);
    // the line end that was typed was not shown either
    let _closed = writeln!(stderr);
    line.map_err(failed)?.ok_or(Failure::Interrupted(None))
}

/// `None` at Ctrl-C.
fn line(bytes: impl Iterator<Item = io::Result<u8>>) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    for byte in bytes.take(MAX_LEN) {
        match byte? {
            CTRL_C => return Ok(None),
            b'\n' | b'\r' => break,
            byte => line.push(byte),
        }
    }
    Ok(Some(String::from_utf8_lossy(&line).into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(text: &str) -> Option<String> {
        line(text.bytes().map(Ok)).expect("memory is read")
    }

    #[test]
    fn a_line_ends_at_its_end_or_at_ctrl_c() {
        assert_eq!(typed("shop:dlk_x\nmore").as_deref(), Some("shop:dlk_x"));
        assert_eq!(typed("shop:dlk_x").as_deref(), Some("shop:dlk_x"));
        assert_eq!(typed("sho\u{3}"), None);
    }
}
