//! A statement that PostgreSQL refuses closes what it belongs to, a key or the keys of a permission set, and all else
//! goes on. Constraints that somebody set on tables of `dl` stand for whatever may refuse one.

use rowgate_tests::servers::postgres::{attempt, connect, execute};
use rowgate_tests::stage::{DONE, On, Stage};
use rowgate_tests::wait::until;
use rowgate_tests::world::status::ready;
use sqlx::PgConnection;

use crate::reconcile::acme::{key, one, reader};
use crate::reconcile::scenarios::acme;

scenarios!(
    a_refused_statement_closes_its_key_and_all_else_goes_on,
    a_refused_unscoped_key_is_denied_by_its_row,
    a_refused_revocation_stops_no_other_and_closes_the_role,
);

/// What refuses a statement of `north`, in words and as statements; what takes that away; and the scope of `north` that meets it.
const REFUSALS: [(&str, &str, &str, &str); 3] = [
    (
        "a claim",
        "alter table dl.claims add constraint ours check (value <> 'mars') not valid",
        "alter table dl.claims drop constraint ours",
        "claims: {region: mars}, scope: {permissions: [{entity: notes, actions: [read], fields: {include: ['*']}}]}",
    ),
    (
        "the row of its permission set",
        "alter table dl.permission_sets add constraint ours check (not permissions::text like '%update%') not valid",
        "alter table dl.permission_sets drop constraint ours",
        "claims: {region: north}, scope: {permissions: [{entity: notes, actions: [read, update], fields: {include: [body]}}]}",
    ),
    (
        "a right that other sets are given by the same statement",
        "create function public.ours() returns event_trigger language plpgsql security definer as $$
         begin
             if exists (select from pg_attribute a cross join aclexplode(a.attacl) one join pg_roles r on r.oid = one.grantee
                        where a.attrelid = 'app.notes'::regclass and a.attname = 'id' and r.rolname like 'set\\_%'
                        group by r.oid having 1 < count(*) filter (where privilege_type in ('INSERT', 'SELECT'))) then
                 raise 'no set inserts what it reads' using errcode = 'check_violation';
             end if;
         end $$;
         revoke all on function public.ours() from public;
         create event trigger ours on ddl_command_end when tag in ('GRANT') execute function public.ours()",
        "drop event trigger ours; drop function public.ours()",
        "claims: {region: north}, scope: {permissions: [{entity: notes, actions: [create, read], fields: {include: [id, region]}}]}",
    ),
];

async fn refuse(conn: &mut PgConnection, table: &str, check: &str) {
    execute(conn, &format!("alter table {table} add constraint ours check ({check}) not valid")).await;
}

async fn reads(stage: &Stage, key: &str, text: &str) -> bool {
    match connect(&stage.role(key, "acme").await).await {
        Ok(mut conn) => attempt(&mut conn, text).await.is_ok(),
        Err(_) => false,
    }
}

/// Transactions that were rolled back in the tenant's database: each try ends in one.
async fn tries(conn: &mut PgConnection) -> i64 {
    execute(conn, "select pg_stat_clear_snapshot()").await;
    one(conn, "select xact_rollback from pg_stat_database where datname = 'acme'").await
}

