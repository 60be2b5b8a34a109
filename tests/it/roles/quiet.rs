//! What is done stays done: an unchanged folder writes nothing, and what was changed by hand is repaired and told.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::SystemTime;

use rowgate_core::role::{CONTROL_DATABASE, TenantLogin};
use rowgate_tests::postgres::{connect, execute};
use rowgate_tests::reconciler::{DONE, Reconciler};
use rowgate_tests::wait::until;
use sqlx::PgConnection;

use super::acme;

/// The statements in a server log, lower-case, continuation lines with them.
pub(crate) fn statements(log: &str) -> Vec<String> {
    let mut statements: Vec<String> = Vec::new();
    for line in log.lines() {
        let text = ["LOG:  statement: ", "LOG:  execute "].iter().find_map(|mark| line.split_once(mark));
        match text {
            Some((_, text)) if line.contains("LOG:  execute ") => {
                statements.push(text.split_once(": ").expect("a name before the text").1.to_lowercase());
            }
            Some((_, text)) => statements.push(text.to_lowercase()),
            None if line.starts_with('\t') => {
                statements.last_mut().into_iter().for_each(|last| last.push_str(&line.to_lowercase()));
            }
            None => {}
        }
    }
    statements
}

pub(crate) fn reads_only(statement: &str) -> bool {
    // the last one begins what a session that is used again is rid of
    let starts = ["select", "with", "begin", "rollback", "set local", "set ", "show", "close all"];
    let writes =
        ["insert into", "update dl", "delete from", "dl.fence(", "dl.bump(", "dl.assign(", "dl.revoke("];
    starts.iter().any(|start| statement.trim_start().starts_with(start))
        && !writes.iter().any(|write| statement.contains(write))
}

/// Text and time of every file that reconciling writes.
fn written(reconciler: &Reconciler) -> BTreeMap<PathBuf, (String, SystemTime)> {
    let mut files = BTreeMap::new();
    for folder in ["status", "secrets/default", "."] {
        for entry in fs::read_dir(reconciler.state().join(folder)).expect("the state folder is there") {
            let path = entry.expect("a readable folder").path();
            if path.is_file() {
                let modified = fs::metadata(&path).and_then(|it| it.modified()).expect("it is there");
                files.insert(path.clone(), (fs::read_to_string(&path).expect("it is text"), modified));
            }
        }
    }
    files
}

#[tokio::test]
async fn an_unchanged_folder_writes_nothing() {
    let mut reconciler = acme(&["log_statement=all"]).await;
    reconciler.told("tenant", "acme", 1, DONE).await;
    let looks = |log: &str| statements(log).iter().filter(|it| it.contains("from dl.applied")).count();
    let further = async |reconciler: &Reconciler, start: usize, n: usize| {
        until("further looks", async || (n <= looks(&reconciler.server.log()[start..])).then_some(())).await;
    };
    further(&reconciler, 0, looks(&reconciler.server.log()) + 1).await;
    assert!(!statements(&reconciler.server.log()).iter().all(|it| reads_only(it)), "making it all did write");
    for restarted in [false, true] {
        if restarted {
            reconciler.stop().await;
            let start = reconciler.server.log().len();
            reconciler.start();
            // a new reconciler takes the fence's epoch, once
            further(&reconciler, start, 2).await;
        }
        let (start, before) = (reconciler.server.log().len(), written(&reconciler));
        further(&reconciler, start, 3).await;
        let log = reconciler.server.log();
        let seen = statements(&log[start..]);
        let wrote: Vec<&String> = seen.iter().filter(|statement| !reads_only(statement)).collect();
        assert!(wrote.is_empty(), "{wrote:#?}");
        assert!(seen.iter().any(|statement| statement.contains("pg_policy")), "the log holds what was read");
        assert_eq!(written(&reconciler), before);
    }
}

