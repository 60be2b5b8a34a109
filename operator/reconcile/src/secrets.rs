//! The Secret of an ApiKey: written first, so that no crash loses a key; the digest is derived from what is found. When a
//! secret is replaced stands in `rotation`.

use std::collections::{BTreeMap, HashMap, HashSet};

use rowgate_core::derive::Pepper;
use rowgate_core::name::{TenantSlug, Ulid};
use rowgate_core::role::DbRole;
use rowgate_core::secret::{ApiKeySecret, ENTROPY_LEN, PresentedKey};
use rowgate_crds::ApiKey;
use rowgate_pg::introspect::actual::{Key, KeySecret};

use crate::desired::SecretSpec;
use crate::entropy;
use crate::source::{Event, Found, ObjectRef, ResourceSource, SourceError, Version};

pub(crate) mod migrations;
pub(crate) mod rotation;
pub(crate) mod webhook;

/// What the entries of the Secret are called.
const API_KEY: &str = "apiKey";
const TENANT: &str = "tenant";
const ROLE: &str = "role";
/// After a rotation: which secret the key in it follows, so that a pass that was cut off in between lets that one work on.
const REPLACES: &str = "replaces";

/// Whose Secret, and where.
pub(crate) struct SecretTarget<'a> {
    pub(crate) object: &'a ObjectRef,
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
    pub(crate) slug: &'a TenantSlug,
    /// Of the key.
    pub(crate) id: &'a Ulid,
    pub(crate) role: &'a DbRole,
}

/// What a Secret was found to hold, or was given.
pub(crate) struct HeldSecret {
    pub(crate) spec: SecretSpec,
    /// Of the Secret.
    pub(crate) version: Option<Version>,
}

/// Why a key gets no secret; each says what to change.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SecretProblem {
    #[error(transparent)]
    Source(#[from] SourceError),
    #[error("Secret {0} holds no API key of this tenant in apiKey; delete it to get a new key")]
    Foreign(String),
    #[error("Secret {0} belongs to ApiKey {1}; set secretName")]
    Taken(String, String),
    #[error(
        "Secret {0} holds the key of ApiKey {1}, which authenticates as that ApiKey; delete the Secret to get a new key"
    )]
    OfAnotherKey(String, String),
    #[error(
        "Secret {0} holds a revoked key, perhaps from a backup, which never works again; delete the Secret to \
         get a new key"
    )]
    Revoked(String),
}

/// The key strings that the database of a tenant knows, dead ones included.
pub(crate) struct Strings<'a> {
    by_digest: HashMap<&'a [u8], (&'a Ulid, &'a Key, &'a KeySecret)>,
    /// The uids of the ApiKeys that are there.
    wanted: HashSet<&'a str>,
}

impl<'a> Strings<'a> {
    pub(crate) fn of(rows: &'a BTreeMap<Ulid, Key>, keys: &[&'a ApiKey]) -> Strings<'a> {
        let all = rows.iter().flat_map(|(id, row)| row.secrets.iter().map(move |secret| (id, row, secret)));
        Strings {
            by_digest: all.map(|it| (it.2.digest.as_slice(), it)).collect(),
            wanted: keys.iter().filter_map(|key| key.metadata.uid.as_deref()).collect(),
        }
    }

    /// What is wrong with a key string in a Secret that is, or was, another key's than the one it is for.
    fn problem(&self, digest: &[u8; 32], target: &SecretTarget<'_>) -> Option<SecretProblem> {
        let known = self.by_digest.get(digest.as_slice());
        let (_, row, secret) = known.filter(|(holder, ..)| *holder != target.id)?;
        let is_wanted = self.wanted.contains(row.uid.as_str());
        let lives = row.revoked_at.is_none() && secret.revoked_at.is_none() && is_wanted;
        Some(match lives {
            true => SecretProblem::OfAnotherKey(target.name.to_owned(), row.name.clone()),
            false => SecretProblem::Revoked(target.name.to_owned()),
        })
    }
}

/// Which key each Secret belongs to, by uid: of several keys that name one, the key that had it in its last status, then
/// the oldest.
pub(crate) fn holders<'a>(keys: &[&'a ApiKey], rows: &BTreeMap<Ulid, Key>) -> BTreeMap<&'a str, &'a ApiKey> {
    let ids: BTreeMap<&str, &Ulid> = rows.iter().map(|(id, row)| (row.uid.as_str(), id)).collect();
    let mut keys: Vec<&ApiKey> = keys.to_vec();
    keys.sort_by_key(|key| {
        let had = key.status.as_ref().and_then(|status| status.secret_name.as_deref());
        let id = key.metadata.uid.as_deref().and_then(|uid| ids.get(uid));
        (had != Some(key.secret_name()) || id.is_none(), id.is_none(), id.copied())
    });
    let mut holders = BTreeMap::new();
    for key in keys {
        holders.entry(key.secret_name()).or_insert(key);
    }
    holders
}

