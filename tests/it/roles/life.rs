//! The lives of keys and tenants: revoked, deleted, reissued, brought back.

use std::fs;

use rowgate_core::role::TenantLogin;
use rowgate_core::secret::{Credential, PresentedKey};
use rowgate_pg::{keys, session};
use rowgate_tests::postgres::{attempt, connect, execute};
use rowgate_tests::reconciler::{DONE, Reconciler, ready};
use rowgate_tests::wait::until;
use serde_json::Value;

use super::{SPEC, acme, key, one, reader, tenant};

/// Whether a key string opens the tenant.
async fn opens(reconciler: &Reconciler, api_key: &str) -> bool {
    let mut auth =
        session::connect(&reconciler.login("acme", TenantLogin::Auth)).await.expect("lane A's login");
    let presented = PresentedKey::parse(api_key).expect("a key string");
    let digest = presented.secret.digest(&reconciler.installation.roots().dataplane.pepper());
    keys::find(&mut auth, &Credential::Secret(digest)).await.expect("an answer").is_some()
}

fn api_key(reconciler: &Reconciler, name: &str) -> String {
    reconciler.secret(name).expect("a Secret")["apiKey"].clone()
}

fn id(reconciler: &Reconciler, name: &str) -> String {
    let file = reconciler.file("apikey", name).expect("the key was told something");
    file["status"]["apiKeyId"].as_str().expect("it has an id").to_owned()
}

fn reasons(file: &Value) -> Vec<&str> {
    file["events"]
        .as_array()
        .map_or(&[][..], Vec::as_slice)
        .iter()
        .filter_map(|it| it["reason"].as_str())
        .collect()
}

#[tokio::test]
async fn a_key_is_revoked_for_good_in_three_ways() {
    let reconciler = acme(&[]).await;
    for name in ["web", "north", "south"] {
        reconciler.told("apikey", name, 1, DONE).await;
        assert!(opens(&reconciler, &api_key(&reconciler, name)).await);
    }
    let [web, north, south] = ["web", "north", "south"].map(|name| api_key(&reconciler, name));
    let mut conn = reconciler.server.connect("acme").await;

    // by lane A's login in the database: dead at the COMMIT, told by the next look, the role closed
    let role = reconciler.key("north", "acme");
    let mut auth = connect(&reconciler.login("acme", TenantLogin::Auth)).await.expect("lane A's login");
    let revoke = format!("select dl.revoke('{}')", id(&reconciler, "north"));
    execute(&mut auth, &revoke).await;
    assert!(!opens(&reconciler, &north).await);
    let status = reconciler.told("apikey", "north", 1, "Revoked").await;
    let revoked_at = status["revokedAt"].clone();
    assert!(revoked_at.is_string(), "{status}");
    until("the role to be closed", async || connect(&role).await.err()).await;
    // never undone, and no drift: somebody meant it
    let edited = [
        key("web", "acme", ""),
        key("north", "acme", &reader("south", "[id]")),
        key("south", "acme", &reader("south", "[id, body]")),
    ];
    reconciler.write("keys.yaml", &edited.concat());
    let status = reconciler.told("apikey", "north", 2, "Revoked").await;
    assert_eq!(status["revokedAt"], revoked_at);
    assert!(ready(&status).1.contains("make a new ApiKey"), "{status}");
    assert!(!opens(&reconciler, &north).await);
    assert!(!reasons(&reconciler.file("tenant", "acme").expect("told")).contains(&"Drifted"));

    // by the manifest
    let revoked = [
        key("web", "acme", "revoked: true"),
        key("north", "acme", &reader("south", "[id]")),
        key("south", "acme", &reader("south", "[id, body]")),
    ];
    reconciler.write("keys.yaml", &revoked.concat());
    reconciler.told("apikey", "web", 2, "Revoked").await;
    assert!(!opens(&reconciler, &web).await);
    assert!(opens(&reconciler, &south).await);

    // by deleting it: the role goes, the row stays and is revoked, the Secret goes
    let role = reconciler.key("south", "acme").role;
    let id = id(&reconciler, "south");
    reconciler.write("keys.yaml", &revoked[..2].concat());
    until("the Secret to go", async || reconciler.secret("south").is_none().then_some(())).await;
    until("the key to be dead", async || (!opens(&reconciler, &south).await).then_some(())).await;
    let there = format!("select 1 / (select count(*) from pg_roles where rolname = '{role}')");
    until("the role to go", async || attempt(&mut conn, &there).await.err()).await;
    let row =
        format!("select 1 / (select count(*) from dl.keys where id = '{id}' and revoked_at is not null)");
    execute(&mut conn, &row).await;
    // a key of the same name is another key
    reconciler.write(
        "keys.yaml",
        &[&revoked[0], &revoked[1], &key("south", "acme", &reader("south", "[id, body]"))]
            .map(String::as_str)
            .concat(),
    );
    until("a new Secret", async || reconciler.secret("south")).await;
    reconciler.told("apikey", "south", 1, DONE).await;
    assert!(!opens(&reconciler, &south).await);
    assert!(opens(&reconciler, &api_key(&reconciler, "south")).await);
    assert_eq!(reconciler.told("tenant", "acme", 1, DONE).await["keys"], 1);
}

