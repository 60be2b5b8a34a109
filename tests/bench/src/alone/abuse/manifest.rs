//! A tenant with one table of many rows, and a key that reads them; for an owner that abuses what it has, more tables and a login.

use super::Abuser;
use crate::alone::exports::depot;

/// One whose events are captured, and one whose trigger keeps a request waiting and then fails.
const OWNED: &str = " create table b.bulk (id bigint primary key, t text); \
     create table b.acts (id bigint primary key); \
     create function b.fail() returns trigger language plpgsql as $$ begin perform pg_sleep(0.2); raise exception 'no'; end $$; \
     create trigger fail before insert on b.acts for each row execute function b.fail();";
const ENTITIES: &str = "
    - {name: bulk, source: {schema: b, object: bulk}, rowLevelSecurity: {none: true}}
    - {name: acts, source: {schema: b, object: acts}, events: false, rowLevelSecurity: {none: true}}";

pub(super) fn of(tenant: &str, by: Abuser) -> String {
    let (script, database, entities, permissions) = match by {
        Abuser::Key => ("", "", "", ""),
        Abuser::Owner => (
            OWNED,
            ", migrations: {secretName: abuser-migrations}",
            ENTITIES,
            ", {entity: acts, actions: [create], fields: {include: ['*']}}",
        ),
    };
    format!(
        "apiVersion: v1
kind: ConfigMap
metadata: {{name: {tenant}-script}}
data:
  schema.sql: |
    create schema b; create table b.items {table};{script}
---
apiVersion: rowgate.dev/v1alpha1
kind: Tenant
metadata: {{name: {tenant}}}
spec:
  database: {{bootstrap: {{configMapRef: {{name: {tenant}-script}}}}{database}}}
  limits: {{statementTimeout: 5s}}
  entities:
    - name: items
      source: {{schema: b, object: items}}
      events: false
      rowLevelSecurity: {{policies: [{{name: own, column: tenant, equals: {{claim: tenant}}}}]}}{entities}
---
apiVersion: rowgate.dev/v1alpha1
kind: ApiKey
metadata: {{name: {tenant}-key}}
spec:
  tenantRef: {{name: {tenant}}}
  claims: {{tenant: t1}}
  scope: {{permissions: [{{entity: items, actions: [read], fields: {{include: ['*']}}}}{permissions}]}}
",
        table = depot::TABLE
    )
}
