//! A source that also prints to the terminal: mistakes in manifests, what becomes of each resource, and the first requests to
//! try.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::Mutex;
use rowgate_crds::ApiKey;
use rowgate_reconcile::source::{
    Event, Found, ObjectRef, ResourceSource, SecretView, Snapshot, SourceError, SourceProblem, StatusReport,
    Version,
};
use serde_json::{Value, json};

use super::greeting::{self, UsableKey};
use super::verdict::Verdict;
use super::{print, say};
use crate::psql;
use crate::state::roots::write_private;

/// Forwards everything to `source` and prints what passes through.
pub(crate) struct Narrator<S> {
    source: S,
    url: String,
    manifests: PathBuf,
    /// As the flag names it.
    state: PathBuf,
    ready_file: Option<PathBuf>,
    printed: Mutex<Printed>,
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
        url: String,
        manifests: PathBuf,
        state: PathBuf,
        ready_file: Option<PathBuf>,
    ) -> Narrator<S> {
        Narrator { source, url, manifests, state, ready_file, printed: Mutex::default() }
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
            let Some(tenant) = snapshot.tenants.iter().find(|tenant| {
                tenant.metadata.name.as_deref() == Some(&*key.spec.tenant_ref.name)
                    && tenant.metadata.namespace == key.metadata.namespace
            }) else {
                continue;
            };
            let namespace = key.metadata.namespace.as_deref().unwrap_or_default();
            let Some(secret) = self.source.read_secret(namespace, &secret_name).await? else { continue };
            let Some(text) = secret.data.get("apiKey") else { continue };
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
                key: text.clone(),
                entity: greeting::entity(tenant, &key, &siblings),
            });
            self.printed().greeted.insert(ObjectRef::from(&*key));
        }
        if keys.is_empty() {
            return Ok(());
        }
        keys.sort_by(|a, b| (&a.slug, &a.name).cmp(&(&b.slug, &b.name)));
        print(&greeting::text(&self.url, &keys));
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

    /// Writes the ready file, for scripts: the address of the API and the keys.
    fn publish(&self, keys: &[UsableKey]) {
        let Some(path) = &self.ready_file else { return };
        let keys: Vec<Value> = keys
            .iter()
            .map(|key| json!({"tenant": key.slug, "name": key.name, "role": key.role, "apiKey": key.key}))
            .collect();
        let text = format!("{:#}\n", json!({"url": self.url, "keys": keys}));
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

    /// Keys that work and were not printed yet, with role and Secret.
    fn new_keys(&self) -> Vec<(Arc<ApiKey>, String, String)> {
        let ready = |object: &ObjectRef| self.verdicts.get(object) == Some(&Verdict::Ready);
        self.snapshot
            .api_keys
            .iter()
            .filter_map(|key| {
                let object = ObjectRef::from(&**key);
                let status = self.statuses.get(&object)?;
                let alive = status.get("revokedAt").is_none_or(Value::is_null);
                let text = |name: &str| Some(status.get(name)?.as_str()?.to_owned());
                let shown = !ready(&object) || !alive || self.greeted.contains(&object);
                if shown { None } else { Some((key.clone(), text("role")?, text("secretName")?)) }
            })
            .collect()
    }
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
        self.greet().await
    }

    async fn release(&self, object: &ObjectRef) -> Result<(), SourceError> {
        self.source.release(object).await
    }

    async fn event(&self, object: &ObjectRef, event: Event) -> Result<(), SourceError> {
        if event.warning {
            say(&format!("{object}: {}: {}", event.reason, event.note));
        }
        self.source.event(object, event).await
    }
}
