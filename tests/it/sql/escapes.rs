//! Nothing that a text tries shows what its key may not see, or leaves a trace: over the SQL endpoint and as a payloadQuery.

use std::fmt::Write as _;

use rowgate_tests::client::Client;
use rowgate_tests::servers::postgres::rows;
use rowgate_tests::wait::until;
use serde_json::{Value, json};
use sqlx::PgConnection;

use super::fixture::{Lab, refusal};

const ESCAPES: &str = include_str!("escapes.txt");

/// What the database and the server are, but for what every query changes, and for grants to PUBLIC, which the operator takes back.
const STATE: &str = "\
select (select string_agg(c.oid || ' ' || c.relname || ' ' || c.relrowsecurity || ' ' || case when c.relname in ('open', 'counter') then '' else coalesce(c.relacl::text, '') end, E'\n' order by c.oid) from pg_class c
        where c.relpersistence <> 't' and c.relnamespace not in ('dl'::regnamespace, 'pg_toast'::regnamespace)) as relations,
    (select count(*) from pg_class where relpersistence = 't') as temporary,
    (select md5(string_agg(p.oid || p.proname, ',' order by p.oid)) from pg_proc p) as routines,
    (select md5(string_agg(a::text, ',' order by a.oid)) from pg_authid a) as roles,
    (select count(*) from pg_db_role_setting) as role_settings, (select count(*) from pg_auth_members) as members,
    (select count(*) from pg_largeobject_metadata) as objects, (select count(*) from pg_extension) as extensions,
    (select count(*) from pg_replication_slots) as slots, (select count(*) from pg_replication_origin) as origins,
    (select count(*) from lab.open) as open, (select last_value || is_called::text from lab.counter) as counter,
    (select md5(string_agg(n::text, ',' order by id)) from lab.notes n) as notes, (select count(*) from lab.secrets) as secrets,
    (select count(*) from pg_prepared_xacts) as prepared, (select count(*) from pg_file_settings) as files,
    (select count(*) from pg_description where description = 'left_behind') as comments,
    (select count(*) from pg_ls_dir('pg_snapshots')) as snapshots,
    (select count(*) from pg_locks where locktype = 'advisory' and database = (select oid from pg_database where datname = 'lab')) as locks";

/// Sessions of keys that hold something after the answer.
const SESSIONS: &str = "\
select usename, state from pg_stat_activity where datname = 'lab' and state <> 'idle' and (usename like 'key\\_%' or usename like '%\\_sql')";

struct Escape {
    expected: &'static str,
    text: String,
}

fn escapes(owner: &str) -> Vec<Escape> {
    let lines = ESCAPES.lines().filter(|line| !line.is_empty() && !line.starts_with("# "));
    let escape = |line: &'static str| {
        let (expected, text) = line.split_once(' ').expect("a word and a text");
        Escape { expected, text: written(&text.replace("@@OWNER@@", owner)) }
    };
    lines.map(escape).collect()
}

/// `\n` and `\u` with four digits are the characters that they stand for.
fn written(text: &str) -> String {
    let mut parts = text.split("\\u");
    let mut written = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let code =
            part.get(..4).and_then(|digits| u32::from_str_radix(digits, 16).ok()).and_then(char::from_u32);
        match code {
            Some(char) => {
                written.push(char);
                written.push_str(&part[4..]);
            }
            None => {
                let _ = write!(written, "\\u{part}");
            }
        }
    }
    written.replace("\\n", "\n")
}

fn what_is_covered(body: &str, own: &str, text: &str) -> bool {
    ["hidden_south", "hidden_secret", "hidden_column"]
        .into_iter()
        .any(|word| word != own && body.contains(word) && !text.contains(word))
}

async fn state(superuser: &mut PgConnection) -> Value {
    let left_behind = std::path::Path::new("/tmp/left_behind").exists();
    json!([rows(superuser, STATE).await, rows(superuser, SESSIONS).await, left_behind])
}

/// The lines that only one of them has.
fn difference(before: &Value, after: &Value) -> String {
    let [before, after] = [before, after].map(|state| format!("{state:#}").replace("\\n", "\n"));
    let lines = |from: &str, without: &str| {
        let lines = from.lines().filter(|line| !without.lines().any(|other| other == *line));
        lines.collect::<Vec<_>>().join(" | ")
    };
    format!("{} where there was {}", lines(&after, &before), lines(&before, &after))
}

