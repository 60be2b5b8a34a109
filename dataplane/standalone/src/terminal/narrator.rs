//! A source that also prints to the terminal: mistakes in manifests, what becomes of each resource, and the first requests to
//! try.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::Mutex;
use rowgate_crds::{ApiKey, Kind, Tenant};
use rowgate_reconcile::source::{
    Event, Found, Mirrors, ObjectRef, ResourceSource, SecretView, Snapshot, SourceError, SourceProblem,
    StatusReport, Version,
};
use serde_json::{Value, json};

use super::greeting::{self, UsableKey};
use super::verdict::Verdict;
use super::{print, say};
use crate::live_keys::{LiveKey, LiveKeys};
use crate::psql;
use crate::state::roots::write_private;

/// Forwards everything to `source` and prints what passes through.
pub(crate) struct Narrator<S> {
    source: S,
    addresses: Addresses,
    manifests: PathBuf,
    /// As the flag names it.
    state: PathBuf,
    ready_file: Option<PathBuf>,
    live_keys: LiveKeys,
    printed: Mutex<Printed>,
}

/// Where the data plane is reached from this machine.
pub(crate) struct Addresses {
    pub(crate) api: String,
    /// `None`: it is off.
    pub(crate) console: Option<String>,
}

/// What was printed before, so that nothing is printed twice.
#[derive(Default)]
struct Printed {
    snapshot: Snapshot,
    problems: Vec<SourceProblem>,
    statuses: BTreeMap<ObjectRef, Value>,
    verdicts: BTreeMap<ObjectRef, Verdict>,
    /// The warnings of each object, whatever its verdict.
    warnings: BTreeMap<ObjectRef, Vec<String>>,
    greeted: BTreeSet<ObjectRef>,
    keys: Vec<UsableKey>,
}

impl<S: ResourceSource> Narrator<S> {
    pub(crate) fn new(
        source: S,
        addresses: Addresses,
        manifests: PathBuf,
        state: PathBuf,
        ready_file: Option<PathBuf>,
        live_keys: LiveKeys,
    ) -> Narrator<S> {
        Narrator { source, addresses, manifests, state, ready_file, live_keys, printed: Mutex::default() }
    }

