//! What can go wrong between us and PostgreSQL, outside the hot path.

use sqlx::postgres::{PgDatabaseError, PgErrorPosition};

use crate::connect::{gate, tls};

/// Characters of a message of PostgreSQL's that are kept. Code of a tenant's may raise one of many megabytes.
pub const MAX_MESSAGE: usize = 500;

/// A failed exchange with PostgreSQL.
#[derive(Debug, thiserror::Error)]
pub enum PgError {
    /// No connection, a lost one, or a server that starts or stops: worth trying again later.
    #[error("PostgreSQL does not answer: {reason}")]
    Unavailable {
        reason: String,
        #[source]
        source: Option<sqlx::Error>,
    },
    /// The control database says that another reconciler has taken over. No tenant's code runs in a connection to it, so that
    /// this is believed.
    #[error("another reconciler has taken over this installation")]
    Replaced,
    /// `dl.fence` of a tenant's database says so. It belongs to the tenant's owner, who can make it say anything: the control
    /// database is to be asked.
    #[error("the fence of the tenant's database is closed: {message}")]
    Fenced { message: String },
    /// PostgreSQL refused the statement, or the login.
    #[error("PostgreSQL answered {code}: {message}")]
    Sqlstate {
        code: String,
        message: String,
        #[source]
        source: sqlx::Error,
    },
    /// An answer that does not have the shape that this version of Rowgate expects.
    #[error("PostgreSQL returned an unexpected answer: {reason}")]
    Unexpected {
        reason: String,
        #[source]
        source: Option<sqlx::Error>,
    },
    /// A tenant's database holds more than is read of it, or takes longer. It says figures, and nothing of what stands there.
    #[error("{what} holds more than Rowgate reads: {held}")]
    Beyond { what: &'static str, held: String },
}

/// One statement of a transaction failed, and nothing of the transaction stands.
#[derive(Debug, thiserror::Error)]
#[error("statement {} of the transaction failed: {error}", index + 1)]
pub struct TransactionError {
    /// Position of the statement; as many as there are statements: the COMMIT.
    pub index: usize,
    #[source]
    pub error: PgError,
}

impl PgError {
    /// The SQLSTATE, where PostgreSQL gave one.
    #[must_use]
    pub fn code(&self) -> Option<&str> {
        match self {
            PgError::Sqlstate { code, .. } => Some(code),
            PgError::Unavailable { .. }
            | PgError::Replaced
            | PgError::Fenced { .. }
            | PgError::Beyond { .. }
            | PgError::Unexpected { .. } => None,
        }
    }

    /// Where in the statement PostgreSQL found what it refused, where it said so: characters, counted from 1.
    #[must_use]
    pub fn position(&self) -> Option<usize> {
        let PgError::Sqlstate { source: sqlx::Error::Database(said), .. } = self else { return None };
        match said.try_downcast_ref::<PgDatabaseError>()?.position()? {
            PgErrorPosition::Original(position) => Some(position),
            PgErrorPosition::Internal { .. } => None,
        }
    }

    /// Somebody else works on the same at this moment: nothing of the statement stands, and later it may. What a transaction
    /// of ours meets in PostgreSQL's own catalogs has no code but its text, which PostgreSQL does not translate.
    #[must_use]
    pub fn is_collision(&self) -> bool {
        let PgError::Sqlstate { code, message, .. } = self else { return false };
        ["40001", "40P01", "55006", "55P03"].contains(&code.as_str())
            || code == "XX000" && message.starts_with("tuple concurrently ")
            // a role or database that another pass of ours, or one that was cut off, makes at the same moment
            || code == "23505" && message.contains("unique constraint \"pg_")
    }

    /// The server is short of something, or somebody stopped the statement: nobody has to change what it says.
    #[must_use]
    pub fn is_shortage(&self) -> bool {
        self.code().is_some_and(|code| code.starts_with("53") || code.starts_with("58") || code == "57014")
    }

    /// Raised by code that somebody has written in a tenant's database, or by what such code did to schema `dl`: nobody but
    /// that tenant is to hear of it, and trying again does not help.
    #[must_use]
    pub fn is_raised(&self) -> bool {
        self.code().is_some_and(|code| ["22", "P0", "RG"].iter().any(|class| code.starts_with(class)))
    }

    pub(crate) fn unexpected(reason: impl Into<String>) -> PgError {
        PgError::Unexpected { reason: reason.into(), source: None }
    }
}

impl From<sqlx::Error> for PgError {
    fn from(error: sqlx::Error) -> PgError {
        if let Some(said) = gate::said(&error) {
            return said;
        }
        if let sqlx::Error::Database(told) = &error {
            let (code, message) = (told.code().unwrap_or_default().into_owned(), bounded(told.message()));
            // detail, hint and context may be as long, and the error holds them all
            let error = if is_short(&error) { error } else { sqlx::Error::Protocol(message.clone()) };
            return match gone(&code) {
                true => PgError::Unavailable { reason: message, source: Some(error) },
                false => PgError::Sqlstate { code, message, source: error },
            };
        }
        let reason = match &error {
            sqlx::Error::Io(error) => tls::explain(error),
            // All others are ours, and none comes to this.
            sqlx::Error::Tls(error) if error.to_string().contains("does not support TLS") => {
                Some(tls::NOT_OFFERED.to_owned())
            }
            // what does not fit would be quoted, as long as it is
            sqlx::Error::ColumnDecode { index, .. } => {
                Some(format!("column {index} does not have the type that this version of Rowgate expects"))
            }
            sqlx::Error::Decode(_) | sqlx::Error::TypeNotFound { .. } => {
                Some("a value does not have the format that this version of Rowgate expects".to_owned())
            }
            _ => None,
        };
        let reason = reason.unwrap_or_else(|| error.to_string());
        match error {
            sqlx::Error::Io(_)
            | sqlx::Error::Tls(_)
            | sqlx::Error::Protocol(_)
            | sqlx::Error::PoolTimedOut
            | sqlx::Error::PoolClosed
            | sqlx::Error::WorkerCrashed => PgError::Unavailable { reason, source: Some(error) },
            sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_) => {
                PgError::Unexpected { reason, source: None }
            }
            _ => PgError::Unexpected { reason, source: Some(error) },
        }
    }
}

/// One line of at most [`MAX_MESSAGE`] characters.
fn bounded(message: &str) -> String {
    let mut rest = message.chars();
    let line = rest.by_ref().take(MAX_MESSAGE).map(|c| if c.is_control() { ' ' } else { c });
    let line: String = line.collect();
    if rest.next().is_some() { format!("{line}...") } else { line }
}

/// Whether all that PostgreSQL said fits into a few lines.
fn is_short(error: &sqlx::Error) -> bool {
    let sqlx::Error::Database(said) = error else { return true };
    let Some(said) = said.try_downcast_ref::<PgDatabaseError>() else { return true };
    let others = [said.detail(), said.hint(), said.r#where()];
    said.message().len() + others.iter().flatten().map(|text| text.len()).sum::<usize>() <= 16 * MAX_MESSAGE
}

/// Connection exceptions, "too many connections", and a server that starts, stops or crashed.
fn gone(code: &str) -> bool {
    code.starts_with("08") || matches!(code, "53300" | "57P01" | "57P02" | "57P03" | "57P05")
}
