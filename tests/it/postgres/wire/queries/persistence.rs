//! Nothing that a key may send in a session of its own shows another's rows, or is there afterwards.

use std::collections::BTreeMap;
use std::time::Duration;

use rowgate_pg::wire::{QueryFailure, QueryOutcome};
use rowgate_tests::wait::until;
use serde_json::Value;

use super::attempts::{ENDLESS, WITH_COLUMNS, WITHOUT_COLUMNS};
use super::attempts_inside::INSIDE;
use super::fixture::{Desk, HIDDEN, word};

/// What a session says of itself, but for settings that a library or a query has made up: they stay, without a value. Its process is in it: a session that was closed for what it did has another.
const SESSION: &str = "\
select current_user as me, session_user as login, current_setting('role') as role, current_setting('search_path') as path,
    current_setting('transaction_read_only') as read_only, coalesce(current_setting('mine.mark', true), '') as mark,
    (select md5(string_agg(name || '=' || setting, ',' order by name)) from pg_settings where strpos(name, '.') = 0) as settings,
    (select count(*) from pg_prepared_statements where name <> '') as statements,
    (select count(*) from pg_cursors where name <> '') as cursors,
    (select count(*) from pg_locks where locktype = 'advisory') as locks,
    (select count(*) from pg_listening_channels()) as channels,
    (select count(*) from pg_class where relpersistence = 't') as temporary,
    (select string_agg(distinct owner, ' ') from app.notes) as owners";

/// What the database and the server are, but for what every query changes.
const SERVER: &str = "\
select (select md5(string_agg(c.oid || c.relname || c.relacl::text, ',' order by c.oid)) from pg_class c where c.relpersistence <> 't') as relations,
    (select md5(string_agg(p.oid || p.proname, ',' order by p.oid)) from pg_proc p) as routines,
    (select md5(string_agg(a::text, ',' order by a.oid)) from pg_authid a) as roles,
    (select count(*) from pg_db_role_setting) as role_settings, (select count(*) from pg_default_acl) as defaults,
    (select count(*) from pg_auth_members) as members, (select count(*) from pg_largeobject_metadata) as objects,
    (select count(*) from pg_extension) as extensions, (select count(*) from pg_foreign_server) as servers,
    (select count(*) from app.open) as open, (select last_value || is_called::text from app.counter) as counter,
    (select count(*) from app.secrets) as secrets, (select md5(string_agg(n::text, ',' order by id)) from app.notes n) as notes,
    (select count(*) from pg_prepared_xacts) as prepared, (select count(*) from pg_file_settings) as files,
    (select count(*) from pg_locks where locktype = 'advisory') as locks,
    (select count(*) from pg_ls_dir('pg_snapshots')) as snapshots,
    (select count(*) from pg_stat_activity where application_name = 'left_behind') as named";

/// The keys that try, and what each may see of [`HIDDEN`].
const KEYS: [(&str, &str); 2] = [("a", "hidden_a"), ("u", "hidden_u")];

impl Desk {
    async fn session(&self, key: &str) -> Value {
        self.rows(key, SESSION).await[0].clone()
    }

    async fn state(&self) -> Value {
        let state = self.seen(SERVER).await;
        let exists = std::path::Path::new("/tmp/left_behind").exists();
        serde_json::json!([state, exists])
    }
}

/// Which rows of others an answer shows.
fn shown(answer: &Result<QueryOutcome, QueryFailure>, own: &str, text: &str) -> Vec<&'static str> {
    let json = answer.as_ref().map(|outcome| String::from_utf8_lossy(&outcome.json).into_owned());
    let json = json.unwrap_or_default();
    HIDDEN.into_iter().filter(|it| *it != own && json.contains(it) && !text.contains(it)).collect()
}

#[tokio::test]
async fn nothing_that_is_tried_shows_rows_of_others_or_is_there_afterwards() {
    let desk = Desk::open().await;
    let mut wrong = Vec::new();
    let inside: Vec<(String, &str)> = INSIDE
        .iter()
        .map(|(how, given)| (format!("select app.runs({}) as given", quoted(how)), *given))
        .collect();
    let attempts = WITHOUT_COLUMNS.iter().map(|text| (*text, "Result"));
    let attempts: Vec<(&str, &str)> = attempts
        .chain(WITH_COLUMNS)
        .chain(inside.iter().map(|(text, given)| (text.as_str(), *given)))
        .collect();
    // a key that does nothing, whose session nothing may touch
    let bystander = desk.rows("b", "select pg_backend_pid() as pid").await;
    for (key, own) in KEYS {
        let (session, state) = (desk.session(key).await, desk.state().await);
        assert_eq!(session["me"], desk.role(key));
        assert_eq!(session["owners"], desk.role(key));
        assert_eq!(session["login"], if key == "u" { "wq_sql" } else { "wq_a" });
        for (text, expected) in &attempts {
            let answer = desk.run(key, text).await;
            let others = shown(&answer, own, text);
            if !others.is_empty() {
                wrong.push(format!("{key}: {text}: shows {others:?}"));
            }
            let became = match (&answer, text.starts_with("select app.runs(")) {
                (Ok(outcome), true) => {
                    super::fixture::json(outcome)[0]["given"].as_str().unwrap_or_default().to_owned()
                }
                _ => word(&answer),
            };
            let role = desk.role(key);
            let expected = if *expected == "me" { role.as_str() } else { expected };
            if became != expected {
                wrong.push(format!("{key}: {text}: {became} and not {expected}: {answer:?}"));
            }
            let after = desk.session(key).await;
            if after != session {
                wrong.push(format!("{key}: {text}: the session was {session} and is {after}"));
            }
            let after = desk.state().await;
            if after != state {
                wrong.push(format!("{key}: {text}: the server was {state} and is {after}"));
            }
        }
    }
    assert_eq!(desk.rows("b", "select pg_backend_pid() as pid").await, bystander);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The last one traps every cancellation.
#[tokio::test]
async fn what_has_no_end_is_ended_and_its_session_with_it() {
    let desk = Desk::open().await;
    let mut ended = BTreeMap::new();
    for (key, _) in KEYS {
        let before = desk.session(key).await;
        for text in ENDLESS {
            let answer = desk.run_with(key, text, Vec::new(), Duration::from_millis(500)).await;
            ended.insert((key, text), word(&answer));
            until("the end of the statement", async || {
                let running = "select count(*) as n from pg_stat_activity where state = 'active' and usename in ('wq_a', 'wq_sql')";
                (desk.seen(running).await[0]["n"] == 0).then_some(())
            })
            .await;
            assert_eq!(desk.session(key).await, before, "{key}: {text}");
        }
    }
    ended.retain(|_, word| word != "Timeout");
    assert!(ended.is_empty(), "{ended:?}");
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
