//! Every reason for which an object is `Stalled`, produced by real manifests on a real PostgreSQL: the whole message, which
//! names what is wrong and says what to do. `stalled/table.snap` is what people read; `INSTA_UPDATE=always` writes it anew, to
//! be read before it is committed.

mod cases;
mod databases;
mod protection;
mod relationships;
mod routines;
mod scripts;
mod subscriptions;

use std::fmt::Write as _;
use std::fs;
use std::time::Duration;

use rowgate_crds::Reason;
use rowgate_tests::servers::postgres::{execute, rows};
use rowgate_tests::servers::reconciler::{DONE, Reconciler};
use rowgate_tests::wait::until_ok;
use rowgate_tests::world::status::{holds, ready};
use serde_json::Value;

use cases::{Object, cases};

/// With this the last part of a message begins that tells somebody what to do.
const TELLS: &[&str] = &[
    "a DBA can run: ",
    "ask ",
    "add it",
    "alter routine ",
    "alter table ",
    "apply it",
    "correct ",
    "create it ",
    "declare it ",
    "delete ",
    "detach it",
    "drop it",
    "expose ",
    "give ",
    "leave it out",
    "let ",
    "read a table",
    "reduce ",
    "name ",
    "partition it",
    "grant ",
    "protect ",
    "remove ",
    "rename ",
    "restore ",
    "use ",
    "set ",
    "transfer ",
    "test current_user",
    "change ",
    "write ",
];

/// Name and text of a Secret that somebody else has made.
const THEIRS: (&str, &str) = (
    "theirs",
    "apiVersion: v1\nkind: Secret\nmetadata: {name: theirs, namespace: default}\nstringData: {password: theirs}\n",
);

/// One needs 1,501 keys, and stands below; one needs a server that lets nobody in as it should (`scenarios/failures/answering.rs`), and one
/// a database that somebody fills (`neighbours/resources/tenant_data.rs`), one a database of somebody else (`adopted/refused.rs`),
/// and one another server (`servers/refused.rs`).
const ELSEWHERE: [Reason; 5] = [
    Reason::TooManyPermissionSets,
    Reason::LoginRefused,
    Reason::TooLarge,
    Reason::RightsMissing,
    Reason::ServerRefused,
];

/// No look comes while the cases are made, but for what changes; each looks at sixty tenants.
const SELDOM: Duration = Duration::from_secs(20);

/// Seen to fail with a case left out, with a message that ends before its remedy, and with one that leaves out the
/// entity.
#[tokio::test]
async fn every_message_of_a_stalled_object_says_what_to_change() {
    let mut reconciler = Reconciler::new(&[]).await;
    reconciler.stop().await;
    let mut superuser = reconciler.server.connect("postgres").await;
    execute(&mut superuser, "create database byhand").await;
    let (name, text) = THEIRS;
    let path = reconciler.secret_file(name);
    fs::create_dir_all(path.parent().expect("a folder of Secrets")).expect("the folder is ours");
    fs::write(path, text).expect("the folder is ours");
    reconciler.write("common.yaml", &cases::common());
    reconciler.start_every(SELDOM);
    reconciler.told("apikey", "first", 1, DONE).await;
    let cases = cases();
    for case in &cases {
        reconciler.write(&format!("{}.yaml", case.name), &case.manifest);
    }
    for case in cases.iter().filter(|case| !case.spoil.is_empty()) {
        reconciler.told("tenant", case.name, 1, DONE).await;
        let id = &reconciler.file("tenant", case.name).expect("it was told something")["status"]["tenantId"];
        let spoil = case.spoil.replace("{id}", id.as_str().expect("it has its id"));
        execute(&mut reconciler.server.connect(case.name).await, &spoil).await;
        if !case.then.is_empty() {
            reconciler.write(&format!("{}.yaml", case.name), &case.then);
        }
    }

    let mut table = String::new();
    let mut wrong = Vec::new();
    for case in &cases {
        let (kind, name) = match case.object {
            Object::Tenant => ("tenant", case.name),
            Object::ApiKey => ("apikey", case.name),
            Object::Relationship => ("relationship", case.name),
            Object::WebhookSubscription => ("webhooksubscription", case.name),
        };
        let reason = case.reason.as_str();
        let status = until_ok(&format!("{reason} for {kind} {name}"), async || {
            let status = reconciler.file(kind, name).map(|file| file["status"].clone()).unwrap_or_default();
            if holds(&status, "Stalled") && ready(&status).0 == reason { Ok(status) } else { Err(status) }
        })
        .await;
        let message = told(&reconciler, case.name, ready(&status).1).await;
        let tells = message.split("; ").skip(1).any(|part| TELLS.iter().any(|it| part.starts_with(it)));
        if !tells || !message.contains(case.names) {
            wrong.push(format!("{}: {message}", case.why));
        }
        writeln!(table, "# {}\n{reason}: {message}\n", case.why).expect("a String takes it");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("stalled");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!("table", table));
    for reason in Reason::ALL.iter().filter(|reason| reason.stalls()) {
        let has_case = cases.iter().any(|case| case.reason == *reason) || ELSEWHERE.contains(reason);
        assert!(has_case, "{reason:?} needs a case");
    }
}

