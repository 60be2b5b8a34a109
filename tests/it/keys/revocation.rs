//! No request that begins after the revoking COMMIT succeeds, at any data plane, whatever they remember.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use parking_lot::Mutex;
use rowgate_core::name::Ulid;
use rowgate_pg::control::installation;
use rowgate_pg::tenant::keys;
use rowgate_pg::tenant::lookups::LookUpLogin;
use rowgate_tests::client::Client;
use rowgate_tests::servers::data_plane::DataPlane;
use rowgate_tests::servers::postgres::Server;
use rowgate_tests::wait::until;
use rowgate_tests::world::World;

/// How many requests begin after the COMMIT, and how many are under way at any time.
const N_REQUESTS: usize = 10_000;
const IN_FLIGHT: usize = 64;
/// How many succeed before anybody revokes: connections are open, keys and catalogs remembered.
const WARM: usize = 500;

/// What the callers have seen so far.
#[derive(Default)]
struct Seen {
    /// Set when the COMMIT has returned.
    committed: AtomicBool,
    succeeded: AtomicUsize,
    /// Requests that began after the COMMIT, as far as they are answered.
    after: AtomicUsize,
    /// Answers that must not be.
    wrong: Mutex<Vec<String>>,
}

/// One caller, who asks the data planes in turn until all requests are spent.
async fn call(client: Client, urls: Vec<String>, key: String, seen: Arc<Seen>) {
    for url in urls.iter().cycle() {
        let began_after = seen.committed.load(Ordering::SeqCst);
        if began_after && N_REQUESTS <= seen.after.fetch_add(1, Ordering::Relaxed) {
            return;
        }
        let reply = client.get(url, &[("X-API-Key", &key)]).await;
        match (reply.status.as_u16(), began_after) {
            // Under way when the COMMIT came: either is right.
            (401, _) => {}
            (200, false) => {
                seen.succeeded.fetch_add(1, Ordering::Relaxed);
            }
            _ => seen.wrong.lock().push(format!("{began_after} {reply:?}")),
        }
    }
}

/// Keeps callers busy with `key`, revokes it in their midst, and sees that nobody gets through after it. Gives the
/// figures.
async fn never_succeeds_after(
    key: String,
    planes: &[&DataPlane],
    revoke: impl Future<Output = ()>,
) -> String {
    let path = "/auth/shop/api/orders?$first=1&$select=id";
    let urls: Vec<String> = planes.iter().map(|plane| format!("{}{path}", plane.url())).collect();
    let seen = Arc::new(Seen::default());
    let client = Client::new();
    let callers: Vec<_> = (0..IN_FLIGHT)
        .map(|i| {
            let mut urls = urls.clone();
            urls.rotate_left(i % planes.len());
            tokio::spawn(call(client.clone(), urls, key.clone(), seen.clone()))
        })
        .collect();
    until("requests that succeed", async || (WARM <= seen.succeeded.load(Ordering::Relaxed)).then_some(()))
        .await;
    revoke.await;
    seen.committed.store(true, Ordering::SeqCst);
    let began = Instant::now();
    for caller in callers {
        caller.await.expect("callers do not panic");
    }
    let wrong = std::mem::take(&mut *seen.wrong.lock());
    assert!(wrong.is_empty(), "{} wrong answers (begun after the COMMIT?): {:?}", wrong.len(), wrong.first());
    let (before, took) = (seen.succeeded.load(Ordering::Relaxed), began.elapsed());
    format!("{before} succeeded before the COMMIT, {N_REQUESTS} were refused after it in {took:?}")
}

/// Two data planes beside standalone, on a server that the test can look into.
struct Stage {
    world: World,
    server: Server,
    one: DataPlane,
    two: DataPlane,
}

impl Stage {
    async fn new() -> Stage {
        let server = Server::own().await;
        let mut world = World::shop_on(&server).compared_every(1);
        world.start().await;
        let (one, two) = (world.replica().await, world.replica().await);
        Stage { world, server, one, two }
    }

    /// What a data plane revokes with.
    async fn lookups(&self) -> LookUpLogin {
        let hex = std::fs::read_to_string(self.world.state().join("dataplane.root")).expect("it is there");
        let root = rowgate_core::derive::Root::from_hex(&hex).expect("standalone wrote it");
        let (dataplane, _control) = installation::open_existing(self.server.endpoint().clone(), &root)
            .await
            .expect("standalone has installed it");
        let tenant: Ulid = id(&self.world.status("Tenant", "shop")["tenantId"]);
        dataplane.lookups(&tenant, &dataplane.home, &format!("t_{tenant}"))
    }
}

fn id(value: &serde_json::Value) -> Ulid {
    value.as_str().and_then(|text| text.parse().ok()).expect("an id in status")
}

/// Seen to fail with a key statement that no longer looks at `revoked_at`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_dl_revoke_no_request_succeeds_at_any_data_plane() {
    let stage = Stage::new().await;
    let mut lookups = stage.lookups().await.connect().await.expect("the data plane's login").connection;
    let north = id(&stage.world.status("ApiKey", "north")["apiKeyId"]);
    let key = stage.world.key("north");
    let told = never_succeeds_after(key.clone(), &[&stage.one, &stage.two], async {
        keys::revoke(&mut lookups, &north).await.expect("t_lookups may revoke").expect("there is such a key");
    })
    .await;
    println!("{told}");

    // It is for good: reconciling tells of it and does not undo it.
    until("the revocation in status", async || {
        stage.world.status("ApiKey", "north")["revokedAt"].is_string().then_some(())
    })
    .await;
    assert_eq!(stage.world.get(&key, "/auth/shop/api/orders").await.status, 401);
}

/// The manifest, too: from the moment that the row is there for others to see. Seen to fail as above.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_revoking_in_the_manifest_no_request_succeeds_at_any_data_plane() {
    let stage = Stage::new().await;
    let mut superuser = stage.server.connect("shop").await;
    let revoked = "  name: south\nspec:\n  revoked: true\n";
    let told = never_succeeds_after(stage.world.key("south"), &[&stage.one, &stage.two], async {
        stage.world.edit("keys.yaml", "  name: south\nspec:\n", revoked);
        until("the COMMIT", async || {
            let query = sqlx::query_scalar(
                "select count(*) from dl.keys where name = 'south' and revoked_at is not null",
            );
            let n: i64 = query.fetch_one(&mut superuser).await.expect("the tenant's database answers");
            (n == 1).then_some(())
        })
        .await;
    })
    .await;
    println!("{told}");
}
