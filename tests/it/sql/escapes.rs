//! Nothing that a text tries shows what its key may not see, or leaves a trace: over the SQL endpoint and as a payloadQuery.

use std::fmt::Write as _;

use rowgate_tests::client::Client;
use serde_json::{Value, json};

use super::fixture::{Lab, refusal};

const ESCAPES: &str = include_str!("escapes.txt");

/// What the database and the server are, but for what every query changes.
const STATE: &str = "\
select (select md5(string_agg(c.oid || c.relname || c.relrowsecurity || coalesce(c.relacl::text, ''), ',' order by c.oid)) from pg_class c
        where c.relpersistence <> 't' and c.relnamespace <> 'dl'::regnamespace) as relations,
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

/// What a session of the two keys is: its role, its settings and what it holds, seen from within and from beside it.
const SESSIONS: &str = "\
select usename, state, count(*) as n from pg_stat_activity where datname = 'lab' and (usename like 'key\\_%' or usename like '%\\_sql') group by 1, 2 order by 1";

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
        let code = part.get(..4).and_then(|digits| u32::from_str_radix(digits, 16).ok()).and_then(char::from_u32);
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

async fn state(lab: &Lab) -> Value {
    json!([lab.seen(STATE).await, lab.seen(SESSIONS).await, std::path::Path::new("/tmp/left_behind").exists()])
}

#[tokio::test]
async fn no_text_shows_what_its_key_may_not_see_or_leaves_a_trace() {
    let lab = Lab::open().await;
    let tenant = lab.world.status("Tenant", "lab")["tenantId"].as_str().expect("an id").to_owned();
    let escapes = escapes(&format!("t{tenant}_owner"));
    assert!(300 <= escapes.len(), "{}", escapes.len());
    let mut wrong = Vec::new();
    for (key, own) in [("north", ""), ("plain", "hidden_south")] {
        lab.rows(key, "select 1 as a").await;
        let before = state(&lab).await;
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
            let after = state(&lab).await;
            if after != before {
                wrong.push(format!("{key}: {text:?}: the state was {before} and is {after}"));
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
    let before = state(&lab).await;
    let mut accepted = Vec::new();
    for Escape { text, .. } in escapes(&format!("t{tenant}_owner")) {
        let body = json!({"name": "escape", "url": "https://receiver.example/hooks", "suspend": true,
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
            400 => assert_eq!(refusal(&reply).1, "InvalidPayloadQuery", "{text}: {reply:?}"),
            status => panic!("{status} {text}: {reply:?}"),
        }
    }
    assert_eq!(state(&lab).await[0], before[0]);
    assert_eq!(accepted, ACCEPTED);
}

/// Texts that are no escape where they are a payload query: they read what the key may.
const ACCEPTED: [&str; 0] = [];