/// Each key reads other fields of eleven.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_permission_set_too_many_is_told_and_all_others_work() {
    let columns: Vec<String> = (0..11).map(|n| format!("c{n}")).collect();
    let script = format!("create table public.wide (id int primary key, {} int);", columns.join(" int, "));
    let tenant = format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: script}}\ndata: {{schema.sql: '{script}'}}\n---\n\
         apiVersion: rowgate.dev/v1alpha1\nkind: Tenant\nmetadata: {{name: wide}}\n\
         spec: {{database: {{bootstrap: {{configMapRef: {{name: script}}}}}}, entities: [{{name: wide, source: {{schema: public, object: wide}}, rowLevelSecurity: {{none: true}}}}]}}\n"
    );
    let key = |n: usize| {
        let fields: Vec<&str> = columns
            .iter()
            .enumerate()
            .filter(|(bit, _)| n >> bit & 1 == 1)
            .map(|(_, it)| it.as_str())
            .collect();
        format!(
            "---\napiVersion: rowgate.dev/v1alpha1\nkind: ApiKey\nmetadata: {{name: key-{n}}}\n\
             spec: {{tenantRef: {{name: wide}}, scope: {{permissions: [{{entity: wide, actions: [read], fields: {{include: [{}]}}}}]}}}}\n",
            fields.join(", ")
        )
    };
    let keys: String = (1..=1_501).map(key).collect();
    let mut reconciler = Reconciler::new(&[]).await;
    reconciler.stop().await;
    reconciler.write("all.yaml", &(tenant + &keys));
    reconciler.start_every(SELDOM);
    reconciler.told("tenant", "wide", 1, DONE).await;
    let all = (1..=1_501).map(|n| reconciler.file("apikey", &format!("key-{n}")).expect("each is told"));
    let stalled: Vec<Value> = all.filter(|file| holds(&file["status"], "Stalled")).collect();
    assert_eq!(stalled.len(), 1);
    let (reason, message) = ready(&stalled[0]["status"]);
    assert_eq!(reason, Reason::TooManyPermissionSets.as_str());
    assert!(
        message.contains("1500 distinct permission sets") && message.contains("; let keys share scopes"),
        "{message}"
    );
}

/// The message as it is told to everybody: identifiers are each time others.
async fn told(reconciler: &Reconciler, tenant: &str, message: &str) -> String {
    let mut message = message.to_owned();
    let mut conn = reconciler.server.connect("rowgate").await;
    for row in rows(&mut conn, "select id from control.tenants").await {
        message = message.replace(row["id"].as_str().expect("a text"), "<id>");
    }
    let file = reconciler.file("apikey", tenant).unwrap_or_default();
    match file["status"]["apiKeyId"].as_str() {
        Some(id) => message.replace(id, "<key>"),
        None => message,
    }
}
