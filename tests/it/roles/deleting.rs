//! Objects that are being deleted, as a cluster holds them: with a `deletionTimestamp`, until they are released. The folder
//! cannot say this; here a mark in a manifest stands for `kubectl delete`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use rowgate_core::role::TenantLogin;
use rowgate_crds::{ApiKey, Tenant};
use rowgate_reconcile::dir_source::DirSource;
use rowgate_reconcile::source::{Event, ObjectRef, ResourceSource, Snapshot, SourceError, StatusReport};
use rowgate_tests::postgres::{connect, execute};
use rowgate_tests::reconciler::{DONE, Reconciler, ready};
use rowgate_tests::wait::until;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::{SPEC, acme, key, one, reader, tenant};

const MARK: &str = "tests.rowgate.dev/deleted";

/// What the loop did about objects that were marked.
#[derive(Default)]
struct Seen {
    calls: Mutex<Vec<String>>,
    released: Mutex<BTreeSet<String>>,
    changed: Notify,
    /// The process ends before the call that says this.
    crash: Mutex<Option<String>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("nobody panics here")
}

struct Holding {
    source: DirSource,
    seen: Arc<Seen>,
    end: CancellationToken,
}

impl Holding {
    async fn call(&self, call: String) {
        if lock(&self.seen.crash).as_ref().is_some_and(|at| call.starts_with(at)) {
            self.end.cancel();
            std::future::pending::<()>().await;
        }
        lock(&self.seen.calls).push(call);
    }
}

impl ResourceSource for Holding {
    async fn changed(&self) {
        tokio::select! {
            () = self.source.changed() => {}
            () = self.seen.changed.notified() => {}
        }
    }

    async fn snapshot(&self) -> Result<Snapshot, SourceError> {
        let mut snapshot = self.source.snapshot().await?;
        let is_marked = |metadata: &kube_core::ObjectMeta| {
            metadata.annotations.as_ref().is_some_and(|all| all.contains_key(MARK))
        };
        let now = || Some(Time(jiff::Timestamp::UNIX_EPOCH));
        let released = lock(&self.seen.released).clone();
        let is_there =
            |metadata: &kube_core::ObjectMeta| !released.contains(metadata.uid.as_deref().unwrap_or(""));
        snapshot.tenants.retain(|it| is_there(&it.metadata));
        snapshot.api_keys.retain(|it| is_there(&it.metadata));
        for tenant in snapshot.tenants.iter_mut().filter(|it| is_marked(&it.metadata)) {
            Arc::<Tenant>::make_mut(tenant).metadata.deletion_timestamp = now();
        }
        for key in snapshot.api_keys.iter_mut().filter(|it| is_marked(&it.metadata)) {
            Arc::<ApiKey>::make_mut(key).metadata.deletion_timestamp = now();
        }
        Ok(snapshot)
    }

