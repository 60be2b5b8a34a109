//! What is done stays done: an unchanged source writes nothing, and what was changed by hand is repaired and told.

use rowgate_core::role::{CONTROL_DATABASE, TenantLogin};
use rowgate_tests::servers::postgres::{connect, execute};
use rowgate_tests::stage::{DONE, Event, On, Stage, Wish};
use rowgate_tests::wait::until;
use sqlx::PgConnection;

use super::{acme, acme_with, done};

scenarios!(
    an_unchanged_source_writes_nothing,
    what_was_changed_by_hand_is_repaired_and_told,
    a_password_changed_by_hand_is_set_again_and_told,
);

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
    // the last begins what a session that is used again is rid of
    let starts = [
        "select",
        "with",
        "begin",
        "rollback",
        "set local",
        "set ",
        "show",
        "listen",
        "unlisten",
        // it follows what it tells of
        "notify",
        "close all",
    ];
    let writes =
        ["insert into", "update dl", "delete from", "dl.fence(", "dl.bump(", "dl.assign(", "dl.revoke("];
    starts.iter().any(|start| statement.trim_start().starts_with(start))
        && !writes.iter().any(|write| statement.contains(write))
}

/// Without what the data planes do.
fn of_reconciling(log: &str) -> String {
    let mut others = false;
    let is_ours = |line: &&str| {
        if !line.starts_with('\t') {
            let user = line.split('|').next().unwrap_or_default();
            others = user == "rowgate_dataplane" || user.ends_with("_auth") || user.ends_with("_lookups");
        }
        !others
    };
    log.lines().filter(is_ours).map(|line| format!("{line}\n")).collect()
}

async fn an_unchanged_source_writes_nothing(on: On) {
    // where nothing is counted, no look is left out
    let postgres: &[&str] = &["log_statement=all", "log_line_prefix=%u|", "track_counts=off"];
    let mut stage = acme_with(on, Wish { postgres, ..Wish::default() }).await;
    let looks = |log: &str| statements(log).iter().filter(|it| it.contains("from dl.applied")).count();
    let further = async |stage: &Stage, start: usize, n: usize| {
        until("further looks", async || (n <= looks(&stage.server.log()[start..])).then_some(())).await;
    };
    let all = statements(&of_reconciling(&stage.server.log()));
    assert!(!all.iter().all(|it| reads_only(it)), "making it all did write");
    further(&stage, 0, looks(&stage.server.log()) + 2).await;
    for restarted in [false, true] {
        if restarted {
            stage.stop().await;
            let start = stage.server.log().len();
            stage.start().await;
            // a new reconciler takes the fence's epoch, once
            further(&stage, start, 2).await;
            done(&stage).await;
        }
        let (start, mark) = (stage.server.log().len(), stage.mark());
        further(&stage, start, 3).await;
        let log = of_reconciling(&stage.server.log()[start..]);
        let seen = statements(&log);
        let wrote: Vec<&String> = seen.iter().filter(|statement| !reads_only(statement)).collect();
        assert!(wrote.is_empty(), "{wrote:#?}");
        assert!(seen.iter().any(|statement| statement.contains("pg_policy")), "the log holds what was read");
        assert_eq!(stage.writes_since(&mark), Vec::<String>::new());
    }
}

