//! A tenant with protected tables: one with everything that a table may have, one below others, one in partitions.

use rowgate_core::role::TenantLogin;
use rowgate_pg::connect::login::Login;
use rowgate_tests::servers::postgres::{attempt, connect, execute, rows};
use rowgate_tests::stage::{DONE, On, Stage};
use serde_json::Value;
use sqlx::PgConnection;

/// `trees` has the tenant's own triggers, before ours by name; `nests` hangs below `farms` by every kind of cascade. Of `logs`, below `barns`
/// by cascades and a function of the owner's, and of `moves` only the API's writers are held.
/// `few` may change one field, `maker` only make rows, `reader` only read them.
const MANIFEST: &str = "apiVersion: v1
kind: ConfigMap
metadata: {name: farm-script}
data:
  schema.sql: |
    create schema f;
    create function f.touch() returns trigger language plpgsql as $$
    begin
        if to_jsonb(new) ->> 'dl_expected_ts' is null and current_query() not like '%= null%' then raise 'a trigger of the tenant saw no version'; end if;
        new.touched := new.touched + 1;
        return new;
    end $$;
    create table f.trees (id integer primary key, kind text not null, n integer not null default 0,
        touched integer not null default 0, twice integer generated always as (n * 2) stored);
    create trigger a_touch before update on f.trees for each row execute function f.touch();
    create trigger zz_touch before update of kind on f.trees for each row execute function f.touch();
    insert into f.trees (id, kind) values (1, 'oak'), (2, 'elm'), (3, 'ash');
    create table f.farms (id integer primary key);
    insert into f.farms values (1), (2), (3), (4), (5), (6);
    create table f.nests (id integer primary key,
        a integer references f.farms on delete cascade,
        b integer references f.farms on delete set null,
        c integer references f.farms on update cascade);
    insert into f.nests values (1, 1, null, null), (2, null, 2, null), (3, null, null, 3);
    create table f.places (region text, id integer, note text, primary key (region, id)) partition by list (region);
    create table f.places_n partition of f.places for values in ('n');
    create table f.places_s partition of f.places for values in ('s') partition by range (id);
    create table f.places_s1 partition of f.places_s for values from (0) to (100);
    insert into f.places values ('n', 1, 'a'), ('s', 1, 'b');
    create table f.barns (id integer primary key, kind text);
    insert into f.barns values (1, 'a'), (2, 'b'), (3, 'c');
    create table f.logs (id integer primary key, n integer not null default 0,
        barn integer references f.barns on update cascade on delete cascade);
    insert into f.logs values (1, 0, null), (2, 0, 2), (3, 0, 3), (4, 0, null);
    create function f.log() returns trigger language plpgsql security definer set search_path = '' as $$
    begin update f.logs set n = n + 1 where barn = new.id; return new; end $$;
    create trigger log after update of kind on f.barns for each row execute function f.log();
    create table f.moves (region text, id integer, primary key (region, id)) partition by list (region);
    create table f.moves_n partition of f.moves for values in ('n');
    create table f.moves_s partition of f.moves for values in ('s');
    insert into f.moves values ('n', 1);
    create view f.shown as select id, kind, n from f.trees;
---
apiVersion: rowgate.dev/v1alpha1
kind: Tenant
metadata: {name: farm}
spec:
  database: {name: farm, bootstrap: {configMapRef: {name: farm-script}}}
  entities:
    - name: trees
      source: {schema: f, object: trees}
      concurrencyProtection: {}
      hideSoftDeleted: true
      rowLevelSecurity: {none: true}
    - name: nests
      source: {schema: f, object: nests}
      concurrencyProtection: {softDeleteColumn: gone}
      rowLevelSecurity: {none: true}
    - {name: farms, source: {schema: f, object: farms}, rowLevelSecurity: {none: true}}
    - name: places
      source: {schema: f, object: places}
      concurrencyProtection: {}
      rowLevelSecurity: {none: true}
    - {name: barns, source: {schema: f, object: barns}, rowLevelSecurity: {none: true}}
    - name: logs
      source: {schema: f, object: logs}
      concurrencyProtection: {softDeleteColumn: over, writers: ApiOnly}
      rowLevelSecurity: {none: true}
    - name: moves
      source: {schema: f, object: moves}
      concurrencyProtection: {writers: ApiOnly}
      rowLevelSecurity: {none: true}
    - {name: shown, kind: View, source: {schema: f, object: shown}, keyFields: [id]}
  shared:
    permissions:
      - {entity: trees, actions: [create, read, update, delete]}
      - {entity: nests, actions: [create, read, update, delete]}
      - {entity: farms, actions: [create, read, update, delete]}
      - {entity: places, actions: [create, read, update, delete]}
      - {entity: barns, actions: [create, read, update, delete]}
      - {entity: logs, actions: [create, read, update, delete]}
      - {entity: moves, actions: [create, read, update, delete]}
      - {entity: shown, actions: [read, update, delete]}
