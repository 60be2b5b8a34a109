//! What a data plane reads of routines, and whether it notices that one became another.

use rowgate_core::name::EntityName;
use rowgate_core::role::TenantLogin;
use rowgate_pg::catalog::load;
use rowgate_pg::connect::session;
use rowgate_sql::catalog::{Catalog, Mode, Output, Param, Returns, RoutineKind};
use rowgate_tests::servers::postgres::{connect, execute};
use rowgate_tests::servers::reconciler::Reconciler;
use sqlx::PgConnection;

use super::{NAMES, acme};
use crate::reconcile::acme::one;

/// One line for each: what it takes, `=` where that may be left out, and what it gives.
fn lines(catalog: &Catalog) -> Vec<String> {
    let param = |param: &Param| {
        let way = match param.mode {
            Mode::In => "",
            Mode::InOut => "inout ",
            Mode::Out => "out ",
        };
        let default = if param.has_default { " =" } else { "" };
        let nested = if param.ty.nested.is_some() { " by parts" } else { "" };
        format!("{way}{}/{} {}{nested}{default}", param.name, param.argument.as_str(), param.ty.name)
    };
    let output = |it: &Output| format!("{}/{} {}", it.name, it.column.as_str(), it.ty.name);
    let all = |list: &[Output]| list.iter().map(output).collect::<Vec<_>>().join(", ");
    let line = |name: &&str| {
        let entity = &catalog.entities[&entity_name(name)];
        let routine = entity.routine.as_ref().expect("a routine");
        let params: Vec<String> = routine.params.iter().map(param).collect();
        let kind = if routine.kind == RoutineKind::Procedure { "call" } else { "select" };
        let gives = match &routine.returns {
            Returns::Nothing => "nothing".to_owned(),
            Returns::Row(outputs) => format!("a row ({})", all(outputs)),
            Returns::Rows(outputs) => format!("rows ({})", all(outputs)),
        };
        let strict = if routine.strict { " strict" } else { "" };
        format!("{kind} {name}({}) gives {gives}, {:?}{strict}", params.join(", "), routine.volatility)
    };
    NAMES.iter().map(line).collect()
}

async fn lookups(reconciler: &Reconciler) -> PgConnection {
    session::connect(&reconciler.login("acme", TenantLogin::Lookups)).await.expect("the login of look-ups")
}

#[tokio::test]
async fn a_catalog_knows_what_each_call_takes_and_gives() {
    let reconciler = acme().await;
    let (catalog, _) = load(&mut lookups(&reconciler).await).await.expect("a catalog");
    assert_eq!(catalog.missing, [""; 0]);
    assert!(catalog.unguarded.is_empty());
    assert_eq!(
        lines(&catalog),
        [
            "select shout(Word/word text, times/times integer =) gives a row (Loud/shout text), Immutable strict",
            "select notes_of(wanted/wanted text) gives rows (id/id bigint, region/region text, body/body text), Stable",
            "select split(whole/whole app.two by parts, inout size/size app.size) gives a row (first/first integer, size/size app.size, rest/rest app.word[]), Immutable",
            "select listed(top/top integer =) gives rows (id/id bigint, body/body text), Stable",
            "select nothing() gives nothing, Volatile",
            "select both() gives a row (first/first integer, second/second app.word[]), Volatile",
            "select only() gives a row (first/first integer, second/second app.word[]), Volatile",
            "call keep(region/region text, inout body/body text, out id/id bigint) gives a row (body/body text, id/id bigint), Volatile",
            "select attempt(statement/statement text) gives a row (attempt/attempt text), Volatile",
        ]
    );
    let north = catalog.scopes.iter().find(|(role, _)| {
        role.starts_with("set_") && { catalog.scopes[*role].entities.values().any(|rights| rights.execute) }
    });
    let (_, north) = north.expect("the set of north");
    let mut executes: Vec<&str> =
        north.entities.iter().filter(|(_, rights)| rights.execute).map(|(name, _)| name.as_str()).collect();
    executes.sort_unstable();
    assert_eq!(executes, ["attempt", "shout"]);
    assert_eq!(catalog.scopes["datalake_user"].entities.values().filter(|rights| rights.execute).count(), 9);
}

/// What somebody does by hand as the owner, and what the entity is then: open, closed or missing.
const BY_HAND: &[(&str, &str)] = &[
    ("alter function app.shout(text, integer) security definer", "closed"),
    (
        "create or replace function app.shout(word text, times integer default 1) returns text language sql security definer as 'select word'",
        "closed",
    ),
    ("create function app.shout(word text) returns text language sql as 'select word'", "closed"),
    ("create procedure app.shout(word text, other text) language sql as 'select 1'", "closed"),
    (
        "create function app.shout(variadic words text[]) returns text language sql as 'select 1::text'",
        "closed",
    ),
    ("drop function app.shout(text, integer)", "missing"),
    ("alter function app.shout(text, integer) rename to whisper", "missing"),
    (
        "drop function app.shout(text, integer); create function app.shout(text) returns text language sql as 'select $1'",
        "missing",
    ),
    (
        "create or replace function app.shout(word text, times integer default 1) returns text language sql as 'select word'",
        "open",
    ),
    ("revoke execute on function app.shout(text, integer) from {set}", "open"),
    ("alter type app.size add value 'huge'", "open"),
    ("alter type app.two add attribute third integer", "open"),
];

/// As it was in the beginning, as far as the scripts above change it.
const AGAIN: &str = "
    do $$ declare one text; begin
        for one in select oid::regprocedure from pg_proc
                   where pronamespace = 'app'::regnamespace and proname in ('shout', 'whisper') loop
            execute 'drop routine ' || one;
        end loop;
    end $$;
    create function app.shout(word text, times integer default 1) returns text
        language sql immutable strict as 'select repeat(upper(word), times)';
    grant execute on function app.shout(text, integer) to {set}";

/// Seen to fail with a fingerprint of tables only, and with a catalog that takes a SECURITY DEFINER routine for what it was.
#[tokio::test]
async fn a_routine_that_became_another_is_noticed_and_closed() {
    let mut reconciler = acme().await;
    // nobody repairs what is done here
    reconciler.stop().await;
    let mut conn = lookups(&reconciler).await;
    let mut owner = connect(&reconciler.login("acme", TenantLogin::Owner)).await.expect("the owner's login");
    let set: String = one(
        &mut reconciler.server.connect("acme").await,
        "select set_role::text from dl.keys where name = 'north'",
    )
    .await;
    for (script, becomes) in BY_HAND {
        execute(&mut owner, &AGAIN.replace("{set}", &set)).await;
        let (catalog, watched) = load(&mut conn).await.expect("a catalog");
        assert_eq!(shout(&catalog), "open", "before {script}");
        assert_eq!(watched.look(&mut conn).await.expect("a look"), watched.fingerprint, "before {script}");
        execute(&mut owner, &script.replace("{set}", &set)).await;
        assert_ne!(watched.look(&mut conn).await.expect("a look"), watched.fingerprint, "not seen: {script}");
        let (catalog, _) = load(&mut conn).await.expect("a catalog");
        assert_eq!(shout(&catalog), *becomes, "{script}");
    }
}

/// Whether it can be called.
fn shout(catalog: &Catalog) -> &'static str {
    let name = entity_name("shout");
    match (catalog.entities.contains_key(&name), catalog.unguarded.contains(&name)) {
        (false, _) => "missing",
        (true, true) => "closed",
        (true, false) => "open",
    }
}

fn entity_name(text: &str) -> EntityName {
    text.parse().expect("a name")
}
