//! The hot path: one question of one API key to its tenant's database, in one batch, one write and one `Sync`.
//!
//! Read in this order: `ask` what goes in and comes out, `request_pool` the connections of a tenant, `pool` the slots and the queue before them,
//! `budget` what all pools of a server share, `exchange` the task that holds a connection while it answers, with the bytes of
//! its batch, the statement that checks the key and what a long answer's caller holds; `connection` the socket, the login and
//! the frames; `nested` answers of several statements. `key_sessions` run routines of the tenant's and SQL of keys. `encode` writes values.

mod ask;
pub(crate) mod budget;
mod check;
mod connection;
mod counters;
pub(crate) mod encode;
mod exchange;
mod failure;
mod key_sessions;
mod nested;
pub(crate) mod pool;
pub(crate) mod request_pool;

pub use ask::{Ask, KeyRow, ReadPage, WriteOutcome};
pub use budget::{Server, ServerLoad, Share};
pub(crate) use check::dial_for_sqlx;
pub use check::try_login;
pub use connection::frames::Fields;
pub(crate) use connection::transport::Socket;
pub use counters::Counters;
pub use encode::json::write as write_json;
pub use exchange::row_stream::{End, Piece, RowStream};
pub use failure::{
    CallFailure, Cause, Failure, Malformed, QueryFailure, QueryFault, Refused, Rule, Unwritten, WriteFailure,
};
pub use key_sessions::{
    Call, CallLimits, CallOutcome, Calls, Described, KeyLogins, KeyPermit, KeySessions, Queries, Query,
    QueryColumn, QueryLimits, QueryOutcome, RowForm, Typed, Typing, Values,
};
pub use nested::Nested;
pub use request_pool::{Limits, Load, RequestPool, Sessions};
