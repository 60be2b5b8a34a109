//! Schema `dl` of a database of an earlier version, with what a tenant's owner may have left there: it is named, or it is gone.

use rowgate_core::role::TenantLogin;
use rowgate_pg::connect::session;
use rowgate_pg::control::migrate::{self, TakeOverError};
use rowgate_tests::servers::postgres::{Server, execute};
use sqlx::{Connection as _, PgConnection};

use super::{id, installed, tenant};

/// What each of them runs code with.
const CODE: &str = "
    create schema att; grant usage on schema att to public;
    create function att.fits(text) returns boolean immutable language sql as 'select true';
    create domain att.evil as text check (att.fits(value));
    create function att.trap() returns trigger language plpgsql as 'begin return new; end';";

/// Text that the owner has run before, and what is named of it.
const NAMED: [(&str, &str); 20] = [
    (
        "create trigger t before insert on dl.keys for each row execute function att.trap()",
        "trigger t on keys",
    ),
    ("create rule r as on insert to dl.keys do also select 1", "rule r on keys"),
    ("create policy p on dl.keys using (true)", "policy p on keys"),
    ("alter table dl.claims enable row level security", "relation claims"),
    ("alter table dl.keys add check (att.fits(id))", "att.fits"),
    ("alter table dl.state add check (('a' || epoch)::text::att.evil is not null)", "att.evil"),
    (
        "alter table dl.keys alter column created_at set default ('now'::text::att.evil)::text::timestamptz",
        "att.evil",
    ),
    ("create index on dl.claims (role) where value::att.evil is not null", "att.evil"),
    ("alter table dl.keys alter column name type att.evil", "column name of keys"),
    ("alter table dl.keys add g int generated always as (1) stored", "column g of keys"),
    (
        "alter table dl.keys add check (xpath('a', query_to_xml('select 1', true, true, '')) is not null)",
        "query_to_xml",
    ),
    ("create table dl.more (a text, b int) partition by range (a)", "relation more"),
    ("create statistics dl.s on (length(id)), uid from dl.keys", "statistics s of keys"),
    ("create table att.a (id text references dl.keys on delete cascade)", "on keys"),
    ("create table att.kid () inherits (dl.keys)", "child att.kid of keys"),
    (
        "create function dl.pending(a text, b bigint, c bigint, d oid[], e text, f int) returns int language sql as 'select 1'",
        "routine pending",
    ),
    ("create operator dl.=== (leftarg = text, rightarg = text, function = texteq)", "operator dl.==="),
    ("create domain dl.pg_snapshot as text", "type pg_snapshot"),
    ("create extension lo schema att; alter extension lo add table dl.keys", "extension: table dl.keys"),
    ("alter function dl.revoke(text) depends on extension plpgsql", "extension: function dl.revoke"),
];

/// Text that the owner has run before, and a question whose answer is true once it is gone.
const GONE: [(&str, &str); 5] = [
    (
        "create table dl.staged (token_hash bytea primary key, statements jsonb not null, at timestamptz); \
         insert into dl.staged values (sha256('mine'), '[]')",
        "select not exists (select from dl.staged)",
    ),
    (
        "grant all on dl.key_secrets to public",
        "select not has_table_privilege('pg_monitor', 'dl.key_secrets', 'select')",
    ),
    ("grant create on schema dl to public", "select not has_schema_privilege('pg_monitor', 'dl', 'create')"),
    (
        "create or replace function dl.fence(wanted bigint) returns void language sql set search_path = att as 'select'",
        "select proconfig = '{\"search_path=pg_catalog, pg_temp\"}' and prolang = (select oid from pg_language where lanname = 'plpgsql') \
         from pg_proc where oid = 'dl.fence(bigint)'::regprocedure",
    ),
    (
        "create or replace view dl.own_claims with (security_barrier) as select c.name, c.value from dl.claims c",
        "select pg_get_viewdef('dl.own_claims') ~ 'CURRENT_USER'",
    ),
];

