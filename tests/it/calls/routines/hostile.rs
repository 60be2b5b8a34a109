//! A routine that tries to be another role, or to see what is Rowgate's, as calls run it.

use rowgate_core::role::TenantLogin;

use super::{acme, caller};
use crate::reconcile::acme::one;

/// Nobody gets these done by a function that runs any text.
const TRIED: &[&str] = &[
    "set role {auth}",
    "set role {owner}",
    "set role {keys}",
    "set role {set}",
    "set role {south}",
    "set role rowgate_superuser",
    "set local role {owner}",
    "select set_config('role', '{owner}', false)",
    "select set_config('role', '{south}', true)",
    "select set_config('role', '{auth}', false)",
    "select set_config('session_authorization', '{owner}', false)",
    "set session authorization {owner}",
    "grant {south} to current_user",
    "select * from dl.keys",
    "select * from dl.key_secrets",
    "select * from dl.live",
    "select * from dl.state",
    "select * from dl.entities",
    "select * from dl.permission_sets",
    "select * from dl.claims",
    "select * from dl.applied",
    "select * from dl.backends",
    "insert into dl.backends values (1, now(), 'k', 'x', 'r', now())",
    "delete from dl.backends",
    "select dl.revoke('x')",
    "select dl.fence(1)",
    "select dl.stand_routines('[]')",
    "select * from app.hidden",
    "select app.all_words()",
    "create function app.mine() returns int language sql security definer as 'select 1'",
    "create or replace function app.attempt(statement text) returns text language sql as 'select 1'",
    "alter function app.attempt(text) security definer",
    "grant execute on function app.all_words() to public; select app.all_words()",
    "create table app.t (i int)",
    "create temp table t (i int)",
    "copy (select 1) to program 'true'",
    "select pg_read_file('postgresql.conf')",
    "select pg_terminate_backend(pid) from pg_stat_activity where usename = '{owner}'",
    // whoever one gets to be by leaving a role may read nothing
    "set role none; select 1 / (current_user like 't%')::int; select * from app.notes",
    "reset role; set row_security = off; select * from app.notes",
];

#[tokio::test]
async fn no_routine_reaches_beyond_its_caller() {
    let reconciler = acme().await;
    let owner = reconciler.login("acme", TenantLogin::Owner);
    let mut conn = reconciler.server.connect("acme").await;
    let set: String = one(&mut conn, "select set_role::text from dl.keys where name = 'north'").await;
    let role = |login| reconciler.login("acme", login).role;
    let names = [
        ("{auth}", role(TenantLogin::Auth)),
        ("{owner}", owner.role.clone()),
        ("{keys}", role(TenantLogin::Keys)),
        ("{set}", set),
        ("{south}", reconciler.key("south", "acme").role),
    ];
    let mut wrong = Vec::new();
    for (key, n_rows) in [("web", 20), ("north", 10)] {
        for text in TRIED {
            let text = names.iter().fold((*text).to_owned(), |text, (name, role)| text.replace(name, role));
            let mut conn = caller(&reconciler, key).await;
            let before: String = one(&mut conn, "select current_user::text").await;
            let got: String = sqlx::query_scalar("select app.attempt($1)")
                .bind(&text)
                .fetch_one(&mut conn)
                .await
                .unwrap_or_else(|error| panic!("{text}: {error}"));
            // 22012: there is nobody to become
            let refused = got == "42501" || got == "22012" && text.contains("1 /");
            if !refused {
                wrong.push(format!("{key}: {text}: {got}"));
            }
            assert_eq!(one::<String>(&mut conn, "select current_user::text").await, before, "{text}");
            assert_eq!(
                one::<i64>(&mut conn, "select count(*) from app.notes").await,
                n_rows,
                "{key}: {text}"
            );
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
