//! What the data planes say of webhook subscriptions: on its way into statuses, and into objects that show what the API
//! made.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use rowgate_core::name::Ulid;
use rowgate_crds::Tenant;
use rowgate_pg::control::subscriptions::{Said, Version};
use tokio::time::Instant;

use super::{Controller, Done, RETRY_DELAY};
use crate::mirrors::{self, Mirror, Mirrors};
use crate::source::{ObjectRef, ResourceSource};
use crate::status::report;
use crate::status::{Fact, Findings, SubscriptionState, Transitions};

/// A status is written at most this often for what a data plane says.
const PACE: Duration = Duration::from_secs(5);
/// Between looks.
pub(super) const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// What was said.
#[derive(Default)]
pub(super) struct Subscriptions {
    pub(super) version: Version,
    /// By id.
    said: BTreeMap<Ulid, Said>,
    /// Those of which something is to be taken over into statuses.
    waiting: BTreeSet<Ulid>,
    /// When that was last done.
    noted: HashMap<Ulid, Instant>,
    /// Whether the control database was asked.
    is_known: bool,
    /// What was to be shown, last.
    wanted: Vec<Mirror>,
    /// The objects are to be compared.
    is_due: bool,
    is_busy: bool,
    not_before: Option<Instant>,
}

impl Subscriptions {
    /// Takes in what is said now, of all.
    pub(super) fn take(&mut self, version: Version, all: Vec<Said>) {
        (self.version, self.is_known) = (version, true);
        let all: BTreeMap<Ulid, Said> = all.into_iter().map(|it| (it.id.clone(), it)).collect();
        let changed = all.iter().filter(|(id, now)| self.said.get(*id) != Some(now)).map(|(id, _)| id);
        let gone = self.said.keys().filter(|id| !all.contains_key(*id));
        self.waiting.extend(changed.chain(gone).cloned());
        self.said = all;
    }

    /// Those of which something is to be said now.
    fn due(&mut self) -> Vec<Ulid> {
        let now = Instant::now();
        let is_due = |id: &Ulid| self.noted.get(id).is_none_or(|at| PACE <= now.duration_since(*at));
        let due: Vec<Ulid> = self.waiting.iter().filter(|id| is_due(id)).cloned().collect();
        for id in &due {
            self.waiting.remove(id);
            match self.said.contains_key(id) {
                true => drop(self.noted.insert(id.clone(), now)),
                false => drop(self.noted.remove(id)),
            }
        }
        due
    }

    /// The objects may be others now.
    pub(super) fn compare(&mut self) {
        self.is_due = true;
    }

    /// They were made what they should be, or not.
    pub(super) fn compared(&mut self, is_done: bool) {
        self.is_busy = false;
        if !is_done {
            (self.is_due, self.not_before) = (true, Some(Instant::now() + RETRY_DELAY));
        }
    }
}

