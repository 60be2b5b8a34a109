//! What the data plane reads: tenants, catalogs, keys; and how replicas are known.

use std::time::Duration;

use rowgate_core::name::Ulid;
use rowgate_core::role::TenantLogin;
use rowgate_core::secret::{ApiKeySecret, Credential, KeyDigest};
use rowgate_pg::catalog;
use rowgate_pg::connect::login_failure::LoginFailure;
use rowgate_pg::connect::session;
use rowgate_pg::control::installation::{Installation, open_existing};
use rowgate_pg::control::replicas::{Report, Served, Serving};
use rowgate_pg::control::{replicas, tenants};
use rowgate_pg::tenant::keys;
use rowgate_sql::catalog::TypeKind;
use rowgate_sql::ddl::records;
use rowgate_tests::servers::postgres::{Server, execute};

use super::{id, installed, roots, tenant};

fn served(generation: i64) -> Report {
    Served { generation, fingerprint: 1 }.into()
}

fn serving(generation: i64) -> Serving {
    Serving { generation, login_failure: None }
}

fn hex(digest: &KeyDigest) -> String {
    digest.0.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[tokio::test]
async fn a_key_is_found_while_it_lives_and_revoked_for_good() {
    let server = Server::own().await;
    let installation = installed(&server).await;
    let (_, mut dl) = tenant(&installation, &id(7), "shop").await;
    let digest = ApiKeySecret::generate(&[3; 110]).digest(&roots(1).dataplane.pepper());
    let (key, secret) = (id(8), id(9));
    let credential = Credential::Secret(digest);
    let token = Credential::Token { key: key.clone(), secret: secret.clone() };
    let crossed = Credential::Token { key: secret.clone(), secret: key.clone() };
    let role = format!("key_{key}");
    for sql in [
        records::insert_key(key.as_str(), "uid", "default", "web", &role),
        records::insert_secret(secret.as_str(), key.as_str(), "abc", &hex(&digest), None),
    ] {
        session::execute(&mut dl, &sql).await.unwrap();
    }
    let (dataplane, _control) =
        open_existing(installation.endpoint.clone(), &roots(1).dataplane).await.unwrap();
    let mut lookups = dataplane.lookups(&id(7), &dataplane.home, "shop").connect().await.unwrap().connection;
    let found = keys::find(&mut lookups, &credential).await.unwrap().expect("a live key");
    assert_eq!(keys::find(&mut lookups, &token).await.unwrap().as_ref(), Some(&found));
    assert_eq!(keys::find(&mut lookups, &crossed).await.unwrap(), None);
    assert_eq!((found.secret, found.seconds_left), (secret.clone(), 1_000_000_000));
    assert_eq!((found.id, found.role, found.set_role), (key.clone(), role, None));
    assert_eq!(keys::find(&mut lookups, &Credential::Secret(KeyDigest([0; 32]))).await.unwrap(), None);

    for (of_key, of_secret, expected) in [
        ("infinity", "infinity", 1_000_000_000),
        ("infinity", "2000 s", 1999),
        ("1000 s", "infinity", 999),
        ("1000 s", "2000 s", 999),
    ] {
        let at = |text: &str| match text {
            "infinity" => "'infinity'".to_owned(),
            _ => format!("clock_timestamp() + interval '{text}'"),
        };
        let (of_key, of_secret) = (at(of_key), at(of_secret));
        let sql = format!(
            "update dl.keys set expires_at = {of_key}; update dl.key_secrets set expires_at = {of_secret}"
        );
        execute(&mut dl, &sql).await;
        let left = keys::find(&mut lookups, &token).await.unwrap().expect("a live key").seconds_left;
        // A machine that pauses here for a minute would be a slow one.
        assert!((expected - 60..=expected).contains(&left), "{sql}: {left}");
    }
    execute(&mut dl, "update dl.key_secrets set expires_at = null").await;

    session::execute(&mut dl, &records::set_key_expiry(key.as_str(), Some("2020-01-01T00:00:00Z")))
        .await
        .unwrap();
    assert_eq!(keys::find(&mut lookups, &credential).await.unwrap(), None, "expired");
    assert_eq!(keys::find(&mut lookups, &token).await.unwrap(), None, "expired");
    session::execute(&mut dl, &records::set_key_expiry(key.as_str(), None)).await.unwrap();
    assert!(keys::find(&mut lookups, &credential).await.unwrap().is_some());

    let first = keys::revoke(&mut lookups, &key).await.unwrap();
    assert!(first.is_some());
    assert_eq!(keys::find(&mut lookups, &credential).await.unwrap(), None, "revoked");
    assert_eq!(keys::find(&mut lookups, &token).await.unwrap(), None, "revoked");
    assert_eq!(keys::revoke(&mut lookups, &key).await.unwrap(), first, "revoking twice changes nothing");
    assert_eq!(keys::revoke(&mut lookups, &id(99)).await.unwrap(), None);
}

#[tokio::test]
async fn a_catalog_knows_types_below_domains_and_what_may_be_null() {
    let server = Server::own().await;
    let installation = installed(&server).await;
    let (mut owner, mut dl) = tenant(&installation, &id(7), "shop").await;
    execute(
        &mut owner,
        "create schema app; create type app.mood as enum ('ok'); create domain app.name as text not null; \
         create domain app.short as app.name check (length(value) < 9); \
         create table app.t (id int8 primary key, gone int, n numeric(12,2), m app.mood, s app.short, tags text[], \
                             p point, r int4range); \
         alter table app.t drop column gone; grant select (id, m) on app.t to public;
         create view app.v as select id, s from app.t",
    )
    .await;
    let record = |name: &str, kind: &str| {
        let json = format!(
            r#"{{"name": "{name}", "kind": "{kind}", "schema": "app", "object": "{name}", "keyColumns": ["id"], "rest": true}}"#
        );
        records::put_entity(name, &json)
    };
    let rights = r#"[{"entity": "t", "action": "read", "columns": ["id", "n", "m"]}]"#;
    for sql in [
        record("t", "Table"),
        record("v", "View"),
        record("absent", "Table"),
        records::put_permission_set("datalake_user", "h", rights),
        records::bump(),
    ] {
        session::execute(&mut dl, &sql).await.unwrap();
    }
    let login = installation.tenant(&id(7), TenantLogin::Lookups, "shop");
    let mut lookups = session::connect(&login).await.unwrap();
    let (catalog, _) = catalog::load(&mut lookups).await.unwrap();
    assert_eq!((catalog.generation, catalog.missing), (1, vec!["absent".to_owned()]));
    let t = &catalog.entities[&"t".parse().unwrap()];
    let fields: Vec<_> = t
        .fields
        .iter()
        .map(|f| (f.name.as_str(), f.ty.name.as_str(), f.ty.kind, f.ty.base_oid, f.nullable))
        .collect();
    assert_eq!(fields[0], ("id", "bigint", TypeKind::Base, 20, false));
    assert_eq!(fields[1], ("n", "numeric(12,2)", TypeKind::Base, 1700, true));
    assert_eq!((fields[2].1, fields[2].2), ("app.mood", TypeKind::Enum));
    // A NOT NULL domain lets a NULL through, and pages must not lose that row.
    assert_eq!(fields[3], ("s", "app.short", TypeKind::Base, 25, true));
    assert_eq!(fields[4], ("tags", "text[]", TypeKind::Array, 1009, true));
    assert_eq!((fields[5].1, fields[5].2), ("point", TypeKind::Base));
    assert_eq!((fields[6].1, fields[6].2), ("int4range", TypeKind::Range));
    assert_eq!(fields.len(), 7);
    let read = &catalog.scopes["datalake_user"].entities[&"t".parse().unwrap()].read;
    assert_eq!(read[..4], [true, false, true, false], "what nobody was granted is not there");
    assert_eq!(
        catalog.unguarded.len(),
        2,
        "row-level security is not forced on the table, which the view shows"
    );
    assert!(catalog.entities[&"v".parse().unwrap()].fields[1].nullable, "views promise nothing");
}

async fn new_tenant(installation: &Installation, tenant: &Ulid, slug: &str) {
    let mut operator = session::connect(&installation.operator()).await.expect("the operator's login");
    let new = tenants::NewTenant {
        id: tenant,
        slug,
        uid: slug,
        namespace: "default",
        name: slug,
        cluster: None,
        database: slug,
    };
    tenants::create(&mut operator, new).await.expect("a free slug");
}

#[tokio::test]
async fn replicas_are_live_while_they_beat_and_wake_on_a_notification() {
    let server = Server::own().await;
    let installation = installed(&server).await;
    let mut conn = session::connect(&installation.dataplane()).await.unwrap();
    let (a, b) = (id(1), id(2));
    replicas::register(&mut conn, &a, "0.1.0", "here").await.unwrap();
    replicas::register(&mut conn, &b, "0.1.0", "there").await.unwrap();
    replicas::report(&mut conn, &a, &id(7), &served(3)).await.unwrap();
    replicas::report(&mut conn, &a, &id(7), &served(4)).await.unwrap();
    assert_eq!(
        replicas::live(&mut conn).await.unwrap(),
        [(a.clone(), [(id(7), serving(4))].into()), (b.clone(), [].into())]
    );

    execute(&mut conn, "update control.replicas set beat_at = now() - interval '7 seconds'").await;
    assert_eq!(replicas::live(&mut conn).await.unwrap(), []);
    assert!(replicas::beat(&mut conn, &a).await.unwrap());
    assert_eq!(replicas::live(&mut conn).await.unwrap(), [(a.clone(), [(id(7), serving(4))].into())]);
    replicas::register(&mut conn, &a, "0.1.0", "here").await.unwrap();
    assert_eq!(
        replicas::live(&mut conn).await.unwrap(),
        [(a.clone(), [].into())],
        "a new start serves nothing"
    );
    execute(&mut conn, "update control.replicas set beat_at = now() - interval '2 hours'").await;
    assert!(replicas::beat(&mut conn, &b).await.unwrap());
    assert!(!replicas::beat(&mut conn, &a).await.unwrap(), "swept away");
    replicas::deregister(&mut conn, &b).await.unwrap();
    assert_eq!(replicas::live(&mut conn).await.unwrap(), []);

    let mut wakes = replicas::Wakes::listen(&installation.dataplane()).await.unwrap();
    let mut operator = session::connect(&installation.operator()).await.unwrap();
    replicas::wake(&mut operator).await.unwrap();
    tokio::time::timeout(Duration::from_secs(30), wakes.wait()).await.expect("a wake").unwrap();
}

/// Replicas and operators of two versions stand beside each other while an installation is upgraded, in any order.
#[tokio::test]
async fn why_requests_cannot_be_answered_is_told_beside_versions_that_do_not_know_of_it() {
    let server = Server::own().await;
    let installation = installed(&server).await;
    let mut conn = session::connect(&installation.dataplane()).await.unwrap();
    let (a, b) = (id(1), id(2));
    replicas::register(&mut conn, &a, "0.2.0", "here").await.unwrap();
    replicas::register(&mut conn, &b, "0.1.0", "there").await.unwrap();
    let failure = LoginFailure::parse("no_password tcp=10.0.0.7 said");
    let failing = Report { login_failure: Some(failure.clone()), ..served(3) };
    replicas::report(&mut conn, &a, &id(7), &failing).await.unwrap();
    // no catalog either, for want of a connection
    let without = Report { served: None, login_failure: Some(failure.clone()) };
    replicas::report(&mut conn, &a, &id(8), &without).await.unwrap();
    // as a replica of before writes it, with or without a row of another version
    let old = "insert into control.served (replica, tenant, generation, fingerprint) values ('REPLICA', 'TENANT', 3, 1) \
               on conflict (replica, tenant) do update set generation = excluded.generation, fingerprint = excluded.fingerprint";
    execute(&mut conn, &old.replace("REPLICA", b.as_str()).replace("TENANT", id(7).as_str())).await;
    let told = |generation: i64, failure: &LoginFailure| Serving {
        generation,
        login_failure: Some(failure.clone()),
    };
    assert_eq!(
        replicas::live(&mut conn).await.unwrap(),
        [
            (a.clone(), [(id(7), told(3, &failure)), (id(8), told(0, &failure))].into()),
            (b.clone(), [(id(7), serving(3))].into()),
        ]
    );
    let seen = replicas::seen(&mut conn).await.unwrap();
    assert_eq!(seen, [((id(7), 3), [1].into())].into(), "what was not loaded was not seen");
    // as an operator of before reads it
    let read = "select count(*) from control.served s where s.tenant = $1 and 1 <= s.generation";
    let n_served: i64 = sqlx::query_scalar(read).bind(id(8).as_str()).fetch_one(&mut conn).await.unwrap();
    assert_eq!(n_served, 0, "generation 0 is behind each");
    // as whoever has a shell may write it
    execute(&mut conn, "update control.served set login_failure = repeat('x', 100000)").await;
    let live = replicas::live(&mut conn).await.unwrap();
    let cut = live[0].1[&id(7)].login_failure.as_ref().expect("it is said").to_string();
    assert!(cut.len() < 400, "{} characters", cut.len());

    replicas::report(&mut conn, &a, &id(7), &served(4)).await.unwrap();
    assert_eq!(replicas::live(&mut conn).await.unwrap()[0].1[&id(7)], serving(4));

    // no operator of this version has been here yet
    execute(&mut server.connect("rowgate").await, "alter table control.served drop column login_failure")
        .await;
    replicas::report(&mut conn, &a, &id(7), &Report { login_failure: Some(failure), ..served(5) })
        .await
        .unwrap();
    let read = "select generation from control.served where tenant = $1 and replica = $2";
    let generation: i64 =
        sqlx::query_scalar(read).bind(id(7).as_str()).bind(a.as_str()).fetch_one(&mut conn).await.unwrap();
    assert_eq!(generation, 5);
}

#[tokio::test]
async fn only_live_tenants_are_served() {
    let server = Server::own().await;
    let installation = installed(&server).await;
    let mut operator = session::connect(&installation.operator()).await.unwrap();
    let mut dataplane = session::connect(&installation.dataplane()).await.unwrap();
    new_tenant(&installation, &id(7), "shop").await;
    assert_eq!(tenants::list(&mut dataplane).await.unwrap(), []);
    tenants::set_live(&mut operator, &id(7), 5).await.unwrap();
    let listed = tenants::list(&mut dataplane).await.unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!((listed[0].slug.as_str(), listed[0].generation, &listed[0].cluster), ("shop", 5, &None));
    tenants::set_retained(&mut operator, &id(7)).await.unwrap();
    assert_eq!(tenants::list(&mut dataplane).await.unwrap(), []);
}
