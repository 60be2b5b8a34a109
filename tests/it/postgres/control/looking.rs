//! Introspection: what was made by hand is what is read.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use rowgate_core::role::TenantLogin;
use rowgate_pg::connect::session;
use rowgate_pg::introspect;
use rowgate_pg::introspect::actual::{Acl, RelationKind, TenantDb};
use rowgate_pg::introspect::declared::Kind;
use rowgate_sql::ddl::records;
use rowgate_tests::servers::postgres::{Server, execute, rows};
use rowgate_tests::wait::until;

use super::{id, installed, tenant};

fn acl(entries: &[(&str, &[&str])]) -> Acl {
    entries
        .iter()
        .map(|(role, privileges)| ((*role).to_owned(), privileges.iter().map(|p| (*p).to_owned()).collect()))
        .collect()
}

fn names(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn qname(schema: &str, name: &str) -> (String, String) {
    (schema.to_owned(), name.to_owned())
}

const OBJECTS: &str = r#"
create extension pg_trgm schema public;
create schema app;
alter default privileges grant execute on routines to public;
create function app.twice(n int) returns int language sql immutable as 'select 2 * n';
create function app.same(a int, b int) returns bool language sql immutable as 'select a = b';
create operator app.=== (leftarg = int, rightarg = int, function = app.same);
create function app.fits(t text) returns bool language sql immutable as 'select true';
create domain app.code as text check (app.fits(value));
create procedure app.go() language sql security definer as 'select 1';
create sequence app.numbers;
create table app.t (
    b int not null default nextval('app.numbers'), a serial, gone int, "odd ""name" numeric(9,2),
    twice int generated always as (app.twice(b)) stored, code app.code,
    always int generated always as identity, check (b operator(app.===) b), primary key (b, a)
);
alter table app.t drop column gone;
alter table app.t enable row level security, force row level security;
create policy mine on app.t as restrictive for update to datalake_user
    using (a = 1 and dl.claim('x') is null) with check (b > 0);
create policy open on app.t using (true);
create view app.v as select t.a, k.id from app.t, dl.keys k;
create table app.parts (n int) partition by range (n);
grant select, insert on app.t to datalake_user with grant option;
grant select (a, twice) on app.t to public;
grant usage on sequence app.numbers to datalake_user;
revoke execute on function app.twice(int) from public;
grant usage on schema app to datalake_user;
alter default privileges revoke execute on routines from public;
alter default privileges grant select on tables to datalake_user;
"#;

async fn looked(server: &Server) -> TenantDb {
    let installation = installed(server).await;
    let (mut owner, mut records) = tenant(&installation, &id(7), "shop").await;
    execute(&mut owner, OBJECTS).await;
    introspect::tenant_db(&mut records).await.unwrap_or_else(|error| panic!("{error}"))
}

#[tokio::test]
async fn relations_are_read_with_all_that_hangs_on_them() {
    let db = looked(&Server::own().await).await;
    let t = &db.relations[&qname("app", "t")];
    assert_eq!((t.kind, t.rls_enabled, t.rls_forced), (RelationKind::Table, true, true));
    assert_eq!(t.owner, TenantLogin::Owner.role(&id(7)));
    assert_eq!(t.acl, acl(&[("datalake_user", &["SELECT*", "INSERT*"])]));
    let columns: Vec<_> = t.columns.iter().map(|c| (c.name.as_str(), c.type_name.as_str())).collect();
    assert_eq!(
        columns,
        [
            ("b", "integer"),
            ("a", "integer"),
            ("odd \"name", "numeric(9,2)"),
            ("twice", "integer"),
            ("code", "app.code"),
            ("always", "integer"),
        ]
    );
    let flags: Vec<_> = t.columns.iter().map(|c| (c.not_null, c.generated, c.identity_always)).collect();
    assert_eq!(flags[2..4], [(false, false, false), (false, true, false)]);
    assert_eq!((flags[0], flags[5]), ((true, false, false), (true, false, true)));
    assert_eq!(t.columns[1].acl, acl(&[("public", &["SELECT"])]));
    assert_eq!(t.columns[0].acl, Acl::new());
    assert_eq!(t.primary_key, ["b", "a"]);
    assert_eq!(
        t.routines,
        names(&["app.twice(integer)", "app.same(integer,integer)", "app.fits(text)", "dl.claim(text)"])
    );
    let sequences = ["numbers", "t_a_seq", "t_always_seq"].map(|name| qname("app", name));
    assert_eq!(t.sequences, sequences.into());
    let mine = &t.policies["mine"];
    assert_eq!((mine.permissive, mine.command, &mine.roles), (false, "UPDATE", &names(&["datalake_user"])));
    assert_eq!(mine.using.as_deref(), Some("((a = 1) AND (dl.claim('x'::text) IS NULL))"));
    assert_eq!(mine.check.as_deref(), Some("(b > 0)"));
    let open = &t.policies["open"];
    assert_eq!((open.command, &open.roles, &open.check), ("ALL", &names(&["public"]), &None));

    let v = &db.relations[&qname("app", "v")];
    assert_eq!((v.kind, v.columns.len()), (RelationKind::View, 2));
    assert_eq!(v.reads, [qname("app", "t"), qname("dl", "keys")].into());
    assert_eq!(db.relations[&qname("app", "parts")].kind, RelationKind::PartitionedTable);
    assert_eq!(db.relations[&qname("app", "numbers")].acl, acl(&[("datalake_user", &["USAGE"])]));
    assert!(!db.relations.keys().any(|(schema, _)| schema.starts_with("pg_")));
}

#[tokio::test]
async fn schemas_routines_and_defaults_are_read() {
    let db = looked(&Server::own().await).await;
    assert_eq!(db.schemas["app"].acl, acl(&[("datalake_user", &["USAGE"])]));
    assert_eq!(db.schemas.keys().collect::<Vec<_>>(), ["app", "dl", "public"]);
    assert_eq!(db.schemas["public"].acl, acl(&[("public", &["USAGE"])]));
    assert_eq!(db.routines["app.twice(integer)"].acl, Acl::new());
    let go = &db.routines["app.go()"];
    assert!(go.declared.kind == Kind::Procedure && go.declared.definer);
    assert_eq!(go.acl, acl(&[("public", &["EXECUTE"])]), "PostgreSQL's default stands for a NULL acl");
    assert!(!db.routines.keys().any(|name| name.contains("trgm")), "members of extensions are left out");
    assert_eq!(db.shown_statements, Vec::<String>::new());
    assert_eq!(db.default_acl[&'f'], Acl::new());
    assert_eq!(db.default_acl[&'r'], acl(&[("datalake_user", &["SELECT"])]));
    let state = db.state.expect("schema dl");
    assert_eq!((state.generation, state.epoch, state.bootstrapped), (0, 0, false));
}

#[tokio::test]
async fn three_thousand_keys_are_read_in_a_moment() {
    let server = Server::own().await;
    let installation = installed(&server).await;
    let (mut owner, mut dl) = tenant(&installation, &id(7), "shop").await;
    let auth = TenantLogin::Auth.role(&id(7));
    let script = format!(
        "do $$ begin for i in 1..3000 loop \
             execute format('create role key_%s login', lpad(i::text, 26, '0')); \
             execute format('grant key_%s to {auth} with inherit false, set true', lpad(i::text, 26, '0')); \
         end loop; end $$"
    );
    execute(&mut owner, &format!("grant connect on database shop to {}", TenantLogin::Keys.role(&id(7))))
        .await;
    let mut keys = session::connect(&installation.tenant(&id(7), TenantLogin::Keys, "shop")).await.unwrap();
    execute(&mut keys, &script).await;
    execute(
        &mut dl,
        "insert into dl.keys (id, uid, namespace, name, role, expires_at) \
         select lpad(i::text, 26, '0'), i, 'n', i, 'key_' || lpad(i::text, 26, '0'), '2030-01-01T00:00:00Z' \
         from generate_series(1, 3000) i; \
         insert into dl.key_secrets (id, key_id, finder, digest) \
         select id, id, 'f', decode(md5(id), 'hex') from dl.keys",
    )
    .await;
    session::execute(&mut dl, &records::put_claim("datalake_user", "a", "b")).await.unwrap();

    let begun = Instant::now();
    let db = introspect::tenant_db(&mut dl).await.unwrap();
    let mut operator = session::connect(&installation.operator()).await.unwrap();
    let cluster = introspect::cluster(&mut operator, &id(7), "shop").await.unwrap();
    let took = begun.elapsed();
    assert_eq!(db.keys.len(), 3000);
    let key = db.keys.values().next().unwrap();
    assert_eq!((key.expires_at.as_deref(), key.secrets.len()), (Some("2030-01-01T00:00:00Z"), 1));
    assert_eq!(db.claims, BTreeMap::from([(qname("datalake_user", "a"), "b".to_owned())]));
    assert_eq!(cluster.roles.len(), 3007);
    let database = cluster.database.expect("a database");
    assert_eq!(database.owner, TenantLogin::Owner.role(&id(7)));
    assert!(!database.acl.contains_key("public"));
    // By t_keys for itself and for t_auth, 3000 each; datalake_user in t_auth; the operator in its seven roles.
    assert_eq!(cluster.memberships.len(), 6000 + 1 + 7);
    let set = cluster.memberships.iter().find(|m| m.role.starts_with("key_") && m.member == auth).unwrap();
    assert_eq!((set.admin, set.inherit, set.set), (false, false, true));
    assert!(took.as_secs() < 5, "{took:?}");
}

#[tokio::test]
async fn settings_and_attributes_of_roles_are_read() {
    let server = Server::own().await;
    let installation = installed(&server).await;
    let _owner = tenant(&installation, &id(7), "shop").await;
    let sql = TenantLogin::Sql.role(&id(7));
    let mut admin = server.connect("postgres").await;
    execute(
        &mut admin,
        &format!(
            "alter role {sql} connection limit 3 inherit createdb bypassrls; alter role {sql} set role = 'x y'; \
             alter role {sql} in database shop set work_mem = '1MB'"
        ),
    )
    .await;
    let mut operator = session::connect(&installation.operator()).await.unwrap();
    let cluster = introspect::cluster(&mut operator, &id(7), "shop").await.unwrap();
    let role = &cluster.roles[&sql];
    assert_eq!((role.connection_limit, role.inherit, role.create_db, role.bypass_rls), (3, true, true, true));
    assert_eq!(role.settings, names(&["role=x y", "shop/work_mem=1MB"]));
    let keys = &cluster.roles[&TenantLogin::Keys.role(&id(7))];
    assert!(keys.login && keys.create_role && !keys.inherit && !keys.superuser);
    let shared = &cluster.roles["datalake_user"];
    assert!(!shared.login && shared.settings.is_empty());
}

/// A role of another tenant goes while a look is under way. Seen to fail with names that PostgreSQL looks up beside the
/// snapshot: the member was `unknown (OID=...)`, which the plan then tried to revoke, and this tenant was `StatementRefused`.
#[tokio::test]
async fn a_role_that_is_dropped_during_a_look_has_its_name_in_it() {
    let server = Server::own().await;
    let installation = installed(&server).await;
    let _owner = tenant(&installation, &id(7), "shop").await;
    let mut admin = server.connect("postgres").await;
    let mut watching = server.connect("postgres").await;
    let mut operator = session::connect(&installation.operator()).await.unwrap();
    execute(&mut admin, "create role passing in role datalake_user").await;
    // the look has its snapshot when it waits for this lock
    execute(&mut admin, "begin; lock table pg_db_role_setting").await;
    let waits =
        "select from pg_stat_activity where wait_event_type = 'Lock' and backend_type = 'client backend'";
    let dropped = async {
        until("a look that waits", async || (rows(&mut watching, waits).await.len() == 1).then_some(()))
            .await;
        execute(&mut admin, "drop role passing; commit").await;
    };
    let shop = id(7);
    let (cluster, ()) = tokio::join!(introspect::cluster(&mut operator, &shop, "shop"), dropped);
    let members: BTreeSet<_> = cluster.unwrap().memberships.into_iter().map(|it| it.member).collect();
    assert!(members.contains("passing"), "{members:?}");
}
