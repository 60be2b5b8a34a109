//! What can go wrong with an exchange, as far as the answer to the caller differs.

use super::ask::KeyRow;

/// Why there is no page. What PostgreSQL said stands in [`Cause`], for the log alone: `Display` never shows it.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// Unknown, revoked or expired, by the database's word.
    #[error("the API key is not live")]
    DeadKey,
    /// The key lives, but it is not the expected role: reload the key record and ask again.
    #[error("the API key has another role than expected")]
    WrongRole(KeyRow),
    /// The key's role lacks a right that the statement needs.
    #[error("the role of the API key may not read this")]
    Denied(Cause),
    /// A value does not fit its type or a range.
    #[error("a value of the request does not fit")]
    Invalid(Cause),
    /// The tables are not those that the statement was compiled for: reload the catalog and ask again.
    #[error("the tables have changed")]
    Changed(Cause),
    /// The statement took longer than its timeout.
    #[error("the statement took too long")]
    Timeout,
    /// No connection, or one that ended; the text is for the log.
    #[error("the database is not available")]
    Unavailable(String),
    /// Any other error of PostgreSQL, or an answer that breaks the protocol.
    #[error("the database answered with an unexpected error")]
    Internal(Cause),
}

/// The cause of a [`Failure`], for the log: it may hold values of the request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// `None`: not PostgreSQL but this client found the fault.
    pub sqlstate: Option<String>,
    pub message: String,
}
