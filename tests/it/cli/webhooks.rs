//! `rowgate webhooks`: a subscription from its beginning to its end, and the secret, which is printed once.

use rowgate_tests::servers::receiver::{Answer, Receiver};
use rowgate_tests::wait::until;
use serde_json::{Value, json};

use super::fixture::{Desk, done_with};

const ONCE: &str = "store the secret where the receiver verifies; it is not shown again\n";

#[tokio::test]
async fn a_subscription_is_made_listed_changed_suspended_tried_and_deleted() {
    let desk = Desk::open().await;
    let receiver = Receiver::good().await;
    let url = receiver.url("/hooks");
    let done = desk
        .run(
            "all",
            &[
                "webhooks",
                "create",
                "--name",
                "orders",
                "--to",
                &url,
                "--tables",
                "orders",
                "--ops",
                "insert",
                "--header",
                "X-Team: desk",
            ],
        )
        .await;
    assert_eq!((done.code, done.stderr.as_str()), (0, ONCE), "{done:?}");
    let made: Value = serde_json::from_str(&done.stdout).expect("JSON");
    let secret = made["secret"].as_str().expect("it is shown this once");
    assert!(secret.starts_with("whsec_"), "{secret}");
    let id = made["id"].as_str().expect("an id");
    let ask = async |command: &str, more: &[&str]| {
        desk.json("all", &[&["webhooks", command, id], more].concat()).await
    };

    desk.sql("insert into desk.orders values (1001, 'north', 'new', 1, null, 1)").await;
    until("the event", async || (receiver.n_requests() == 1).then_some(())).await;
    let request = receiver.requests().remove(0);
    assert_eq!((&request.events()[0]["key"], &*request.headers["x-team"]), (&json!({"id": 1001}), "desk"));
    until("the delivery in the list", async || {
        let all = ask("deliveries", &[]).await;
        (all[0]["status"] == 200 && all[0]["events"] == 1).then_some(())
    })
    .await;
    let tried = ask("test", &[]).await;
    assert_eq!(tried["delivered"], true, "{tried}");
    assert_eq!(receiver.n_requests(), 2);

    let read = ask("get", &[]).await;
    assert_eq!((&read["name"], read.get("secret")), (&json!("orders"), None), "{read}");
    let listed = desk.prints("all", &["webhooks", "list", "-o", "table"]).await;
    let row = listed.lines().nth(2).expect("a row below the head");
    assert!(row.starts_with(&format!("{id}  orders  {url}  enabled ")), "{listed}");
    assert!(!listed.contains("whsec_") && !read.to_string().contains("whsec_"), "{listed} {read}");
    assert_eq!(desk.json("north", &["webhooks", "list"]).await, json!([]), "it is another key's");

    let change =
        done_with(desk.command("all", &["webhooks", "update", id, "--file", "-"]), "{\"name\": \"less\"}")
            .await;
    assert_eq!(change.code, 0, "{change:?}");
    assert_eq!(ask("get", &[]).await["name"], "less");
    assert_eq!(ask("suspend", &[]).await["suspend"], true);
    assert_eq!(ask("resume", &[]).await["suspend"], false);
    assert_eq!(ask("dead-letters", &[]).await, json!([]));
    let replay = ask("replay", &["--from-start", "--dry-run"]).await;
    assert_eq!(replay["events"], 1, "{replay}");
    let done = desk.run("all", &["webhooks", "rotate-secret", id]).await;
    assert!(
        done.code == 0
            && done.stderr == ONCE
            && done.stdout.contains("whsec_")
            && !done.stdout.contains(secret),
        "{done:?}"
    );
    assert_eq!(desk.prints("all", &["webhooks", "delete", id]).await, "");
    assert_eq!(desk.json("all", &["webhooks", "list"]).await, json!([]));
}

#[tokio::test]
async fn a_test_that_is_not_delivered_fails_and_a_file_makes_a_subscription() {
    let desk = Desk::open().await;
    let receiver = Receiver::at("127.0.0.1", |_| Box::pin(async { Answer::Status(500) })).await;
    let body = json!({"name": "broken", "url": receiver.url("/"), "filter": {"tables": ["orders"]}, "suspend": true});
    let file = desk.file("subscription.json", &body.to_string());
    let done = desk.run("all", &["webhooks", "create", "--file", &file]).await;
    let made: Value = serde_json::from_str(&done.stdout).unwrap_or_else(|_| panic!("{done:?}"));
    let id = made["id"].as_str().expect("an id");
    let done = desk.run("all", &["webhooks", "test", id]).await;
    assert_eq!(done.code, 1, "{done:?}");
    assert!(done.stderr.starts_with("error: the test message was not delivered: "), "{done:?}");
    assert!(
        serde_json::from_str::<Value>(&done.stdout).is_ok_and(|answer| answer["delivered"] == false),
        "{done:?}"
    );

    let text = desk.file("text.json", "[1]");
    assert_eq!(
        desk.fails("all", &["webhooks", "create", "--file", &text]).await,
        format!("2 error: {text} is not a JSON object")
    );
    let refused = desk
        .fails("all", &["webhooks", "create", "--name", "x", "--to", &receiver.url("/"), "--tables", "lines"])
        .await;
    assert!(refused.starts_with("1 error: BadRequest: filter.tables: \"lines\" is not a table"), "{refused}");
}
