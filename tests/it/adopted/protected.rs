//! Concurrency Protection beside an application: it writes as it did, keys name the version that they read, and all of it is given back.

use rowgate_tests::client::{Client, Reply};
use rowgate_tests::servers::postgres::{execute, rows};
use rowgate_tests::wait::until;
use rowgate_tests::world::GUEST;
use serde_json::{Value, json};

use super::fixture::{Store, TENANT};

/// A cascade and a function of the application's that change orders when customers change.
const BESIDE: &str = "alter table app.customers add column gone boolean;
    alter table app.orders add column customer_name text references app.customers (name) on update cascade;
    update app.orders set customer_name = 'customer 1' where id = 10;
    create function app.remember() returns trigger language plpgsql security definer set search_path = '' as $$
    begin update app.orders set note = new.name where customer = new.id; return new; end $$;
    create trigger remember after update on app.customers for each row when (new.name like 'shop %') execute function app.remember()";
const FILE: &str = "select pg_relation_filenode('app.orders')::int8 as n";
/// What Rowgate adds to the two tables: of `customers` the flag is the application's own.
const ADDED: &str = "select attrelid::regclass::text || '.' || attname as name from pg_attribute
    where attname in ('dl_expected_ts', 'is_deleted') and not attisdropped and attnum > 0
      and attrelid in (select oid from pg_class where relname in ('orders', 'old_orders', 'customers')) order by 1";

/// A header that names no version.
const PLAIN: (&str, &str) = ("Accept", "application/json");

fn tenant() -> String {
    let orders = "object: orders}\n      concurrencyProtection: {}";
    let customers = "object: customers}\n      concurrencyProtection: {softDeleteColumn: gone}";
    let tenant = TENANT.replace("object: orders}", orders).replace("object: customers}", customers);
    tenant.replace("{entity: customers, actions: [read]}", "{entity: customers, actions: [read, update]}")
}

/// What the database was before it was adopted.
struct Before {
    dump: String,
    /// Of `orders`: another one after each rewrite.
    file: Vec<Value>,
}

/// Adopted and served.
async fn protected() -> (Store, Before) {
    let mut store = Store::new(&[("guest.yaml", GUEST)]).await;
    let mut owner = store.as_role("store").await;
    execute(&mut owner, BESIDE).await;
    let before = Before { dump: store.dump(), file: rows(&mut owner, FILE).await };
    store.world.write("store.yaml", &tenant());
    store.world.spawn(|_| ());
    store.lend().await;
    store.is_served().await;
    (store, before)
}

async fn ask(store: &Store, method: &str, path: &str, body: &Value, header: (&str, &str)) -> Reply {
    let (url, key) = (format!("{}/auth/store/api/{path}", store.world.url()), store.key("all"));
    let headers = [("X-API-Key", &*key), ("Content-Type", "application/json"), header];
    let body = if body.is_null() { String::new() } else { body.to_string() };
    Client::new().send(method, &url, &headers, &body).await
}

/// The tag of a row, and its version.
async fn read(store: &Store, path: &str) -> (String, String) {
    let read = ask(store, "GET", path, &Value::Null, PLAIN).await;
    let version = read.rows()[0]["dl_expected_ts"].as_str().expect("a text").to_owned();
    (read.header("etag").expect("a tag").to_owned(), version)
}