/// Seen to fail with statements that belong to the whole tenant (`south` keeps `body`), with a closed key that is left in
/// its permission set, with passes that call their next try drift, and with a statement of several sets that belongs to the whole tenant.
async fn a_refused_statement_closes_its_key_and_all_else_goes_on(on: On) {
    for (what, refuse, accept, scope) in REFUSALS {
        let mut stage = acme(on).await;
        let mut conn = stage.server.connect("acme").await;
        execute(&mut conn, refuse).await;
        assert!(reads(&stage, "north", "select id from app.notes").await);
        assert!(reads(&stage, "south", "select body from app.notes").await);

        stage.put(&key("north", "acme", scope)).await;
        stage.put(&key("south", "acme", &reader("south", "[id, region]"))).await;
        let told = stage.told("ApiKey", "north", 2, "StatementRefused").await;
        let (_, message) = ready(&told);
        assert!(message.contains("23514") && message.contains("denied everything"), "{message}");
        stage.told("ApiKey", "south", 2, DONE).await;
        stage.told("Tenant", "acme", 1, DONE).await;
        assert!(!reads(&stage, "south", "select body from app.notes").await, "{what}: narrowed");
        assert!(reads(&stage, "south", "select region from app.notes").await, "{what}");
        assert!(!reads(&stage, "north", "select 1").await, "{what}: closed");
        let held = "select count(*) from dl.keys where name = 'north' and (set_role is not null or revoked_at is not null)";
        assert_eq!(
            one::<i64>(&mut conn, held).await,
            0,
            "{what}: closed for the data planes, and not for good"
        );
        let of_south = "select generation from dl.state";
        let generation = one::<i64>(&mut conn, of_south).await;
        // a later pass tries again, and calls nothing of it drift
        let before = tries(&mut conn).await;
        until("another try", async || (before + 1 < tries(&mut conn).await).then_some(())).await;
        assert_eq!(
            stage.n_events("Tenant", "acme", "Drifted").await,
            0,
            "{what}: nobody changed the database by hand"
        );

        execute(&mut conn, accept).await;
        stage.told("ApiKey", "north", 2, DONE).await;
        assert!(reads(&stage, "north", "select id from app.notes").await, "{what}: mended");
        assert!(generation < one::<i64>(&mut conn, of_south).await, "{what}: the data planes are told");
        assert_eq!(stage.n_events("Tenant", "acme", "Drifted").await, 0, "{what}");
    }
}

/// An unscoped key is every other unscoped key in the database, so its row alone closes it. Seen to fail with a closed
/// key whose row keeps its permission set.
async fn a_refused_unscoped_key_is_denied_by_its_row(on: On) {
    let mut stage = acme(on).await;
    let mut conn = stage.server.connect("acme").await;
    refuse(&mut conn, "dl.keys", "expires_at is null").await;
    let other = key("other", "acme", "");
    let soon = key("web", "acme", "expiresAt: 2099-01-01T00:00:00Z");
    stage.put(&format!("{soon}{other}")).await;
    stage.told("ApiKey", "web", 2, "StatementRefused").await;
    stage.told("ApiKey", "other", 1, DONE).await;
    let sets = "select string_agg(name || '=' || coalesce(set_role::text, 'none'), ' ' order by name) \
                from dl.keys where name in ('web', 'other')";
    assert_eq!(one::<String>(&mut conn, sets).await, "other=datalake_user web=none");
}

/// Seen to fail with a revocation that belongs to the whole tenant.
async fn a_refused_revocation_stops_no_other_and_closes_the_role(on: On) {
    let mut stage = acme(on).await;
    let (north, south) = (stage.role("north", "acme").await, stage.role("south", "acme").await);
    let mut conn = stage.server.connect("acme").await;
    refuse(&mut conn, "dl.keys", "revoked_at is null or name <> 'north'").await;
    stage.remove("ApiKey", "north").await;
    stage.remove("ApiKey", "south").await;
    let told = stage.told("Tenant", "acme", 1, "StatementRefused").await;
    assert!(ready(&told).1.contains("could not be revoked"), "{told}");
    for login in [&north, &south] {
        until(&format!("the end of {}", login.role), async || connect(login).await.err()).await;
    }
    let alive = "select string_agg(name, ' ' order by name) from dl.keys where revoked_at is null";
    assert_eq!(one::<String>(&mut conn, alive).await, "north web");
    execute(&mut conn, "alter table dl.keys drop constraint ours").await;
    stage.told("Tenant", "acme", 1, DONE).await;
    assert_eq!(one::<String>(&mut conn, alive).await, "web");
    stage.gone("ApiKey", "north").await;
}
