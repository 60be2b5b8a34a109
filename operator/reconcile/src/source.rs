//! Where resources come from and where their status goes: Kubernetes, or a folder.
//!
//! Here stands what all sources share. `kinds` describes each kind of resource, [`dir`] is the folder as a source, and
//! `inputs` says whether two snapshots ask the same of a tenant.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rowgate_crds::{ApiKey, Kind, Relationship, Tenant, WebhookSubscription};

pub use self::kinds::Described;
pub use crate::mirrors::{Mirror, Mirrors};
pub use crate::status::object_status::Status;

pub mod dir;
pub(crate) mod inputs;
mod kinds;

/// A source of resources. Every call reads the current state; a wake carries no data.
pub trait ResourceSource: Send + Sync {
    /// Returns when something may have changed since the last [`snapshot`](ResourceSource::snapshot).
    fn changed(&self) -> impl Future<Output = ()> + Send;

    /// Everything that is wanted now.
    fn snapshot(&self) -> impl Future<Output = Result<Snapshot, SourceError>> + Send;

    /// The Secret as it is now; `None`: there is none.
    fn read_secret(
        &self,
        namespace: &str,
        name: &str,
    ) -> impl Future<Output = Result<Option<Found>, SourceError>> + Send;

    /// Makes or replaces a Secret that belongs to `owner`, and gives its version. Another owner's Secret is left alone.
    fn write_secret(
        &self,
        owner: &ObjectRef,
        namespace: &str,
        name: &str,
        data: &BTreeMap<String, String>,
    ) -> impl Future<Output = Result<Option<Version>, SourceError>> + Send;

    /// What is to be seen of a Secret at this moment, without asking for it. It may lag: what is done about a Secret
    /// follows from [`read_secret`](ResourceSource::read_secret) alone.
    fn secret_view(&self, _namespace: &str, _name: &str) -> SecretView {
        SecretView::Unwatched
    }

    /// Whether [`secret_view`](ResourceSource::secret_view) shows Secrets.
    fn watches_secrets(&self) -> bool {
        false
    }

    /// Removes a Secret that belongs to `owner`. Another owner's is left alone; one that is not there is no error.
    fn delete_secret(
        &self,
        owner: &ObjectRef,
        namespace: &str,
        name: &str,
    ) -> impl Future<Output = Result<(), SourceError>> + Send;

    /// Publishes status. What differs in the times only at which conditions turned is not written, nor is the status of
    /// an object that is gone, even if a new one has its name. One that turns an object `Stalled` is also published as an
    /// [`Event`]: [`Status::stalls`].
    fn report(&self, reports: &[StatusReport]) -> impl Future<Output = Result<(), SourceError>> + Send;

    /// Whether an object that is deleted stays, with a `deletionTimestamp`, until it is released. Where it does not, its
    /// last spec is gone with it, and nothing that the spec asks for on deletion can be done.
    fn holds_deleted(&self) -> bool {
        true
    }

    /// A pass over one Tenant took this long; for metrics.
    fn passed(&self, _took: Duration) {}

    /// A pass over one Tenant was left out, since nothing had happened; for metrics.
    fn left_out(&self) {}

    /// All is done for an object that is being deleted: it may go. Said again and again until it is gone; an object that is
    /// gone already, or that nothing holds, is no error.
    fn release(&self, object: &ObjectRef) -> impl Future<Output = Result<(), SourceError>> + Send;

    /// Makes the objects that show what the API made these, and no others: one that was changed or removed by hand is as it
    /// was again.
    fn show(&self, wanted: &Mirrors) -> impl Future<Output = Result<(), SourceError>> + Send;

    /// Publishes something that happened.
    fn event(&self, object: &ObjectRef, event: Event)
    -> impl Future<Output = Result<(), SourceError>> + Send;
}

