//! A tenant whose keys know some fields, whose key columns round, and whose tables have triggers that pass rows over.

use std::ops::Deref;

use rowgate_tests::client::Reply;

use super::place::Place;

/// Tables `r_...` have a key `k` of a type that rounds, cuts or fills up, and `v`.
pub(super) const ROUNDING: [(&str, &str, &str, &str); 9] = [
    ("r_numeric", "numeric(5,2)", "2.345", "2.35"),
    ("r_domain", "a.price", "2.345", "2.35"),
    ("r_above", "a.price_above", "2.345", "2.35"),
    ("r_varchar", "varchar(3)", "abc%20", "abc"),
    ("r_char", "char(3)", "abcd", "ab"),
    ("r_moment", "timestamptz(0)", "2024-01-31T10:00:00.4Z", "2024-01-31T10:00:00Z"),
    ("r_clock", "time(1)", "10:00:00.25", "10:00:00.3"),
    ("r_span", "interval(0)", "PT1.4S", "PT1S"),
    ("r_bits", "bit(3)", "10", "100"),
];

const MANIFEST: &str = "apiVersion: v1
kind: ConfigMap
metadata: {name: attic-script}
data:
  schema.sql: |
    create schema a;
    create domain a.price as numeric(5,2);
    create domain a.price_above as a.price;
    create table a.secrets (id integer primary key, pub text, sec text);
    insert into a.secrets values (1, 'one', 's');
    create table a.kept (id integer primary key, title text);
    insert into a.kept values (1, 'one');
    create table a.files (id integer primary key, data bytea);
    create table a.ids (id uuid primary key, v text);
    create table a.lists (k integer[] primary key, v text);
    create table a.log (what text);
    create table a.passing (id integer primary key, v text);
    insert into a.passing values (1, 'one'), (2, 'stays'), (3, 'hidden');
    create function a.passes() returns trigger language plpgsql security definer set search_path = '' as $$
    declare new_row jsonb := to_jsonb(new);
    begin
        insert into a.log values (tg_op);
        if tg_op = 'DELETE' then return case when old.v = 'stays' then null else old end; end if;
        if new_row ->> 'v' = 'self' then
            update a.passing set v = 'by itself' where id = new.id;
            return null;
        end if;
        return case when coalesce(new_row ->> 'v', new_row ->> 'pub') = 'pass' then null else new end;
    end $$;
    create trigger passes before insert or update or delete on a.passing for each row execute function a.passes();
{tables}
---
apiVersion: rowgate.dev/v1alpha1
kind: Tenant
metadata: {name: attic}
spec:
  database: {bootstrap: {configMapRef: {name: attic-script}}}
  entities:
    - {name: secrets, source: {schema: a, object: secrets}, rowLevelSecurity: {none: true}}
    - {name: kept, source: {schema: a, object: kept}, concurrencyProtection: {}, rowLevelSecurity: {none: true}}
    - {name: files, source: {schema: a, object: files}, rowLevelSecurity: {none: true}}
    - {name: ids, source: {schema: a, object: ids}, rowLevelSecurity: {none: true}}
    - {name: lists, source: {schema: a, object: lists}, rowLevelSecurity: {none: true}}
    - name: passing
      source: {schema: a, object: passing}
      rowLevelSecurity: {policies: [{name: shown, expression: id <> 3}]}
{entities}
  shared:
    permissions:
      - {entity: secrets, actions: [read, create, update, delete]}
      - {entity: kept, actions: [read, create, update, delete]}
      - {entity: files, actions: [read, create, update, delete]}
      - {entity: ids, actions: [read, create, update, delete]}
      - {entity: lists, actions: [read, create, update, delete]}
      - {entity: passing, actions: [read, create, update, delete]}
{permissions}
---
apiVersion: rowgate.dev/v1alpha1
kind: ApiKey
metadata: {name: all}
spec: {tenantRef: {name: attic}}
---
apiVersion: rowgate.dev/v1alpha1
kind: ApiKey
metadata: {name: part}
spec:
  tenantRef: {name: attic}
  scope:
    permissions:
      - {entity: secrets, actions: [read, create, update], fields: {include: [id, pub]}}
      - {entity: kept, actions: [read, update], fields: {include: [id, title]}}
---
apiVersion: rowgate.dev/v1alpha1
kind: ApiKey
metadata: {name: looker}
spec:
  tenantRef: {name: attic}
  scope:
    permissions:
      - {entity: secrets, actions: [read], fields: {include: ['*']}}
      - {entity: secrets, actions: [update], fields: {include: [pub]}}
";

pub(super) struct Attic(Place);

impl Deref for Attic {
    type Target = Place;

    fn deref(&self) -> &Place {
        &self.0
    }
}

impl Attic {
    pub(super) async fn open() -> Attic {
        let each = |line: fn(&str, &str) -> String| {
            let lines: Vec<_> = ROUNDING.iter().map(|(name, ty, ..)| line(name, ty)).collect();
            lines.join("\n")
        };
        let manifest = MANIFEST
            .replace(
                "{tables}",
                &each(|name, ty| format!("    create table a.{name} (k {ty} primary key, v text);")),
            )
            .replace(
                "{entities}",
                &each(|name, _| {
                    format!(
                        "    - {{name: {name}, source: {{schema: a, object: {name}}}, rowLevelSecurity: {{none: true}}}}"
                    )
                }),
            )
            .replace(
                "{permissions}",
                &each(|name, _| {
                    format!("      - {{entity: {name}, actions: [read, create, update, delete]}}")
                }),
            );
        Attic(Place::open("attic", &manifest).await)
    }

    /// A request of the ApiKey with this name. `path` begins behind the tenant's address.
    pub(super) async fn ask(&self, key: &str, method: &str, path: &str, body: &str) -> Reply {
        self.0.ask(key, method, path, body, &[]).await
    }

    /// As [`Attic::ask`] of `all`, with these headers and no others but the key.
    pub(super) async fn ask_with(
        &self,
        method: &str,
        path: &str,
        body: &str,
        headers: &[(&str, &str)],
    ) -> Reply {
        let (url, key) = (self.url(path), self.world.key("all"));
        let headers: Vec<_> =
            [("X-API-Key", key.as_str())].into_iter().chain(headers.iter().copied()).collect();
        self.client.send(method, &url, &headers, body).await
    }
}
