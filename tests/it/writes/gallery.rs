//! A tenant with views that PostgreSQL writes to by itself, by triggers, by both, or not at all.

use std::ops::Deref;

use rowgate_tests::client::Reply;

use super::place::Place;

/// `all` may do everything; `changer` changes rows of `pictures` and makes none, `maker` makes them and reads none; `short`
/// changes one field of `kept_view`. Each trigger notes in `g.log` that it ran. One that is given a negative size passes
/// the row over, and one that is given more than 1,000 raises.
const MANIFEST: &str = r#"apiVersion: v1
kind: ConfigMap
metadata: {name: gallery-script}
data:
  schema.sql: |
    create schema g;
    create table g.owners (id integer primary key, name text);
    insert into g.owners values (1, 'ann'), (2, 'ben');
    create table g.items (id integer primary key, name text, size integer, owner integer references g.owners);
    create table g.log (id bigint generated always as identity primary key, what text);
    create table g.heap (id integer not null, note text);
    create function g.gate() returns trigger language plpgsql as
        'begin perform pg_advisory_xact_lock_shared(4713); return new; end';
    create trigger gate before insert on g.items for each row execute function g.gate();

    create function g.made() returns trigger language plpgsql security definer set search_path = '' as $$
    begin
        insert into g.log (what) values ('made');
        if new.size < 0 then return null; end if;
        if new.size > 1000 then raise exception 'secret words'; end if;
        new.id := coalesce(new.id, (select max(id) + 1 from g.items), 1);
        new.name := lower(new.name);
        insert into g.items (id, name, size, owner) values (new.id, new.name, new.size, (select o.id from g.owners o where o.name = new.owner));
        return new;
    end $$;
    create function g.changed() returns trigger language plpgsql security definer set search_path = '' as $$
    begin
        insert into g.log (what) values ('changed');
        if new.size < 0 then return null; end if;
        if new.size > 1000 then raise exception 'secret words'; end if;
        new.name := lower(new.name);
        update g.items set name = new.name, size = new.size where id = old.id;
        return new;
    end $$;
    create function g.gone() returns trigger language plpgsql security definer set search_path = '' as $$
    begin
        insert into g.log (what) values ('gone');
        if old.size = 13 then return null; end if;
        delete from g.items where id = old.id;
        return case when old.size = 14 then new else old end;
    end $$;
    create view g.pictures as select i.id, i.name, i.size, o.name as owner from g.items i left join g.owners o on o.id = i.owner;
    create trigger made instead of insert on g.pictures for each row execute function g.made();
    create trigger changed instead of update on g.pictures for each row execute function g.changed();
    create trigger gone instead of delete on g.pictures for each row execute function g.gone();
    create view g.above as select id, name, size from g.pictures where size < 5000;
    create view g.only_changes as select distinct id, name, size, 'x' as owner from g.items;
    create trigger changed instead of update on g.only_changes for each row execute function g.changed();
    create view g.only_makes as select distinct id, name, size, 'ann' as owner from g.items;
    create trigger made instead of insert on g.only_makes for each row execute function g.made();
    create view g.only_drops as select distinct id, name, size from g.items;
    create trigger gone instead of delete on g.only_drops for each row execute function g.gone();
    create view g.mixed as select id, name, size, name || '!' as loud from g.items;
    create trigger changed instead of update on g.mixed for each row execute function g.changed();
    create view g.simple as select id, name, size, size * 2 as twice from g.items;
    create view g.fixed as select count(*) as n from g.items;

    create function g.heaped() returns trigger language plpgsql security definer set search_path = '' as $$
    begin
        if new.note = 'pass' then return null; end if;
        if tg_op = 'INSERT' then insert into g.heap values (new.id, new.note);
        else update g.heap set note = new.note where id = old.id; end if;
        return new;
    end $$;
    create view g.heaps as select distinct id, note from g.heap;
    create trigger heaped instead of insert or update on g.heaps for each row execute function g.heaped();

    create table g.kept (
        id integer primary key, title text, size integer not null default 1,
        is_deleted boolean not null default false, dl_expected_ts timestamptz not null default now());
    create view g.kept_view as select id as number, title, dl_expected_ts from g.kept;
    create view g.kept_above as select number, title, dl_expected_ts from g.kept_view;
    create view g.kept_loud as select id, title, upper(title) as loud, dl_expected_ts from g.kept;
    create view g.kept_short as select id, title from g.kept;
    create view g.kept_flag as select id, title, size, is_deleted, dl_expected_ts from g.kept;
    create view g.kept_false as select id, title, dl_expected_ts + interval '0' as dl_expected_ts from g.kept;
