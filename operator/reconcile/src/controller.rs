//! The only loop: wake, take a snapshot, compare, and run a pass over each tenant that is due. Its jobs stand in this
//! folder. A wake carries no data: what has changed is found by comparing with what the last pass over the tenant saw.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use ipnet::IpNet;
use rowgate_core::backoff::Backoff;
use rowgate_pg::connect::session;
use rowgate_pg::control::installation::Installation;
use rowgate_pg::control::replicas::Wakes;
use rowgate_pg::control::{leader, tenants};
use rowgate_pg::failure::PgError;
use sqlx::PgConnection;
use tokio::sync::Notify;
use tokio::task::{JoinError, JoinSet};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::apply::connection_cache::ConnectionCache;
use crate::controller::hang::{PANICKED, contained};
use crate::controller::job::{Job, Passed, Shared, release_orphan, retire};
use crate::controller::pass_slots::PassSlots;
use crate::controller::replica_poll::{ReplicaPoll, SeenTables, listed, poll_replicas};
use crate::pass::PassError;
use crate::public_urls::PublicUrls;
use crate::removal::remains::sweep;
use crate::servers::{ServerNamespaces, Servers};
use crate::source::{ResourceSource, Snapshot};
use crate::status::reporter::Reporter;
use crate::status::{Replicas, StatusCache};

mod entries;
pub(crate) mod hang;
pub(crate) mod job;
pub(crate) mod pass_slots;
mod quiet;
pub(crate) mod replica_poll;
mod results;
mod said;
mod standing;

use entries::{Entry, Orphan};
use quiet::{Sample, can_rest};
use said::Subscriptions;

/// The settings of the loop.
#[derive(Debug, Clone)]
pub struct Settings {
    /// After this long at the latest an unchanged tenant is compared with its database again, to find changes made by
    /// hand.
    pub resync: Duration,
    /// For `status.endpoints`.
    pub urls: PublicUrls,
    /// Networks that webhooks may reach although they are no public ones.
    pub webhook_ranges: Vec<IpNet>,
    /// Whose Tenants may name a server.
    pub server_namespaces: ServerNamespaces,
}

/// Why the loop ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// It was asked to shut down.
    Shutdown,
    /// Another reconciler has taken over this installation: start again only as the leader.
    Replaced,
}

/// Between polls while a replica is awaited: the first pause, and the longest.
const AWAITING_INITIAL_BACKOFF: Duration = Duration::from_millis(5);
const AWAITING_MAX_BACKOFF: Duration = Duration::from_millis(100);
/// Between polls otherwise, to notice tables that were changed.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Between attempts of the data plane's login while no replica lives.
const LOGIN_INTERVAL: Duration = Duration::from_secs(2);
/// Pause after a failure.
const RETRY_DELAY: Duration = Duration::from_secs(1);
/// How long a replica's heartbeat counts, and the last answer of the control database.
const HEARTBEAT_TIMEOUT: Duration = Duration::from_secs(6);

/// Reconciles until `shutdown`, or until another reconciler takes over. Failures are reported in status and retried.
pub async fn run<S: ResourceSource + 'static>(
    source: Arc<S>,
    installation: Installation,
    settings: Settings,
    shutdown: CancellationToken,
) -> Ended {
    let Some(lead) = shutdown.run_until_cancelled(take_over(&installation)).await else {
        return Ended::Shutdown;
    };
    let installation = Arc::new(installation);
    let shared = Arc::new(Shared {
        source: source.clone(),
        servers: Servers::new(installation.clone(), lead, settings.server_namespaces.clone()),
        installation,
        reporter: Reporter::default(),
        pass_slots: PassSlots::new(),
        connections: ConnectionCache::default(),
        lead,
        webhook_ranges: settings.webhook_ranges.clone(),
    });
    let served = Arc::new(Notify::new());
    let mut controller = Controller {
        served: served.clone(),
        statuses: StatusCache::new(settings.urls.clone()),
        resync: settings.resync,
        shared: shared.clone(),
        snapshot: Arc::default(),
        entries: BTreeMap::new(),
        orphans: BTreeMap::new(),
        jobs: JoinSet::new(),
        control: None,
        heard: Instant::now(),
        lost: false,
        queue_fills: false,
        replicas: None,
        tables: SeenTables::default(),
        has_older: false,
        subscriptions: Subscriptions::default(),
        said_asked: None,
        polling: false,
        login_tried: None,
        polls_again: false,
        next_poll: Instant::now(),
        pace: Backoff::new(AWAITING_INITIAL_BACKOFF),
        sample: None,
        sampling: false,
        next_sample: Instant::now(),
        listing: false,
        next_list: Instant::now(),
        without_object: BTreeSet::new(),
    };
    let ended = tokio::select! {
        () = shutdown.cancelled() => Ended::Shutdown,
        () = shared.reporter.run(&*source) => Ended::Shutdown,
        () = hear(&shared.installation, &served) => Ended::Shutdown,
        ended = controller.run() => ended,
    };
    controller.jobs.shutdown().await;
    ended
}

