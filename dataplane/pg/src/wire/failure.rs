//! What can go wrong with an exchange, as far as the answer to the caller differs.

use std::io;

use rowgate_core::problem::Problem;

use super::ask::KeyRow;

mod said;

pub(super) use said::ServerError;

/// Why there is no answer: what may happen to any exchange, and all that may happen to a read. What PostgreSQL said stands
/// in [`Cause`], for the log alone: `Display` never shows it.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// Unknown, revoked or expired, by the database's word.
    #[error("the API key is not live")]
    DeadKey,
    /// The key lives, but it is not the expected role: reload the key record and ask again.
    #[error("the API key has another role than expected")]
    WrongRole(KeyRow),
    /// The key died while its request or call ran, which was ended, or its answer is not told.
    #[error("the API key died during the request")]
    Ended,
    /// The key's role lacks a right that the statement needs.
    #[error("the role of the API key may not do this")]
    Denied(Cause),
    /// A value does not fit its type or a range.
    #[error("a value of the request is invalid or out of range")]
    Invalid(Cause),
    /// The tables are not those that the statement was compiled for: reload the catalog and ask again.
    #[error("the tables have changed")]
    Changed(Cause),
    /// The statement took longer than its timeout.
    #[error("the statement took too long")]
    Timeout,
    /// The database may be well, but too many ask it at once; the text is for the log.
    #[error("too many requests wait for the database")]
    Busy(String),
    /// A connection that ended; the text is for the log.
    #[error("the database is not available")]
    Unavailable(String),
    /// No connection could be had, so that nothing was sent; the text is for the log.
    #[error("no connection to the database can be opened")]
    NoConnection(String),
    /// What a call gave takes more memory than one answer may, or a row more than one message. What a routine had not committed
    /// by itself is undone, and a write is.
    #[error("the answer exceeds the maximum size")]
    TooLong,
    /// Lists have more rows than were asked for together: ask for each by itself.
    #[error("lists have more rows than were asked for together")]
    ListsCut,
    /// Any other error of PostgreSQL, or an answer that breaks the protocol.
    #[error("the database answered with an unexpected error")]
    Internal(Cause),
}