---
apiVersion: rowgate.dev/v1alpha1
kind: Tenant
metadata: {name: gallery}
spec:
  database: {bootstrap: {configMapRef: {name: gallery-script}}}
  entities:
    - {name: owners, source: {schema: g, object: owners}, rowLevelSecurity: {none: true}}
    - {name: items, source: {schema: g, object: items}, rowLevelSecurity: {none: true}}
    - {name: heap, source: {schema: g, object: heap}, keyFields: [id], rowLevelSecurity: {none: true}}
    - {name: log, source: {schema: g, object: log}, rowLevelSecurity: {none: true}}
    - {name: pictures, source: {schema: g, object: pictures}, kind: View, keyFields: [id]}
    - {name: above, source: {schema: g, object: above}, kind: View, keyFields: [id]}
    - {name: only_changes, source: {schema: g, object: only_changes}, kind: View, keyFields: [id]}
    - {name: only_makes, source: {schema: g, object: only_makes}, kind: View, keyFields: [id]}
    - {name: only_drops, source: {schema: g, object: only_drops}, kind: View, keyFields: [id]}
    - {name: mixed, source: {schema: g, object: mixed}, kind: View, keyFields: [id]}
    - {name: simple, source: {schema: g, object: simple}, kind: View, keyFields: [id]}
    - {name: fixed, source: {schema: g, object: fixed}, kind: View, keyFields: [n]}
    - {name: heaps, source: {schema: g, object: heaps}, kind: View, keyFields: [id]}
    - {name: kept, source: {schema: g, object: kept}, concurrencyProtection: {}, rowLevelSecurity: {none: true}}
    - {name: kept_view, source: {schema: g, object: kept_view}, kind: View, keyFields: [number]}
    - {name: kept_above, source: {schema: g, object: kept_above}, kind: View, keyFields: [number]}
    - {name: kept_loud, source: {schema: g, object: kept_loud}, kind: View, keyFields: [id]}
    - {name: kept_short, source: {schema: g, object: kept_short}, kind: View, keyFields: [id]}
    - {name: kept_flag, source: {schema: g, object: kept_flag}, kind: View, keyFields: [id]}
    - {name: kept_false, source: {schema: g, object: kept_false}, kind: View, keyFields: [id]}
  shared:
    permissions:
      - {entity: pictures, actions: [read, create, update, delete]}
      - {entity: above, actions: [read, create, update, delete]}
      - {entity: only_changes, actions: [read, create, update, delete]}
      - {entity: only_makes, actions: [read, create, update, delete]}
      - {entity: only_drops, actions: [read, create, update, delete]}
      - {entity: mixed, actions: [read, create, update, delete]}
      - {entity: simple, actions: [read, create, update, delete]}
      - {entity: fixed, actions: [read, create, update, delete]}
      - {entity: heap, actions: [read, create, update]}
      - {entity: heaps, actions: [read, create, update]}
      - {entity: kept, actions: [read, create, update, delete]}
      - {entity: kept_view, actions: [read, create, update, delete]}
      - {entity: kept_above, actions: [read, update]}
      - {entity: kept_loud, actions: [read, create, update, delete]}
      - {entity: kept_short, actions: [read, create, update, delete]}
      - {entity: kept_flag, actions: [read, update, delete]}
      - {entity: kept_false, actions: [read, update]}
---
apiVersion: rowgate.dev/v1alpha1
kind: ApiKey
metadata: {name: all}
spec: {tenantRef: {name: gallery}}
---
apiVersion: rowgate.dev/v1alpha1
kind: ApiKey
metadata: {name: changer}
spec:
  tenantRef: {name: gallery}
  scope: {permissions: [{entity: pictures, actions: [read, update], fields: {include: ['*']}}]}
---
apiVersion: rowgate.dev/v1alpha1
kind: ApiKey
metadata: {name: maker}
spec:
  tenantRef: {name: gallery}
  scope: {permissions: [{entity: pictures, actions: [create], fields: {include: ['*']}}]}
---
apiVersion: rowgate.dev/v1alpha1
kind: ApiKey
metadata: {name: short}
spec:
  tenantRef: {name: gallery}
  scope: {permissions: [{entity: kept_view, actions: [update], fields: {include: [title]}}]}
"#;

pub(super) struct Gallery(Place);

/// Status, code of the error, and its message or the answer.
pub(super) type Told = (u16, String, String);

impl Deref for Gallery {
    type Target = Place;

    fn deref(&self) -> &Place {
        &self.0
    }
}

impl Gallery {
    pub(super) async fn open() -> Gallery {
        Gallery(Place::open("gallery", MANIFEST).await)
    }

    /// Every row of the tables under the views, in one text.
    pub(super) async fn state(&self) -> String {
        self.contents("g", &["items", "kept", "heap"]).await
    }

    /// How often triggers ran since this was asked the last time.
    pub(super) async fn ran(&self) -> usize {
        let n = self.rows("select 1 from g.log").await.len();
        self.execute("delete from g.log").await;
        n
    }
}

pub(super) fn told(reply: &Reply) -> Told {
    let status = reply.status.as_u16();
    if status < 400 {
        return (status, String::new(), reply.body.clone());
    }
    let error = &reply.json()["error"];
    let text = |name: &str| error[name].as_str().unwrap_or_default().to_owned();
    (status, text("code"), text("message"))
}
