//! ApiKeys that are being deleted: revoked first, their Secret removed, then released.

use std::collections::BTreeSet;

use rowgate_crds::{ApiKey, FORCE_RELEASE, Reason};

use super::Pass;
use crate::desired::annotations;
use crate::source::{Event, ObjectRef, ResourceSource, SourceError};
use crate::status::TenantState;
use crate::status::report;

/// Whether the object may be released although its database is not what it should be.
pub(crate) fn is_forced(metadata: &kube_core::ObjectMeta) -> bool {
    annotations::value(metadata, FORCE_RELEASE) == Some("true")
}

/// What frees an object that waits for its database.
pub(crate) const REMEDY: &str = "retrying; to release the object as it is, set the annotation \
     rowgate.dev/force-release: \"true\"";

impl<S: ResourceSource> Pass<'_, S> {
    /// Lets go of the keys that are dead. `alive`: the uids of those that live in the database, as far as it could be
    /// asked.
    pub(super) async fn release_keys(
        &mut self,
        state: &mut TenantState,
        alive: &Result<BTreeSet<String>, String>,
    ) {
        for key in self.deleting.clone() {
            let object = ObjectRef::from(key);
            let last = self.memory.last.iter().flat_map(|last| &last.keys).find(|it| it.object == object);
            let mut status = report::known_key(key, last.cloned());
            let trouble = match alive {
                Ok(alive) if alive.contains(&object.uid) => Some(format!(
                    "the key could not be revoked; the status of Tenant {} says why",
                    state.object.name
                )),
                Ok(_) => None,
                Err(error) => Some(format!("the key could not be revoked: {error}")),
            };
            let freed = match trouble {
                Some(trouble) if !is_forced(&key.metadata) => {
                    status.findings.retry = Some((Reason::Deleting, format!("{trouble}; {REMEDY}")));
                    state.keys.push(status);
                    continue;
                }
                Some(trouble) => {
                    let note = format!(
                        "released by annotation although {trouble}; left behind in database {}: the key {}, which may \
                         work until the Tenant is reconciled again",
                        state.database,
                        status.id.as_ref().map_or_else(String::new, ToString::to_string),
                    );
                    self.free(key, &object, Some(note)).await
                }
                None => self.free(key, &object, None).await,
            };
            match freed {
                Ok(()) => status.gone = true,
                Err(error) => status.findings.retry = Some((Reason::Deleting, format!("{error}; retrying"))),
            }
            state.keys.push(status);
        }
    }

    async fn free(
        &self,
        key: &ApiKey,
        object: &ObjectRef,
        warning: Option<String>,
    ) -> Result<(), SourceError> {
        free_key(self.source, key, object, warning).await
    }
}

/// Removes the key's Secret where it is its own, and releases the key. `warning`: what is left behind.
pub(crate) async fn free_key<S: ResourceSource>(
    source: &S,
    key: &ApiKey,
    object: &ObjectRef,
    warning: Option<String>,
) -> Result<(), SourceError> {
    if let Some(note) = warning {
        let event = Event { reason: "ForceReleased".to_owned(), note, warning: true };
        source.event(object, event).await?;
    }
    source.delete_secret(object, &object.namespace, key.secret_name()).await?;
    source.release(object).await
}
