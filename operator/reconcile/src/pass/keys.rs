//! The keys of a pass: identifiers, the secrets that their Secrets hold, and rotation.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use futures_util::{StreamExt as _, stream};
use jiff::Timestamp;
use rowgate_core::name::Ulid;
use rowgate_core::role::DbRole;
use rowgate_crds::{Kind, Reason};
use rowgate_pg::introspect::actual::TenantDb;

use super::{Pass, PassError};
use crate::desired::{Desired, KeySpec};
use crate::desired::{annotations, convert};
use crate::secrets::rotation;
use crate::source::inputs::Revision;
use crate::source::{Event, ResourceSource, SecretView, Version};
use crate::status::{KeyState, TenantState};
use crate::{entropy, secrets};

/// Secrets that are asked for at once.
const MAX_CONCURRENT: usize = 16;

/// What the Secrets of keys held when a pass finished: unchanged ones are not read again. Where Secrets are not watched,
/// every resync reads them all.
#[derive(Debug)]
pub(super) struct Remembered {
    tenant: Revision,
    namespace: String,
    /// By uid of the key.
    keys: HashMap<Box<str>, KnownSecret>,
}

/// One of them.
#[derive(Debug)]
struct KnownSecret {
    /// The version of the key that it belongs to.
    key: Revision,
    /// Of the Secret.
    name: Box<str>,
    /// Of the secret in it; the rest of what is known of that stands in the database.
    digest: [u8; 32],
    /// Of the Secret that it was derived from.
    version: Option<Version>,
}

impl Remembered {
    /// Namespaces and names of the Secrets that were there.
    pub(super) fn names(&self) -> impl Iterator<Item = (&str, &str)> {
        self.keys.values().map(|known| (self.namespace.as_str(), &*known.name))
    }

    /// Whether each of them is to be seen, in the version that it had then.
    pub(super) fn are_seen_unchanged(&self, view: impl Fn(&str, &str) -> SecretView) -> bool {
        self.keys.values().all(|known| {
            let SecretView::Present(version) = view(&self.namespace, &known.name) else { return false };
            known.version.as_ref() == Some(&version)
        })
    }
}

/// Keys whose Secret holds a key string that the database does not know yet, and that replaces one it knows.
pub(super) fn unfinished(desired: &Desired, db: &TenantDb) -> Vec<(Ulid, [u8; 32])> {
    let keys = desired.keys.iter().filter_map(|key| Some((key, key.secret.as_ref()?)));
    keys.filter(|(key, secret)| secret.replaces.is_some() && !is_known(db, &key.id, &secret.digest))
        .map(|(key, secret)| (key.id.clone(), secret.digest))
        .collect()
}

/// Those of `unfinished` that the database knows now.
pub(super) fn finished(unfinished: Vec<(Ulid, [u8; 32])>, db: &TenantDb) -> BTreeSet<Ulid> {
    let known = unfinished.into_iter().filter(|(id, digest)| is_known(db, id, digest));
    known.map(|(id, _)| id).collect()
}

fn is_known(db: &TenantDb, id: &Ulid, digest: &[u8; 32]) -> bool {
    db.keys.get(id).is_some_and(|row| row.secrets.iter().any(|secret| secret.digest == digest))
}

