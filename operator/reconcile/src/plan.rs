//! Desired and actual in, statements out. Pure: a plan can be read before it runs, and is kept as golden text.
//!
//! A plan narrows before it widens. Each operation is one transaction of one login, and any prefix of the operations
//! leaves no key with more than it had before or will have after. Planning again after applying gives nothing.
//!
//! `roles_and_database` and `contents` put whole plans together. The other files plan one part each; a rule about who may
//! do what belongs into `access`.

use std::fmt;

use rowgate_crds::Reason;
use rowgate_sql::text::Sql;

mod accept;
mod access;
mod capture;
mod closed;
mod contents;
mod differences;
mod keys;
pub(crate) mod observed;
mod protection;
mod relationships;
mod removal;
mod roles_and_database;
mod rows;
pub mod scripts;
pub mod subscriptions;

pub use access::adoptable::adoptable;
pub(crate) use capture::missing as uncaptured;
pub use closed::{Closed, Of};
pub use contents::{CLOSE_KEYS, Outcome, contents};
pub use differences::drift;
pub use relationships::Judged;
pub use removal::{remains, removal};
pub(crate) use roles_and_database::{adopted, migrations};
pub use roles_and_database::{lending, roles_and_database};

/// Something that a person has to change: the reason that status shows, and a sentence that says what to do.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    pub reason: Reason,
    pub message: String,
}

impl Finding {
    pub(crate) fn new(reason: Reason, message: impl Into<String>) -> Finding {
        Finding { reason, message: message.into() }
    }

    /// The same finding, about one entity.
    fn of(self, entity: &str) -> Finding {
        let message = format!("entities[{entity}]: {}", self.message);
        Finding { message, ..self }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// Which login runs an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum As {
    /// The operator's, on the control database. It never executes a manifest's SQL.
    Operator,
    /// `t<id>_owner`, on the tenant's database. What changes schema `dl` among its statements is staged and published.
    Owner,
    /// `t<id>_dl`, there: nothing but records.
    Records,
    /// `t<id>_keys`, on the control database, where nothing is the tenant's: in the tenant's own, code of its owner could
    /// run as a role that creates roles.
    Keys,
}

/// One transaction.
#[derive(Debug, Clone)]
pub struct Op {
    /// What it does, for logs, Events and golden text.
    pub about: String,
    pub login: As,
    pub statements: Vec<Statement>,
    /// False for CREATE DATABASE, which cannot run in one.
    pub transaction: bool,
    /// Each statement is a transaction of its own; one that PostgreSQL refuses stops none of the others, and what it
    /// belongs to is left.
    pub one_by_one: bool,
}

#[derive(Debug, Clone)]
pub struct Statement {
    pub sql: Sql,
    /// What is closed when PostgreSQL refuses it.
    pub of: Of,
    /// The differences that it repairs, in words; empty where it only follows from another statement.
    pub undoes: Vec<String>,
}

impl Statement {
    fn undoing(mut self, differences: impl IntoIterator<Item = String>) -> Statement {
        self.undoes.extend(differences);
        self
    }
}

impl From<Sql> for Statement {
    fn from(sql: Sql) -> Statement {
        Statement { sql, of: Of::Tenant, undoes: Vec::new() }
    }
}

impl Of {
    fn says(self, sql: Sql) -> Statement {
        Statement { sql, of: self, undoes: Vec::new() }
    }
}

impl Op {
    /// What an owner's operation would only publish is done as `t<id>_dl`.
    fn new(about: &str, login: As, statements: Vec<Statement>) -> Op {
        let is_all_records = statements.iter().all(|statement| statement.sql.is_of_records());
        let login = if login == As::Owner && is_all_records { As::Records } else { login };
        Op { about: about.to_owned(), login, statements, transaction: true, one_by_one: false }
    }

    fn one_by_one(self) -> Op {
        Op { one_by_one: true, ..self }
    }
}

/// Golden text: a comment line per operation, a line per statement, binds behind it.
impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let login = match self.login {
            As::Operator => "operator",
            As::Owner => "owner",
            As::Records => "dl",
            As::Keys => "keys",
        };
        writeln!(f, "-- {login}: {}", self.about)?;
        for Statement { sql, .. } in &self.statements {
            write!(f, "{};", sql.as_str())?;
            for (i, bind) in sql.binds().iter().enumerate() {
                let value = bind.value.as_deref().map(String::from_utf8_lossy);
                write!(
                    f,
                    "{} ${} = {}",
                    if i == 0 { " --" } else { "," },
                    i + 1,
                    value.as_deref().unwrap_or("null")
                )?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}