/// A database as the version before left it, after `script` of its owner, and what taking it over says; with the superuser's connection to it.
async fn taken(server: &Server, n: u8, script: &str) -> (Result<(), TakeOverError>, PgConnection) {
    let installation = installed(server).await;
    let database = format!("d{n}");
    let (mut owner, dl) = tenant(&installation, &id(n), &database).await;
    dl.close().await.expect("it ends");
    let [of_owner, of_dl] = [TenantLogin::Owner, TenantLogin::Records].map(|login| login.role(&id(n)));
    let mut superuser = server.connect(&database).await;
    let before = format!(
        "drop function dl.publish; drop table dl.staged; delete from dl.migrations where 13 < number; \
         reassign owned by {of_dl} to {of_owner}; grant {of_owner} to {of_dl} with inherit true, set false"
    );
    execute(&mut superuser, &before).await;
    execute(&mut owner, &format!("{CODE}{script}")).await;
    let login = installation.tenant(&id(n), TenantLogin::Records, &database);
    let mut dl = session::connect(&login).await.expect("the login of schema dl");
    (migrate::take_over(&mut dl).await, superuser)
}

/// Seen to fail with a list of what must not be there in place of a comparison: casts to domains, partition keys and extensions were not found.
#[tokio::test]
async fn what_the_owner_left_in_the_schema_is_named() {
    let server = Server::own().await;
    for (n, (script, named)) in (10..).zip(NAMED) {
        let (taken, mut superuser) = taken(&server, n, script).await;
        let Err(TakeOverError::Foreign(message)) = taken else { panic!("{script}: {taken:?}") };
        assert!(message.contains(named), "{script}: {message}");
        let owned = "select nspowner::regrole::text like '%_owner' from pg_namespace where nspname = 'dl'";
        assert!(answer(&mut superuser, owned).await, "{script}");
    }
}

#[tokio::test]
async fn what_the_owner_replaced_in_the_schema_is_made_once_more() {
    let server = Server::own().await;
    for (n, (script, gone)) in (50..).zip(GONE) {
        let (taken, mut superuser) = taken(&server, n, script).await;
        taken.unwrap_or_else(|error| panic!("{script}: {error}"));
        assert!(answer(&mut superuser, gone).await, "{script}");
        let owned = "select bool_and(relowner::regrole::text like '%_dl') from pg_class where relnamespace = 'dl'::regnamespace";
        assert!(answer(&mut superuser, owned).await, "{script}");
        let left = "select not exists (select from pg_namespace where nspname = 'dl_reference')";
        assert!(answer(&mut superuser, left).await, "{script}");
    }
}

/// As version 0.1 made it, by the owner of the tables.
#[tokio::test]
async fn a_schema_that_the_owner_made_is_brought_up_to_date() {
    let server = Server::own().await;
    let installation = installed(&server).await;
    let (mut owner, mut dl) = tenant(&installation, &id(8), "shop").await;
    let mut superuser = server.connect("shop").await;
    let [of_owner, of_dl] = [TenantLogin::Owner, TenantLogin::Records].map(|login| login.role(&id(8)));
    let lend = format!("drop schema dl cascade; grant {of_owner} to {of_dl} with inherit true, set false");
    execute(&mut superuser, &lend).await;
    assert_eq!(migrate::start_tenant(&mut owner).await.expect("no schema"), 13);
    assert_eq!(migrate::start_tenant(&mut owner).await.expect("the schema"), 0);
    migrate::take_over(&mut dl).await.expect("nothing else is there");
    assert_eq!(migrate::tenant(&mut dl).await.expect("all of it"), 0);
    let checks = "select not exists (select from pg_constraint where conrelid = 'dl.subscriptions'::regclass and contype = 'c')";
    assert!(answer(&mut superuser, checks).await, "what a later migration drops is gone");
}

/// A transaction that was open meanwhile commits a function that no statement of ours means.
#[tokio::test]
async fn what_is_committed_into_the_schema_later_is_named() {
    let server = Server::own().await;
    let installation = installed(&server).await;
    let (_, mut dl) = tenant(&installation, &id(7), "shop").await;
    assert_eq!(migrate::strangers(&mut dl).await.expect("a look"), [""; 0]);
    let mut superuser = server.connect("shop").await;
    let owner = TenantLogin::Owner.role(&id(7));
    let late = "create function dl.tick(a text) returns int language sql as 'select 1'; alter function dl.tick(text) owner to";
    execute(&mut superuser, &format!("{late} {owner}")).await;
    assert_eq!(migrate::strangers(&mut dl).await.expect("a look"), ["routine dl.tick(text)"]);
}

async fn answer(conn: &mut PgConnection, question: &'static str) -> bool {
    sqlx::query_scalar(question).fetch_one(conn).await.unwrap_or_else(|error| panic!("{question}: {error}"))
}