    fn printed(&self) -> parking_lot::MutexGuard<'_, Printed> {
        self.printed.lock()
    }

    /// Prints the keys that work and were not printed before; after a start it waits until no resource is in progress.
    async fn greet(&self) -> Result<(), SourceError> {
        let (new, snapshot, first) = {
            let printed = self.printed();
            if !printed.keys.is_empty() || printed.settled() {
                (printed.new_keys(), printed.snapshot.clone(), printed.keys.is_empty())
            } else {
                return Ok(());
            }
        };
        let mut keys = Vec::new();
        for (key, role, secret_name) in new {
            let Some(tenant) = tenant_of(&snapshot, &key) else { continue };
            let Some(text) = self.key_text(&key, &secret_name).await? else { continue };
            let siblings: Vec<ApiKey> = snapshot
                .api_keys
                .iter()
                .filter(|other| same_tenant(other, &key))
                .map(|other| ApiKey::clone(other))
                .collect();
            keys.push(UsableKey {
                slug: tenant.slug().to_owned(),
                name: key.metadata.name.clone().unwrap_or_default(),
                role,
                key: text,
                entity: greeting::entity(tenant, &key, &siblings),
            });
            self.printed().greeted.insert(ObjectRef::from(&*key));
        }
        if keys.is_empty() {
            return Ok(());
        }
        keys.sort_by(|a, b| (&a.slug, &a.name).cmp(&(&b.slug, &b.name)));
        if let Some(console) = self.addresses.console.as_ref().filter(|_| first) {
            print(&format!(
                "\nOpen {console} in a browser: the entities of each key, GraphQL and an API reference.\n"
            ));
        }
        print(&greeting::text(&self.addresses.api, &keys));
        if first {
            print(&format!(
                "\n# the tables, as their owner\n{}\n\nEdit a file in {}: the change takes effect within a second. \
                 Ctrl-C stops everything; the data is kept.\n",
                psql::line(&keys[0].slug, &self.state),
                self.manifests.display()
            ));
        }
        let all = {
            let mut printed = self.printed();
            printed.keys.extend(keys);
            printed.keys.clone()
        };
        self.publish(&all);
        Ok(())
    }

    /// The text of a key, as its Secret has it.
    async fn key_text(&self, key: &ApiKey, secret_name: &str) -> Result<Option<String>, SourceError> {
        let namespace = key.metadata.namespace.as_deref().unwrap_or_default();
        let secret = self.source.read_secret(namespace, secret_name).await?;
        Ok(secret.and_then(|secret| secret.data.get("apiKey").cloned()))
    }

    /// Keeps the keys of the console as the status of this one says: it works with its present secret, or not any more.
    async fn follow(&self, object: &ObjectRef) -> Result<(), SourceError> {
        let state = self.printed().key_state(object);
        let (key, role, secret_name, secret) = match state {
            KeyState::Works { key, role, secret_name, secret } => (key, role, secret_name, secret),
            KeyState::Ended => {
                self.live_keys.remove(object);
                return Ok(());
            }
            KeyState::Unclear => return Ok(()),
        };
        if self.live_keys.has(object, secret.as_deref()) {
            return Ok(());
        }
        let Some(text) = self.key_text(&key, &secret_name).await? else { return Ok(()) };
        let tenant = tenant_of(&self.printed().snapshot, &key).map(|tenant| tenant.slug().to_owned());
        let Some(tenant) = tenant else { return Ok(()) };
        let (name, is_scoped) = (object.name.clone(), key.spec.scope.is_some());
        self.live_keys.put(object.clone(), LiveKey { tenant, name, role, is_scoped, text, secret });
        Ok(())
    }

    /// Writes the ready file, for scripts: the address of the API and the keys.
    fn publish(&self, keys: &[UsableKey]) {
        let Some(path) = &self.ready_file else { return };
        let keys: Vec<Value> = keys
            .iter()
            .map(|key| json!({"tenant": key.slug, "name": key.name, "role": key.role, "apiKey": key.key}))
            .collect();
        let text = format!("{:#}\n", json!({"url": self.addresses.api, "keys": keys}));
        if let Err(error) = write_private(path, &text) {
            say(&format!("--ready-file: cannot write {}: {error}", path.display()));
        }
    }
}

impl Printed {
    fn note_problems(&mut self, problems: &[SourceProblem]) {
        for problem in problems.iter().filter(|problem| !self.problems.contains(problem)) {
            say(&problem.to_string());
        }
        if problems.is_empty() && !self.problems.is_empty() {
            say("all manifests are valid again");
        }
        self.problems = problems.to_vec();
    }

    fn note_status(&mut self, report: &StatusReport) {
        let status = report.status.to_value();
        let verdict = Verdict::of(&status);
        let warnings: Vec<String> =
            status["warnings"].as_array().into_iter().flatten().filter_map(text).collect();
        self.statuses.insert(report.object.clone(), status);
        let before = self.verdicts.insert(report.object.clone(), verdict.clone());
        if before.as_ref() != Some(&verdict)
            && let Some(line) = verdict.line()
        {
            say(&format!("{}: {line}", report.object));
        }
        let before = self.warnings.insert(report.object.clone(), warnings.clone()).unwrap_or_default();
        for warning in warnings.iter().filter(|warning| !before.contains(warning)) {
            say(&format!("{}: warning: {warning}", report.object));
        }
    }

    /// Whether no declared resource is in progress: each is ready, stalled or ended.
    fn settled(&self) -> bool {
        let mut wanted = self
            .snapshot
            .tenants
            .iter()
            .map(|tenant| ObjectRef::from(&**tenant))
            .chain(self.snapshot.api_keys.iter().map(|key| ObjectRef::from(&**key)));
        wanted.all(|object| self.verdicts.get(&object).is_some_and(Verdict::settled))
    }

    /// What the last status says of a key.
    fn key_state(&self, object: &ObjectRef) -> KeyState {
        let declared = self.snapshot.api_keys.iter().find(|key| ObjectRef::from(&***key) == *object);
        declared.map_or(KeyState::Ended, |key| self.state_of(object, key))
    }

