//! An error tells of no row that a view hides, and views are read as quickly as before.

use reqwest::StatusCode;
use rowgate_tests::asked::Asked;
use rowgate_tests::client::{Client, Reply};
use rowgate_tests::stage::DONE;
use rowgate_tests::world::World;
use rowgate_tests::world::status::ready;

/// Of ten rows `open` and `guarded` show five; row 10, which they hide, is the only one that raises for the filters below. The
/// condition of `open` is dear, so PostgreSQL tries everything else first.
const MANIFEST: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: shop-script}
data:
  schema.sql: |
    create schema t;
    create table t.sales (
        id int primary key, region text, amount int, price numeric, ratio float8, name text, at timestamptz, big bigint
    );
    insert into t.sales select i, case when i <= 5 then 'north' else 'south' end, i, i, i, 'n' || i, '2024-01-01', i
        from generate_series(1, 10) i;
    update t.sales set amount = 100, price = 10::numeric ^ 1000, ratio = 0, name = 'hidden', big = 3000000000
        where id = 10;
    create table t.guarded as select * from t.sales;
    alter table t.guarded add primary key (id);
    create view t.open as select * from t.sales where {open};
    create view t.nested as select id, amount, price, ratio, name, big from t.open;
---
apiVersion: rowgate.dev/v1alpha1
kind: Tenant
metadata: {name: shop}
spec:
  database: {bootstrap: {configMapRef: {name: shop-script, key: schema.sql}}}
  entities:
    - {name: sales, source: {schema: t, object: sales}, rowLevelSecurity: {none: true}}
    - {name: open, source: {schema: t, object: open}, keyFields: [id], kind: View}
    - {name: nested, source: {schema: t, object: nested}, keyFields: [id], kind: View}
    - name: guarded
      source: {schema: t, object: guarded}
      rowLevelSecurity: {policies: [{name: open, expression: \"{open}\"}]}
---
apiVersion: rowgate.dev/v1alpha1
kind: ApiKey
metadata: {name: reader}
spec:
  tenantRef: {name: shop}
  scope:
    permissions:
      - {entity: open, actions: [read], fields: {include: ['*']}}
      - {entity: nested, actions: [read], fields: {include: ['*']}}
      - {entity: guarded, actions: [read], fields: {include: ['*']}}
";

/// Each raises for row 10 and for no other.
const FILTERS: [&str; 11] = [
    "1 div (amount sub 100) eq 0",
    "not (1 div (amount sub 100) eq 1)",
    "id gt 0 and 1 div (amount sub 100) eq 0 and name ne 'x'",
    "1 mod (amount sub 100) in (0,1)",
    "amount mul 50000000 gt 0",
    "id gt 99 or big mul 4000000000 gt 0",
    "substring(name,0,94 sub amount) ne 'x'",
    "substring(name,big,1) ne 'x'",
    "price eq ratio",
    "price le ratio and ratio gt 0",
    "price mul ratio ge 0",
];

/// What `{open}` stands for.
fn manifest(tenant: &str, key: &str) -> String {
    let dear = |text: &str| format!("{}{text}{}", "md5(".repeat(20), ")".repeat(20));
    let open = format!("{} = {}", dear("region"), dear("'north'"));
    let named = MANIFEST.replace("{open}", &open).replace("{name: reader}", &format!("{{name: {key}}}"));
    named.replace("shop", tenant)
}

async fn ask(world: &World, path: &str) -> Reply {
    let url = format!("{}/auth/shop/api/{}", world.url(), path.replace(' ', "+"));
    Client::new().get(&url, &[("X-API-Key", &world.key("reader"))]).await
}

/// Seen to fail without `compile::fence`: the first filter was 400.
#[tokio::test]
async fn errors_tell_of_no_row_that_a_view_hides() {
    let (shop, calm) = (manifest("shop", "reader"), manifest("calm", "calm-reader"));
    let mut world = World::new(&[("shop.yaml", &shop), ("calm.yaml", &calm)]).await;
    world.start().await;
    let asked = Asked::begin(
        format!("{}/auth/calm/api/open?$filter=amount+add+1+gt+1", world.url()),
        world.key("calm-reader"),
        &[world.pid()],
    );
    for filter in FILTERS {
        for entity in ["open", "nested", "guarded"] {
            let reply = ask(&world, &format!("{entity}?$select=name&$filter={filter}")).await;
            assert_eq!(reply.status, StatusCode::OK, "{entity}: {filter}: {reply:?}");
            assert!(!reply.body.contains("hidden"), "{entity}: {filter}: {reply:?}");
        }
    }

    // A row that is shown does raise.
    for entity in ["open", "nested", "guarded"] {
        let reply = ask(&world, &format!("{entity}?$filter=1 div (amount sub 3) eq 1")).await;
        assert_eq!(reply.status, StatusCode::BAD_REQUEST, "{entity}: {reply:?}");
    }

    // Pages, order and count, behind the fence and beside it.
    let mut path =
        "open?$filter=amount add 1 gt 2 and id lt 5&$orderby=name desc&$first=2&$count=true&$select=name"
            .to_owned();
    let mut names = Vec::new();
    loop {
        let page = ask(&world, &path).await;
        assert_eq!(page.json()["count"], 3, "{page:?}");
        names.extend(page.rows().iter().map(|row| row["name"].as_str().expect("a name").to_owned()));
        let Some(next) = page.json()["nextLink"].as_str().map(str::to_owned) else { break };
        path = next.rsplit_once('/').expect("an address").1.to_owned();
    }
    assert_eq!(names, ["n4", "n3", "n2"]);

    asked.always_answered().await;
    assert_eq!(ready(&world.status("Tenant", "calm")).0, DONE);
    assert!(world.stop().await.success());
}
