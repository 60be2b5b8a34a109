//! Functions and procedures as entities, in the database: who may call them, how far a call gets, what a data plane reads of
//! them, and how calls of dead keys end.

mod ended_calls;
mod hostile;
mod reading;
mod rights;

use rowgate_core::role::TenantLogin;
use rowgate_pg::connect::login::{Endpoint, Login};
use rowgate_tests::servers::postgres::connect;
use rowgate_tests::servers::reconciler::{DONE, Reconciler};
use sqlx::ConnectOptions as _;
use sqlx::postgres::{PgConnectOptions, PgConnection};

use crate::reconcile::acme::{SPEC, key, reader, tenant};

/// Routines of every form, beside the schema of `acme`.
const ROUTINES: &str = "
create type app.size as enum ('small', 'large');
create domain app.word as text check (value <> '');
create type app.two as (first integer, second app.word[]);
create function app.shout(word text, times integer default 1) returns text
    language sql immutable strict as 'select repeat(upper(word), times)';
create function app.notes_of(wanted text) returns setof app.notes
    language sql stable as 'select * from app.notes where region = wanted';
create function app.split(whole app.two, out first integer, inout size app.size, out rest app.word[])
    language sql immutable as 'select (whole).first, size, (whole).second';
create function app.listed(top integer default 3) returns table (id bigint, body text)
    language sql stable as 'select id, body from app.notes order by id limit top';
create function app.nothing() returns void language plpgsql as 'begin end';
create function app.both() returns app.two language sql as 'select null::app.two';
create function app.only(out two app.two) language sql as 'select null::app.two';
create procedure app.keep(region text, inout body text, out id bigint) language plpgsql
    as 'begin insert into app.notes (region, body) values (keep.region, keep.body) returning notes.id into keep.id; end';
create function app.attempt(statement text) returns text language plpgsql as $$
    begin
        execute statement;
        return 'done';
    exception when others then
        return sqlstate;
    end $$;
";

/// Names of them all.
const NAMES: [&str; 9] =
    ["shout", "notes_of", "split", "listed", "nothing", "both", "only", "keep", "attempt"];

/// Tenant `acme` with the routines as entities, which every unscoped key (`web`) may call; `north` may call two and read notes of
/// the north, `south` may read only.
async fn acme() -> Reconciler {
    let source = |name: &str| {
        let mappings = if name == "shout" { ", mappings: {word: Word, shout: Loud}" } else { "" };
        format!(
            "    - {{name: {name}, kind: Procedure, source: {{schema: app, object: {name}}}{mappings}}}\n"
        )
    };
    let execute = |name: &&str| format!("      - {{entity: {name}, actions: [execute]}}\n");
    let spec = SPEC.replace(
        "    permissions:\n",
        &format!("    permissions:\n{}", NAMES.iter().map(execute).collect::<String>()),
    );
    let spec = format!("{spec}{}", NAMES.map(source).concat());
    // the bootstrap script's last words
    let (last, indented) = ("from app.hidden);", ROUTINES.replace('\n', "\n    "));
    let manifest = tenant("acme", &spec).replacen(last, &format!("{last}{indented}"), 1);
    let north = reader("north", "['*']").replace(
        "permissions: [",
        "permissions: [{entity: shout, actions: [execute]}, {entity: attempt, actions: [execute]}, ",
    );
    let keys = [
        key("web", "acme", ""),
        key("north", "acme", &north),
        key("south", "acme", &reader("south", "['*']")),
    ];
    let reconciler = Reconciler::new(&[("acme.yaml", &manifest), ("keys.yaml", &keys.concat())]).await;
    reconciler.told("tenant", "acme", 1, DONE).await;
    for key in ["web", "north", "south"] {
        reconciler.told("apikey", key, 1, DONE).await;
    }
    reconciler
}

/// What calls log in as: the role of a scoped key, or `t<id>_sql` with `datalake_user` as a startup option.
async fn caller(reconciler: &Reconciler, key: &str) -> PgConnection {
    if key != "web" {
        return connect(&reconciler.key(key, "acme")).await.expect("the key's role");
    }
    let Login { endpoint, database, role, password } = reconciler.login("acme", TenantLogin::Sql);
    let Endpoint::Unix { directory, port } = endpoint else { panic!("our own servers have sockets") };
    let options = PgConnectOptions::new_without_pgpass().socket(directory).port(port).username(&role);
    let options =
        options.password(password.reveal()).database(&database).options([("role", "datalake_user")]);
    options.connect().await.expect("t_sql")
}