/// The secret that the key's Secret holds; a missing Secret is written, with a new one. `row` is what the database
/// knows of the key, `strings` what it knows of all.
pub(crate) async fn ensure<S: ResourceSource>(
    source: &S,
    target: &SecretTarget<'_>,
    pepper: &Pepper,
    row: Option<&Key>,
    strings: &Strings<'_>,
) -> Result<HeldSecret, SecretProblem> {
    let known = row.map(|row| &row.secrets[..]).unwrap_or_default();
    let found = source.read_secret(target.namespace, target.name).await?;
    if let Some(Found { data, version }) = &found {
        let presented = data.get(API_KEY).and_then(|text| PresentedKey::parse(text).ok());
        let presented = presented.filter(|key| key.tenant == *target.slug);
        let Some(key) = presented else { return Err(SecretProblem::Foreign(target.name.to_owned())) };
        // a key that is not in the database yet can only follow a current one
        let replaces = data.get(REPLACES).and_then(|id| id.parse().ok());
        let replaces = replaces.filter(|id| known.iter().any(|known| known.id == *id && is_current(known)));
        let spec = spec(&key.secret, pepper, replaces);
        if let Some(problem) = strings.problem(&spec.digest, target) {
            return Err(problem);
        }
        let is_old = known.iter().any(|known| known.digest == spec.digest && !is_current(known));
        if !is_old {
            let version = match data.get(ROLE).map(String::as_str) == Some(target.role.as_str()) {
                true => version.clone(),
                false => write(source, target, &key.secret, spec.replaces.as_ref()).await?,
            };
            return Ok(HeldSecret { spec, version });
        }
    }
    let held = issue(source, target, pepper, None).await?;
    if known.iter().any(|known| known.revoked_at.is_none()) || found.is_some() {
        let note = format!(
            "Secret {} was missing or out of date; a new key was issued and the old one revoked",
            target.name
        );
        let event = Event { reason: "SecretReissued".to_owned(), note, warning: true };
        source.event(target.object, event).await?;
    }
    Ok(held)
}

/// Writes a new key into the Secret. With `replaces` it is a rotation: that secret works on for a while.
pub(crate) async fn issue<S: ResourceSource>(
    source: &S,
    target: &SecretTarget<'_>,
    pepper: &Pepper,
    replaces: Option<Ulid>,
) -> Result<HeldSecret, SourceError> {
    let secret = ApiKeySecret::generate(&entropy::bytes::<ENTROPY_LEN>());
    let version = write(source, target, &secret, replaces.as_ref()).await?;
    Ok(HeldSecret { spec: spec(&secret, pepper, replaces), version })
}

async fn write<S: ResourceSource>(
    source: &S,
    target: &SecretTarget<'_>,
    secret: &ApiKeySecret,
    replaces: Option<&Ulid>,
) -> Result<Option<Version>, SourceError> {
    let mut data = BTreeMap::from([
        (API_KEY.to_owned(), secret.reveal(target.slug)),
        (TENANT.to_owned(), target.slug.to_string()),
        (ROLE.to_owned(), target.role.to_string()),
    ]);
    data.extend(replaces.map(|id| (REPLACES.to_owned(), id.to_string())));
    source.write_secret(target.object, target.namespace, target.name, &data).await
}

fn spec(secret: &ApiKeySecret, pepper: &Pepper, replaces: Option<Ulid>) -> SecretSpec {
    let (id, finder) = (entropy::ulid(), secret.finder().to_owned());
    SecretSpec { id, finder, digest: secret.digest(pepper).0, replaces }
}

/// A secret that the database knows as current, of which no Secret needs to be read again.
pub(crate) fn known(digest: &[u8; 32], row: Option<&Key>) -> Option<SecretSpec> {
    let known = row?.secrets.iter().find(|known| known.digest == digest && is_current(known))?;
    let (id, finder) = (known.id.clone(), known.finder.clone());
    // what it replaced has its end already
    Some(SecretSpec { id, finder, digest: *digest, replaces: None })
}

/// Neither revoked nor on its way out since another one replaced it.
fn is_current(secret: &KeySecret) -> bool {
    secret.revoked_at.is_none() && secret.expires_at.is_none()
}