#[tokio::test]
async fn no_text_shows_what_its_key_may_not_see_or_leaves_a_trace() {
    shows_nothing_more(&Lab::open().await, &[("north", ""), ("plain", "hidden_south")]).await;
}

#[tokio::test]
async fn nor_does_one_in_the_database_of_an_application() {
    let lab = Lab::adopted().await;
    until("SQL of callers", async || {
        (lab.ask("north", "select 1 as a", json!({})).await.status == 200).then_some(())
    })
    .await;
    shows_nothing_more(&lab, &[("north", "")]).await;
}

/// `keys`: each with what it may see of what is covered.
async fn shows_nothing_more(lab: &Lab, keys: &[(&str, &str)]) {
    let tenant = lab.world.status("Tenant", "lab")["tenantId"].as_str().expect("an id").to_owned();
    let mut superuser = lab.server.connect("lab").await;
    let escapes = escapes(&format!("t{tenant}_owner"));
    assert!(300 <= escapes.len(), "{}", escapes.len());
    let mut wrong = Vec::new();
    for (key, own) in keys {
        lab.rows(key, "select 1 as a").await;
        let mut before = state(&mut superuser).await;
        for Escape { expected, text } in &escapes {
            let reply = lab.ask(key, text, json!({})).await;
            let became = match reply.status.as_u16() {
                200 => "Ran".to_owned(),
                _ => refusal(&reply).1,
            };
            if became != *expected {
                wrong.push(format!("{key}: {became} {text:?}: {}", reply.body));
            }
            if what_is_covered(&reply.body, own, text) {
                wrong.push(format!("{key}: {text:?} shows {}", reply.body));
            }
            let after = state(&mut superuser).await;
            if after != before {
                wrong.push(format!("{key}: {text:?} left {}", difference(&before, &after)));
                before = after;
            }
        }
    }
    assert!(wrong.is_empty(), "{} are wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// A payload query is prepared when it is saved, so that what is accepted has been in the hands of PostgreSQL.
#[tokio::test]
async fn no_text_is_a_payload_query_that_reads_more_than_its_owner() {
    let lab = Lab::open().await;
    let tenant = lab.world.status("Tenant", "lab")["tenantId"].as_str().expect("an id").to_owned();
    let (url, key) = (format!("{}/api/ddl/events/webhooks", lab.world.url()), lab.world.key("north"));
    let headers = [("X-API-Key", key.as_str()), ("Content-Type", "application/json")];
    let client = Client::new();
    let mut superuser = lab.server.connect("lab").await;
    let before = state(&mut superuser).await;
    let mut accepted = Vec::new();
    for Escape { text, .. } in escapes(&format!("t{tenant}_owner")) {
        let body = json!({"name": "escape", "url": "http://127.0.0.1:9/hooks", "suspend": true,
            "payloadQuery": format!("{text} for json path")});
        let reply = client.send("POST", &url, &headers, &body.to_string()).await;
        assert!(!what_is_covered(&reply.body, "", &text), "{text}: {reply:?}");
        match reply.status.as_u16() {
            201 => {
                let id = reply.json()["id"].as_str().expect("an id").to_owned();
                let gone = client.ask("DELETE", &format!("{url}/{id}"), &headers[..1]).await;
                assert_eq!(gone.status, 204, "{gone:?}");
                accepted.push(text);
            }
            400 if text.contains('\0') => assert_eq!(refusal(&reply).1, "BadRequest", "{text}: {reply:?}"),
            400 => assert_eq!(refusal(&reply).1, "InvalidPayloadQuery", "{text}: {reply:?}"),
            status => panic!("{status} {text}: {reply:?}"),
        }
    }
    assert_eq!(state(&mut superuser).await[0], before[0]);
    assert_eq!(accepted, ACCEPTED);
}

/// Texts that are no escape where they are a payload query: they read what the key may.
const ACCEPTED: [&str; 16] = [
    "select n from lab.notes as n",
    "select to_json(n) as a from lab.notes as n",
    "select row_to_json(n) as a from lab.notes as n",
    "select array_agg(n) as a from lab.notes as n",
    "select json_agg(n) as a from lab.notes as n",
    "select n::text as a from lab.notes as n",
    "select count(n) as a from lab.notes as n",
    "select @\"id\" as a",
    "select e'\\x41' as a",
    "select 0b11 as a",
    "select 1.e5 as a",
    "select 1as a",
    "select 1/*/**/*/as a",
    "select 1 as \u{202e}a",
    "select E'\\\\000' as a",
    "select '\\\\x00'::bytea as a",
];
