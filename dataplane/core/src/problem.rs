//! The one error that a client sees: a stable code, a message made of our own words, a status.

use std::time::Duration;

use serde::Serialize;

/// The stable codes of errors. A code is only ever added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub enum Code {
    BadRequest,
    InvalidFilter,
    InvalidOrderBy,
    InvalidCursor,
    UnknownField,
    InvalidValue,
    ReadOnlyColumn,
    InvalidPayloadQuery,
    InvalidDestination,
    InvalidSql,
    Unauthorized,
    RoleMismatch,
    Forbidden,
    EntityNotFound,
    RowNotFound,
    NotFound,
    MethodNotAllowed,
    DirectDeleteBlocked,
    StaleRow,
    UniqueViolation,
    ForeignKeyViolation,
    SerializationFailure,
    ManagedByKubernetes,
    ConstraintViolation,
    ProcedureError,
    PreconditionFailed,
    ExpectedTsRequired,
    TooLarge,
    RateLimited,
    UriTooLong,
    HeadersTooLarge,
    Internal,
    Unavailable,
    StatementTimeout,
    BodyShareExceeded,
    BodyBudgetExceeded,
}

impl Code {
    pub const ALL: [Code; 36] = [
        Code::BadRequest,
        Code::InvalidFilter,
        Code::InvalidOrderBy,
        Code::InvalidCursor,
        Code::UnknownField,
        Code::InvalidValue,
        Code::ReadOnlyColumn,
        Code::InvalidPayloadQuery,
        Code::InvalidDestination,
        Code::InvalidSql,
        Code::Unauthorized,
        Code::RoleMismatch,
        Code::Forbidden,
        Code::EntityNotFound,
        Code::RowNotFound,
        Code::NotFound,
        Code::MethodNotAllowed,
        Code::DirectDeleteBlocked,
        Code::StaleRow,
        Code::UniqueViolation,
        Code::ForeignKeyViolation,
        Code::SerializationFailure,
        Code::ManagedByKubernetes,
        Code::ConstraintViolation,
        Code::ProcedureError,
        Code::PreconditionFailed,
        Code::ExpectedTsRequired,
        Code::TooLarge,
        Code::RateLimited,
        Code::UriTooLong,
        Code::HeadersTooLarge,
        Code::Internal,
        Code::Unavailable,
        Code::StatementTimeout,
        Code::BodyShareExceeded,
        Code::BodyBudgetExceeded,
    ];

    /// The HTTP status that goes with the code.
    #[must_use]
    pub fn status(self) -> u16 {
        match self {
            Code::BadRequest
            | Code::InvalidFilter
            | Code::InvalidOrderBy
            | Code::InvalidCursor
            | Code::UnknownField
            | Code::InvalidValue
            | Code::InvalidDestination
            | Code::InvalidPayloadQuery
            | Code::InvalidSql
            | Code::ReadOnlyColumn => 400,
            Code::Unauthorized => 401,
            Code::RoleMismatch | Code::Forbidden => 403,
            Code::EntityNotFound | Code::RowNotFound | Code::NotFound => 404,
            Code::MethodNotAllowed | Code::DirectDeleteBlocked => 405,
            Code::StaleRow
            | Code::UniqueViolation
            | Code::ForeignKeyViolation
            | Code::SerializationFailure
            | Code::ManagedByKubernetes => 409,
            Code::ConstraintViolation | Code::ProcedureError => 422,
            Code::PreconditionFailed => 412,
            Code::ExpectedTsRequired => 428,
            Code::TooLarge => 413,
            Code::RateLimited | Code::BodyShareExceeded => 429,
            Code::UriTooLong => 414,
            Code::HeadersTooLarge => 431,
            Code::Internal => 500,
            Code::Unavailable | Code::BodyBudgetExceeded => 503,
            Code::StatementTimeout => 504,
        }
    }
}

/// What went wrong, in words that say what to change. Never database text, SQL or a value the caller may not see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    pub code: Code,
    pub message: String,
    /// Further points, one sentence each: a nearest name, the options that exist.
    pub details: Vec<String>,
    /// Seconds after which another try may succeed, for the header `Retry-After`.
    pub retry_after: Option<u32>,
    /// The methods that the address does answer, for the header `Allow`: `GET, HEAD, OPTIONS`.
    pub allow: Option<&'static str>,
}

impl Problem {
    #[must_use]
    pub fn new(code: Code, message: impl Into<String>) -> Problem {
        Problem { code, message: message.into(), details: Vec::new(), retry_after: None, allow: None }
    }

    #[must_use]
    pub fn detail(mut self, detail: impl Into<String>) -> Problem {
        self.details.push(detail.into());
        self
    }

    /// The same in other words: each of `names` becomes what stands beside it, in their order.
    #[must_use]
    pub fn reworded(self, names: &[(&str, &str)]) -> Problem {
        let words = |text: String| names.iter().fold(text, |text, (from, to)| text.replace(from, to));
        let details = self.details.into_iter().map(words).collect();
        Problem { message: words(self.message), details, ..self }
    }

    /// One answer for an unknown, wrong, expired, revoked, foreign or malformed key or token.
    #[must_use]
    pub fn unauthorized() -> Problem {
        Problem::new(
            Code::Unauthorized,
            "the API key or token is missing or not valid here; send X-API-Key: <tenant>:dlk_<secret>, or \
             Authorization: Bearer <token>",
        )
    }

    /// More requests than the tenant lets a key make.
    #[must_use]
    pub fn rate_limited(retry_after: u32) -> Problem {
        let told = "this API key exceeds the request rate that its tenant allows; wait for the seconds in Retry-After, and spread requests";
        Problem { retry_after: Some(retry_after), ..Problem::new(Code::RateLimited, told) }
    }

