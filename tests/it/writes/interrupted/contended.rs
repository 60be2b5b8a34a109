//! Somebody makes and deletes the row of a PATCH, so that each of its tries finds no row and can make none.

use rowgate_tests::client::Reply;
use rowgate_tests::servers::postgres::execute;
use rowgate_tests::wait::until;

use crate::writes::fixtures::tenant::OwnTenant;

/// `open` hides nothing; nor does `fired`, whose trigger has a second row raise; `partly` shows all rows to be read, and not to
/// be changed; `kept` has a policy that might hide a row, and `barred` a restrictive one.
const MANIFEST: &str = "apiVersion: v1
kind: ConfigMap
metadata: {name: busy-script}
data:
  schema.sql: |
    create schema b;
    create function b.gate() returns text language sql as
        'select ''gate'' from pg_advisory_xact_lock_shared(4713)';
    create table b.open (id integer primary key, note text, gate text default b.gate());
    create table b.fired (like b.open including all);
    create table b.partly (like b.open including all);
    create table b.kept (like b.open including all);
    create table b.barred (like b.open including all);
    create function b.pass() returns trigger language plpgsql as 'begin return new; end';
    create trigger pass before insert on b.fired for each row execute function b.pass();
---
apiVersion: rowgate.dev/v1alpha1
kind: Tenant
metadata: {name: busy}
spec:
  database: {bootstrap: {configMapRef: {name: busy-script}}}
  entities:
    - {name: open, source: {schema: b, object: open}, rowLevelSecurity: {none: true}}
    - {name: fired, source: {schema: b, object: fired}, rowLevelSecurity: {none: true}}
    - name: partly
      source: {schema: b, object: partly}
      rowLevelSecurity:
        policies:
          - {name: all, actions: [read, create], expression: 'true'}
          - {name: some, actions: [update], expression: 'id < 100'}
    - name: kept
      source: {schema: b, object: kept}
      rowLevelSecurity: {policies: [{name: some, expression: 'id < 100'}]}
    - name: barred
      source: {schema: b, object: barred}
      rowLevelSecurity:
        policies:
          - {name: all, expression: 'true'}
          - {name: some, expression: 'id < 100', restrictive: true}
  shared:
    permissions:
      - {entity: open, actions: [read, create, update]}
      - {entity: fired, actions: [read, create, update]}
      - {entity: partly, actions: [read, create, update]}
      - {entity: kept, actions: [read, create, update]}
      - {entity: barred, actions: [read, create, update]}
---
apiVersion: rowgate.dev/v1alpha1
kind: ApiKey
metadata: {name: all}
spec: {tenantRef: {name: busy}}
";

/// A PATCH of row 1, which is made by somebody while each of its `n_tries` has found no row and is about to make one, and is gone
/// when the next one looks.
async fn contended(tenant: &OwnTenant, table: &str, n_tries: usize) -> Reply {
    let mut superusers = [tenant.server.connect("busy").await, tenant.server.connect("busy").await];
    let [holding, next] = &mut superusers;
    let (mut holding, mut next) = (holding, next);
    execute(holding, "select pg_advisory_lock(4713)").await;
    let path = format!("/{table}/id/1");
    let patching = tenant.ask("all", "PATCH", &path, r#"{"note": "mine"}"#, &[]);
    let meddling = async {
        let waits = |kind: &str| {
            format!("select 1 from pg_stat_activity where wait_event = '{kind}' and wait_event_type = 'Lock'")
        };
        for _try in 0..n_tries {
            let stands = async || (!tenant.rows(&waits("advisory")).await.is_empty()).then_some(());
            until("a PATCH that has looked for its row", stands).await;
            tenant.execute(&format!("insert into b.{table} values (1, 'other', '')")).await;
            // The statement before has ended by then, and the one after has not begun; and it will find the gate closed.
            let between = format!(
                "begin; lock table b.{table} in access exclusive mode; delete from b.{table}; select pg_advisory_lock(4713); commit"
            );
            let clearing = execute(next, &between);
            let opening = async {
                let stands = async || (!tenant.rows(&waits("relation")).await.is_empty()).then_some(());
                until("the table's lock asked for", stands).await;
                execute(holding, "select pg_advisory_unlock(4713)").await;
            };
            tokio::join!(clearing, opening);
            (holding, next) = (next, holding);
        }
    };
    let (reply, ()) = tokio::join!(patching, meddling);
    reply
}

/// Seen to fail with restrictive policies not looked at.
#[tokio::test]
async fn who_meets_others_at_one_row_is_told_so_where_no_row_is_hidden() {
    let tenant = OwnTenant::open("busy", MANIFEST).await;
    for (table, n_tries, status, code) in [
        ("open", 3, 409, "SerializationFailure"),
        ("fired", 2, 409, "SerializationFailure"),
        ("partly", 3, 403, "Forbidden"),
        ("kept", 3, 403, "Forbidden"),
        ("barred", 3, 403, "Forbidden"),
    ] {
        let reply = contended(&tenant, table, n_tries).await;
        let told = (reply.status.as_u16(), reply.json()["error"]["code"].clone());
        assert_eq!(told, (status, code.into()), "{table}: {reply:?}");
        assert!(tenant.rows(&format!("select from b.{table}")).await.is_empty(), "{table}");
        // alone it is done
        let reply = tenant.ask("all", "PATCH", &format!("/{table}/id/1"), r#"{"note": "mine"}"#, &[]).await;
        assert_eq!(reply.status, 201, "{table}: {reply:?}");
    }
    // and a row that is there and kept from this key is refused as such
    tenant
        .execute("insert into b.partly values (200, 'kept', ''); insert into b.kept values (200, 'kept', '')")
        .await;
    for table in ["partly", "kept"] {
        let reply = tenant.ask("all", "PATCH", &format!("/{table}/id/200"), r#"{"note": "mine"}"#, &[]).await;
        assert_eq!(reply.status, 403, "{table}: {reply:?}");
    }
}