impl<S: ResourceSource> Pass<'_, S> {
    /// Refuses to plan without a key that works and whose ApiKey is there but cannot be read: the plan would take its role,
    /// rows and policies away.
    pub(super) fn all_are_read(&self, db: &TenantDb) -> Result<(), PassError> {
        let lives = |uid: &str| db.keys.values().any(|row| row.uid == uid && row.revoked_at.is_none());
        match self.snapshot.unread_of(Kind::ApiKey).find(|key| lives(&key.uid)) {
            None => Ok(()),
            Some(key) => {
                let message = format!(
                    "{key} cannot be read by this version; it keeps working unchanged, and until it is readable only revocations change the Tenant; rewrite it, delete it, or run the version that wrote it"
                );
                Err(PassError::Refused(Reason::NotServedYet, message))
            }
        }
    }

    /// What the next pass need not read.
    pub(super) fn remember(&mut self, desired: &Desired) {
        let specs = self.keys.iter().zip(&desired.keys);
        let keys = specs.filter_map(|(key, spec)| {
            let known = KnownSecret {
                key: Revision::of(&key.metadata),
                name: key.secret_name().into(),
                digest: spec.secret.as_ref()?.digest,
                version: self.versions.get(&spec.uid).cloned(),
            };
            Some((spec.uid.as_str().into(), known))
        });
        let tenant = Revision::of(&self.tenant.metadata);
        let namespace = self.tenant.metadata.namespace.clone().unwrap_or_default();
        self.memory.secrets = Some(Remembered { tenant, namespace, keys: keys.collect() });
    }

    /// Identifiers and secrets of the keys; a key with a problem reports it and gets no secret.
    pub(super) async fn keys(
        &mut self,
        state: &mut TenantState,
        desired: &mut Desired,
        db: &TenantDb,
    ) -> Result<(), PassError> {
        let pepper = self.installation.roots().dataplane.pepper();
        let ids: BTreeMap<&str, &Ulid> = db.keys.iter().map(|(id, row)| (row.uid.as_str(), id)).collect();
        let holders = secrets::holders(&self.keys, &db.keys);
        // a pass that is cut off may leave Secrets that are others by then
        let remembered =
            self.memory.secrets.take().filter(|it| it.tenant == Revision::of(&self.tenant.metadata));
        let mut unread = Vec::new();
        for (i, (key, key_state)) in self.keys.iter().zip(&mut state.keys).enumerate() {
            let id = ids.get(key_state.object.uid.as_str()).map_or_else(entropy::ulid, |id| (*id).clone());
            let row = db.keys.get(&id);
            let mut spec = convert::key(key, id, None, &self.server);
            let switches = [rowgate_crds::PAUSED, rowgate_crds::MODE];
            let unserved = annotations::unserved(&key.metadata, &switches);
            key_state.findings.stalled.extend(unserved.into_iter().map(|text| (Reason::NotServedYet, text)));
            let dead = spec.revoked || row.is_some_and(|row| row.revoked_at.is_some());
            let holder = holders[key.secret_name()];
            if !std::ptr::eq(holder, *key) {
                let other = holder.metadata.name.clone().unwrap_or_default();
                let taken = secrets::SecretProblem::Taken(key_state.secret_name.clone(), other);
                key_state.findings.stalled.push((Reason::Taken, taken.to_string()));
                key_state.secret_name.clear();
            } else if !dead {
                let known = remembered.as_ref().and_then(|it| it.keys.get(spec.uid.as_str()));
                let is_it = |it: &&KnownSecret| {
                    it.key == Revision::of(&key.metadata)
                        && self.is_as_it_was(&key_state.object.namespace, it)
                };
                let known = known.filter(is_it);
                spec.secret = known.and_then(|it| secrets::known(&it.digest, row));
                match (&spec.secret, known) {
                    (Some(_), Some(it)) => {
                        self.versions.extend(it.version.clone().map(|it| (spec.uid.clone(), it)));
                    }
                    _ => unread.push(i),
                }
            }
            desired.keys.push(spec);
        }
        if unread.is_empty() {
            return Ok(());
        }
        let (source, key_states, specs) = (self.source, &state.keys, &desired.keys);
        let strings = secrets::Strings::of(&db.keys, &self.keys);
        let read = stream::iter(unread).map(|i| {
            let (desired, pepper, strings) = (&*desired, &pepper, &strings);
            async move {
                let (id, role) = (&specs[i].id, specs[i].role());
                let target = target(&key_states[i], desired, id, &role);
                (i, secrets::ensure(source, &target, pepper, db.keys.get(id), strings).await)
            }
        });
        let read: Vec<_> = read.buffer_unordered(MAX_CONCURRENT).collect().await;
        let digests = desired.keys.iter().enumerate();
        let mut digests: HashMap<[u8; 32], usize> =
            digests.filter_map(|(i, key)| Some((key.secret.as_ref()?.digest, i))).collect();
        for (i, result) in read {
            // of several Secrets that hold one new string, the one that was read first has it
            let result = result.and_then(|held| match digests.insert(held.spec.digest, i) {
                None => Ok(held),
                Some(first) => {
                    digests.insert(held.spec.digest, first);
                    let (name, other) = (&state.keys[i].secret_name, &desired.keys[first].name);
                    Err(secrets::SecretProblem::OfAnotherKey(name.clone(), other.clone()))
                }
            });
            let findings = &mut state.keys[i].findings;
            match result {
                Ok(held) => self.hold(&mut desired.keys[i], held),
                Err(secrets::SecretProblem::Source(error)) => {
                    findings.retry = Some((Reason::SecretUnavailable, error.to_string()));
                }
                Err(problem) => findings.stalled.push((Reason::SecretInvalid, problem.to_string())),
            }
        }
        Ok(())
    }

    /// Whether the Secret is the one that this was derived from. What is seen may lag behind the Secret, as what was read
    /// may.
    fn is_as_it_was(&self, namespace: &str, known: &KnownSecret) -> bool {
        let name = &*known.name;
        match self.source.secret_view(namespace, name) {
            SecretView::Present(version) => known.version.as_ref() == Some(&version),
            SecretView::Absent => false,
            SecretView::Unwatched => {
                let target = (namespace.to_owned(), name.to_owned());
                !self.probe && !self.snapshot.missing.contains(&target)
            }
        }
    }

    fn hold(&mut self, spec: &mut KeySpec, held: secrets::HeldSecret) {
        spec.secret = Some(held.spec);
        match held.version {
            Some(version) => drop(self.versions.insert(spec.uid.clone(), version)),
            None => drop(self.versions.remove(&spec.uid)),
        }
    }

    /// Writes a new key string into the Secret of each key whose rotation is due; true when there was one. Its digest is
    /// the plan's to store, in this pass or, if it is cut off here, in the next.
    pub(super) async fn rotate(
        &mut self,
        state: &mut TenantState,
        desired: &mut Desired,
        db: &TenantDb,
        now: Timestamp,
    ) -> bool {
        let pepper = self.installation.roots().dataplane.pepper();
        let mut any = false;
        for i in 0..desired.keys.len() {
            let (spec, key_state) = (&desired.keys[i], &mut state.keys[i]);
            let Some(current) = due(spec, db, now) else { continue };
            let role = spec.role();
            let target = target(key_state, desired, &spec.id, &role);
            match secrets::issue(self.source, &target, &pepper, Some(current)).await {
                Ok(held) => {
                    self.hold(&mut desired.keys[i], held);
                    any = true;
                }
                Err(error) => {
                    key_state.findings.retry = Some((Reason::SecretUnavailable, error.to_string()));
                }
            }
        }
        any
    }

    /// Says which keys have a new secret.
    pub(super) async fn report_rotated(
        &self,
        state: &TenantState,
        rotated: &BTreeSet<Ulid>,
    ) -> Result<(), PassError> {
        for key in &state.keys {
            let Some(id) = key.id.as_ref().filter(|id| rotated.contains(*id)) else { continue };
            let end = match key.previous_secret_expires_at {
                Some(end) => format!("the previous one works until {end}"),
                None => "the previous one no longer works".to_owned(),
            };
            let note = format!("Secret {} holds a new key with the same id {id}; {end}", key.secret_name);
            let event = Event { reason: "SecretRotated".to_owned(), note, warning: false };
            self.source.event(&key.object, event).await?;
        }
        Ok(())
    }
}

/// The current secret, if it is to be replaced now.
fn due(spec: &KeySpec, db: &TenantDb, now: Timestamp) -> Option<Ulid> {
    let row = db.keys.get(&spec.id)?;
    rotation::due(spec, row, now).filter(|due| *due <= now)?;
    Some(rotation::current(spec, row)?.id.clone())
}

fn target<'a>(
    key_state: &'a KeyState,
    desired: &'a Desired,
    id: &'a Ulid,
    role: &'a DbRole,
) -> secrets::SecretTarget<'a> {
    secrets::SecretTarget {
        object: &key_state.object,
        namespace: &key_state.object.namespace,
        name: &key_state.secret_name,
        slug: &desired.slug,
        id,
        role,
    }
}
