//! Plan, apply, look again, until nothing is left to do.

use std::collections::{BTreeMap, BTreeSet};

use rowgate_crds::Reason;
use rowgate_pg::control::{leader, replicas, tenants};
use rowgate_pg::failure::PgError;
use rowgate_pg::introspect::actual::{Cluster, Role, TenantDb};

use super::{Pass, PassError};
use crate::apply::{ApplyError, Logins};
use crate::desired::{Desired, KeySpec};
use crate::entropy;
use crate::plan::{self, Closed, Finding, Op, Outcome};
use crate::source::{Event, ResourceSource};
use crate::status::{Replicas, TenantState};

/// How often a plan is applied in one pass before what is left counts as refused.
const MAX_ROUNDS: u32 = 3;

/// By uid: the object's generation, and for a key which secret its Secret holds.
type Generations = BTreeMap<Box<str>, Generation>;
type Generation = (i64, Option<Box<str>>);
/// With whether a data plane of an older version was there: its login has other rights.
pub(super) type Converged = (Generations, bool);

impl<S: ResourceSource> Pass<'_, S> {
    /// Plans and applies until nothing is left to do; what a refused statement belongs to is closed, and the
    /// rest planned again.
    pub(super) async fn converge(
        &mut self,
        desired: &Desired,
        (mut cluster, mut db): (Cluster, TenantDb),
        logins: &mut Logins<'_>,
        state: &mut TenantState,
    ) -> Result<(Outcome, TenantDb), PassError> {
        let now = (generations(state, desired), cluster.has_older_replicas);
        let mut is_drift = self.memory.converged.as_ref().is_some_and(|before| is_unchanged(before, &now));
        self.memory.converged = None;
        let (mut n_applied, mut n_moved) = (0, 0);
        let mut closed = Closed::default();
        loop {
            let operator = self.server.operator().role;
            let plan = |closed| plan::contents(desired, &cluster, &db, closed, &operator, &mut entropy::ulid);
            let mut outcome = plan(&closed);
            // each pass retries what PostgreSQL refused the last time, because its cause may have been corrected
            let tries_again = || plan(&self.memory.closed).ops.is_empty();
            if outcome.ops.is_empty() {
                // those of unscoped keys, which have no role to close
                self.end_calls(desired, logins).await;
                self.memory.converged = Some(now);
                self.memory.held = held(desired, &cluster, &closed);
                // that they can be dropped one day is no drift
                closed.roles.extend(self.memory.held.iter().cloned());
                self.memory.closed = closed;
                return Ok((outcome, db));
            }
            // a policy that is new says which functions it calls only when it stands: they are granted in a second round
            if n_applied == MAX_ROUNDS {
                let message = format!(
                    "PostgreSQL accepted every statement and the database still differs: {}; transfer what belongs to another role to the owner of the tenant's database",
                    drift(&outcome.ops, desired, &db)
                );
                outcome.problems.push(Finding::new(Reason::NotOwned, message));
                return Ok((outcome, db));
            }
            if is_drift && !tries_again() {
                // a key that was revoked in the database is no drift: its role, claims and permission set follow
                match outcome.ops.iter().any(|op| op.about == plan::CLOSE_KEYS) {
                    true => self.revise(state, Reason::Progressing, &following(&outcome.ops)).await?,
                    false => self.drifted(state, &drift(&outcome.ops, desired, &db)).await?,
                }
            }
            is_drift = false;
            let closing = outcome.ops.iter().position(|op| op.about == plan::CLOSE_KEYS);
            let (first, rest) = outcome.ops.split_at(closing.unwrap_or(outcome.ops.len()));
            let mut applied = logins.apply(first, self.memory.epoch).await;
            if applied.is_ok() && !rest.is_empty() {
                self.end_calls(desired, logins).await;
                applied = logins.apply(rest, self.memory.epoch).await;
            }
            match applied {
                Ok(()) => {
                    n_applied += 1;
                    for of in logins.left.drain(..) {
                        let _is_new = closed.close(&of, "it cannot be dropped now");
                    }
                    self.announce(logins).await?;
                    for event in outcome.events {
                        tracing::info!(tenant = %desired.slug, "{}", event.note);
                        self.source.event(&state.object, event).await?;
                    }
                }
                // another session is changing the tables; the operation was rolled back
                Err(error @ ApplyError::Moved { .. }) if n_moved < MAX_ROUNDS => {
                    tracing::info!(tenant = %desired.slug, %error, "planning again");
                    n_moved += 1;
                }
                Err(ApplyError::Refused { of, about, message }) => {
                    tracing::warn!(tenant = %desired.slug, ?of, about, message, "PostgreSQL refused a statement");
                    if !closed.close(&of, &message) {
                        return Err(ApplyError::Refused { of, about, message }.into());
                    }
                }
                Err(error) => return Err(error.into()),
            }
            (cluster, db) = logins.introspect().await?;
        }
    }

    /// Calls the replicas as soon as a plan was applied: they load what stands there while it is looked at again. What is
    /// said of it follows from that look.
    async fn announce(&mut self, logins: &mut Logins<'_>) -> Result<(), PassError> {
        // one that is not served yet is called when it is whole
        let Some((id, announced)) = self.announced.clone() else { return Ok(()) };
        let generation = tenants::generation(logins.records().await?).await?;
        if announced != generation {
            let control = logins.control().await?;
            let mut open = leader::fence(control, self.lead).await?;
            tenants::set_live(&mut open, &id, generation).await?;
            open.commit().await.map_err(PgError::from)?;
            replicas::wake(control).await?;
            self.announced = Some((id, generation));
        }
        Ok(())
    }

    /// Reports, before the repair, that the database differs from its status.
    pub(super) async fn revise(
        &self,
        state: &TenantState,
        reason: Reason,
        note: &str,
    ) -> Result<(), PassError> {
        // the keys are what they were, and this pass does not know them yet
        let mut status = self.memory.last.as_deref().unwrap_or(state).clone();
        status.findings.retry = Some((reason, note.to_owned()));
        status.done = false;
        status.plan.clear();
        status.migrations_secret.clone_from(&state.migrations_secret);
        // before it is written: the serving replicas may change meanwhile, and the outdated state would be reported again
        self.memory.statuses.revise(&state.object.uid);
        let reports = self.memory.statuses.tenant(&status, &Replicas::default(), false);
        Ok(self.reporter.write(self.source, &reports).await?)
    }

    pub(super) async fn drifted(&self, state: &TenantState, what: &str) -> Result<(), PassError> {
        let note = format!("the database was changed by hand; repairing: {what}");
        self.revise(state, Reason::Drifted, &note).await?;
        Ok(self
            .source
            .event(&state.object, Event { reason: "Drifted".to_owned(), note, warning: true })
            .await?)
    }
}

