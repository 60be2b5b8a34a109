//! The hot path: one question of one API key to its tenant's database, in one batch, one write and one `Sync`.
//!
//! Read in this order: `ask` what goes in and comes out, `lane` the pool, `places` the queue before it and
//! `budget` what all pools of a server share, `seat` the task of an exchange and `rest` what
//! a long answer's caller holds of it, `key` the statement that checks the key and switches the role, `connection` the
//! exchange itself. `opening` has the settings of a session. `calls` is lane C, where routines of the tenant's run.

mod ask;
mod batch;
mod binding;
pub(crate) mod budget;
mod calls;
mod check;
mod connect;
mod connection;
mod counters;
mod dial;
mod failure;
mod frames;
mod json;
mod key;
mod lane;
mod opening;
mod outage;
pub(crate) mod places;
mod rest;
mod rows;
mod seat;
mod statements;
mod watch;

pub use ask::{Ask, KeyRow, Mode, Page};
pub use budget::{Server, ServerLoad, Share};
pub use calls::{Call, CallLimits, CallLogins, Calls, Given};
pub(crate) use check::dial_for_sqlx;
pub use check::try_login;
pub use counters::Counters;
pub(crate) use dial::Socket;
pub use failure::{Cause, Failure, Rule};
pub use lane::{Lane, Limits, Load, Sessions};
pub use rest::{End, Piece, Rest};