#[tokio::test]
async fn an_application_names_no_version_and_keys_name_what_it_left() {
    let (store, before) = protected().await;
    assert_eq!(rows(&mut store.as_role("store").await, FILE).await, before.file, "no row was written anew");

    let row = "orders/id/2";
    let mut writer = store.as_role("store_writer").await;
    for statement in [
        "update app.orders set note = 'mine' where id = 2",
        "insert into app.orders values (2, 1, 'south') on conflict (id) do update set note = 'again'",
        // a cascade to rows of the table, and a function that changes them
        "update app.orders set customer_name = 'customer 3' where id = 2; update app.customers set name = 'third' where id = 3",
        "update app.customers set name = 'shop 3' where id = 3",
    ] {
        let (tag, version) = read(&store, row).await;
        execute(&mut writer, statement).await;
        assert_ne!(read(&store, row).await.0, tag, "{statement}");
        let body = json!({"note": "theirs"});
        let stale = ask(&store, "PATCH", row, &body, ("If-Match", &tag)).await;
        assert_eq!(stale.status, 412, "{statement}: {stale:?}");
        let body = json!({"note": "theirs", "dl_expected_ts": version});
        let stale = ask(&store, "PATCH", row, &body, PLAIN).await;
        assert_eq!(stale.status, 409, "{statement}: {stale:?}");
    }
    let body = json!({"note": "ours"});
    let unsaid = ask(&store, "PATCH", row, &body, PLAIN).await;
    assert_eq!(unsaid.status, 428, "{unsaid:?}");
    let (tag, _) = read(&store, row).await;
    let changed = ask(&store, "PATCH", row, &body, ("If-Match", &tag)).await;
    assert_eq!(changed.status, 200, "{changed:?}");
    let deleted = ask(&store, "DELETE", row, &Value::Null, PLAIN).await;
    assert_eq!(deleted.status, 405, "{deleted:?}");

    // what a key begins is held where it leads, too: by a cascade, and in a function that is SECURITY DEFINER
    for (id, name) in [(1, "first"), (4, "shop 4")] {
        let path = format!("customers/id/{id}");
        let (tag, _) = read(&store, &path).await;
        let held = ask(&store, "PATCH", &path, &json!({"name": name}), ("If-Match", &tag)).await;
        let code = held.json()["error"]["code"].clone();
        assert_eq!((held.status.as_u16(), code), (409, json!("ForeignKeyViolation")), "{held:?}");
    }
    execute(
        &mut writer,
        "update app.customers set name = 'first' where id = 1; delete from app.orders where id = 2",
    )
    .await;
    let gone = ask(&store, "GET", row, &Value::Null, PLAIN).await;
    assert!(gone.rows().is_empty(), "{gone:?}");
}

#[tokio::test]
async fn what_protected_a_table_is_given_back_and_a_column_of_the_application_stays() {
    let (store, before) = protected().await;
    let mut owner = store.as_role("store").await;
    let names = async |owner: &mut sqlx::PgConnection| -> Vec<String> {
        rows(owner, ADDED).await.iter().map(|it| it["name"].as_str().expect("a name").to_owned()).collect()
    };
    let added = ["app.customers.dl_expected_ts", "app.orders.dl_expected_ts", "app.orders.is_deleted"];
    assert_eq!(names(&mut owner).await, added);
    let id = store.world.status("Tenant", "store")["tenantId"].as_str().expect("an id").to_owned();
    // a table that was renamed is found again
    execute(&mut owner, "alter table app.orders rename to old_orders").await;
    std::fs::remove_file(store.world.manifests().join("store.yaml")).expect("the manifest");
    let logins = format!("t{id}_");
    until("no role is left", async || store.made(&logins).await.is_empty().then_some(())).await;
    assert!(names(&mut owner).await.is_empty());
    execute(&mut owner, "alter table app.old_orders rename to orders").await;
    assert_eq!(store.dump(), before.dump);
}

/// PostgreSQL drops no column that a view reads, and the view is the application's.
#[tokio::test]
async fn a_column_that_a_view_of_the_application_reads_does_not_keep_the_database() {
    let (store, _) = protected().await;
    let mut owner = store.as_role("store").await;
    execute(&mut owner, "create view app.every as select * from app.orders").await;
    let id = store.world.status("Tenant", "store")["tenantId"].as_str().expect("an id").to_owned();
    std::fs::remove_file(store.world.manifests().join("store.yaml")).expect("the manifest");
    let logins = format!("t{id}_");
    until("no role is left", async || store.made(&logins).await.is_empty().then_some(())).await;
    let left = rows(&mut owner, ADDED).await;
    assert_eq!(
        left,
        [json!({"name": "app.orders.dl_expected_ts"}), json!({"name": "app.orders.is_deleted"})]
    );
    execute(
        &mut owner,
        "update app.orders set note = 'free' where id = 2; delete from app.orders where id = 2",
    )
    .await;
}
