//! The API keys that work now, with their texts, for the console. The texts leave this process in no answer and no log line.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use rowgate_reconcile::source::ObjectRef;

/// Shared between what reconciles and what serves.
#[derive(Clone, Default)]
pub struct LiveKeys(Arc<Mutex<BTreeMap<ObjectRef, LiveKey>>>);

/// A key that works.
#[derive(Clone, PartialEq, Eq)]
pub struct LiveKey {
    pub tenant: String,
    /// The ApiKey's name.
    pub name: String,
    pub role: String,
    /// Whether it has rights of its own.
    pub is_scoped: bool,
    pub(crate) text: String,
    /// Which of the key's secrets that is, as its status says.
    pub(crate) secret: Option<String>,
}

impl LiveKeys {
    /// By tenant and name.
    #[must_use]
    pub fn list(&self) -> Vec<LiveKey> {
        let mut keys: Vec<LiveKey> = self.0.lock().values().cloned().collect();
        keys.sort_by(|a, b| (&a.tenant, &a.name).cmp(&(&b.tenant, &b.name)));
        keys
    }

    #[must_use]
    pub fn find(&self, tenant: &str, name: &str) -> Option<LiveKey> {
        self.0.lock().values().find(|key| key.tenant == tenant && key.name == name).cloned()
    }

    /// Whether the key is there, with its present secret.
    pub(crate) fn has(&self, object: &ObjectRef, secret: Option<&str>) -> bool {
        self.0.lock().get(object).is_some_and(|key| key.secret.as_deref() == secret)
    }

    pub(crate) fn put(&self, object: ObjectRef, key: LiveKey) {
        self.0.lock().insert(object, key);
    }

    pub(crate) fn remove(&self, object: &ObjectRef) {
        self.0.lock().remove(object);
    }

    /// Drops those that are not declared any more.
    pub(crate) fn retain(&self, is_declared: impl Fn(&ObjectRef) -> bool) {
        self.0.lock().retain(|object, _| is_declared(object));
    }
}

impl LiveKey {
    /// The text of the key, for the header of a request to this process.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.text
    }
}

impl fmt::Debug for LiveKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.list()).finish()
    }
}

/// Without its text.
impl fmt::Debug for LiveKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.tenant, self.name)
    }
}
