//! Standard output: whether it is a terminal, how wide it is, and whether its reader has left.

use std::io::{self, BufWriter, IsTerminal as _, Stdout, Write as _};
use std::os::fd::AsFd as _;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::failure::Failure;

/// Standard output of a command, buffered.
pub(crate) struct Output {
    to: BufWriter<Stdout>,
    pub(crate) is_terminal: bool,
}

impl Default for Output {
    fn default() -> Output {
        Output { to: BufWriter::new(io::stdout()), is_terminal: io::stdout().is_terminal() }
    }
}

impl Output {
    /// The columns of the terminal; none where standard output is something else.
    #[must_use]
    pub(crate) fn width(&self) -> Option<usize> {
        let (_, columns) = console::Term::stdout().size_checked().filter(|_| self.is_terminal)?;
        Some(usize::from(columns))
    }

    pub(crate) fn write(&mut self, text: &str) -> Result<(), Failure> {
        self.to.write_all(text.as_bytes()).map_err(|error| Failure::output(&error))
    }

    /// One line, which its reader has at once.
    pub(crate) fn line(&mut self, text: &str) -> Result<(), Failure> {
        self.write(text)?;
        self.write("\n")?;
        self.flush()
    }

    pub(crate) fn flush(&mut self) -> Result<(), Failure> {
        self.to.flush().map_err(|error| Failure::output(&error))
    }
}

/// Whether the reader of standard output has closed it, which a command that waits does not learn from a write.
#[must_use]
pub(crate) fn is_closed() -> bool {
    let stdout = io::stdout();
    let mut fds = [PollFd::new(stdout.as_fd(), PollFlags::empty())];
    let is_ready = poll(&mut fds, PollTimeout::ZERO).is_ok_and(|n| 0 < n);
    is_ready && fds[0].revents().is_some_and(|events| events.contains(PollFlags::POLLERR))
}