/// Wakes for a poll when a replica serves something else. A lost wake costs no more than one polling interval.
async fn hear(installation: &Installation, served: &Notify) {
    loop {
        let heard: Result<(), PgError> = async {
            let mut wakes = Wakes::of_reconciler(&installation.operator()).await?;
            loop {
                wakes.wait().await?;
                served.notify_one();
            }
        }
        .await;
        // polls report a control database that does not answer
        drop(heard);
        tokio::time::sleep(RETRY_DELAY).await;
    }
}

async fn take_over(installation: &Installation) -> i64 {
    loop {
        let claimed = async { leader::claim(&mut session::connect(&installation.operator()).await?).await };
        match claimed.await {
            Ok(lead) => return lead,
            Err(error) => {
                tracing::warn!(%error, "cannot claim the leadership in the control database; retrying")
            }
        }
        tokio::time::sleep(RETRY_DELAY).await;
    }
}

/// The result of a job.
enum Done {
    Passed(Box<Passed>),
    /// A vanished Tenant was retired, by uid.
    Retired(String, Result<(), PassError>),
    /// A key without a Tenant was released, by uid.
    OrphanReleased(String, Result<bool, String>),
    /// An object without a Tenant was released.
    Released,
    /// The objects that show what the API made are what they should be.
    Shown(bool),
    Polled(Result<(PgConnection, ReplicaPoll), PgError>),
    Listed(Result<Vec<tenants::Record>, PgError>),
    /// What servers have counted.
    Sampled(Box<Sample>),
}

struct Controller<S> {
    /// A replica serves something else.
    served: Arc<Notify>,
    shared: Arc<Shared<S>>,
    statuses: StatusCache,
    resync: Duration,
    snapshot: Arc<Snapshot>,
    /// By uid of the Tenant, until it is retired.
    entries: BTreeMap<String, Entry>,
    /// Keys without a Tenant, by uid.
    orphans: BTreeMap<String, Orphan>,
    jobs: JoinSet<Done>,
    /// The control database, as the operator.
    control: Option<PgConnection>,
    /// When the control database answered last.
    heard: Instant,
    /// It did not answer the last time.
    lost: bool,
    /// The server's queue of notifications is half full.
    queue_fills: bool,
    /// `None`: nothing is known yet, so nothing is reported.
    replicas: Option<Replicas>,
    tables: SeenTables,
    /// A data plane of an older version lives: tenants' logins have the rights that it needs.
    has_older: bool,
    subscriptions: Subscriptions,
    /// When what is said of them was last asked for.
    said_asked: Option<Instant>,
    polling: bool,
    /// When the data plane's login was last tried, for want of a replica that does.
    login_tried: Option<Instant>,
    /// Another poll is wanted after the one that is under way.
    polls_again: bool,
    next_poll: Instant,
    pace: Backoff,
    /// What servers have counted last.
    sample: Option<Sample>,
    sampling: bool,
    next_sample: Instant,
    listing: bool,
    next_list: Instant,
    /// Tenants without an object: if the next snapshot has none either, they are retired.
    without_object: BTreeSet<String>,
}

