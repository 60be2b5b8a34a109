//! `rowLevelSecurity.replace`: the application's policies hold for its own roles, those of the manifest for keys.

use rowgate_tests::servers::postgres::{execute, rows};
use rowgate_tests::wait::until;
use rowgate_tests::world::GUEST;
use serde_json::{Value, json};

use super::fixture::{Store, TENANT};

/// The first lets a session see what it says it may.
const OPEN: &str = "create policy open on app.orders using (region = current_setting('app.region', true))";
const POLICIES: &str = "alter table app.orders enable row level security;
    create policy no_notes on app.orders as restrictive to store_writer using (note is not null);
    create policy own_region on app.orders to store_reader using (region = 'north');
    grant select on app.orders to store_reader;
    alter table app.customers enable row level security; alter table app.customers force row level security;
    create policy few on app.customers using (id <= 3)";
const REPLACES: &str = "      rowLevelSecurity:\n        replace: true\n        policies:\n";
const ROLES: &str = "select policyname::text as name, array_to_string(roles, ' ') as roles from pg_policies";

impl Store {
    /// How many orders the role sees that says it is of this region.
    async fn orders(&self, role: &str, region: &str) -> i64 {
        let mut conn = self.as_role(role).await;
        execute(&mut conn, &format!("set app.region = '{region}'")).await;
        let seen = rows(&mut conn, "select count(*) as n from app.orders").await;
        seen[0]["n"].as_i64().expect("a number")
    }

    async fn orders_of(&self, key: &str) -> Value {
        let answer = self.world.get(&self.key(key), "/auth/store/api/orders?$count=true&$first=1").await;
        answer.body["count"].clone()
    }

    /// The roles of the application's policy.
    async fn roles_of(&self, policy: &str) -> String {
        let all = rows(&mut self.server.connect("store").await, ROLES).await;
        let one = all.iter().find(|it| it["name"] == policy);
        one.and_then(|it| it["roles"].as_str()).expect("the policy").to_owned()
    }

    async fn is_narrow(&self, policy: &str) {
        until("a policy that is not for PUBLIC", async || {
            (!self.roles_of(policy).await.contains("public")).then_some(())
        })
        .await;
    }
}

#[tokio::test]
async fn policies_of_the_application_hold_for_its_roles_alone_and_for_public_when_it_is_given_back() {
    let mut store = Store::new(&[("guest.yaml", GUEST), ("store.yaml", TENANT)]).await;
    let mut owner = store.as_role("store").await;
    execute(&mut owner, OPEN).await;
    execute(&mut owner, POLICIES).await;
    let before = store.dump();
    let seen = async |store: &Store| {
        let mut all = Vec::new();
        for (role, region) in [
            ("store", "none"),
            ("store_writer", "south"),
            ("store_reader", "none"),
            ("store_reader", "south"),
        ] {
            all.push(store.orders(role, region).await);
        }
        for role in ["store", "store_reader"] {
            all.push(store.seen(role, "app.customers").await);
        }
        all
    };
    // 50 of each region; the owner is under policies of customers alone
    assert_eq!(seen(&store).await, [100, 50, 50, 100, 3, 3]);

    store.world.spawn(|_| ());
    store.lend().await;
    let said = store.says("PolicyRefused").await;
    let asked = "entities[orders]: the application has row-level security on app.orders already (no_notes, open, own_region); set rowLevelSecurity.existing: true, by which its policies hold for keys, too, or replace: true, by which they hold for the application's roles alone";
    assert!(said.contains(asked), "{said}");
    store.world.edit("store.yaml", "      rowLevelSecurity:\n        policies:\n", REPLACES);
    store.world.edit("store.yaml", "{none: true}", "{none: true, replace: true}");
    until("a name that is taken", async || {
        let said = store.says("PolicyRefused").await;
        let taken =
            "policy own_region of the application stands on app.orders; give the policy here another name";
        said.contains(taken).then_some(())
    })
    .await;
    store.world.edit("store.yaml", "{name: own_region, column", "{name: region_of_key, column");
    store.is_served().await;

    // 10 orders of the north are drafts, which no key sees
    assert_eq!([store.orders_of("all").await, store.orders_of("north").await], [json!(90), json!(40)]);
    assert_eq!(seen(&store).await, [100, 50, 50, 100, 3, 3]);
    let customers = store.world.get(&store.key("all"), "/auth/store/api/customers?$count=true").await;
    assert_eq!(customers.body["count"], json!(10));
    assert_eq!(store.roles_of("no_notes").await, "store_writer");
    assert!(store.roles_of("open").await.contains("store_writer"));

    // who is granted a right later comes under them, too
    execute(&mut owner, "grant select on app.orders to store_late").await;
    until("the rows of the role that was late", async || {
        (store.orders("store_late", "south").await == 50).then_some(())
    })
    .await;
    execute(&mut store.server.connect("postgres").await, "alter role store_late rename to store_later").await;
    execute(&mut owner, "revoke select on app.orders from store_later").await;

    // a migration of the application's makes one again, and gives others to some roles of its own
    execute(&mut owner, "alter policy own_region on app.orders to store_writer").await;
    execute(&mut owner, "alter policy few on app.customers to store_reader").await;
    execute(&mut owner, &format!("drop policy open on app.orders; {OPEN}")).await;
    store.is_narrow("open").await;
    assert_eq!(store.roles_of("own_region").await, "store_writer");
    assert_eq!(store.roles_of("few").await, "store_reader");
    execute(&mut owner, "alter policy own_region on app.orders to store_reader").await;
    execute(&mut owner, "alter policy few on app.customers to public").await;
    store.is_narrow("few").await;
    store.is_served().await;
    assert_eq!([store.orders_of("all").await, store.orders_of("north").await], [json!(90), json!(40)]);
    // and one for a key is none of it
    execute(&mut owner, "create policy mixed on app.orders to store_reader, datalake_user using (true)")
        .await;
    execute(&mut owner, "create policy open_to_keys on app.orders to datalake_user using (true)").await;
    until("a policy that is gone", async || {
        let all = rows(&mut store.server.connect("store").await, ROLES).await;
        (!all.iter().any(|it| it["name"] == "open_to_keys")).then_some(())
    })
    .await;

    until("a policy that is for the application alone", async || {
        (store.roles_of("mixed").await == "store_reader").then_some(())
    })
    .await;
    execute(&mut owner, "drop policy mixed on app.orders").await;

    let id = store.world.status("Tenant", "store")["tenantId"].as_str().expect("an id").to_owned();
    std::fs::remove_file(store.world.manifests().join("store.yaml")).expect("the manifest");
    until("no role is left", async || store.made(&format!("t{id}_")).await.is_empty().then_some(())).await;
    assert_eq!(store.roles_of("open").await, "public");
    assert_eq!(store.dump().replace("store_later", "store_late"), before);
}
