//! The webhook subscriptions of a pass: judged, their Secrets written first, then their rows; replays that annotations ask
//! for. One that is wrong blocks no other one.

use std::collections::BTreeSet;

use rowgate_core::name::{EntityName, Ulid};
use rowgate_core::webhook::destination::Policy;
use rowgate_crds::{Kind, MODE, PAUSED, ROTATE, Reason, WebhookSubscription};
use rowgate_pg::connect::session;
use rowgate_pg::control::{leader, replicas, subscriptions as control};
use rowgate_pg::failure::PgError;
use rowgate_pg::introspect::actual::TenantDb;
use rowgate_pg::tenant::declared::{self, Declared};
use rowgate_pg::tenant::replay;
use rowgate_sql::ddl::{records, subscriptions as rows};
use sqlx::Connection as _;

use super::{Pass, PassError};
use crate::apply::{ApplyError, Logins};
use crate::desired::{Desired, SubscriptionSpec, annotations, convert};
use crate::entropy;
use crate::plan::subscriptions as plan;
use crate::secrets::webhook::{self, WebhookSecretProblem};
use crate::source::ResourceSource;
use crate::status::{Findings, TenantState};

mod asked;

impl<S: ResourceSource> Pass<'_, S> {
    /// Makes the rows of subscriptions what the manifests say, and calls the data planes where something has changed.
    pub(super) async fn subscriptions(
        &mut self,
        state: &mut TenantState,
        desired: &Desired,
        served: &[EntityName],
        db: &TenantDb,
        logins: &mut Logins<'_>,
    ) -> Result<(), PassError> {
        let present = declared::all(logins.records().await?).await?;
        let unread = self.snapshot.unread_of(Kind::WebhookSubscription).map(|it| it.uid.as_str());
        let uids = self.subscriptions.iter().filter_map(|it| it.metadata.uid.as_deref());
        let wanted: BTreeSet<&str> = uids.chain(unread).collect();
        let mut is_new = false;
        if let Some(op) = plan::removals(&present, &wanted) {
            logins.apply(&[op], self.memory.epoch).await?;
            is_new = true;
        }
        let mut room = i64::from(desired.limits.subscriptions);
        room -= declared::count_all(logins.records().await?).await?;
        for (i, subscription) in self.subscriptions.clone().into_iter().enumerate() {
            let spec = convert::subscription(subscription);
            let row = present.iter().find(|row| row.uid == spec.uid);
            let mut findings = std::mem::take(&mut state.subscriptions[i].findings);
            let object = state.subscriptions[i].object.clone();
            let (mut id, mut last_replay) =
                (row.map(|row| row.id.clone()), row.and_then(|row| row.last_replay.clone()));
            unserved(subscription, &mut findings);
            let policy = Policy {
                allow_http: desired.limits.webhooks_allow_http,
                ranges: self.webhook_ranges.to_vec(),
            };
            match plan::judge(&spec, desired, served, db, &policy) {
                Err(problems) => {
                    findings.stalled.extend(problems.into_iter().map(|it| (it.reason, it.message)));
                }
                Ok(_) if row.is_none() && room <= 0 => {
                    let message = format!(
                        "the Tenant has {} webhook subscriptions, as many as its limits.subscriptions allows; delete one, or raise \
                         limits.subscriptions",
                        desired.limits.subscriptions
                    );
                    findings.stalled.push((Reason::TooManySubscriptions, message));
                }
                Ok(settings) => {
                    let new = row.map_or_else(entropy::ulid, |row| row.id.clone());
                    let key = self.installation.roots().dataplane.sealing_key();
                    let named =
                        webhook::ensure(self.source, &object, &state.subscriptions[i].secret_name, row, &key);
                    match named.await {
                        Err(WebhookSecretProblem::Source(error)) => {
                            findings.retry = Some((Reason::SecretUnavailable, error.to_string()));
                        }
                        Err(problem) => findings.stalled.push((Reason::SecretInvalid, problem.to_string())),
                        Ok(secret) => {
                            let sealed = secret.map(|it| webhook::sealed(&key, new.as_str(), &it));
                            let secret = entropy::ulid();
                            let sealed = sealed.as_deref().map(|sealed| (&secret, sealed));
                            let op = plan::write(&spec, &new, &settings, row, sealed);
                            let ops: Vec<_> = op.into_iter().collect();
                            is_new |= !ops.is_empty();
                            match logins.apply(&ops, self.memory.epoch).await {
                                Ok(()) => {
                                    room -= i64::from(row.is_none());
                                    id = Some(new);
                                }
                                Err(error @ ApplyError::Refused { .. }) => {
                                    let message = format!("{error}; correct in the database what refuses it");
                                    findings.stalled.push((Reason::StatementRefused, message));
                                }
                                Err(error) => return Err(error.into()),
                            }
                        }
                    }
                }
            }
            if let Some(id) = &id {
                is_new |= self.replay(id, &spec, &mut last_replay, &mut findings, logins).await?;
            }
            let it = &mut state.subscriptions[i];
            (it.findings, it.id, it.last_replay) = (findings, id, last_replay);
        }
        self.declare(state, &present, is_new, logins).await
    }

    /// Acts on the annotation once for each value. What it did and that it did are one transaction.
    async fn replay(
        &self,
        id: &Ulid,
        spec: &SubscriptionSpec,
        last: &mut Option<String>,
        findings: &mut Findings,
        logins: &mut Logins<'_>,
    ) -> Result<bool, PassError> {
        let Some(value) = spec.replay.as_ref().filter(|value| last.as_ref() != Some(value)) else {
            return Ok(false);
        };
        let from = match asked::from(value) {
            Ok(from) => from,
            Err(problem) => {
                findings.stalled.push((Reason::InvalidSpec, problem));
                return Ok(false);
            }
        };
        let epoch = self.memory.epoch.unwrap_or(0);
        let mut open = logins.records().await?.begin().await.map_err(PgError::from)?;
        session::execute(&mut open, &records::fence(epoch))
            .await
            .map_err(rowgate_pg::control::tenants::fenced)?;
        match replay::replay(&mut open, id.as_str(), &from, false).await {
            Ok(_) => {
                session::execute(&mut open, &rows::set_last_replay(id.as_str(), value)).await?;
                open.commit().await.map_err(PgError::from)?;
                *last = Some(value.clone());
                Ok(true)
            }
            Err(replay::ReplayError::Pg(error)) => Err(error.into()),
            Err(problem) => {
                open.rollback().await.map_err(PgError::from)?;
                let message = format!("the annotation rowgate.dev/replay: {problem}; name another one");
                findings.stalled.push((Reason::InvalidSpec, message));
                Ok(false)
            }
        }
    }

    /// Tells the data planes in whose databases there are subscriptions.
    async fn declare(
        &self,
        state: &TenantState,
        present: &[Declared],
        is_new: bool,
        logins: &mut Logins<'_>,
    ) -> Result<(), PassError> {
        let Some(tenant) = &state.id else { return Ok(()) };
        let unread: BTreeSet<&str> =
            self.snapshot.unread_of(Kind::WebhookSubscription).map(|it| it.uid.as_str()).collect();
        let kept = present.iter().filter(|row| unread.contains(row.uid.as_str()));
        let kept = kept.map(|row| (row.id.to_string(), row.uid.clone()));
        let known = state.subscriptions.iter();
        let known = known.filter_map(|it| Some((it.id.as_ref()?.to_string(), it.object.uid.clone())));
        let declared: BTreeSet<(String, String)> = known.chain(kept).collect();
        let conn = logins.control().await?;
        let is_other = control::declared(conn, tenant).await? != declared;
        if is_other {
            let mut open = leader::fence(conn, self.lead).await?;
            control::declare(&mut open, tenant, &declared).await?;
            open.commit().await.map_err(PgError::from)?;
        }
        if is_new || is_other {
            replicas::wake(conn).await?;
        }
        Ok(())
    }
}

/// A switch that is ignored must not look as if it worked.
fn unserved(subscription: &WebhookSubscription, findings: &mut Findings) {
    let messages = annotations::unserved(&subscription.metadata, &[MODE, PAUSED, ROTATE]);
    findings.stalled.extend(messages.into_iter().map(|message| (Reason::NotServedYet, message)));
}