/// Why a write was not done, or not known to be.
#[derive(Debug, thiserror::Error)]
pub enum WriteFailure {
    /// A constraint or a trigger of the tenant's own does not allow the write.
    #[error("a constraint or a trigger of the database refuses the write")]
    Violation(Cause),
    /// The write and another one were in each other's way; nothing of it was done.
    #[error("the write conflicted with another one")]
    Conflict(Cause),
    /// The relation, a view, cannot be written to like this.
    #[error("the relation does not support this write")]
    Unwritable(Cause),
    #[error(transparent)]
    Any(#[from] Failure),
}

/// Why a call of a routine gave nothing.
#[derive(Debug, thiserror::Error)]
pub enum CallFailure {
    /// The role of the key may not log in: not any more, or not yet. Nothing was done.
    #[error("the role of the API key may not log in")]
    NoLogin(String),
    /// The answer of a call was lost, and it may have been done; the text is for the log.
    #[error("the answer of a call was lost")]
    Lost(String),
    /// The routine raised an error for its callers, of SQLSTATE class `RG`: what they are told, bounded and in one line.
    #[error("the routine raised an error")]
    Raised(String),
    /// Any other error out of a routine.
    #[error("the routine failed")]
    Routine(Cause),
    /// A constraint does not allow what the routine does.
    #[error("a constraint of the database refuses what the routine does")]
    Violation(Cause),
    /// The routine and another transaction were in each other's way.
    #[error("the routine conflicted with another transaction")]
    Conflict(Cause),
    #[error(transparent)]
    Any(#[from] Failure),
}

/// Why SQL of a key gave nothing.
#[derive(Debug, thiserror::Error)]
pub enum QueryFailure {
    /// The role of the key may not log in: not any more, or not yet. Nothing was done.
    #[error("the role of the API key may not log in")]
    NoLogin(String),
    /// The statement itself, its values or its result are why.
    #[error("the query is refused")]
    Refused(Refused),
    /// A value does not fit the type that PostgreSQL gives it, or columns cannot be shown: what the caller is told.
    #[error("a value or a column of the query is refused")]
    Declined(Box<Problem>),
    #[error(transparent)]
    Any(#[from] Failure),
}

/// What is wrong with SQL of a key. Names, rights and types are one case: who learns which of them it was learns which tables and
/// columns there are that the key may not use.
#[derive(Debug)]
pub struct Refused {
    pub why: QueryFault,
    /// In characters of the statement's text, from 1; of a [`QueryFault::Syntax`] alone.
    pub position: Option<usize>,
    /// For the log: it may hold names and values that the key may not see.
    pub cause: Box<Cause>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueryFault {
    /// It is not one statement of SQL.
    Syntax,
    /// A name is unknown or not granted, or what it names does not fit where it stands.
    Unfit,
    /// It gives no columns, or not the one that was wanted, so that nothing of it has run; or more rows than that.
    Result,
    /// It would write.
    Writes,
    /// A value does not fit a type, a range or a function.
    Value,
    /// It needs more memory or space than it may have, or is too complex.
    Resources,
    /// A routine or a policy failed, by its own word.
    Raised,
}

impl From<WriteFailure> for Failure {
    /// Of a statement that writes nothing: what only a write is told is an unexpected error there.
    fn from(failure: WriteFailure) -> Failure {
        match failure {
            WriteFailure::Any(failure) => failure,
            WriteFailure::Violation(cause)
            | WriteFailure::Conflict(cause)
            | WriteFailure::Unwritable(cause) => Failure::Internal(cause),
        }
    }
}

/// The cause of a [`Failure`], for the log: it may hold values of the request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// `None`: not PostgreSQL but this client found the fault.
    pub sqlstate: Option<String>,
    pub message: String,
    /// Which value of the statement it is about, from 1, where PostgreSQL could not read one.
    pub parameter: Option<usize>,
    /// The column that a NOT NULL is about.
    pub column: Option<String>,
    /// The rule that it is about, where PostgreSQL names its relation.
    pub rule: Option<Box<Rule>>,
    /// It was raised in a statement of a trigger, of a cascade, or of another routine.
    pub is_inside: bool,
    /// It is PostgreSQL's own check of what is granted, and no policy or code that says the same.
    pub is_of_grants: bool,
}

impl Cause {
    /// Whether the statement took more than the server gives it.
    #[must_use]
    pub fn is_shortage(&self) -> bool {
        self.sqlstate.as_deref().is_some_and(is_shortage)
    }
}

/// Memory, temporary files, or a value that is too long: what one statement builds up, which says nothing of whether the server is there.
fn is_shortage(sqlstate: &str) -> bool {
    matches!(sqlstate, "53200" | "53400" | "54000")
}

/// A rule of a relation. What is not said is empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rule {
    pub schema: String,
    pub table: String,
    /// Or a unique index.
    pub constraint: String,
}

impl Failure {
    /// Of an exchange whose task did not come to its end.
    pub(super) fn ended(error: &tokio::task::JoinError) -> Failure {
        Failure::Internal(Cause::ours(format!("an exchange ended: {error}")))
    }
}

impl Cause {
    pub(super) fn ours(message: impl Into<String>) -> Cause {
        let (sqlstate, message) = (None, message.into());
        Cause {
            sqlstate,
            message,
            parameter: None,
            column: None,
            rule: None,
            is_inside: false,
            is_of_grants: false,
        }
    }
}

/// The server's message does not have the form that the protocol or our statement gives it. The text says what was sent
/// instead, such as `a negative length`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("PostgreSQL sent {0}")]
pub struct Malformed(pub &'static str);

/// Why a value did not become JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unwritten {
    Malformed(Malformed),
    /// With it the answer would be longer than one may be: a `numeric` of ten bytes has up to 131,072 digits.
    TooLong,
}

impl From<Malformed> for Unwritten {
    fn from(malformed: Malformed) -> Unwritten {
        Unwritten::Malformed(malformed)
    }
}

/// Why reading an answer came to a stop.
#[derive(Debug)]
pub(super) enum Stop {
    Io(io::Error),
    Malformed(Malformed),
    /// PostgreSQL raised; unless it is fatal, ReadyForQuery follows.
    Server(ServerError),
    /// The server repeats what another one does, some time later.
    Standby,
    /// A message beyond the limit. The server is still sending it, and what it is part of was not committed.
    TooLong,
}

/// What is said of a standby.
pub(super) const STANDBY: &str =
    "this PostgreSQL server is a standby, which learns of revoked keys late; give the address of the primary";

/// Where in the batch PostgreSQL raised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Key,
    Watch,
    DataParse,
    /// PostgreSQL reads the values.
    DataBind,
    Data,
    /// The data statement writes.
    Write,
}

impl Stop {
    /// Something came before anything was asked: a server that goes down says so. Nothing has run.
    pub(super) fn unasked() -> Stop {
        Stop::Io(io::Error::new(io::ErrorKind::ConnectionAborted, "the server ended the session"))
    }

    /// For a connection that will not be used again.
    pub(super) fn failure(self, part: Part) -> WriteFailure {
        match self {
            Stop::Server(error) => error.failure(part),
            Stop::TooLong if !matches!(part, Part::Data | Part::Write) => {
                Failure::Internal(Cause::ours("PostgreSQL sent a message that exceeds the size limit")).into()
            }
            stop => stop.of_connection().into(),
        }
    }

    /// As [`Stop::failure`], while a routine runs.
    pub(super) fn call_failure(self) -> CallFailure {
        match self {
            Stop::Server(error) => error.call_failure(),
            stop => stop.of_connection().into(),
        }
    }

    /// As [`Stop::failure`], while SQL of a key is parsed or runs.
    pub(super) fn query_failure(self, part: Part) -> QueryFailure {
        match self {
            Stop::Server(error) => error.query_failure(part),
            stop => stop.of_connection().into(),
        }
    }

    fn of_connection(self) -> Failure {
        match self {
            Stop::Io(error) => Failure::Unavailable(format!("the connection to PostgreSQL broke: {error}")),
            Stop::Malformed(Malformed(what)) => {
                Failure::Internal(Cause::ours(format!("PostgreSQL sent {what}")))
            }
            Stop::Server(error) => Failure::Internal(error.into()),
            Stop::Standby => Failure::Unavailable(STANDBY.to_owned()),
            Stop::TooLong => Failure::TooLong,
        }
    }
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Stop {
        Stop::Io(error)
    }
}

impl From<Unwritten> for Stop {
    fn from(unwritten: Unwritten) -> Stop {
        match unwritten {
            Unwritten::Malformed(malformed) => Stop::Malformed(malformed),
            Unwritten::TooLong => Stop::TooLong,
        }
    }
}

impl From<Malformed> for Stop {
    fn from(malformed: Malformed) -> Stop {
        Stop::Malformed(malformed)
    }
}
