//! A tenant whose tables keep the versions of their rows, hide those that are flagged, or do neither.

use std::ops::Deref;

use rowgate_tests::client::Reply;
use serde_json::Value;

use super::place::Place;

/// `all` and `guest` may do everything that the tenant shares; `twin` and `scoped` have one permission set of the same rights;
/// `narrow` reads and changes less, `maker` only makes rows. `codes` is about rules of which not every key may know the fields.
const MANIFEST: &str = "apiVersion: v1
kind: ConfigMap
metadata: {name: vault-script}
data:
  schema.sql: |
    create schema v;
    create extension btree_gist;
    create table v.folders (id integer primary key, name text);
    insert into v.folders values (1, 'kept'), (2, 'empty');
    create table v.docs (
        id integer primary key,
        title text,
        size integer not null default 1 check (0 < size),
        folder integer references v.folders on delete cascade,
        body text);
    create table v.bins (id integer primary key, title text, is_deleted boolean);
    create table v.trash (id integer primary key, title text, is_deleted boolean);
    create table v.renamed (id integer primary key, title text);
    create table v.plain (id integer primary key, title text, dl_mark text);
    insert into v.plain values (1, 'one');
    insert into v.trash values (1, 'one', null), (2, 'two', false), (3, 'three', true);
    create view v.titles as select id, title from v.docs;
    create table v.boxes (id integer primary key, code integer unique, label text);
    create schema w;
    create table v.things (
        id integer primary key,
        box integer references v.boxes on delete set null,
        code integer references v.boxes (code) on update cascade) partition by list (id);
    create table w.things_1 partition of v.things for values in (1, 2);
    create function v.mark() returns trigger language plpgsql as $$
    begin
        if new.label is not null then
            update v.things set code = null, dl_expected_ts = '2001-01-01' where id = 1;
        end if;
        return new;
    end $$;
    create trigger mark after update on v.boxes for each row execute function v.mark();
    insert into v.boxes values (1, 10), (2, 20), (3, 30);
    insert into v.things values (1, 1, 30), (2, null, 20);
    create table v.codes (
        id integer primary key,
        code text unique,
        secret text,
        room integer,
        at integer,
        folder integer references v.folders,
        constraint codes_pair unique (code, secret),
        constraint codes_positive check (0 < room),
        constraint codes_row check (codes is not null),
        constraint codes_hidden check (length(secret) < 9 and length(code) < 9),
        exclude using gist (room with =, at with =));
    create unique index codes_even on v.codes (at) where at < 0;
    insert into v.codes values (1, 'a', 's', 1, 1, 1), (2, 'b', 's', 2, -1, 1);
---
apiVersion: rowgate.dev/v1alpha1
kind: Tenant
metadata: {name: vault}
spec:
  database: {bootstrap: {configMapRef: {name: vault-script}}}
  cors: {origins: ['https://app.example']}
  entities:
    - {name: folders, source: {schema: v, object: folders}, rowLevelSecurity: {none: true}}
    - name: docs
      source: {schema: v, object: docs}
      mappings: {size: 'Doc Size'}
      concurrencyProtection: {}
      rowLevelSecurity:
        policies:
          - {name: all, expression: 'true', roles: [datalake_user, scoped, twin, maker]}
          - {name: some, expression: 'id < 900', roles: [narrow]}
    - {name: bins, source: {schema: v, object: bins}, concurrencyProtection: {}, hideSoftDeleted: true, rowLevelSecurity: {none: true}}
    - {name: trash, source: {schema: v, object: trash}, hideSoftDeleted: true, rowLevelSecurity: {none: true}}
    - {name: plain, source: {schema: v, object: plain}, rowLevelSecurity: {none: true}}
    - {name: renamed, source: {schema: v, object: renamed}, concurrencyProtection: {}, mappings: {dl_expected_ts: ver}, rowLevelSecurity: {none: true}}
    - {name: boxes, source: {schema: v, object: boxes}, rowLevelSecurity: {none: true}}
    - {name: things, source: {schema: v, object: things}, concurrencyProtection: {}, rowLevelSecurity: {none: true}}
    - {name: titles, source: {schema: v, object: titles}, kind: View, keyFields: [id]}
    - {name: codes, source: {schema: v, object: codes}, mappings: {room: Raum}, rowLevelSecurity: {none: true}}
  shared:
    permissions:
      - {entity: folders, actions: [read, create, update, delete]}
      - {entity: docs, actions: [read, create, update, delete]}
      - {entity: bins, actions: [read, create, update, delete]}
      - {entity: trash, actions: [read, create, update, delete]}
      - {entity: plain, actions: [read, create, update, delete]}
      - {entity: renamed, actions: [read, create, update]}
      - {entity: boxes, actions: [read, create, update, delete]}
      - {entity: things, actions: [read, update]}
      - {entity: titles, actions: [read, update, delete]}
      - {entity: codes, actions: [read, create, update, delete]}