    /// So many statements of a key were refused that more are not read for a while.
    #[must_use]
    pub fn refused_too_often(per_second: u32, wait: Duration) -> Problem {
        let message = format!(
            "more than {per_second} statements of this API key a second are refused; wait for the seconds in Retry-After, and send statements that \
             an earlier answer did not refuse"
        );
        let retry_after = u32::try_from(wait.as_secs() + 1).unwrap_or(u32::MAX);
        Problem { retry_after: Some(retry_after), ..Problem::new(Code::RateLimited, message) }
    }

    /// More rows than the tenant lets a key ask GraphQL for.
    #[must_use]
    pub fn graphql_cost_exceeded(retry_after: u32, per_second: u32) -> Problem {
        let message = format!(
            "the GraphQL requests of this API key may return more rows than limits.graphqlCostPerSecond of the Tenant, {per_second}, allows; \
             wait for the seconds in Retry-After, and ask for fewer rows with first"
        );
        Problem { retry_after: Some(retry_after), ..Problem::new(Code::RateLimited, message) }
    }

    /// As many streams of events as the tenant lets a replica serve.
    #[must_use]
    pub fn streams_exceeded(most: u32) -> Problem {
        let message = format!(
            "this replica serves as many streams and subscriptions of the tenant as limits.streams of the Tenant allows, {most}; close some, or read pages"
        );
        Problem { retry_after: Some(5), ..Problem::new(Code::RateLimited, message) }
    }

    /// As many subscriptions as the tenant may have.
    #[must_use]
    pub fn subscriptions_exceeded(most: u32) -> Problem {
        let message = format!(
            "the tenant has as many webhook subscriptions as limits.subscriptions of the Tenant allows, {most}; delete some, or raise the limit"
        );
        Problem { retry_after: Some(60), ..Problem::new(Code::RateLimited, message) }
    }

    /// The requests of one key hold all that one key may hold of the memory for request bodies.
    #[must_use]
    pub fn body_share_exceeded() -> Problem {
        let told = "the requests of this API key that are in progress use its whole share of the memory for request bodies, and nothing was written; send fewer bodies at once, and try again after the time in Retry-After";
        Problem { retry_after: Some(1), ..Problem::new(Code::BodyShareExceeded, told) }
    }

    /// Other requests hold the memory for request bodies.
    #[must_use]
    pub fn body_budget_exceeded() -> Problem {
        let told = "other requests use the memory for request bodies, and nothing was written; try again after the time in \
                    Retry-After";
        Problem { retry_after: Some(1), ..Problem::new(Code::BodyBudgetExceeded, told) }
    }

    /// A DELETE of a row of a table whose rows are never deleted.
    #[must_use]
    pub fn delete_blocked(what: impl Into<String>) -> Problem {
        Problem { allow: Some(Problem::KEPT), ..Problem::new(Code::DirectDeleteBlocked, what) }
    }

    /// The methods that such a row answers.
    pub const KEPT: &str = "GET, HEAD, PATCH, PUT, OPTIONS";

    /// The methods of what is only read.
    pub const ONLY_READ: &str = "GET, HEAD, OPTIONS";

    /// What is called is neither read nor written.
    #[must_use]
    pub fn only_called() -> Problem {
        let told = "this entity is a procedure; call it with POST";
        Problem { allow: Some("POST"), ..Problem::new(Code::MethodNotAllowed, told) }
    }

    /// One answer for an entity that is absent and for one that is not granted.
    #[must_use]
    pub fn entity_not_found() -> Problem {
        Problem::new(
            Code::EntityNotFound,
            "this API key has no such entity; GET /auth/{tenant}/api lists the entities that it has",
        )
    }

    /// The database, or a part of Rowgate behind the request, cannot answer now.
    #[must_use]
    pub fn unavailable() -> Problem {
        Problem::new(
            Code::Unavailable,
            "the tenant's database does not answer now; try again after the time in Retry-After",
        )
    }

    /// The same of a write that was never sent, or of which the database said that nothing of it stands. Problems that say themselves
    /// what became of the write stay as they are.
    #[must_use]
    pub fn of_nothing_written(self) -> Problem {
        let told = match &self {
            it if *it == Problem::unavailable() => {
                "the tenant's database does not answer now, and nothing was written; try again after the time in Retry-After"
            }
            it if *it == Problem::busy() => {
                "too many requests wait for this tenant's database, and nothing was written; try again after the time in \
                 Retry-After"
            }
            _ => return self,
        };
        Problem::new(Code::Unavailable, told)
    }

    /// The database may be well, but this tenant's requests are more than it takes.
    #[must_use]
    pub fn busy() -> Problem {
        Problem::new(
            Code::Unavailable,
            "too many requests wait for this tenant's database; try again after the time in Retry-After",
        )
    }

    /// A fault of ours. The log holds the cause under the request id.
    #[must_use]
    pub fn internal() -> Problem {
        Problem::new(
            Code::Internal,
            "an internal error occurred; search the log of Rowgate for the request id to find the cause",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_that_was_never_sent_says_so_and_one_that_may_have_been_keeps_its_word() {
        for problem in [Problem::unavailable(), Problem::busy()] {
            assert!(problem.of_nothing_written().message.contains("nothing was written"));
        }
        let lost = Problem::new(Code::Unavailable, "the write may have been done");
        assert_eq!(lost.clone().of_nothing_written(), lost);
    }

    #[test]
    fn every_code_serialises_as_its_name_and_has_a_status() {
        for code in Code::ALL {
            let name = serde_json::to_string(&code).expect("a unit variant");
            assert_eq!(name, format!("\"{code:?}\""));
            assert!((400..=504).contains(&code.status()), "{name}");
        }
    }
}
