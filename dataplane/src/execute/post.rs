//! A POST: rows are made or a routine is called. Which of both stands behind the entity's name is known by the catalog of each
//! try, so that one is retried as the other.

use rowgate_core::problem::Problem;
use rowgate_sql::compile::{CompiledCall, CompiledWrite};
use rowgate_sql::text::Sql;

use crate::auth::credential::Caller;
use crate::auth::key_context::KeyContext;
use crate::execute::retry::{self, Attempt, RetryReason};
use crate::execute::wording::Wording;
use crate::execute::write::{Reserve, Written};
use crate::execute::{call, write};

/// What is sent.
pub enum Statement {
    Write(CompiledWrite),
    Call(CompiledCall),
}

/// What it gave.
pub enum Posted {
    Written(Written),
    /// The rows of a call: objects joined by commas.
    Called(Vec<u8>),
}

/// Runs what `make` compiles of a body, at most once to its end: see [`write::upsert`].
pub async fn run(
    caller: &Caller,
    wording: &Wording,
    reserve: &Reserve<'_>,
    make: impl Fn(&KeyContext) -> Result<Statement, Problem> + Send + Sync,
) -> Result<Posted, Problem> {
    let posted = async {
        let context = caller.reauthenticate().await?;
        retry::run(caller, context, &Post { wording, reserve, make }).await
    };
    posted.await.map_err(Problem::of_nothing_written)
}

struct Post<'a, F> {
    wording: &'a Wording,
    reserve: &'a Reserve<'a>,
    make: F,
}

impl<F: Fn(&KeyContext) -> Result<Statement, Problem> + Send + Sync> Attempt for Post<'_, F> {
    type Answer = Posted;

    async fn attempt(&self, caller: &Caller, context: &KeyContext, _: bool) -> Result<Posted, RetryReason> {
        let reserve = |sql: &Sql| (self.reserve)(sql.n_bytes()).map_err(RetryReason::Doubtful);
        match (self.make)(context).map_err(RetryReason::Refused)? {
            Statement::Call(call) => {
                reserve(&call.sql)?;
                call::attempt(caller, context, self.wording, &call).await.map(Posted::Called)
            }
            Statement::Write(write) => {
                reserve(&write.sql)?;
                let answered = write::asked(caller, context, &write, true).await;
                write::written(caller, context, self.wording, write, answered).await.map(Posted::Written)
            }
        }
    }
}