    async fn read_secret(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<Option<BTreeMap<String, String>>, SourceError> {
        self.source.read_secret(namespace, name).await
    }

    async fn write_secret(
        &self,
        owner: &ObjectRef,
        namespace: &str,
        name: &str,
        data: &BTreeMap<String, String>,
    ) -> Result<(), SourceError> {
        self.source.write_secret(owner, namespace, name, data).await
    }

    async fn delete_secret(&self, owner: &ObjectRef, namespace: &str, name: &str) -> Result<(), SourceError> {
        self.call(format!("delete_secret {name}")).await;
        self.source.delete_secret(owner, namespace, name).await
    }

    async fn report(&self, reports: &[StatusReport]) -> Result<(), SourceError> {
        self.source.report(reports).await
    }

    async fn release(&self, object: &ObjectRef) -> Result<(), SourceError> {
        self.call(format!("release {}", object.name)).await;
        lock(&self.seen.released).insert(object.uid.clone());
        self.seen.changed.notify_one();
        Ok(())
    }

    async fn event(&self, object: &ObjectRef, event: Event) -> Result<(), SourceError> {
        self.call(format!("event {} {}: {}", object.name, event.reason, event.note)).await;
        self.source.event(object, event).await
    }
}

/// The Tenant and its keys, done, over a source that holds what is deleted.
async fn held(tenant_manifest: &str) -> (Reconciler, Arc<Seen>) {
    let mut reconciler = acme(&[]).await;
    reconciler.told("tenant", "acme", 1, DONE).await;
    reconciler.stop().await;
    reconciler.write("acme.yaml", tenant_manifest);
    let seen = Arc::new(Seen::default());
    start(&mut reconciler, &seen);
    (reconciler, seen)
}

fn start(reconciler: &mut Reconciler, seen: &Arc<Seen>) {
    let seen = seen.clone();
    reconciler.start_with(Duration::from_secs(1), |source, end| Holding { source, seen, end });
}

fn marked(manifest: &str, name: &str, more: &str) -> String {
    let from = format!("metadata: {{name: {name}}}");
    assert!(manifest.contains(&from), "{name} in {manifest}");
    manifest.replace(&from, &format!("metadata: {{name: {name}, annotations: {{{MARK}: now{more}}}}}"))
}

fn keys() -> [(&'static str, String); 3] {
    [
        ("web", key("web", "acme", "")),
        ("north", key("north", "acme", &reader("north", "[id, region, body]"))),
        ("south", key("south", "acme", &reader("south", "[id, body]"))),
    ]
}

fn all_keys(deleted: &[&str], more: &str) -> String {
    let text = |(name, text): (&str, String)| {
        if deleted.contains(&name) { marked(&text, name, more) } else { text }
    };
    keys().into_iter().map(text).collect()
}

async fn released(seen: &Seen, name: &str) {
    let call = format!("release {name}");
    until(&call, async || lock(&seen.calls).contains(&call).then_some(())).await;
}

fn position(seen: &Seen, start: &str) -> usize {
    let calls = lock(&seen.calls);
    calls.iter().position(|it| it.starts_with(start)).unwrap_or_else(|| panic!("{start} in {calls:?}"))
}

/// `deletionPolicy: Delete` for the tenant of this module's parent.
fn doomed() -> String {
    let manifest = tenant("acme", SPEC);
    let doomed = manifest.replace("database: {bootstrap", "database: {deletionPolicy: Delete, bootstrap");
    assert_ne!(doomed, manifest);
    doomed
}

#[tokio::test]
async fn a_deleted_key_is_revoked_loses_its_secret_and_is_released_in_this_order() {
    let (reconciler, seen) = held(&tenant("acme", SPEC)).await;
    reconciler.told("apikey", "north", 1, DONE).await;
    let role = reconciler.key("north", "acme");
    let mut conn = reconciler.server.connect("acme").await;
    reconciler.write("keys.yaml", &all_keys(&["north"], ""));
    released(&seen, "north").await;
    assert!(position(&seen, "delete_secret north") < position(&seen, "release north"));
    let live = "select count(*) from dl.keys where name = 'north' and revoked_at is null";
    assert_eq!(one::<i64>(&mut conn, live).await, 0);
    assert!(connect(&role).await.is_err(), "the role is closed before the key is released");
    assert!(reconciler.secret("north").is_none());
    assert!(reconciler.secret("south").is_some());
    reconciler.told("apikey", "south", 1, DONE).await;
}

#[tokio::test]
async fn a_deleted_tenant_leaves_its_database_and_no_living_key() {
    let (reconciler, seen) = held(&tenant("acme", SPEC)).await;
    reconciler.told("tenant", "acme", 1, DONE).await;
    reconciler.write("keys.yaml", &all_keys(&["north"], ""));
    reconciler.write("acme.yaml", &marked(&tenant("acme", SPEC), "acme", ""));
    released(&seen, "acme").await;
    released(&seen, "north").await;
    assert!(
        position(&seen, "event acme DatabaseRetained: its keys are revoked")
            < position(&seen, "release acme")
    );
    let mut conn = reconciler.server.connect("acme").await;
    assert_eq!(one::<i64>(&mut conn, "select count(*) from dl.keys where revoked_at is null").await, 0);
    assert_eq!(one::<i64>(&mut conn, "select count(*) from app.notes").await, 20);
    let mut control = reconciler.server.connect("rowgate").await;
    assert_eq!(one::<String>(&mut control, "select phase from control.tenants").await, "retained");
    // a key that nobody deleted says that it is dead
    let status = reconciler.told("apikey", "south", 1, "Revoked").await;
    assert!(status["apiKeyId"].is_string(), "{status}");
}

#[tokio::test]
async fn a_deleted_tenant_with_the_policy_delete_leaves_nothing_and_its_slug_is_free() {
    let (mut reconciler, seen) = held(&doomed()).await;
    reconciler.told("tenant", "acme", 2, DONE).await;
    // sessions that are open are ended: lane A's, a key's own, the owner's
    let mut sessions = Vec::new();
    for login in [
        reconciler.login("acme", TenantLogin::Auth),
        reconciler.login("acme", TenantLogin::Owner),
        reconciler.key("north", "acme"),
    ] {
        sessions.push(connect(&login).await.expect("a session"));
    }
    reconciler.write("acme.yaml", &marked(&doomed(), "acme", ""));
    reconciler.write("keys.yaml", &all_keys(&["web", "north", "south"], ""));
    // the process ends after the drop, and before anybody was told of it
    *lock(&seen.crash) = Some("event acme DatabaseDeleted".to_owned());
    reconciler.ended().await;
    *lock(&seen.crash) = None;
    start(&mut reconciler, &seen);
    for name in ["web", "north", "south", "acme"] {
        released(&seen, name).await;
    }
    assert!(position(&seen, "event acme DatabaseDeleted") < position(&seen, "release acme"));
    let mut control = reconciler.server.connect("rowgate").await;
    for nothing in [
        "select count(*) from pg_database where datname = 'acme'",
        "select count(*) from pg_roles where rolname ~ '^(t[0-9a-z]{26}_|key_|set_)'",
        "select count(*) from control.tenants",
        "select count(*) from control.key_uses",
        "select count(*) from pg_auth_members m left join pg_roles r on r.oid = m.roleid where r.oid is null",
    ] {
        assert_eq!(one::<i64>(&mut control, nothing).await, 0, "{nothing}");
    }
    for mut session in sessions {
        let answer = sqlx::query("select 1").execute(&mut session).await;
        assert!(answer.is_err(), "a session in a database that is gone");
    }

    // another Tenant of the same name begins from nothing
    reconciler.remove("keys.yaml");
    reconciler.write("acme.yaml", &tenant("acme", SPEC));
    lock(&seen.released).clear();
    reconciler.write("other.yaml", &key("other", "acme", ""));
    reconciler.told("apikey", "other", 1, DONE).await;
}

#[tokio::test]
async fn what_cannot_be_revoked_waits_and_says_what_frees_it() {
    let (reconciler, seen) = held(&tenant("acme", SPEC)).await;
    reconciler.told("apikey", "north", 1, DONE).await;
    let id = reconciler.file("apikey", "north").expect("told")["status"]["apiKeyId"].clone();
    let mut superuser = reconciler.server.connect("postgres").await;
    execute(&mut superuser, "alter database acme allow_connections false").await;
    // what was known of the others stays known
    let status = reconciler.told("tenant", "acme", 1, "DatabaseUnavailable").await;
    assert!(status["tenantId"].is_string() && status["entities"] == 2, "{status}");
    let status = reconciler.told("apikey", "north", 1, "DatabaseUnavailable").await;
    assert_eq!(status["apiKeyId"], id);
    assert!(status["role"].is_string() && status["permissions"][0]["entity"] == "notes", "{status}");

    reconciler.write("keys.yaml", &all_keys(&["north"], ""));
    let status = reconciler.told("apikey", "north", 1, "Deleting").await;
    assert!(ready(&status).1.contains("rowgate.dev/force-release: \"true\""), "{status}");
    assert!(!lock(&seen.calls).contains(&"release north".to_owned()));

    reconciler.write("keys.yaml", &all_keys(&["north"], ", rowgate.dev/force-release: 'true'"));
    released(&seen, "north").await;
    let event = position(&seen, "event north ForceReleased");
    assert!(event < position(&seen, "release north"));
    assert!(lock(&seen.calls)[event].contains("left behind in database acme"), "{:?}", lock(&seen.calls));

    execute(&mut superuser, "alter database acme allow_connections true").await;
    reconciler.told("apikey", "south", 1, DONE).await;
    let mut conn = reconciler.server.connect("acme").await;
    until("the end of the key that was left behind", async || {
        let live = "select count(*) from dl.keys where name = 'north' and revoked_at is null";
        (one::<i64>(&mut conn, live).await == 0).then_some(())
    })
    .await;
}
