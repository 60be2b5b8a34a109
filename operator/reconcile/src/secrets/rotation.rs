//! When a key's secret is replaced by another, and for how long the old one works on. Pure: times are the database's.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use rowgate_pg::introspect::actual::{Key, KeySecret};
use sha2::{Digest as _, Sha256};

use crate::desired::KeySpec;

/// For how long the old secret works on after a rotation by hand, where the manifest has no `rotation`.
const DEFAULT_OVERLAP: Duration = Duration::from_secs(3600);

/// No overlap is longer, so that every recorded time can be written: a hundred years.
const MAX_OVERLAP: Duration = Duration::from_secs(100 * 366 * 86_400);

/// What is recorded of an annotation's value, which may be any text of any length.
pub(crate) fn digest(value: &str) -> String {
    Sha256::digest(value).iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

/// For how long the secret before works on.
pub(crate) fn overlap(spec: &KeySpec) -> Duration {
    spec.rotation.map_or(DEFAULT_OVERLAP, |rotation| rotation.overlap).min(MAX_OVERLAP)
}

/// The key's secret that its Secret holds, as the database has it: neither revoked nor replaced.
pub(crate) fn current<'a>(spec: &KeySpec, row: &'a Key) -> Option<&'a KeySecret> {
    let held = spec.secret.as_ref()?;
    let current = row.secrets.iter().find(|secret| secret.digest == held.digest)?;
    (current.revoked_at.is_none() && current.expires_at.is_none()).then_some(current)
}

/// The secret that works beside the current one, and until when.
pub(crate) fn previous<'a>(
    current: &KeySecret,
    row: &'a Key,
    now: Timestamp,
) -> Option<(&'a KeySecret, Timestamp)> {
    let secret = row.secrets.iter().find(|secret| Some(&secret.id) == current.replaces.as_ref())?;
    let end = secret.expires_at.filter(|end| now < *end && secret.revoked_at.is_none())?;
    Some((secret, end))
}

/// When the current secret is to be replaced; `now` or earlier: now. By the manifest, not before the one that it follows
/// has died. By annotation, at once: the one before it dies then, because no more than two ever work.
pub(crate) fn due(spec: &KeySpec, row: &Key, now: Timestamp) -> Option<Timestamp> {
    let ended = |end: Option<Timestamp>| end.is_some_and(|end| end <= now);
    let time = |text: &Option<String>| text.as_deref().and_then(|text| text.parse().ok());
    if spec.revoked || row.revoked_at.is_some() || ended(time(&spec.expires_at)) {
        return None;
    }
    let current = current(spec, row)?;
    if spec.rotate.is_some() && spec.rotate != row.rotated_for {
        return Some(current.created_at);
    }
    let every = SignedDuration::try_from(spec.rotation?.every).ok()?;
    let due = current.created_at.checked_add(every).ok()?;
    Some(previous(current, row, now).map_or(due, |(_, end)| due.max(end)))
}

#[cfg(test)]
mod tests;
