//! A folder of manifests as a source: what `rowgate-dataplane standalone --manifests DIR` reads.

mod accept;
mod check;
mod declared;
mod files;
mod folder;
mod objects;
mod scan;
mod secrets;
mod status;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde_json::{Value, json};

pub use self::check::{check, check_with};
pub use self::declared::Declared;
use self::folder::Fingerprint;
use self::objects::{FileKind, Key, Stored};
use self::scan::{DELETION_GRACE, Emptied, Memory};
pub use self::secrets::entries_with;
use self::status::Statuses;
use crate::entropy;
use crate::source::{
    Described as _, Event, Found, Mirrors, ObjectRef, ResourceSource, Snapshot, SourceError, SourceProblem,
    StatusReport, Version,
};
use crate::with_kind;

/// How often the folder's file list is scanned at.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Manifests in one folder; what was accepted, Secrets and status in another.
#[derive(Clone)]
pub struct DirSource {
    folder: Arc<Mutex<Folder>>,
}

struct Folder {
    manifests: PathBuf,
    state: PathBuf,
    memory: Memory,
    /// The folder as the last snapshot found it; `None`: unreadable, or never scanned at.
    seen: Option<Fingerprint>,
    never_seen: bool,
    /// Secret files that exist, to notice a deleted one.
    secrets: BTreeSet<PathBuf>,
    statuses: Statuses,
}

impl DirSource {
    /// Reads what an earlier run left in `state` (made when absent). `manifests` must be a readable folder.
    ///
    /// # Errors
    ///
    /// When one of the two folders cannot be read, or the state is damaged.
    pub fn open(manifests: PathBuf, state: PathBuf) -> Result<DirSource, SourceError> {
        folder::fingerprint(&manifests)
            .map_err(|source| SourceError::Unreadable { path: manifests.clone(), source })?;
        let objects = objects::load(&state.join("objects.json"))?;
        let folder = Folder {
            memory: Memory { objects, ..Memory::default() },
            seen: None,
            never_seen: true,
            secrets: secrets::list(&state),
            statuses: Statuses::open(&state),
            manifests,
            state,
        };
        Ok(DirSource { folder: Arc::new(Mutex::new(folder)) })
    }

    /// Runs `work` where blocking is allowed.
    async fn blocking<T: Send + 'static>(&self, work: impl FnOnce(&mut Folder) -> T + Send + 'static) -> T {
        let folder = Arc::clone(&self.folder);
        let task = tokio::task::spawn_blocking(move || {
            // Every change of the memory is one assignment: a panic leaves nothing half done.
            work(&mut folder.lock())
        });
        match task.await {
            Ok(done) => done,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                // Only at shutdown of the runtime, when no caller waits for the answer.
                Err(_) => std::future::pending().await,
            },
        }
    }
}

impl Folder {
    /// Whether a new snapshot may differ from the last.
    fn may_have_changed(&mut self, now: Instant) -> bool {
        let n_secrets = self.secrets.len();
        self.secrets.retain(|path| path.exists());
        let deleted = self.secrets.len() < n_secrets;
        let due = self.memory.missing.values().any(|since| DELETION_GRACE <= now.duration_since(*since));
        due || deleted || self.never_seen || folder::fingerprint(&self.manifests).ok() != self.seen
    }

    fn snapshot(&mut self, now: Instant) -> Result<Snapshot, SourceError> {
        // First the fingerprint, then the files: what changes in between is noticed by the next poll.
        let fingerprint = folder::fingerprint(&self.manifests);
        self.never_seen = false;
        self.seen = fingerprint.as_ref().ok().cloned();
        let files = fingerprint.and_then(|_| folder::read(&self.manifests)).map_err(|source| {
            self.memory.missing.clear();
            SourceError::Unreadable { path: self.manifests.clone(), source }
        })?;
        let scanned =
            scan::scan(&self.memory, &files, now, &mut entropy::uuid).map_err(|Emptied(known)| {
                self.memory.missing.clear();
                SourceError::Emptied { path: self.manifests.clone(), known }
            })?;
        for gone in &scanned.deleted {
            self.statuses.forget(&gone.key)?;
            // What the garbage collector of a cluster would do. Before the object is forgotten: a crash in between finds
            // it again, and no later object of the same name inherits its Secret.
            for path in secrets::owned_by(&self.secrets, &gone.uid) {
                files::remove(&path)?;
                self.secrets.remove(&path);
            }
        }
        // ConnectionCache before anybody acts on it: a uid that was used must survive a crash.
        if scanned.memory.objects != self.memory.objects {
            objects::save(&self.state.join("objects.json"), &scanned.memory.objects)?;
        }
        self.memory = scanned.memory;
        Ok(self.contents(scanned.problems))
    }

    /// Whether this very object is there.
    fn knows(&self, object: &ObjectRef) -> bool {
        let kind = FileKind::Resource(object.kind);
        let key = Key { kind, namespace: object.namespace.clone(), name: object.name.clone() };
        self.memory.objects.get(&key).is_some_and(|there| there.uid == object.uid)
    }

    /// The Secret of this name beside the manifests.
    fn declared_secret(&self, namespace: &str, name: &str) -> Option<&Stored> {
        let of = Key { kind: FileKind::Secret, namespace: namespace.to_owned(), name: name.to_owned() };
        self.memory.objects.get(&of)
    }