---
apiVersion: rowgate.dev/v1alpha1
kind: ApiKey
metadata: {name: all}
spec: {tenantRef: {name: vault}}
---
apiVersion: rowgate.dev/v1alpha1
kind: ApiKey
metadata: {name: guest}
spec: {tenantRef: {name: vault}}
---
apiVersion: rowgate.dev/v1alpha1
kind: ApiKey
metadata: {name: scoped}
spec:
  tenantRef: {name: vault}
  scope: {permissions: [{entity: docs, actions: [read, create, update], fields: {include: ['*']}}]}
---
apiVersion: rowgate.dev/v1alpha1
kind: ApiKey
metadata: {name: twin}
spec:
  tenantRef: {name: vault}
  scope: {permissions: [{entity: docs, actions: [read, create, update], fields: {include: ['*']}}]}
---
apiVersion: rowgate.dev/v1alpha1
kind: ApiKey
metadata: {name: narrow}
spec:
  tenantRef: {name: vault}
  scope:
    permissions:
      - {entity: docs, actions: [read, update], fields: {include: [title]}}
      - {entity: codes, actions: [read], fields: {include: [id, code]}}
      - {entity: codes, actions: [create], fields: {include: ['*']}}
---
apiVersion: rowgate.dev/v1alpha1
kind: ApiKey
metadata: {name: maker}
spec:
  tenantRef: {name: vault}
  scope: {permissions: [{entity: docs, actions: [create], fields: {include: ['*']}}]}
";

/// The field with the version of a row.
pub(super) const TS: &str = "dl_expected_ts";

pub(super) struct Vault(Place);

impl Deref for Vault {
    type Target = Place;

    fn deref(&self) -> &Place {
        &self.0
    }
}

impl Vault {
    pub(super) async fn open() -> Vault {
        Vault(Place::open("vault", MANIFEST).await)
    }

    pub(super) async fn get(&self, key: &str, path: &str) -> Reply {
        self.ask(key, "GET", path, "", &[]).await
    }

    pub(super) async fn patch(&self, path: &str, body: &Value) -> Reply {
        self.ask("all", "PATCH", path, &body.to_string(), &[]).await
    }

    /// Makes a row; its version.
    pub(super) async fn make(&self, entity: &str, row: &Value) -> String {
        let made = self.ask("all", "POST", entity, &row.to_string(), &[]).await;
        assert_eq!(made.status, 201, "{made:?}");
        version(&made)
    }

    /// The `ETag` and the version of a row.
    pub(super) async fn tag(&self, key: &str, path: &str) -> (String, String) {
        let reply = self.get(key, path).await;
        (tag(&reply), version(&reply))
    }

    /// Everything that is stored, in one text.
    pub(super) async fn state(&self) -> String {
        self.contents("v", &["docs", "bins", "trash", "plain", "codes", "folders", "boxes", "things"]).await
    }
}

/// The version that the first row of an answer has.
pub(super) fn version(reply: &Reply) -> String {
    let version = reply.json()["value"][0][TS].as_str().map(ToOwned::to_owned);
    version.unwrap_or_else(|| panic!("no version in {reply:?}"))
}

/// A version as a text that sorts as versions do: zeros at the end of a fraction are not written.
pub(super) fn moment(version: &str) -> &str {
    version.trim_end_matches('Z')
}

pub(super) fn tag(reply: &Reply) -> String {
    reply.header("etag").unwrap_or_else(|| panic!("no tag in {reply:?}")).to_owned()
}

pub(super) fn code(reply: &Reply) -> (u16, Option<String>) {
    let code =
        (reply.status.as_u16() >= 400).then(|| reply.json()["error"]["code"].as_str().map(ToOwned::to_owned));
    (reply.status.as_u16(), code.flatten())
}
