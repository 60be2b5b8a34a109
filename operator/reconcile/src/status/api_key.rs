//! The state of an ApiKey after a pass over its Tenant, and its status.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use rowgate_core::name::Ulid;
use rowgate_crds::{ApiKeyStatus, Reason, ResolvedPermission};

use super::{Findings, Replicas, TenantState, Transitions, Verdict, verdict};
use crate::source::ObjectRef;

#[derive(Debug, Clone)]
pub(crate) struct KeyState {
    pub(crate) object: ObjectRef,
    pub(crate) generation: i64,
    pub(crate) findings: Findings,
    /// Released: no status is reported any more.
    pub(crate) gone: bool,
    pub(crate) id: Option<Ulid>,
    pub(crate) role: Option<String>,
    /// The generation of the tenant's database from which on the key is as it is: what every live replica must serve.
    /// `None`: the newest.
    pub(crate) served: Option<i64>,
    /// Empty: the name that the manifest gives is another key's.
    pub(crate) secret_name: String,
    pub(crate) expires_at: Option<String>,
    pub(crate) revoked_at: Option<String>,
    /// Not reported again while it has moved by less than a minute.
    pub(crate) last_used_at: Option<Timestamp>,
    /// The 12 characters of the current secret that may be shown.
    pub(crate) current_secret: Option<String>,
    pub(crate) previous_secret_expires_at: Option<Timestamp>,
    pub(crate) next_rotation: Option<Timestamp>,
    /// Of the key's permission set; all keys of a set share them.
    pub(crate) permissions: Arc<[ResolvedPermission]>,
    /// As they stand in the object.
    pub(crate) transitions: Transitions,
}

/// As [`TenantFacts`](super::TenantFacts), of a key.
#[derive(Debug, Hash)]
pub(crate) struct ApiKeyFacts<'a> {
    verdict: Verdict,
    generation: i64,
    id: Option<&'a Ulid>,
    role: Option<&'a str>,
    secret_name: &'a str,
    expires_at: Option<&'a str>,
    revoked_at: Option<&'a str>,
    last_used_at: Option<Timestamp>,
    current_secret: Option<&'a str>,
    previous_secret_expires_at: Option<Timestamp>,
    next_rotation: Option<Timestamp>,
    permissions: &'a [ResolvedPermission],
    warnings: &'a [String],
}

impl<'a> ApiKeyFacts<'a> {
    pub(crate) fn of(
        key: &'a KeyState,
        tenant: Option<&TenantState>,
        replicas: &Replicas,
        now: Timestamp,
    ) -> ApiKeyFacts<'a> {
        ApiKeyFacts {
            verdict: key_verdict(key, tenant, replicas, now),
            generation: key.generation,
            id: key.id.as_ref(),
            role: key.role.as_deref(),
            secret_name: &key.secret_name,
            expires_at: key.expires_at.as_deref(),
            revoked_at: key.revoked_at.as_deref(),
            last_used_at: key.last_used_at,
            current_secret: key.current_secret.as_deref(),
            previous_secret_expires_at: key.previous_secret_expires_at,
            next_rotation: key.next_rotation,
            permissions: &key.permissions,
            warnings: &key.findings.warnings,
        }
    }

    pub(crate) fn status(&self, before: Transitions, now: Timestamp) -> ApiKeyStatus {
        let time = |text: Option<&str>| text.and_then(|text| text.parse().ok()).map(Time);
        ApiKeyStatus {
            observed_generation: self.generation,
            conditions: self.verdict.conditions(self.generation, before, now),
            api_key_id: self.id.map(Ulid::to_string),
            role: self.role.map(str::to_owned),
            secret_name: Some(self.secret_name.to_owned()).filter(|name| !name.is_empty()),
            expires_at: time(self.expires_at),
            revoked_at: time(self.revoked_at),
            last_used_at: self.last_used_at.map(Time),
            current_secret: self.current_secret.map(str::to_owned),
            previous_secret_expires_at: self.previous_secret_expires_at.map(Time),
            next_rotation: self.next_rotation.map(Time),
            permissions: self.permissions.to_vec(),
            warnings: self.warnings.to_vec(),
            ..ApiKeyStatus::default()
        }
    }
}

fn key_verdict(key: &KeyState, tenant: Option<&TenantState>, replicas: &Replicas, now: Timestamp) -> Verdict {
    if let Some((Reason::Deleting, message)) = &key.findings.retry {
        return Verdict::Reconciling(Reason::Deleting, message.clone());
    }
    let expires_at = key.expires_at.as_deref().and_then(|text| text.parse::<Timestamp>().ok());
    match tenant {
        _ if key.revoked_at.is_some() => {
            Verdict::Ended(Reason::Revoked, "the key is permanently revoked; create a new ApiKey".to_owned())
        }
        _ if expires_at.is_some_and(|time| time <= now) => Verdict::Ended(
            Reason::Expired,
            "the key has expired; set a later expiresAt or create a new ApiKey".to_owned(),
        ),
        Some(tenant) if !tenant.done && key.findings.stalled.is_empty() => {
            let finding = tenant.findings.retry.iter().chain(&tenant.findings.stalled).next();
            let message = tenant.not_ready();
            // what is tried again by itself is nothing to wait for in the Tenant
            let of_itself = [Reason::DatabaseUnavailable, Reason::Drifted];
            let reason = finding.map(|(reason, _)| *reason).filter(|it| of_itself.contains(it));
            Verdict::Reconciling(reason.unwrap_or(Reason::TenantNotReady), message)
        }
        Some(tenant) => verdict(&key.findings, tenant, key.served.or(tenant.served), replicas),
        None => match (key.findings.stalled.first(), &key.findings.retry) {
            (Some((reason, message)), _) => Verdict::Stalled(*reason, message.clone()),
            (None, Some((reason, message))) => Verdict::Reconciling(*reason, message.clone()),
            (None, None) => Verdict::Reconciling(Reason::Progressing, "waiting for its Tenant".to_owned()),
        },
    }
}