    fn state_of(&self, object: &ObjectRef, key: &Arc<ApiKey>) -> KeyState {
        let Some(status) = self.statuses.get(object) else { return KeyState::Ended };
        let text = |name: &str| status.get(name).and_then(text);
        let is_revoked = text("revokedAt").is_some();
        match (self.verdicts.get(object), text("role"), text("secretName")) {
            (Some(Verdict::Ended(_)), ..) => KeyState::Ended,
            _ if is_revoked => KeyState::Ended,
            (Some(Verdict::Ready), Some(role), Some(secret_name)) => {
                let (key, secret) = (key.clone(), text("currentSecret"));
                KeyState::Works { key, role, secret_name, secret }
            }
            _ => KeyState::Unclear,
        }
    }

    /// Keys that work and were not printed yet, with role and Secret.
    fn new_keys(&self) -> Vec<(Arc<ApiKey>, String, String)> {
        let keys = self.snapshot.api_keys.iter().map(|key| (ObjectRef::from(&**key), key));
        keys.filter(|(object, _)| !self.greeted.contains(object))
            .filter_map(|(object, key)| match self.state_of(&object, key) {
                KeyState::Works { key, role, secret_name, .. } => Some((key, role, secret_name)),
                KeyState::Ended | KeyState::Unclear => None,
            })
            .collect()
    }
}

/// Whether a key works.
enum KeyState {
    Works {
        key: Arc<ApiKey>,
        role: String,
        secret_name: String,
        secret: Option<String>,
    },
    /// It is revoked or expired, or its manifest is gone.
    Ended,
    /// Work on it is in progress: what held before holds.
    Unclear,
}

/// The Tenant that a key names.
fn tenant_of<'a>(snapshot: &'a Snapshot, key: &ApiKey) -> Option<&'a Tenant> {
    let found = snapshot.tenants.iter().find(|tenant| {
        tenant.metadata.name.as_deref() == Some(&*key.spec.tenant_ref.name)
            && tenant.metadata.namespace == key.metadata.namespace
    });
    found.map(|tenant| &**tenant)
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(ToOwned::to_owned)
}

fn same_tenant(a: &ApiKey, b: &ApiKey) -> bool {
    a.spec.tenant_ref.name == b.spec.tenant_ref.name && a.metadata.namespace == b.metadata.namespace
}

impl<S: ResourceSource> ResourceSource for Narrator<S> {
    async fn changed(&self) {
        self.source.changed().await;
    }

    async fn snapshot(&self) -> Result<Snapshot, SourceError> {
        let snapshot = self.source.snapshot().await?;
        let mut printed = self.printed();
        printed.note_problems(&snapshot.problems);
        printed.snapshot = snapshot.clone();
        let declared: BTreeSet<ObjectRef> =
            snapshot.api_keys.iter().map(|key| ObjectRef::from(&**key)).collect();
        self.live_keys.retain(|object| declared.contains(object));
        Ok(snapshot)
    }

    async fn read_secret(&self, namespace: &str, name: &str) -> Result<Option<Found>, SourceError> {
        self.source.read_secret(namespace, name).await
    }

    async fn write_secret(
        &self,
        owner: &ObjectRef,
        namespace: &str,
        name: &str,
        data: &BTreeMap<String, String>,
    ) -> Result<Option<Version>, SourceError> {
        self.source.write_secret(owner, namespace, name, data).await
    }

    fn secret_view(&self, namespace: &str, name: &str) -> SecretView {
        self.source.secret_view(namespace, name)
    }

    async fn delete_secret(&self, owner: &ObjectRef, namespace: &str, name: &str) -> Result<(), SourceError> {
        self.source.delete_secret(owner, namespace, name).await
    }

    fn holds_deleted(&self) -> bool {
        self.source.holds_deleted()
    }

    async fn report(&self, reports: &[StatusReport]) -> Result<(), SourceError> {
        self.source.report(reports).await?;
        reports.iter().for_each(|report| self.printed().note_status(report));
        for report in reports.iter().filter(|report| report.object.kind == Kind::ApiKey) {
            self.follow(&report.object).await?;
        }
        self.greet().await
    }

    async fn release(&self, object: &ObjectRef) -> Result<(), SourceError> {
        self.source.release(object).await
    }

    async fn show(&self, wanted: &Mirrors) -> Result<(), SourceError> {
        self.source.show(wanted).await
    }

    async fn event(&self, object: &ObjectRef, event: Event) -> Result<(), SourceError> {
        if event.warning {
            say(&format!("{object}: {}: {}", event.reason, event.note));
        }
        self.source.event(object, event).await
    }
}
