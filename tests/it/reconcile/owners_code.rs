//! What the tenant's owner wrote, in the way of the passes: functions that policies call, and notices.

use rowgate_tests::servers::postgres::{Server, execute};
use rowgate_tests::wait::until;
use rowgate_tests::world::World;

#[tokio::test]
async fn a_policy_may_call_a_function_of_the_owner_from_the_first_pass_on() {
    let mut world = World::shop().await.compared_every(1);
    let near = "    create function shop.near(region text) returns boolean language plpgsql stable as \
                $$ begin raise notice 'told: %', region; return region = dl.claim('region'); end $$;\n    \
                do $$ begin raise warning 'a secret row'; end $$;\n";
    world.shop_script(near);
    world.edit(
        "tenant.yaml",
        "sees none by this one.\n          - name: own_region\n            column: region\n            equals:\n              claim: region\n",
        "sees none by this one.\n          - name: own_region\n            expression: shop.near(region)\n",
    );
    world.start().await;
    let answer = world.get(&world.key("north"), "/auth/shop/api/customers?$first=2").await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.body["value"].as_array().map(Vec::len), Some(2), "{answer:?}");
    assert!(!world.log().contains("still differs"), "one pass is enough: {}", world.log());
    assert!(!world.log().contains("a secret row"), "what a tenant's code says is not ours to log");
    assert!(world.stop().await.success());
}

/// PostgreSQL runs such a function while it parses the policy; and an owner can change what names and operators mean in all sessions of its
/// database. Seen to fail with policies made in a session of `t<id>_dl`, and without a search path of its own there.
/// Sessions of `t<id>_lookups` bring one too.
#[tokio::test]
async fn code_of_the_owner_runs_as_the_owner_and_as_callers_and_as_nobody_else() {
    let server = Server::own().await;
    let mut world = World::shop_on(&server).compared_every(1);
    world.shop_script(TRAPS);
    world.edit(
        "tenant.yaml",
        "sees none by this one.\n          - name: own_region\n            column: region\n            equals:\n              claim: region\n",
        "sees none by this one.\n          - name: own_region\n            expression: region = dl.claim('region') and '{1}'::shop.trap[] is not null\n",
    );
    world.start().await;
    let database = world.status("Tenant", "shop")["database"].as_str().expect("a name").to_owned();
    let mut superuser = server.connect(&database).await;
    // from the next session on
    let shadows = format!("alter database {database} set search_path = shop_traps, pg_catalog");
    execute(&mut superuser, &shadows).await;
    assert!(world.stop().await.success());
    world.start().await;
    world.edit("keys.yaml", "  name: north\n", "  name: north\n  annotations: {rowgate.dev/rotate: again}\n");
    until("the rotation", async || {
        let rotated = "select count(*) from dl.keys where rotated_for is not null";
        let n: i64 = sqlx::query_scalar(rotated).fetch_one(&mut superuser).await.expect("an answer");
        (0 < n).then_some(())
    })
    .await;
    let answer = world.get(&world.key("north"), "/auth/shop/api/customers?$first=2").await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let ran = "select distinct session_role, role from shop_traps.ran order by 1, 2";
    let ran: Vec<(String, String)> = sqlx::query_as(ran).fetch_all(&mut superuser).await.expect("an answer");
    let is_owner =
        |(session, role): &&(String, String)| session.ends_with("_owner") && role.ends_with("_owner");
    assert!(ran.iter().any(|it| is_owner(&it)), "the traps work: {ran:?}");
    let is_other = |(session, _): &&(String, String)| {
        ["_dl", "_keys", "_lookups"].iter().any(|kind| session.ends_with(kind))
            || session.starts_with("rowgate")
    };
    assert_eq!(ran.iter().find(is_other), None, "{ran:?}");
    let made = "select count(*) from pg_roles where rolname = 'pwned'";
    let n_made: i64 = sqlx::query_scalar(made).fetch_one(&mut superuser).await.expect("an answer");
    assert_eq!(n_made, 0, "a role that may create roles ran what the owner wrote");
    let id = world.status("Tenant", "shop")["tenantId"].as_str().expect("an id").to_owned();
    let enters = "select has_database_privilege('t' || $1 || '_keys', 't_' || $1, 'connect')";
    let enters: bool =
        sqlx::query_scalar(enters).bind(id).fetch_one(&mut superuser).await.expect("an answer");
    assert!(!enters, "the keys login has no business in the tenant's database");
    assert!(world.stop().await.success());
}

/// Each notes as whom it ran. A domain that is checked where a policy is parsed, a cast that capturing a row would find, operators and
/// functions in place of PostgreSQL's own.
const TRAPS: &str = r"    create schema shop_traps;
    create table shop_traps.ran (session_role text, role text);
    grant usage on schema shop_traps to public; grant insert on shop_traps.ran to public;
    create function shop_traps.note() returns boolean language plpgsql as $$ begin
        begin
            insert into shop_traps.ran values (session_user, current_user);
        exception when others then null;
        end;
        if current_user like '%\_keys' then execute 'create role pwned'; end if;
        return true;
    end $$;
    grant execute on function shop_traps.note() to public;
    create function shop_traps.fits(int) returns boolean language sql as 'select shop_traps.note()';
    create domain shop.trap as int check (shop_traps.fits(value));
    create function shop_traps.same(text, text) returns boolean language sql as 'select shop_traps.note() and $1 operator(pg_catalog.=) $2';
    create operator shop_traps.= (leftarg = text, rightarg = text, function = shop_traps.same);
    create function shop_traps.below(bigint, bigint) returns boolean language sql as 'select shop_traps.note() and $1 operator(pg_catalog.<) $2';
    create operator shop_traps.< (leftarg = bigint, rightarg = bigint, function = shop_traps.below);
    create function shop_traps.plus(bigint, integer) returns bigint language sql as 'select case when shop_traps.note() then $1 operator(pg_catalog.+) $2 end';
    create operator shop_traps.+ (leftarg = bigint, rightarg = integer, function = shop_traps.plus);
    create function shop_traps.now() returns timestamptz language sql as 'select case when shop_traps.note() then pg_catalog.now() end';
    grant execute on all functions in schema shop_traps to public;
";