impl<S: ResourceSource + 'static> Controller<S> {
    async fn run(&mut self) -> Ended {
        let (source, served) = (self.shared.source.clone(), self.served.clone());
        let mut look = Some(Instant::now());
        let mut changed = changed(&source);
        loop {
            if look.is_some_and(|at| at <= Instant::now()) {
                look = match source.snapshot().await {
                    Ok(snapshot) => {
                        self.take(snapshot);
                        None
                    }
                    Err(error) => {
                        tracing::warn!(%error, "cannot read the resources; retrying");
                        Some(Instant::now() + RETRY_DELAY)
                    }
                };
                changed = self::changed(&source);
            }
            if look.is_none() && !self.without_object.is_empty() {
                look = Some(Instant::now());
                continue;
            }
            self.start();
            let next = look.map_or_else(|| self.next(), |look| look.min(self.next()));
            tokio::select! {
                () = &mut changed, if look.is_none() => look = Some(Instant::now()),
                Some(done) = self.jobs.join_next() => {
                    match done.map_err(JoinError::try_into_panic) {
                        Ok(done) => if self.done(done) { return Ended::Replaced },
                        Err(Ok(panic)) => std::panic::resume_unwind(panic),
                        Err(Err(_)) => {}
                    }
                }
                () = served.notified() => {
                    (self.next_poll, self.polls_again) = (Instant::now(), self.polling);
                }
                () = tokio::time::sleep_until(next) => {}
            }
        }
    }

    /// When the next job is due.
    fn next(&self) -> Instant {
        let passes = self.entries.values().filter(|it| !it.busy()).map(|it| it.due);
        let releases = self.orphans.values().filter_map(|it| it.due);
        let poll = (!self.polling).then_some(self.next_poll);
        let list = (!self.listing).then_some(self.next_list);
        let watches = self.shared.source.watches_secrets();
        let sample = (watches && !self.sampling).then_some(self.next_sample);
        let all = passes.chain(releases).chain(poll).chain(list).chain(sample);
        all.min().unwrap_or_else(|| Instant::now() + POLL_INTERVAL)
    }

    /// Starts the jobs that are due.
    fn start(&mut self) {
        let now = Instant::now();
        self.show_said();
        self.start_sample();
        if !self.polling && self.next_poll <= now {
            self.polling = true;
            let (installation, conn) = (self.shared.installation.clone(), self.control.take());
            let tries = self.login_tried.is_none_or(|at| LOGIN_INTERVAL <= at.elapsed());
            if tries {
                self.login_tried = Some(now);
            }
            let asks = self.said_asked.is_none_or(|at| said::LOOK_INTERVAL <= at.elapsed());
            let version = asks.then(|| self.subscriptions.version.clone());
            if asks {
                self.said_asked = Some(now);
            }
            self.jobs.spawn(async move {
                Done::Polled(Box::pin(poll_replicas(installation, conn, tries, version)).await)
            });
        }
        if !self.listing && self.next_list <= now {
            self.listing = true;
            let shared = self.shared.clone();
            self.jobs.spawn(async move {
                let listed = Box::pin(listed(&shared.installation)).await;
                if let Err(error) = Box::pin(sweep(&shared)).await {
                    tracing::debug!(%error, "cannot look for roles of deleted tenants");
                }
                Done::Listed(listed)
            });
        }
        for (uid, entry) in self.entries.iter_mut().filter(|(_, it)| !it.busy() && it.due <= now) {
            if can_rest(entry, self.sample.as_ref(), &*self.shared.source) {
                entry.rest(self.resync);
                self.shared.source.left_out();
                if let (Some(replicas), Some(state)) = (&self.replicas, &entry.state) {
                    self.shared.reporter.push(self.statuses.tenant(state, replicas, true));
                }
                continue;
            }
            let Some(memory) = entry.memory.take() else { continue };
            let sample = self.sample.as_ref().zip(entry.tenant.clone());
            entry.counters = sample.and_then(|(sample, tenant)| sample.counters(&tenant, entry));
            (entry.wanted, entry.rests) = (false, false);
            let shared = self.shared.clone();
            let Some(tenant) = entry.tenant.clone() else {
                let (uid, epoch, spared) = (uid.clone(), memory.epoch, entry.spared.clone());
                self.jobs.spawn(async move {
                    let slot = shared.pass_slots.enter(true).await;
                    let retired = contained(Box::pin(retire(&shared, &uid, epoch, spared))).await;
                    drop(slot);
                    let panicked =
                        |_| PassError::Pg(PgError::Unexpected { reason: PANICKED.to_owned(), source: None });
                    let retired = retired.unwrap_or_else(|it| Err(panicked(it)));
                    Done::Retired(uid, retired)
                });
                continue;
            };
            let probe = entry.probed.is_none_or(|at| self.resync.mul_f64(0.5) <= at.elapsed());
            if probe {
                entry.probed = Some(now);
            }
            entry.whole = probe;
            let (keys, snapshot) = (entry.inputs.keys.clone(), self.snapshot.clone());
            let (slow, cut) = (entry.slow, entry.begin());
            let relationships = entry.inputs.relationships.clone();
            let subscriptions = entry.inputs.subscriptions.clone();
            let job = Job {
                shared,
                snapshot,
                tenant,
                keys,
                relationships,
                subscriptions,
                probe,
                slow,
                cut,
                memory,
            };
            self.jobs.spawn(async move { Done::Passed(Box::new(Box::pin(job.run()).await)) });
        }
        for (uid, orphan) in self.orphans.iter_mut().filter(|(_, it)| it.due.is_some_and(|due| due <= now)) {
            orphan.due = None;
            let (shared, key, uid) = (self.shared.clone(), orphan.key.clone(), uid.clone());
            self.jobs.spawn(async move {
                let orphan_released = contained(Box::pin(release_orphan(&shared, &key))).await;
                Done::OrphanReleased(uid, orphan_released.unwrap_or_else(|_| Err(PANICKED.to_owned())))
            });
        }
    }
}

/// Ends when something may have changed since the last snapshot.
fn changed<S: ResourceSource + 'static>(source: &Arc<S>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    let source = source.clone();
    Box::pin(async move { source.changed().await })
}