#[tokio::test]
async fn a_secret_deleted_by_hand_is_issued_anew_and_the_old_one_dies() {
    let reconciler = acme(&[]).await;
    let before = reconciler.told("apikey", "north", 1, DONE).await;
    let old = api_key(&reconciler, "north");
    fs::remove_file(reconciler.secret_file("north")).expect("it was there");
    let new = until("a new secret", async || reconciler.secret("north")).await;
    assert_ne!(new["apiKey"], old);
    until("the new one to work", async || opens(&reconciler, &new["apiKey"]).await.then_some(())).await;
    assert!(!opens(&reconciler, &old).await);
    let file = reconciler.file("apikey", "north").expect("told");
    assert!(reasons(&file).contains(&"SecretReissued"), "{file}");
    let after = reconciler.told("apikey", "north", 1, DONE).await;
    assert_eq!((&after["apiKeyId"], &after["role"]), (&before["apiKeyId"], &before["role"]));

    // one that holds something else is left alone, and told
    fs::write(reconciler.secret_file("north"), "apiVersion: v1\nkind: Secret\nmetadata: {name: north, namespace: default}\nstringData: {apiKey: mine}\n").expect("ours");
    let status = reconciler.told("apikey", "north", 1, "SecretInvalid").await;
    assert!(ready(&status).1.contains("delete it to get a new key"), "{status}");
}

#[tokio::test]
async fn a_tenant_deleted_keeps_its_database_and_comes_back_with_other_keys() {
    let reconciler = acme(&[]).await;
    let before = reconciler.told("tenant", "acme", 1, DONE).await;
    let old = ["web", "north"].map(|name| api_key(&reconciler, name));
    let owner = reconciler.login("acme", TenantLogin::Owner);
    let auth = reconciler.login("acme", TenantLogin::Auth);
    reconciler.remove("acme.yaml");
    let status = reconciler.told("apikey", "north", 1, "TenantNotFound").await;
    assert!(ready(&status).1.contains("apply it"), "{status}");
    let mut conn = reconciler.server.connect("acme").await;
    let dead = "select count(*) = 0 from dl.keys where revoked_at is null";
    until("every key to be revoked", async || one::<bool>(&mut conn, dead).await.then_some(())).await;
    assert_eq!(one::<i64>(&mut conn, "select count(*) from app.notes").await, 20);
    let mut control = reconciler.server.connect("rowgate").await;
    assert_eq!(one::<String>(&mut control, "select phase from control.tenants").await, "retained");
    drop((connect(&owner).await.expect("it stays"), connect(&auth).await.expect("it stays")));

    reconciler.write("acme.yaml", &tenant("acme", SPEC));
    let after = reconciler.told("tenant", "acme", 1, DONE).await;
    assert_eq!(after["tenantId"], before["tenantId"]);
    assert_eq!(
        one::<i64>(&mut conn, "select count(*) from app.notes").await,
        20,
        "the script does not run again"
    );
    for old in old {
        assert!(!opens(&reconciler, &old).await);
    }
    // the keys of before are revoked for good; a new one works
    reconciler.told("apikey", "web", 1, "Revoked").await;
    reconciler.write("more.yaml", &key("new", "acme", ""));
    reconciler.told("apikey", "new", 1, DONE).await;
    assert!(opens(&reconciler, &api_key(&reconciler, "new")).await);
}

