//! 3,000 scoped keys on one table. With a grant per key PostgreSQL ends at 2,443.

use std::time::Duration;

use rowgate_core::role::TenantLogin;
use rowgate_core::secret::{Credential, PresentedKey};
use rowgate_pg::connect::session;
use rowgate_pg::tenant::keys;
use rowgate_tests::servers::postgres::{attempt, connect};
use rowgate_tests::servers::reconciler::{DONE, Reconciler};
use tokio::time::Instant;

use crate::reconcile::acme::{SPEC, key, one, tenant};

const N_KEYS: usize = 3_000;
/// Every other one lets a key read `region`, every one lets it read `id`; each names other actions.
const N_SETS: usize = 12;

/// The scope of key `n` and its claim.
fn scope(n: usize) -> String {
    let set = n % N_SETS;
    let fields = if set.is_multiple_of(2) { "[id, region]" } else { "[id, body]" };
    let further =
        ["[]", "[create]", "[update]", "[create, update]", "[delete]", "[create, update, delete]"][set / 2];
    let entry = |actions: &str, fields: &str| format!("{{entity: notes, actions: {actions}{fields}}}");
    let mut entries = vec![entry("[read]", &format!(", fields: {{include: {fields}}}"))];
    for action in ["create", "update"].into_iter().filter(|action| further.contains(action)) {
        entries.push(entry(&format!("[{action}]"), ", fields: {include: [body]}"));
    }
    if further.contains("delete") {
        entries.push(entry("[delete]", ""));
    }
    format!("claims: {{region: {}}}, scope: {{permissions: [{}]}}", region(n), entries.join(", "))
}

/// The tenant has notes of two regions, and keys of a third.
fn region(n: usize) -> &'static str {
    ["north", "south", "west"][n / N_SETS % 3]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_thousand_keys_over_twelve_permission_sets_work() {
    let manifest: String = (0..N_KEYS).map(|n| key(&format!("key-{n}"), "acme", &scope(n))).collect();
    let acme = tenant("acme", SPEC);
    let begun = Instant::now();
    let reconciler = Reconciler::new(&[("acme.yaml", &acme), ("keys.yaml", &manifest)]).await;
    let status = reconciler.told("tenant", "acme", 1, DONE).await;
    let took = begun.elapsed();
    assert_eq!(status["keys"], N_KEYS);
    let mut acme = reconciler.server.connect("acme").await;
    let sets =
        one::<i64>(&mut acme, "select count(distinct set_role) from dl.keys where set_role like 'set_%'")
            .await;
    assert_eq!(sets, i64::try_from(N_SETS).expect("a dozen"));

    let lookups = reconciler.login("acme", TenantLogin::Lookups);
    let mut lookups = session::connect(&lookups).await.expect("the login of look-ups");
    let pepper = reconciler.installation.roots().dataplane.pepper();
    for n in (0..50).map(|i| (i * 61) % N_KEYS) {
        let name = format!("key-{n}");
        let secret = reconciler.secret(&name).expect("a Secret");
        let presented = PresentedKey::parse(&secret["apiKey"]).expect("a key string");
        let credential = Credential::Secret(presented.secret.digest(&pepper));
        let found = keys::find(&mut lookups, &credential).await.expect("an answer");
        assert_eq!(found.expect("a live key").role, secret["role"]);

        let mut conn = connect(&reconciler.key(&name, "acme")).await.expect("the key's role");
        let seen = one::<i64>(&mut conn, "select count(id) from app.notes").await;
        assert_eq!(seen, if region(n) == "west" { 0 } else { 10 }, "{name}");
        let parity = one::<Option<i64>>(&mut conn, "select max(id % 2) from app.notes").await;
        assert_eq!(parity, [Some(1), Some(0), None][n / N_SETS % 3], "{name}");
        let regions = attempt(&mut conn, "select region from app.notes").await.is_ok();
        assert_eq!(regions, n.is_multiple_of(2), "{name}");
        assert_eq!(attempt(&mut conn, "select body from app.notes").await.is_ok(), !regions, "{name}");
        let deletes = attempt(&mut conn, "delete from app.notes where false").await.is_ok();
        assert_eq!(deletes, 8 <= n % N_SETS, "{name}");
    }
    println!("{N_KEYS} keys reconciled in {took:.1?}");
    assert!(took < Duration::from_secs(60), "{N_KEYS} keys took {took:.1?}");
}
