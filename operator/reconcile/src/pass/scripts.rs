//! The scripts that a Tenant's database is made from. Each runs once, before tables are judged.

use rowgate_crds::{ConfigMapKeyRef, Reason};
use rowgate_pg::control::tenants::{Phase, Record};
use rowgate_pg::failure::PgError;
use rowgate_pg::tenant::scripts::Ran;
use rowgate_pg::tenant::{locks, scripts};
use rowgate_sql::ddl::records;
use tokio::time::Instant;

use super::{Pass, PassError};
use crate::apply::Logins;
use crate::plan::scripts::{Next, Script, next};
use crate::source::{ResourceSource, Snapshot};
use crate::status::TenantState;

/// What a statement is answered that cannot run within a transaction, such as CREATE INDEX CONCURRENTLY.
const IN_A_TRANSACTION: &str = "25001";
/// For so many times as long as it ran before it failed a script is left alone: requests may have waited for what it held.
const REST: u32 = 10;

/// A script of a list that failed.
#[derive(Debug)]
pub(super) struct Failure {
    number: usize,
    sha256: String,
    message: String,
    rests_until: Instant,
}

impl Failure {
    /// Of a script that began at `began` and failed `now`.
    fn new(number: usize, script: &Ran, message: &str, began: Instant, now: Instant) -> Failure {
        let rests_until = now + (now - began) * REST;
        Failure { number, sha256: script.sha256.clone(), message: message.to_owned(), rests_until }
    }

    /// Whether this script is not tried again yet. Another text is.
    fn keeps(&self, number: usize, script: &Ran, now: Instant) -> bool {
        self.number == number && self.sha256 == script.sha256 && now < self.rests_until
    }
}

impl<S: ResourceSource> Pass<'_, S> {
    /// Runs those that have not run. True: something was done.
    ///
    /// # Errors
    /// One that has to run is missing, fails or waits: tables are judged when it has run. What is wrong with those that ran goes
    /// into `state`, and the pass goes on.
    pub(super) async fn scripts(
        &mut self,
        state: &mut TenantState,
        record: &Record,
        logins: &mut Logins<'_>,
    ) -> Result<bool, PassError> {
        let (tenant, snapshot) = (self.tenant, self.snapshot);
        let (Some(bootstrap), Some(epoch)) = (&tenant.spec.database.bootstrap, self.memory.epoch) else {
            return Ok(false);
        };
        let script = |reference| script(snapshot, &state.object.namespace, reference);
        let bootstrapped = scripts::bootstrapped(logins.records().await?).await?;
        if let Some(only) = &bootstrap.config_map_ref {
            if bootstrapped {
                return Ok(false);
            }
            tracing::info!(tenant = %state.slug, config_map = %only.name, "running the bootstrap script");
            return only_script(script(only), logins, epoch).await.map(|()| true);
        }
        let listed: Vec<Script<'_>> = bootstrap.scripts.iter().map(script).collect();
        let mut ran = scripts::ran(logins.records().await?).await?;
        let n_before = ran.len();
        loop {
            match next(&listed, &ran, bootstrapped) {
                Next::Done => break,
                Next::Stalled { finding, waits: true } => {
                    return Err(PassError::Refused(finding.reason, finding.message));
                }
                Next::Stalled { finding, waits: false } => {
                    state.findings.stalled.push((finding.reason, finding.message));
                    break;
                }
                Next::CountFirst(note) => {
                    scripts::count_first(logins.records().await?, &note, epoch).await?;
                    ran.push(note);
                }
                Next::Run { number, text, note } => {
                    if record.phase == Phase::Live {
                        // it may take long
                        self.revoke_before_served(logins).await?;
                    }
                    tracing::info!(tenant = %state.slug, number, config_map = %note.name, key = %note.key, "running a script");
                    self.listed_script((number, listed[number - 1]), text, &note, logins, epoch).await?;
                    ran.push(note);
                }
            }
        }
        Ok(n_before < ran.len())
    }

    async fn listed_script(
        &mut self,
        (number, script): (usize, Script<'_>),
        text: &str,
        note: &Ran,
        logins: &mut Logins<'_>,
        epoch: i64,
    ) -> Result<(), PassError> {
        let began = Instant::now();
        if let Some(failure) = self.memory.script.as_ref().filter(|it| it.keeps(number, note, began)) {
            return Err(PassError::Refused(Reason::BootstrapFailed, failure.message.clone()));
        }
        let mut noted = vec![scripts::record(number, note)];
        noted.extend((number == 1).then(records::bootstrapped));
        let Err(error) = logins.script(text, noted, epoch).await else { return Ok(()) };
        let error = failed(error, format!("script {number} of bootstrap.scripts ({script})"), logins).await;
        if let PassError::Refused(_, message) = &error {
            self.memory.script = Some(Failure::new(number, note, message, began, Instant::now()));
        }
        Err(error)
    }
}

fn script<'a>(snapshot: &'a Snapshot, namespace: &str, reference: &'a ConfigMapKeyRef) -> Script<'a> {
    let map = snapshot.config_maps.get(&(namespace.to_owned(), reference.name.clone()));
    let text = map.and_then(|data| data.get(&reference.key));
    Script { name: &reference.name, key: &reference.key, text: text.map(String::as_str) }
}

/// Runs the script of a Tenant that names one alone.
async fn only_script(script: Script<'_>, logins: &mut Logins<'_>, epoch: i64) -> Result<(), PassError> {
    let Some(text) = script.text else {
        let message = format!("bootstrap names {script}, which does not exist; apply it");
        return Err(PassError::Refused(Reason::ConfigMapNotFound, message));
    };
    match logins.script(text, vec![records::bootstrapped()], epoch).await {
        Ok(()) => Ok(()),
        Err(error) => Err(failed(error, "the bootstrap script".to_owned(), logins).await),
    }
}

/// What a script's failure is for the pass. `what`: the script.
async fn failed(error: PgError, what: String, logins: &mut Logins<'_>) -> PassError {
    let PgError::Sqlstate { code, message, .. } = &error else { return error.into() };
    if code == locks::NOT_AVAILABLE {
        return PassError::Busy(what, logins.hidden().await);
    }
    if error.is_collision() || error.is_shortage() {
        return error.into();
    }
    let remedy = match code == IN_A_TRANSACTION {
        true => "correct the script: all of it runs in one transaction",
        false => "correct the script",
    };
    let message =
        format!("{what} failed and was rolled back: PostgreSQL answered {code}: {message}; {remedy}");
    PassError::Refused(Reason::BootstrapFailed, message)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_script_that_failed_rests_ten_times_as_long_as_it_ran_and_another_text_runs_at_once() {
        let script = |sha256: &str| Ran { name: "m".into(), key: "k".into(), sha256: sha256.into() };
        let began = Instant::now();
        let after = |seconds: u64| began + Duration::from_secs(seconds);
        let failure = Failure::new(2, &script("a"), "it failed", began, after(3));
        for (number, text, at, keeps) in [
            (2, "a", 4, true),
            (2, "a", 32, true),
            (2, "a", 33, false),
            (2, "b", 4, false),
            (3, "a", 4, false),
        ] {
            assert_eq!(failure.keeps(number, &script(text), after(at)), keeps, "{number} {text} {at}");
        }
    }
}
