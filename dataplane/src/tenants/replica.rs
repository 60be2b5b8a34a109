//! This replica in the control database: its row and beats, what it serves, and the tenants that it learns from there.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rowgate_core::derive::Root;
use rowgate_core::name::Ulid;
use rowgate_pg::connect::login::{Endpoint, Login};
use rowgate_pg::control::installation::{self, DataplaneInstallation, InstallationError};
use rowgate_pg::control::last_used::{self, KeyUse};
use rowgate_pg::control::replicas::{self, Report, Wakes};
use rowgate_pg::control::servers::{self, ServerList};
use rowgate_pg::control::{signing, subscriptions, tenants};
use rowgate_pg::failure::PgError;
use rowgate_pg::tenant::lookups::PgConnection;
use tokio_util::sync::CancellationToken;

use crate::app::{App, Tasks};
use crate::auth::last_used::UnwrittenUse;
use crate::tenants::tenant::{Tenant, TenantReport};

/// How often the control database is read when nothing wakes us.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// A replica counts as live for 6 s after a beat.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(2);
/// A look that takes longer is given up, and its connection with it.
const CONTROL_TIMEOUT: Duration = Duration::from_secs(5);

/// The loop that follows the control database.
pub struct Replica {
    id: Ulid,
    address: String,
    control: Endpoint,
    root: Root,
    open: Option<ControlConnection>,
    /// Where the clusters of tenants are.
    places: ServerList,
    /// `None` before the first look: neither message was logged.
    answers: Option<bool>,
    /// What `control.served` says of us, by tenant.
    written: HashMap<Ulid, Report>,
    /// What `control.calling` says of us.
    calling: BTreeSet<Ulid>,
    last_heartbeat: Option<Instant>,
    /// How often the times at which keys were last used are saved, and when that was last done.
    last_used_interval: Duration,
    last_used_written: Instant,
}

/// A connection to the control database.
struct ControlConnection {
    installation: DataplaneInstallation,
    conn: PgConnection,
}

impl Replica {
    /// A replica that has not looked at the control database yet.
    #[must_use]
    pub fn new(
        id: Ulid,
        address: String,
        control: Endpoint,
        root: Root,
        last_used_interval: Duration,
    ) -> Replica {
        Replica {
            id,
            address,
            control,
            root,
            open: None,
            places: ServerList::default(),
            answers: None,
            written: HashMap::new(),
            calling: BTreeSet::new(),
            last_heartbeat: None,
            last_used_interval,
            last_used_written: Instant::now(),
        }
    }

    /// Looks each second and whenever something is new, until `shutdown`; then the replica's row goes. What is served
    /// stays served while the control database does not answer. Gives itself back, for [`Replica::end`].
    ///
    /// # Errors
    /// Where no later try can help: another installation's root, a copied database.
    pub async fn follow(
        mut self,
        app: Arc<App>,
        tasks: Tasks,
        shutdown: CancellationToken,
    ) -> Result<Replica, InstallationError> {
        let mut listening = None;
        while !shutdown.is_cancelled() {
            self.poll_within_timeout(&app).await?;
            app.token_keys.advance(Instant::now());
            if let (None, Some(open)) = (&listening, &self.open) {
                let login = open.installation.dataplane();
                listening = Some(tasks.start(listen_for_wakes(login, app.clone(), shutdown.clone())));
            }
            tokio::select! {
                () = shutdown.cancelled() => {}
                () = app.tenants.wake.notified() => {}
                () = tokio::time::sleep(POLL_INTERVAL) => {}
            }
        }
        self.deregister().await;
        Ok(self)
    }

    /// The last thing, when the last request has ended: writes down which keys were used.
    pub async fn end(mut self, app: &App) {
        let last_used_written = tokio::time::timeout(CONTROL_TIMEOUT, self.write_last_used(app)).await;
        if !matches!(last_used_written, Ok(Ok(()))) {
            tracing::warn!("cannot record when keys were last used; lastUsedAt in their status is late");
        }
    }