impl<S: ResourceSource + 'static> Controller<S> {
    /// Takes over into statuses what is said, each subscription's at most so often. True: something was.
    pub(super) fn note_said(&mut self) -> bool {
        let due = self.subscriptions.due();
        for id in &due {
            let said = self.subscriptions.said.get(id);
            let fact = said.and_then(|said| serde_json::from_str::<Fact>(&said.status).ok());
            self.statuses.note(id.as_str(), fact);
        }
        if due.is_empty() {
            return false;
        }
        let due: BTreeSet<&Ulid> = due.iter().collect();
        for entry in self.entries.values_mut() {
            let its = entry.state.iter().flat_map(|state| &state.subscriptions);
            if its.filter_map(|it| it.id.as_ref()).any(|id| due.contains(id)) {
                entry.reported = None;
            }
        }
        self.subscriptions.compare();
        true
    }

    /// Compares the objects that show what the API made with what it made, in a job of its own.
    pub(super) fn show_said(&mut self) {
        let subscriptions = &self.subscriptions;
        let waits = subscriptions.not_before.is_some_and(|at| Instant::now() < at);
        // without a pass over its Tenant nothing is known of an object, so that none is removed either
        let waits = waits
            || self
                .entries
                .values()
                .any(|it| it.spared.is_some() || it.tenant.is_some() && it.state.is_none());
        if !subscriptions.is_known || !subscriptions.is_due || subscriptions.is_busy || waits {
            return;
        }
        let wanted = self.wanted();
        self.report_mirrors(&wanted.mirrors);
        let subscriptions = &mut self.subscriptions;
        (subscriptions.is_due, subscriptions.is_busy) = (false, true);
        subscriptions.not_before = None;
        subscriptions.wanted.clone_from(&wanted.mirrors);
        let shared = self.shared.clone();
        self.jobs.spawn(async move {
            let shown = shared.source.show(&wanted).await;
            if let Err(error) = &shown {
                tracing::warn!(%error, "cannot show the subscriptions of the API; retrying");
            }
            Done::Shown(shown.is_ok())
        });
    }

    /// An object for each subscription of the API whose Tenant is there.
    fn wanted(&self) -> Mirrors {
        let mut tenants: BTreeMap<Ulid, &Tenant> = BTreeMap::new();
        for entry in self.entries.values() {
            let id = entry.state.as_ref().and_then(|state| state.id.clone());
            let tenant = entry.tenant.as_deref().filter(|it| it.metadata.deletion_timestamp.is_none());
            let status = tenant.and_then(|it| it.status.as_ref()?.tenant_id.as_deref()?.parse().ok());
            tenants.extend(id.or(status).zip(tenant));
        }
        let mut owners: HashMap<&str, &str> = HashMap::new();
        for key in self.entries.values().flat_map(|entry| &entry.state).flat_map(|state| &state.keys) {
            owners.extend(key.id.as_ref().map(|id| (id.as_str(), key.object.name.as_str())));
        }
        let of_api = self.subscriptions.said.values().filter(|said| said.is_of_api);
        let mirror = |said: &Said| {
            let tenant = &tenants.get(&said.tenant)?.metadata;
            let (namespace, name) = (tenant.namespace.as_deref()?, tenant.name.as_deref()?);
            let row = mirrors::row(said)?;
            let owner =
                owners.get(row.owner_key.as_str()).map_or(row.owner_key.clone(), |name| (*name).to_owned());
            let (object, id) = (ObjectRef::from(*tenants.get(&said.tenant)?), Some(said.id.clone()));
            let status = self.statuses.mirror_status(&mirror_state(object, 1, id, Transitions::default()));
            Some(mirrors::mirror(said, row, (namespace, name), owner, status))
        };
        let mut wanted = Mirrors::default();
        for said in of_api {
            match mirror(said) {
                Some(mirror) => wanted.mirrors.push(mirror),
                None => drop(wanted.undecided.insert(said.id.clone())),
            }
        }
        wanted
    }

    /// The statuses of the objects that are there.
    fn report_mirrors(&self, wanted: &[Mirror]) {
        let by_name: HashMap<(&str, &str), &Mirror> =
            wanted.iter().map(|it| ((it.namespace.as_str(), it.name.as_str()), it)).collect();
        for there in &self.snapshot.subscriptions {
            let object = ObjectRef::from(&**there);
            let Some(mirror) = by_name.get(&(object.namespace.as_str(), object.name.as_str())) else {
                continue;
            };
            let known = report::known_subscription(there, None);
            let state =
                mirror_state(object.clone(), known.generation, Some(mirror.id.clone()), known.transitions);
            self.shared.reporter.push(self.statuses.mirror(&state).into_iter().collect());
        }
    }

    /// Whether the object shows what the API made; one that is not to be seen as such any more, too.
    pub(super) fn is_shown(&self, object: &rowgate_crds::WebhookSubscription) -> bool {
        let metadata = &object.metadata;
        let is_it = |it: &Mirror| {
            metadata.namespace.as_deref() == Some(it.namespace.as_str())
                && metadata.name.as_deref() == Some(it.name.as_str())
        };
        mirrors::is_mirror(metadata) || self.subscriptions.wanted.iter().any(is_it)
    }
}

fn mirror_state(
    object: ObjectRef,
    generation: i64,
    id: Option<Ulid>,
    transitions: Transitions,
) -> SubscriptionState {
    SubscriptionState {
        object,
        generation,
        findings: Findings::default(),
        gone: false,
        id,
        last_replay: None,
        secret_name: String::new(),
        transitions,
    }
}