    fn contents(&self, problems: Vec<SourceProblem>) -> Snapshot {
        let mut snapshot = Snapshot { problems, ..Snapshot::default() };
        for stored in self.memory.objects.values() {
            let typed = match stored.key.kind {
                FileKind::Resource(kind) => with_kind!(kind, T => {
                    self.with_status::<T>(stored).map(|it| T::in_snapshot(&mut snapshot).push(it.into()))
                }),
                FileKind::ConfigMap => {
                    let data = stored.object["data"].as_object().into_iter().flatten();
                    let data =
                        data.filter_map(|(name, text)| Some((name.clone(), text.as_str()?.to_owned())));
                    let key = (stored.key.namespace.clone(), stored.key.name.clone());
                    snapshot.config_maps.insert(key, Arc::new(data.collect()));
                    Ok(())
                }
                FileKind::Secret => {
                    let mut hash = DefaultHasher::new();
                    secrets::declared(stored).hash(&mut hash);
                    let key = (stored.key.namespace.clone(), stored.key.name.clone());
                    snapshot.secrets.insert(key, hash.finish());
                    Ok(())
                }
            };
            // Only an object that another version accepted gets here.
            if let Err(reason) = typed {
                let message = format!("{}: {reason}", stored.key);
                snapshot.unread.extend(stored.object_ref());
                snapshot.problems.push(SourceProblem { file: stored.file.clone(), message });
            }
        }
        let there: BTreeSet<_> = self.secrets.iter().filter_map(|path| secrets::name_of(path)).collect();
        let of_keys = snapshot.api_keys.iter().map(|it| (&it.metadata, it.secret_name().to_owned()));
        let named = of_keys.chain(snapshot.subscriptions.iter().map(|it| (&it.metadata, it.secret_name())));
        let of_tenants = snapshot.tenants.iter();
        let of_tenants = of_tenants.filter_map(|it| Some((&it.metadata, it.migrations_secret()?.to_owned())));
        let named = named.chain(of_tenants);
        let named = named.map(|(metadata, name)| (metadata.namespace.clone().unwrap_or_default(), name));
        snapshot.missing = named.filter(|name| !there.contains(name)).collect();
        snapshot
    }

    fn with_status<T: serde::de::DeserializeOwned>(&self, stored: &Stored) -> Result<T, String> {
        let mut stored = stored.clone();
        let status = self.statuses.get(&stored.key, &stored.uid).cloned();
        stored.object["status"] = status.unwrap_or_else(|| json!({ "observedGeneration": -1 }));
        stored.typed().or_else(|_| {
            // A status that another version wrote is no reason to lose the object.
            stored.object["status"] = Value::Null;
            stored.typed()
        })
    }
}

impl ResourceSource for DirSource {
    async fn changed(&self) {
        while !self.blocking(|folder| folder.may_have_changed(Instant::now())).await {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    async fn snapshot(&self) -> Result<Snapshot, SourceError> {
        self.blocking(|folder| folder.snapshot(Instant::now())).await
    }

    async fn read_secret(&self, namespace: &str, name: &str) -> Result<Option<Found>, SourceError> {
        let (namespace, name) = (namespace.to_owned(), name.to_owned());
        let data = self
            .blocking(move |folder| match folder.declared_secret(&namespace, &name) {
                Some(stored) => Ok(Some(secrets::declared(stored))),
                None => secrets::read(&secrets::path(&folder.state, &namespace, &name)?),
            })
            .await?;
        Ok(data.map(|data| Found { data, version: None }))
    }

    async fn write_secret(
        &self,
        owner: &ObjectRef,
        namespace: &str,
        name: &str,
        data: &BTreeMap<String, String>,
    ) -> Result<Option<Version>, SourceError> {
        let (namespace, name) = (namespace.to_owned(), name.to_owned());
        let (owner, data) = (owner.clone(), data.clone());
        self.blocking(move |folder| {
            let path = secrets::path(&folder.state, &namespace, &name)?;
            // a pass that started earlier may still work for it, and what it leaves would never be removed
            if !folder.knows(&owner) {
                return Err(SourceError::Gone(owner));
            }
            if folder.declared_secret(&namespace, &name).is_some() {
                return Err(SourceError::SecretTaken { namespace, name });
            }
            secrets::write(&path, &owner, &namespace, &name, &data)?;
            folder.secrets.insert(path);
            Ok(None)
        })
        .await
    }

    async fn delete_secret(&self, owner: &ObjectRef, namespace: &str, name: &str) -> Result<(), SourceError> {
        let (namespace, name, uid) = (namespace.to_owned(), name.to_owned(), owner.uid.clone());
        self.blocking(move |folder| {
            let path = BTreeSet::from([secrets::path(&folder.state, &namespace, &name)?]);
            for path in secrets::owned_by(&path, &uid) {
                files::remove(&path)?;
                folder.secrets.remove(&path);
            }
            Ok(())
        })
        .await
    }

    fn holds_deleted(&self) -> bool {
        false
    }

    async fn report(&self, reports: &[StatusReport]) -> Result<(), SourceError> {
        let reports = reports.to_vec();
        self.blocking(move |folder| {
            for report in &reports {
                if !folder.knows(&report.object) {
                    continue;
                }
                folder.statuses.report(&report.object, &report.status, entropy::now())?;
            }
            Ok(())
        })
        .await
    }

    /// A manifest that was removed is gone at once: nothing holds it.
    async fn release(&self, _object: &ObjectRef) -> Result<(), SourceError> {
        Ok(())
    }

    async fn show(&self, wanted: &Mirrors) -> Result<(), SourceError> {
        let wanted = wanted.clone();
        self.blocking(move |folder| folder.statuses.show(&wanted)).await
    }

    async fn event(&self, object: &ObjectRef, event: Event) -> Result<(), SourceError> {
        match event.warning {
            true => tracing::warn!(%object, reason = event.reason, "{}", event.note),
            false => tracing::info!(%object, reason = event.reason, "{}", event.note),
        }
        let object = object.clone();
        self.blocking(move |folder| match folder.knows(&object) {
            true => folder.statuses.event(&object, &event, entropy::now()),
            false => Ok(()),
        })
        .await
    }
}
