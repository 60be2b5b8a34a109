//! The keys seen while one catalog was current, and which of those before it still may come back.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use rowgate_core::secret::Credential;
use rowgate_pg::tenant::keys::Found;

use crate::auth::last_used::LastUsed;
use crate::auth::rate_limit::RateLimit;

/// Keys remembered with one catalog. More of them at work in one generation only cost a look-up each.
const MAX_KEYS: usize = 10_000;

/// A key's record, what it may ask where its tenant has a rate limit, and where its uses are noted.
pub(crate) type Record = (Arc<Found>, Option<Arc<RateLimit>>, Arc<LastUsed>);

#[derive(Default)]
pub(crate) struct KeyCache(RwLock<Keys>);

#[derive(Default)]
struct Keys {
    records: HashMap<Credential, Record>,
    /// They lived under an earlier catalog. It says nothing of now, only that their look-up goes first.
    before: HashSet<Credential>,
}

impl KeyCache {
    pub(crate) fn get(&self, credential: &Credential) -> Option<Record> {
        self.read().records.get(credential).cloned()
    }

    /// Whether the key lived at some time, as far as is remembered.
    pub(crate) fn knows(&self, credential: &Credential) -> bool {
        let keys = self.read();
        keys.records.contains_key(credential) || keys.before.contains(credential)
    }

    pub(crate) fn remember(
        &self,
        credential: &Credential,
        found: Found,
        rate_limit: Option<Arc<RateLimit>>,
        last_used: Arc<LastUsed>,
    ) -> Record {
        let record = (Arc::new(found), rate_limit, last_used);
        let mut keys = self.write();
        if MAX_KEYS <= keys.records.len() && !keys.records.contains_key(credential) {
            // Any one will do: who comes back is looked up again.
            let one = keys.records.keys().next().cloned();
            one.map(|one| keys.records.remove(&one));
        }
        keys.before.remove(credential);
        keys.records.insert(credential.clone(), record.clone());
        record
    }

    pub(crate) fn forget(&self, credential: &Credential) {
        let mut keys = self.write();
        keys.records.remove(credential);
        keys.before.remove(credential);
    }

    /// For the next catalog: no record, and the names of those that had one, the latest first.
    pub(crate) fn successor(&self) -> KeyCache {
        let keys = self.read();
        let before = keys.records.keys().chain(&keys.before).take(MAX_KEYS).cloned().collect();
        KeyCache(RwLock::new(Keys { records: HashMap::new(), before }))
    }

    fn read(&self) -> RwLockReadGuard<'_, Keys> {
        // Each change leaves both collections whole.
        self.0.read()
    }

    fn write(&self) -> RwLockWriteGuard<'_, Keys> {
        self.0.write()
    }
}

#[cfg(test)]
mod tests {
    use rowgate_core::name::Ulid;
    use rowgate_core::secret::KeyDigest;

    use super::*;

    fn found() -> Found {
        Found {
            id: Ulid::from_parts(1, [0; 10]),
            role: "datalake_user".to_owned(),
            set_role: None,
            secret: Ulid::from_parts(1, [1; 10]),
            seconds_left: 1_000_000_000,
            generation: 1,
        }
    }

    fn digest(i: usize) -> Credential {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&i.to_be_bytes());
        Credential::Secret(KeyDigest(bytes))
    }

    #[test]
    fn no_more_keys_are_remembered_than_the_bound() {
        let keys = KeyCache::default();
        for i in 0..=MAX_KEYS {
            keys.remember(&digest(i), found(), None, Arc::default());
        }
        assert_eq!(keys.read().records.len(), MAX_KEYS);
        assert!(keys.get(&digest(MAX_KEYS)).is_some(), "the newest stays");
        keys.forget(&digest(MAX_KEYS));
        assert!(keys.get(&digest(MAX_KEYS)).is_none());
    }

    #[test]
    fn a_key_is_known_but_has_no_record_under_the_next_catalog() {
        let first = KeyCache::default();
        (0..MAX_KEYS).for_each(|i| drop(first.remember(&digest(i), found(), None, Arc::default())));
        let second = first.successor();
        assert!(second.knows(&digest(1)) && second.get(&digest(1)).is_none());
        second.remember(&digest(MAX_KEYS), found(), None, Arc::default());
        second.forget(&digest(1));
        let third = second.successor();
        assert!(third.knows(&digest(MAX_KEYS)) && !third.knows(&digest(1)), "the latest, and no dead one");
        assert_eq!(third.read().before.len(), MAX_KEYS);
    }
}