---
apiVersion: rowgate.dev/v1alpha1
kind: ApiKey
metadata: {name: every}
spec: {tenantRef: {name: farm}, scope: {sameAs: shared}}
---
apiVersion: rowgate.dev/v1alpha1
kind: ApiKey
metadata: {name: few}
spec: {tenantRef: {name: farm}, scope: {permissions: [{entity: trees, actions: [update], fields: {include: [kind]}}]}}
---
apiVersion: rowgate.dev/v1alpha1
kind: ApiKey
metadata: {name: maker}
spec: {tenantRef: {name: farm}, scope: {permissions: [{entity: trees, actions: [create], fields: {include: ['*']}}]}}
---
apiVersion: rowgate.dev/v1alpha1
kind: ApiKey
metadata: {name: reader}
spec: {tenantRef: {name: farm}, scope: {permissions: [{entity: trees, actions: [read], fields: {include: [kind]}}]}}
";

pub(super) struct Farm {
    pub(super) stage: Stage,
}

impl Farm {
    pub(super) async fn open() -> Farm {
        let stage = Stage::open(On::Folder, MANIFEST).await;
        stage.told("Tenant", "farm", 1, DONE).await;
        for key in ["every", "few", "maker", "reader"] {
            stage.told("ApiKey", key, 1, DONE).await;
        }
        Farm { stage }
    }

    /// Of a key with this name, of the tenant's `owner`, or of a `superuser`.
    pub(super) async fn login(&self, who: &str) -> Login {
        match who {
            "owner" => self.stage.login("farm", TenantLogin::Owner).await,
            "superuser" => self.stage.server.superuser("farm"),
            key => self.stage.role(key, "farm").await,
        }
    }

    pub(super) async fn connect(&self, who: &str) -> PgConnection {
        connect(&self.login(who).await).await.unwrap_or_else(|error| panic!("{who}: {error}"))
    }

    pub(super) async fn rows(&self, query: &str) -> Vec<Value> {
        rows(&mut self.stage.server.connect("farm").await, query).await
    }

    /// The version of a row of `f.trees`.
    pub(super) async fn version(&self, id: i32) -> String {
        let rows = self.rows(&format!("select dl_expected_ts::text v from f.trees where id = {id}")).await;
        rows[0]["v"].as_str().expect("a text").to_owned()
    }
}

/// The SQLSTATE with which a script is refused; empty: it was not.
pub(super) async fn code(conn: &mut PgConnection, script: &str) -> String {
    match attempt(conn, script).await {
        Ok(()) => String::new(),
        Err(sqlx::Error::Database(error)) => {
            execute(conn, "rollback").await;
            error.code().unwrap_or_default().into_owned()
        }
        Err(error) => panic!("{error}: {script}"),
    }
}

/// As [`code`], with hint and message.
pub(super) async fn told(conn: &mut PgConnection, script: &str) -> String {
    let Err(sqlx::Error::Database(error)) = attempt(conn, script).await else {
        panic!("not refused: {script}")
    };
    let error = error.downcast_ref::<sqlx::postgres::PgDatabaseError>();
    format!("{}: {}. {}", error.code(), error.message(), error.hint().unwrap_or_default())
}
