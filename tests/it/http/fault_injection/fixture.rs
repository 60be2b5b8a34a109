//! Tenants whose rows say for whom and for which question they are.

use rowgate_tests::world::World;

/// Ids of the rows; every owner has one row of each.
pub(super) const IDS: u64 = 500;
/// The claims of the keys.
pub(super) const OWNERS: [&str; 4] = ["ada", "bela", "chen", "dana"];

/// `{tenant}` is filled in. Every read of `notes` takes a few milliseconds, most of them asleep, so that requests are
/// under way when something happens.
const TENANT: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: {tenant}-script}
data:
  schema.sql: |
    create schema f;
    create table f.notes (id int, owner text, body text, filler text, primary key (id, owner));
    insert into f.notes select i, o, o || ' ' || i, repeat('x', 1000)
        from generate_series(1, 500) i, unnest(array['ada', 'bela', 'chen', 'dana']) o;
---
apiVersion: rowgate.dev/v1alpha1
kind: Tenant
metadata: {name: {tenant}}
spec:
  database: {bootstrap: {configMapRef: {name: {tenant}-script, key: schema.sql}}}
  limits: {statementTimeout: 1m}
  entities:
    - name: notes
      source: {schema: f, object: notes}
      rowLevelSecurity:
        policies:
          - name: own
            expression: owner = dl.claim('owner') and (select pg_sleep(0.01)::text) is not null
";

const KEY: &str = "---
apiVersion: rowgate.dev/v1alpha1
kind: ApiKey
metadata: {name: {tenant}-{owner}}
spec:
  tenantRef: {name: {tenant}}
  claims: {owner: {owner}}
  scope: {permissions: [{entity: notes, actions: [read], fields: {include: ['*']}}]}
";

/// The manifest of a tenant with one key for each owner.
pub(super) fn manifest(tenant: &str) -> String {
    let keys = OWNERS.map(|owner| KEY.replace("{owner}", owner)).concat();
    format!("{TENANT}{keys}").replace("{tenant}", tenant)
}

/// The keys of `tenant`, in the order of [`OWNERS`].
pub(super) fn keys(world: &World, tenant: &str) -> Vec<String> {
    OWNERS.map(|owner| world.key(&format!("{tenant}-{owner}"))).to_vec()
}

/// A number of the page of metrics. The labels are `tenant="..."` and what follows on it.
pub(super) async fn metric(world: &World, name: &str, labels: &str) -> u64 {
    let url = format!("{}/metrics", world.probes_url());
    let page = reqwest::get(url).await.expect("it listens").text().await.expect("a page");
    let sample = format!("{name}{{{labels}}} ");
    let found = page.lines().find_map(|line| line.strip_prefix(&sample)?.parse().ok());
    found.unwrap_or_else(|| panic!("no {sample} in {page}"))
}
