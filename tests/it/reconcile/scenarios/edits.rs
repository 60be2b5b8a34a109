//! Manifests are edited while a shop is open. Every edit is served by the same processes.

use rowgate_tests::client::{Client, Reply};
use rowgate_tests::stage::{DONE, On, Stage};
use rowgate_tests::wait::until;

scenarios!(every_edit_is_served_without_a_restart);

/// What the example does not have.
const COURIERS: &str = "
    create table shop.couriers (id bigint primary key, name text not null);
    insert into shop.couriers values (1, 'Ada'), (2, 'Bela');
";

const ENTITY: &str = "    - name: couriers
      source: {schema: shop, object: couriers}
      rowLevelSecurity: {none: true}
";

const VISITOR: &str = "apiVersion: rowgate.dev/v1alpha1
kind: ApiKey
metadata:
  name: visitor
spec:
  tenantRef:
    name: shop
";

struct Shop {
    stage: Stage,
    client: Client,
}

impl Shop {
    async fn get(&self, key: &str, path: &str) -> Reply {
        let url = format!("{}/auth/shop/api{path}", self.stage.url());
        self.client.get(&url, &[("X-API-Key", key)]).await
    }

    /// How many rows there are; `None`: no rows were answered.
    async fn count(&self, key: &str, path: &str) -> Option<usize> {
        let reply = self.get(key, path).await;
        (reply.status == 200).then(|| reply.rows().len())
    }

    async fn put(&mut self, manifest: &str) {
        self.stage.put(manifest).await;
    }

    async fn edit(&mut self, kind: &str, name: &str, from: &str, to: &str) {
        self.stage.edit(kind, name, from, to).await;
    }

    /// Waits until `look` sees the edit.
    async fn sees(&self, what: &str, mut look: impl AsyncFnMut(&Shop) -> bool) {
        until(what, async || look(self).await.then_some(())).await;
    }

    async fn count_is(&self, what: &str, key: &str, path: &str, n: usize) {
        self.sees(what, async |it| it.count(key, path).await == Some(n)).await;
    }
}

/// Seen to fail with a data plane that keeps its first catalog.
async fn every_edit_is_served_without_a_restart(on: On) {
    let mut shop = Shop { stage: Stage::shop(on).await, client: Client::new() };
    shop.stage.told("Tenant", "shop", 1, DONE).await;
    let (admin, north, south) =
        (shop.stage.key("shop-admin").await, shop.stage.key("north").await, shop.stage.key("south").await);
    let all = "/customers?$first=-1";
    shop.put(VISITOR).await;
    shop.sees("a new key", async |it| {
        let Some(secret) = it.stage.secret("visitor").await else { return false };
        it.count(&secret["apiKey"], "/orders?$first=1").await == Some(1)
    })
    .await;

    let region = |name: &str| format!("\n    region: {name}\n");
    shop.edit("ApiKey", "north", &region("north"), &region("south")).await;
    shop.sees("a changed claim", async |it| {
        it.get(&north, all).await.rows().iter().all(|row| row["region"] == "south")
    })
    .await;

    let visitor = shop.stage.key("visitor").await;
    shop.put(&format!("{VISITOR}  revoked: true\n")).await;
    shop.sees("a revoked key", async |it| it.get(&visitor, "/orders?$first=1").await.status == 401).await;

    let summary = "      - entity: order_summary\n        actions: [read]\n        fields:\n          include: [\"*\"]\n";
    shop.edit("ApiKey", "north", summary, "").await;
    shop.sees("a removed permission", async |it| it.get(&north, "/order_summary").await.status == 404).await;

    shop.edit("ApiKey", "south", "[email]", "[email, notes]").await;
    shop.sees("a removed field", async |it| {
        let gone = it.get(&south, all).await.rows().iter().all(|row| row.get("notes").is_none());
        gone && it.get(&south, "/customers?$select=notes").await.status == 400
    })
    .await;

    let owner = shop.stage.login("shop", rowgate_core::role::TenantLogin::Owner).await;
    let mut owner = rowgate_tests::servers::postgres::connect(&owner).await.expect("the owner's login");
    rowgate_tests::servers::postgres::execute(&mut owner, COURIERS).await;
    shop.edit("Tenant", "shop", "  entities:\n", &format!("  entities:\n{ENTITY}")).await;
    let permission = "      - entity: couriers\n        actions: [read]\n";
    shop.edit("Tenant", "shop", "    permissions:\n", &format!("    permissions:\n{permission}")).await;
    shop.count_is("a new entity", &admin, "/couriers", 2).await;

    let security = |expression: &str| {
        format!("rowLevelSecurity: {{policies: [{{name: ada, expression: \"{expression}\"}}]}}")
    };
    let (only_ada, others) = (security("name = 'Ada'"), security("name > 'Ada'"));
    shop.edit("Tenant", "shop", "rowLevelSecurity: {none: true}", &only_ada).await;
    shop.count_is("a policy in place of none", &admin, "/couriers", 1).await;
    shop.edit("Tenant", "shop", &only_ada, &others).await;
    shop.sees("a changed policy", async |it| {
        it.get(&admin, "/couriers").await.rows().iter().any(|row| row["name"] == "Bela")
    })
    .await;
    shop.edit("Tenant", "shop", &format!("      {others}\n"), "").await;
    shop.count_is("rowLevelSecurity left out", &admin, "/couriers", 0).await;
    let said = until("a warning in the Tenant's status", async || {
        let warnings = shop.stage.status("Tenant", "shop").await["warnings"].to_string();
        warnings.contains("couriers").then_some(warnings)
    })
    .await;
    assert!(said.contains("rowLevelSecurity"), "{said}");

    shop.put(&VISITOR.replace("visitor", "guest")).await;
    shop.stage.told("ApiKey", "guest", 1, DONE).await;
    let guest = shop.stage.key("guest").await;
    assert_eq!(shop.count(&guest, "/orders?$first=1").await, Some(1));
    shop.stage.remove("ApiKey", "guest").await;
    shop.sees("a deleted key", async |it| it.get(&guest, "/orders").await.status == 401).await;
    shop.stage.stop().await;
}