    async fn poll_within_timeout(&mut self, app: &App) -> Result<(), InstallationError> {
        let cause = match tokio::time::timeout(CONTROL_TIMEOUT, self.poll(app)).await {
            Ok(Ok(())) => {
                if self.answers.replace(true) != Some(true) {
                    tracing::info!("the control database answers");
                }
                return Ok(());
            }
            Ok(Err(error)) if is_final(&error) => return Err(error),
            Ok(Err(error @ InstallationError::NotInstalled)) => {
                format!("{error}; if it is installed, --root-file is not this installation's")
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("no answer within {} s", CONTROL_TIMEOUT.as_secs()),
        };
        self.open = None;
        // the next server may lack what was written last, such as a standby that has taken over: register again
        self.last_heartbeat = None;
        if self.answers.replace(false) != Some(false) {
            tracing::warn!(control = %self.control, cause, "the control database does not answer; serving what is known, trying each second");
        }
        Ok(())
    }

    async fn poll(&mut self, app: &App) -> Result<(), InstallationError> {
        if self.open.is_none() {
            let (installation, conn) = installation::open_existing(self.control.clone(), &self.root).await?;
            self.open = Some(ControlConnection { installation, conn });
        }
        self.heartbeat().await?;
        let Some(open) = &mut self.open else { return Ok(()) };
        // before the tenants: no token may be refused because its key is not read yet
        app.token_keys.follow(signing::schedule(&mut open.conn).await?);
        let rows = tenants::list(&mut open.conn).await?;
        open.installation.follow_home(&mut open.conn).await?;
        // a cluster has its row before a tenant refers to it
        if rows.iter().any(|row| row.cluster.is_some()) {
            self.places.take(servers::list(&mut open.conn).await?);
        }
        app.tenants.take_over(&open.installation, rows, &self.places);
        let reports = app.tenants.reports();
        let mut is_news = false;
        let gone: Vec<Ulid> = self.written.keys().filter(|old| !reports.contains_key(old)).cloned().collect();
        for tenant in gone {
            replicas::unserved(&mut open.conn, &self.id, &tenant).await?;
            self.written.remove(&tenant);
        }
        for (tenant, TenantReport { report, is_passing }) in reports {
            let before = self.written.get(&tenant);
            // what was well is not said to be otherwise for a failure that may be gone with the next try
            let is_held_back = is_passing && before.is_some_and(|before| before.login_failure.is_none());
            if before != Some(&report) && !is_held_back {
                replicas::report(&mut open.conn, &self.id, &tenant, &report).await?;
                self.written.insert(tenant, report);
                is_news = true;
            }
        }
        if is_news {
            replicas::wake_reconciler(&mut open.conn).await?;
        }
        self.exchange_call_activity(app).await?;
        self.exchange_subscriptions(app).await?;
        if self.last_used_interval <= self.last_used_written.elapsed() {
            self.write_last_used(app).await?;
        }
        Ok(())
    }

    /// Says in whose databases calls may run here, and hears of those elsewhere.
    async fn exchange_call_activity(&mut self, app: &App) -> Result<(), PgError> {
        let Some(open) = &mut self.open else { return Ok(()) };
        let tenants = app.tenants.sorted();
        let calling = tenants.iter().filter(|it| it.call_activity.is_here() || it.has_key_sessions());
        let calling: BTreeSet<Ulid> = calling.map(|tenant| tenant.id.clone()).collect();
        if calling != self.calling {
            replicas::calling(&mut open.conn, &self.id, &calling).await?;
            self.calling = calling;
        }
        let elsewhere = replicas::called_elsewhere(&mut open.conn, &self.id).await?;
        tenants.iter().for_each(|tenant| tenant.call_activity.note_elsewhere(elsewhere.contains(&tenant.id)));
        Ok(())
    }

    /// Hears which tenants have subscriptions and how many replicas deliver, and says what was found of subscriptions.
    async fn exchange_subscriptions(&mut self, app: &App) -> Result<(), PgError> {
        let Some(open) = &mut self.open else { return Ok(()) };
        let unannounced = app.subscription_facts.unannounced();
        if !unannounced.is_empty() {
            subscriptions::announce(&mut open.conn, &unannounced).await?;
            app.subscription_facts.announced(&unannounced);
        }
        app.subscription_facts.list(subscriptions::tenants(&mut open.conn).await?);
        app.sender.set_replicas(replicas::n_live(&mut open.conn).await?);
        let (now, mut is_news) = (Instant::now(), false);
        for (tenant, facts, present) in app.subscription_facts.due(now) {
            is_news |= subscriptions::write(&mut open.conn, &tenant, &facts, &present).await?;
            app.subscription_facts.written(&tenant, facts, present, now);
        }
        if is_news {
            replicas::wake_reconciler(&mut open.conn).await?;
        }
        Ok(())
    }

    /// Writes down when keys were last used. What fails is written the next time.
    async fn write_last_used(&mut self, app: &App) -> Result<(), PgError> {
        let Some(open) = &mut self.open else { return Ok(()) };
        let now = Instant::now();
        self.last_used_written = now;
        let each = app.tenants.sorted();
        let unwritten: Vec<_> = each.iter().map(|tenant| (tenant, tenant.last_used.unwritten(now))).collect();
        let of = |(tenant, uses): &(&Arc<Tenant>, Vec<UnwrittenUse>)| -> Vec<KeyUse> {
            uses.iter().map(|one| (tenant.id.clone(), one.key.clone(), one.age)).collect()
        };
        last_used::note(&mut open.conn, unwritten.iter().flat_map(of).collect()).await?;
        unwritten.iter().for_each(|(tenant, uses)| tenant.last_used.written(uses));
        Ok(())
    }

    /// Registers, or beats when it is time. A row that was removed while we could not beat is created again.
    async fn heartbeat(&mut self) -> Result<(), PgError> {
        let Some(open) = &mut self.open else { return Ok(()) };
        if self.last_heartbeat.is_some_and(|at| at.elapsed() < HEARTBEAT_INTERVAL) {
            return Ok(());
        }
        let present = self.last_heartbeat.is_some() && replicas::beat(&mut open.conn, &self.id).await?;
        if !present {
            replicas::register(&mut open.conn, &self.id, env!("CARGO_PKG_VERSION"), &self.address).await?;
            self.written.clear();
            self.calling.clear();
        }
        self.last_heartbeat = Some(Instant::now());
        Ok(())
    }

    async fn deregister(&mut self) {
        let Some(open) = &mut self.open else { return };
        let left =
            tokio::time::timeout(CONTROL_TIMEOUT, replicas::deregister(&mut open.conn, &self.id)).await;
        if !matches!(left, Ok(Ok(_))) {
            tracing::warn!("the replica's row stays; it counts as dead after 6 s");
        }
    }
}

/// Wakes the loop whenever reconciling changed something, until `shutdown`. A lost wake costs a second at most.
async fn listen_for_wakes(login: Login, app: Arc<App>, shutdown: CancellationToken) {
    let wakes = async {
        loop {
            // The loop itself logs that the control database does not answer.
            let _ended = each_wake(&login, &app).await;
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    };
    tokio::select! {
        () = shutdown.cancelled() => {}
        () = wakes => {}
    }
}

async fn each_wake(login: &Login, app: &App) -> Result<(), PgError> {
    let mut wakes = Wakes::listen(login).await?;
    loop {
        wakes.wait().await?;
        app.tenants.wake.notify_one();
    }
}

/// Whether no later try can help.
fn is_final(error: &InstallationError) -> bool {
    !matches!(error, InstallationError::Pg(_) | InstallationError::NotInstalled)
}
