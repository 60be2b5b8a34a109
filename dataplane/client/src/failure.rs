//! How a command ends when it does not succeed, and with which exit code.

use std::io;

use crate::http::problem::Problem;
use crate::output::escape;

/// The exit codes, as `--help` documents them.
pub(crate) const EXIT_CODES: &str = "Exit codes:
  0    success; also when the reader of standard output closes it
  1    the server refused the request, or an export or a test delivery failed
  2    the command line, the environment or the profile is wrong
  3    no connection, or the server stayed unavailable after all retries
  4    the key is missing, invalid, expired or revoked
  5    a local file cannot be read or written
  130  interrupted by Ctrl-C or SIGTERM";

/// Why a command did not succeed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("{0}")]
    Refused(Problem),
    #[error("{0}")]
    Unauthorized(Problem),
    #[error("{0}")]
    Usage(String),
    #[error("{0}")]
    Unavailable(String),
    #[error("{0}")]
    Local(String),
    /// By Ctrl-C or SIGTERM; the text says what became of the work and how to go on.
    #[error("{}", .0.as_deref().unwrap_or("interrupted"))]
    Interrupted(Option<String>),
    /// The reader of standard output has left, as `head` does. It wants no more, and that is no error.
    #[error("standard output is closed")]
    OutputClosed,
}

impl Failure {
    /// A refusal in our own words, such as an export that failed.
    pub(crate) fn refused(message: impl Into<String>) -> Failure {
        Failure::Refused(Problem::of_message(message))
    }

    /// A refusal with one more line: the server speaks of HTTP, a command line has commands.
    pub(crate) fn hinted(mut self, hint: impl FnOnce(&Problem) -> Option<String>) -> Failure {
        if let Failure::Refused(problem) | Failure::Unauthorized(problem) = &mut self {
            let hint = hint(problem);
            problem.details.extend(hint);
        }
        self
    }

    /// Of a write to standard output.
    pub(crate) fn output(error: &io::Error) -> Failure {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::OutputClosed,
            _ => Failure::Local(format!("cannot write to standard output: {error}")),
        }
    }

    #[must_use]
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Failure::OutputClosed => 0,
            Failure::Refused(_) => 1,
            Failure::Usage(_) => 2,
            Failure::Unavailable(_) => 3,
            Failure::Unauthorized(_) => 4,
            Failure::Local(_) => 5,
            Failure::Interrupted(_) => 130,
        }
    }

    /// What standard error is given: none where there is nothing to say. Texts of the server cannot control the terminal.
    #[must_use]
    pub(crate) fn report(&self) -> Option<String> {
        match self {
            Failure::OutputClosed | Failure::Interrupted(None) => None,
            Failure::Interrupted(Some(text)) => Some(escape::lines(text)),
            failure => Some(format!("error: {}", escape::lines(&failure.to_string()))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_end_has_a_code_and_a_closed_pipe_is_none() {
        let closed = Failure::output(&io::Error::from(io::ErrorKind::BrokenPipe));
        assert_eq!((closed.exit_code(), closed.report()), (0, None));
        let full = Failure::output(&io::Error::from(io::ErrorKind::StorageFull));
        assert_eq!(full.exit_code(), 5);
        let refused = Failure::refused("no\u{1b}[2J");
        assert_eq!(refused.exit_code(), 1);
        assert_eq!(refused.report().as_deref(), Some("error: no\\u{1b}[2J"));
    }

    #[test]
    fn help_documents_every_code() {
        for code in [0, 1, 2, 3, 4, 5, 130] {
            assert!(EXIT_CODES.contains(&format!("\n  {code:<4} ")), "{code}");
        }
    }
}