/// What was changed by hand as a superuser in the tenant's database, and what is true again when it is repaired.
const BY_HAND: &[(&str, &str)] = &[
    ("delete from dl.claims", "select count(*) = 3 from dl.claims"),
    ("drop policy own_region on app.notes", "select count(*) = 2 from pg_policies"),
    ("create policy everything on app.notes using (true)", "select count(*) = 2 from pg_policies"),
    (
        "alter table app.notes no force row level security",
        "select relforcerowsecurity from pg_class where relname = 'notes'",
    ),
    (
        "grant select on app.hidden to datalake_user",
        "select not has_table_privilege('datalake_user', 'app.hidden', 'select')",
    ),
    (
        "grant connect on database acme to public",
        "select not has_database_privilege('rowgate_dataplane', 'acme', 'connect')",
    ),
    ("alter role {north} nologin", "select rolcanlogin from pg_roles where rolname = '{north}'"),
    (
        "alter role {auth} inherit connection limit 0",
        "select not rolinherit from pg_roles where rolname = '{auth}'",
    ),
    (
        "alter role datalake_user login",
        "select not rolcanlogin from pg_roles where rolname = 'datalake_user'",
    ),
    ("revoke {north} from {auth} granted by {keys}", "select pg_has_role('{auth}', '{north}', 'set')"),
    ("delete from dl.entities", "select count(*) = 2 from dl.entities"),
];

fn n_drifts(reconciler: &Reconciler) -> u64 {
    let file = reconciler.file("tenant", "acme").expect("it was told something");
    let events = file["events"].as_array().cloned().unwrap_or_default();
    let drifts = events.iter().filter(|event| event["reason"] == "Drifted");
    drifts.map(|event| event["count"].as_u64().expect("events are counted")).sum()
}

#[expect(clippy::disallowed_methods, reason = "the text is the test's own; no request reaches it")]
async fn holds(conn: &mut PgConnection, text: &str) -> bool {
    let query = sqlx::query_scalar(sqlx::AssertSqlSafe(text.to_owned()));
    query.fetch_one(conn).await.unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[tokio::test]
async fn what_was_changed_by_hand_is_repaired_and_told() {
    let reconciler = acme(&[]).await;
    reconciler.told("tenant", "acme", 1, DONE).await;
    let mut names = vec![("{north}", reconciler.key("north", "acme").role)];
    for (name, login) in [("{auth}", TenantLogin::Auth), ("{keys}", TenantLogin::Keys)] {
        names.push((name, reconciler.login("acme", login).role));
    }
    let spell =
        |text: &str| names.iter().fold(text.to_owned(), |text, (name, role)| text.replace(name, role));
    let mut conn = reconciler.server.connect("acme").await;
    for (change, repaired) in BY_HAND {
        let before = n_drifts(&reconciler);
        execute(&mut conn, &spell(change)).await;
        let repaired = spell(repaired);
        assert!(!holds(&mut conn, &repaired).await || before < n_drifts(&reconciler), "{change}");
        until(&repaired, async || holds(&mut conn, &repaired).await.then_some(())).await;
        until(change, async || (before < n_drifts(&reconciler)).then_some(())).await;
        reconciler.told("tenant", "acme", 1, DONE).await;
        reconciler.told("apikey", "north", 1, DONE).await;
    }
}

#[tokio::test]
async fn a_password_changed_by_hand_is_set_again_and_told() {
    let reconciler = acme(&[]).await;
    reconciler.told("tenant", "acme", 1, DONE).await;
    let mut conn = reconciler.server.connect("acme").await;
    for login in TenantLogin::ALL {
        let before = n_drifts(&reconciler);
        let mut login = reconciler.login("acme", login);
        if login.role.ends_with("_keys") {
            login.database = CONTROL_DATABASE.to_owned();
        }
        execute(&mut conn, &format!("alter role {} password 'by hand'", login.role)).await;
        until(&login.role, async || connect(&login).await.ok()).await;
        until("an event", async || (before < n_drifts(&reconciler)).then_some(())).await;
    }
    reconciler.told("tenant", "acme", 1, DONE).await;
}