/// Everything that is there at one moment. Objects carry `metadata.uid`, `generation`, `namespace` and their status; one
/// that is being deleted has a `deletionTimestamp` and stays until it was [released](ResourceSource::release).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Snapshot {
    pub tenants: Vec<Arc<Tenant>>,
    pub api_keys: Vec<Arc<ApiKey>>,
    pub relationships: Vec<Arc<Relationship>>,
    pub subscriptions: Vec<Arc<WebhookSubscription>>,
    /// By namespace and name.
    pub config_maps: BTreeMap<(String, String), Arc<BTreeMap<String, String>>>,
    /// Hashes of Secrets that are declared beside the objects, by namespace and name: a server's may be among them. Empty where such Secrets
    /// are not watched.
    pub secrets: BTreeMap<(String, String), u64>,
    /// Namespace and name of the Secrets that keys and subscriptions name and that are not there: when one vanishes, a
    /// new one is issued at once.
    pub missing: BTreeSet<(String, String)>,
    /// What could not be read or accepted; its last good version, if any, is among the objects.
    pub problems: Vec<SourceProblem>,
    /// Objects that are there and of which no version could ever be read: nothing is concluded from their not being among
    /// the others. One that is being deleted is none of them, whatever it holds: it is wanted no more.
    pub unread: BTreeSet<ObjectRef>,
}

impl Snapshot {
    /// Those of [`Snapshot::unread`] that are of this kind.
    pub(crate) fn unread_of(&self, kind: Kind) -> impl Iterator<Item = &ObjectRef> {
        self.unread.iter().filter(move |object| object.kind == kind)
    }
}

/// A Secret as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The entries that are text.
    pub data: BTreeMap<String, String>,
    /// `None` where Secrets are not watched.
    pub version: Option<Version>,
}

/// Of one Secret: every change gives it another version, and so does its recreation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version(pub Box<str>);

/// What a source sees of a Secret without asking for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretView {
    /// Secrets are not watched: only reading it shows its state.
    Unwatched,
    /// It is not there, or not to be seen: not yet, or because it does not say that it is ours.
    Absent,
    Present(Version),
}

/// Something in a source that a person has to correct.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SourceProblem {
    /// The file's name, or the object's in a cluster.
    pub file: String,
    /// What is wrong, where, and what to change.
    pub message: String,
}

impl fmt::Display for SourceProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.file, self.message)
    }
}

/// Which object a status, an event or a Secret belongs to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectRef {
    pub kind: Kind,
    pub namespace: String,
    pub name: String,
    pub uid: String,
}

impl fmt::Display for ObjectRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}/{}", self.kind.as_str(), self.namespace, self.name)
    }
}

/// The new status of one object.
#[derive(Debug, Clone, PartialEq)]
pub struct StatusReport {
    pub object: ObjectRef,
    pub status: Status,
}

/// Something that happened to an object, for the people who watch it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// One word, such as `SecretIssued`.
    pub reason: String,
    /// One sentence.
    pub note: String,
    pub warning: bool,
}

/// Why a source could not be read or written. Nothing is concluded from it: least of all that objects are gone.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    #[error("cannot read the folder {path}: {source}; make it readable, or name another with --manifests")]
    Unreadable { path: PathBuf, source: io::Error },
    #[error(
        "the folder {path} no longer declares anything, but {known} objects are known; nothing was removed: restore the manifests"
    )]
    Emptied { path: PathBuf, known: usize },
    #[error("cannot write {path}: {source}; check the space and the owner of the state folder")]
    Unwritable { path: PathBuf, source: io::Error },
    #[error("{path} is damaged ({reason}); restore a good copy, or remove it")]
    Damaged { path: PathBuf, reason: String },
    #[error("cannot {attempt}: {reason}")]
    Cluster { attempt: String, reason: String },
    #[error("the Secret {namespace}/{name} belongs to another object; give this one another secretName")]
    SecretTaken { namespace: String, name: String },
    #[error(
        "the Secret {namespace}/{name}, which spec.database.serverSecretRef names, does not exist; create it with the key url"
    )]
    NoServerSecret { namespace: String, name: String },
    #[error("{0} no longer exists; nothing is written for it")]
    Gone(ObjectRef),
    #[error("{0:?} cannot be the name of a Secret or namespace")]
    BadName(String),
}