#[tokio::test]
async fn a_key_becomes_scoped_and_unscoped_again() {
    let reconciler = acme(&[]).await;
    let shared = reconciler.told("apikey", "web", 1, DONE).await;
    assert_eq!(shared["role"], "datalake_user");
    let string = api_key(&reconciler, "web");
    let rest = [
        key("north", "acme", &reader("north", "['*']")),
        key("south", "acme", &reader("south", "[id, body]")),
    ]
    .concat();
    let mut conn = reconciler.server.connect("acme").await;
    let assigned = "select set_role::text from dl.keys where name = 'web'";
    for (generation, spec, role) in [
        (2, reader("north", "[id]"), "key_"),
        (3, String::new(), "datalake_user"),
        (4, "claims: {region: south}, scope: {sameAs: shared}".to_owned(), "key_"),
    ] {
        reconciler.write("keys.yaml", &(key("web", "acme", &spec) + &rest));
        let status = reconciler.told("apikey", "web", generation, DONE).await;
        assert!(status["role"].as_str().expect("a role").starts_with(role), "{status}");
        assert_eq!(
            reconciler.secret("web").expect("a Secret")["role"],
            status["role"].as_str().expect("a role")
        );
        assert_eq!(api_key(&reconciler, "web"), string, "the secret is the same");
        assert!(opens(&reconciler, &string).await);
        let set = one::<Option<String>>(&mut conn, assigned).await.expect("it has its rights");
        assert_eq!(set == "datalake_user", role == "datalake_user");
    }
    let mut web = connect(&reconciler.key("web", "acme")).await.expect("the key's role");
    assert_eq!(
        one::<String>(&mut web, "select string_agg(distinct region, ' ') from app.notes").await,
        "south"
    );
    execute(&mut web, "delete from app.notes where region = 'south'").await;
}

#[tokio::test]
async fn every_column_means_those_of_that_generation() {
    let reconciler = acme(&[]).await;
    reconciler.told("apikey", "north", 1, DONE).await;
    let mut conn = reconciler.server.connect("acme").await;
    let mut north = connect(&reconciler.key("north", "acme")).await.expect("the key's role");
    execute(&mut conn, "alter table app.notes add later text default 'x'").await;
    let told = |generation| reconciler.told("apikey", "north", generation, DONE);
    // a look that surely came after the column: it made the next key
    reconciler.write("more.yaml", &key("new", "acme", ""));
    reconciler.told("apikey", "new", 1, DONE).await;
    assert!(attempt(&mut north, "select later from app.notes").await.is_err());
    assert!(!told(1).await["permissions"].to_string().contains("later"));
    let edited = reader("north", "['*']").replace("region: north}", "region: north, more: 'yes'}");
    reconciler.write(
        "keys.yaml",
        &[
            key("web", "acme", ""),
            key("north", "acme", &edited),
            key("south", "acme", &reader("south", "[id, body]")),
        ]
        .concat(),
    );
    assert!(told(2).await["permissions"].to_string().contains("later"));
    execute(&mut north, "select later from app.notes").await;
}

#[tokio::test]
async fn a_key_expires_by_the_clock_of_the_database() {
    let reconciler = acme(&[]).await;
    let spec = "expiresAt: '2020-01-01T00:00:00Z'";
    reconciler.write(
        "more.yaml",
        &(key("old", "acme", spec) + &key("young", "acme", "expiresAt: '2999-01-01T00:00:00Z'")),
    );
    let status = reconciler.told("apikey", "old", 1, "Expired").await;
    assert!(ready(&status).1.contains("set a later expiresAt"), "{status}");
    reconciler.told("apikey", "young", 1, DONE).await;
    assert!(opens(&reconciler, &api_key(&reconciler, "young")).await);
    assert!(!opens(&reconciler, &api_key(&reconciler, "old")).await);
    reconciler.write("more.yaml", &(key("old", "acme", "") + &key("young", "acme", spec)));
    reconciler.told("apikey", "old", 2, DONE).await;
    reconciler.told("apikey", "young", 2, "Expired").await;
    assert!(opens(&reconciler, &api_key(&reconciler, "old")).await);
    assert!(!opens(&reconciler, &api_key(&reconciler, "young")).await);
}