/// What was changed by hand as a superuser in the tenant's database, what is true again when it is repaired, and how the
/// change is named.
const BY_HAND: &[(&str, &str, &str)] = &[
    (
        "delete from dl.claims",
        "select count(*) = 3 from dl.claims",
        "claim region of {north} (ApiKey north) is missing",
    ),
    (
        "drop policy own_region on app.notes",
        "select count(*) = 2 from pg_policies",
        "policy own_region on app.notes is missing",
    ),
    (
        "create policy everything on app.notes using (true)",
        "select count(*) = 2 from pg_policies",
        "policy everything on app.notes was added",
    ),
    (
        "alter table app.notes force row level security",
        "select not relforcerowsecurity from pg_class where relname = 'notes'",
        "row-level security of app.notes is forced on its owner",
    ),
    (
        "grant select on app.hidden to datalake_user",
        "select not has_table_privilege('datalake_user', 'app.hidden', 'select')",
        "grant select on app.hidden to datalake_user was added",
    ),
    (
        "grant connect on database acme to public",
        "select not has_database_privilege('rowgate_dataplane', 'acme', 'connect')",
        "grant connect on database acme to public was added",
    ),
    (
        "alter role {north} nologin",
        "select rolcanlogin from pg_roles where rolname = '{north}'",
        "role {north} (ApiKey north) may not log in",
    ),
    (
        "alter role {auth} inherit connection limit 0",
        "select not rolinherit from pg_roles where rolname = '{auth}'",
        "role {auth} has the connection limit 0",
    ),
    (
        "alter role datalake_user login",
        "select not rolcanlogin from pg_roles where rolname = 'datalake_user'",
        "role datalake_user may log in",
    ),
    (
        "revoke {north} from {auth} granted by {keys}",
        "select pg_has_role('{auth}', '{north}', 'set')",
        "role {auth} is not a member of {north} (ApiKey north)",
    ),
    (
        "delete from dl.entities",
        "select count(*) = 2 from dl.entities",
        "entity notes can be served and is missing from dl.entities",
    ),
];

/// Waits for the Event that names a change by hand.
pub(super) async fn named(stage: &Stage, change: &str) {
    until(change, async || {
        let events = stage.events("Tenant", "acme").await;
        let names = |event: &Event| event.reason == "Drifted" && event.warning && event.note.contains(change);
        events.iter().any(names).then_some(())
    })
    .await;
}

pub(crate) async fn n_drifts(stage: &Stage) -> u64 {
    stage.n_events("Tenant", "acme", "Drifted").await
}

#[expect(clippy::disallowed_methods, reason = "the text is the test's own; no request reaches it")]
pub(crate) async fn holds(conn: &mut PgConnection, text: &str) -> bool {
    let query = sqlx::query_scalar(sqlx::AssertSqlSafe(text.to_owned()));
    query.fetch_one(conn).await.unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Seen to fail with Events that are counted whatever their notes say.
async fn what_was_changed_by_hand_is_repaired_and_told(on: On) {
    let stage = acme(on).await;
    let mut names = vec![("{north}", stage.role("north", "acme").await.role)];
    for (name, login) in [("{auth}", TenantLogin::Auth), ("{keys}", TenantLogin::Keys)] {
        names.push((name, stage.login("acme", login).await.role));
    }
    let spell =
        |text: &str| names.iter().fold(text.to_owned(), |text, (name, role)| text.replace(name, role));
    let mut conn = stage.server.connect("acme").await;
    for (change, repaired, name) in BY_HAND {
        let before = n_drifts(&stage).await;
        execute(&mut conn, &spell(change)).await;
        let repaired = spell(repaired);
        assert!(!holds(&mut conn, &repaired).await || before < n_drifts(&stage).await, "{change}");
        until(&repaired, async || holds(&mut conn, &repaired).await.then_some(())).await;
        until(change, async || (before < n_drifts(&stage).await).then_some(())).await;
        named(&stage, &spell(name)).await;
        stage.told("Tenant", "acme", 1, DONE).await;
        stage.told("ApiKey", "north", 1, DONE).await;
    }
}

async fn a_password_changed_by_hand_is_set_again_and_told(on: On) {
    let stage = acme(on).await;
    let mut conn = stage.server.connect("acme").await;
    let without = [TenantLogin::Views, TenantLogin::Migrations];
    for login in TenantLogin::ALL.into_iter().filter(|login| !without.contains(login)) {
        let before = n_drifts(&stage).await;
        let mut login = stage.login("acme", login).await;
        if login.role.ends_with("_keys") {
            login.database = CONTROL_DATABASE.to_owned();
        }
        execute(&mut conn, &format!("alter role {} password 'by hand'", login.role)).await;
        until(&login.role, async || connect(&login).await.ok()).await;
        until("an event", async || (before < n_drifts(&stage).await).then_some(())).await;
    }
    stage.told("Tenant", "acme", 1, DONE).await;
}