/// Roles that no manifest names any more, and that stay because something in another database names them.
fn held(desired: &Desired, cluster: &Cluster, closed: &Closed) -> Vec<String> {
    let named: BTreeSet<String> = desired.keys.iter().map(|key| key.role().to_string()).collect();
    let is_held = |role: &str, it: &Role| (it.held || closed.roles.contains(role)) && !it.login;
    let held = cluster.roles.iter().filter(|(role, it)| is_held(role, it) && !named.contains(*role));
    held.map(|(role, _)| role.clone()).collect()
}

/// Whether the manifests are unchanged. A key without a secret lost it by hand, not through a manifest.
fn is_unchanged(before: &Converged, now: &Converged) -> bool {
    let is_same =
        |(old, new): (&Generation, &Generation)| old.0 == new.0 && (new.1.is_none() || old.1 == new.1);
    let (before, now, is_upgraded) = (&before.0, &now.0, before.1 != now.1);
    !is_upgraded && before.keys().eq(now.keys()) && before.values().zip(now.values()).all(is_same)
}

fn following(ops: &[Op]) -> String {
    format!("a key was revoked in the database; following: {}", abouts(ops))
}

/// What a plan repairs, in words.
pub(super) fn drift(ops: &[Op], desired: &Desired, db: &TenantDb) -> String {
    plan::drift(ops, desired, db).unwrap_or_else(|| abouts(ops))
}

fn abouts(ops: &[Op]) -> String {
    let abouts: Vec<&str> = ops.iter().map(|op| op.about.as_str()).collect();
    abouts.join(", ")
}

fn generations(state: &TenantState, desired: &Desired) -> Generations {
    let finder = |key: &KeySpec| key.secret.as_ref().map(|secret| secret.finder.as_str().into());
    let keys = desired.keys.iter().map(|key| (key.uid.as_str().into(), (key.generation, finder(key))));
    let relationships =
        desired.relationships.iter().map(|it| (it.uid.as_str().into(), (it.generation, None)));
    keys.chain(relationships).chain([(state.object.uid.as_str().into(), (state.generation, None))]).collect()
}
