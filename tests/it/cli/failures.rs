//! How a command fails: a code for each class, the reason on standard error, nothing on standard output.

use std::process::Stdio;

use rowgate_tests::world::invented;

use super::fixture::{Desk, done, failure, line};

const SQL_DETAILS: &str = "  orders has the columns id, region, state";

#[tokio::test]
async fn each_class_of_failure_has_its_code_and_names_a_remedy() {
    let mut desk = Desk::open().await;
    for (key, arguments, expected) in [
        // usage
        ("all", &["get"][..], "2 error: the following required arguments were not provided:\n  <ENTITY>"),
        (
            "all",
            &["get", "orders", "--all", "--top", "3"],
            "2 error: the argument '--all' cannot be used with '--top <N>'",
        ),
        (
            "all",
            &["get", "orders", "--fliter", "x"],
            "2 error: unexpected argument '--fliter' found\n\n  tip: a similar argument exists: '--filter'",
        ),
        (
            "all",
            &["get", "orders", "-o", "xml"],
            "2 error: invalid value 'xml' for '--output <FORMAT>'\n  [possible values: table, json, jsonl, csv]",
        ),
        ("all", &["get", "lines", "7"], "2 error: lines has 2 key fields; write order_id=...,line_no=..."),
        (
            "all",
            &["get", "orders", "id=7,8"],
            "2 error: \"id=7,8\" is not a key; write the name and the value of each key field, such as order_id=7,line_no=2",
        ),
        ("all", &["query", "select 1", "-p", "x=1", "-p", "x=2"], "2 error: the parameter x is given twice"),
        (
            "all",
            &["whoami", "--url", "http://127.0.0.1:1/auth/desk/api"],
            "2 error: give the URL of the server alone, without /auth/...: http://127.0.0.1:1",
        ),
        (
            "all",
            &["whoami", "--ca", "/nonexistent"],
            "2 error: the file of --ca, /nonexistent, cannot be read: No such file or directory",
        ),
        // refused
        (
            "all",
            &["get", "nothing"],
            "1 error: EntityNotFound: this API key has no such entity; GET /auth/{tenant}/api lists the entities that it has\n  `rowgate whoami` prints that list",
        ),
        (
            "all",
            &["get", "nothing", "7"],
            "1 error: this API key has no entity \"nothing\"; `rowgate whoami` lists those that it has",
        ),
        ("north", &["get", "lines"], "1 error: EntityNotFound: "),
        (
            "all",
            &["get", "orders", "999"],
            "1 error: there is no row id=999 in orders, or this API key does not see it",
        ),
        (
            "north",
            &["get", "orders", "1"],
            "1 error: there is no row id=1 in orders, or this API key does not see it",
        ),
        (
            "all",
            &["get", "double"],
            "1 error: MethodNotAllowed: this entity is a procedure; call it with POST\n  rowgate has no command for calls: send POST /auth/desk/api/double with the arguments as JSON",
        ),
        (
            "all",
            &["get", "orders", "--filter", "state eq 'open'"],
            "1 error: InvalidFilter: the field \"state\" is desk.state: write one of 'new', 'paid'",
        ),
        (
            "north",
            &["query", "select total from orders"],
            &format!(
                "1 error: InvalidSql: the query names a column that does not exist or that this API key may not read, or the types of values do not fit where they stand\n{SQL_DETAILS}"
            ),
        ),
        (
            "all",
            &["query", "select id from orders where region = @r", "-p", "r=5"],
            "1 error: InvalidValue: the parameter \"r\" is text: write text in double quotes\n  a value that is JSON is no text; to send it as one, write -p 'r=\"5\"'",
        ),
        (
            "all",
            &["query", "delete from orders"],
            "1 error: InvalidSql: line 1, column 1: only a SELECT is allowed here",
        ),
        (
            "all",
            &["tail", "customers"],
            "1 error: BadRequest: \"customers\" is not a table whose events this API key may read; it may read the events of: orders",
        ),
        ("all", &["tail", "orders", "--since", "xyz"], "1 error: InvalidCursor: "),
        (
            "all",
            &["webhooks", "get", "01JDGW"],
            "1 error: NotFound: this API key has no such webhook subscription; GET /api/ddl/events/webhooks lists those that it has\n  `rowgate webhooks list` prints that list",
        ),
        // a local file
        (
            "all",
            &["query", "--file", "/nonexistent"],
            "5 error: cannot read /nonexistent: No such file or directory",
        ),
    ] {
        let said = desk.fails(key, arguments).await;
        assert!(said.starts_with(expected), "{arguments:?}:\n{said}\n{expected}");
    }
    let tls = desk.world.url().replace("http://", "https://");
    for (arguments, says) in [
        (&["query", "select @x::int as a"][..], "\n  a value is given with -p NAME=VALUE"),
        (&["tail", "orders", "--since", "xyz"], "\n  a cursor is given with --since"),
        (&["export", "--resume", "01JDGX", "-o", "x.csv"], "\n  `rowgate exports` prints that list"),
        (&["exports", "cancel", "01JDGX"], "\n  `rowgate exports` prints that list"),
        (&["export", "orders", "-o", "o.parquet.gz"], "2 error: Parquet is compressed within: "),
        (&["whoami", "--retries", "0", "--url", &tls], "it does not speak TLS; write http://"),
    ] {
        let said = desk.fails("all", arguments).await;
        assert!(said.contains(says), "{arguments:?}:\n{said}");
    }
    let mut full = desk.command("all", &["get", "orders"]);
    let device = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("Linux has it");
    let output = full.stdout(Stdio::from(device)).stderr(Stdio::piped()).spawn().expect("it was built");
    let output = output.wait_with_output().await.expect("it runs");
    assert_eq!(output.status.code(), Some(5), "{output:?}");

    keys(&desk).await;

    let url = desk.world.url();
    let away = ["get", "orders", "--retries", "1"];
    let command = desk.command("all", &away);
    desk.world.stop().await;
    let said = failure(&done(command).await);
    assert!(said.starts_with(&format!("3 error: cannot connect to {url}: Connection refused")), "{said}");
}

/// Invented, of another tenant, and revoked: each is refused, and where the key came from is said.
async fn keys(desk: &Desk) {
    let with = async |key: String, tenant: &[&str]| {
        let mut command = desk.command("all", &[&["whoami"], tenant].concat());
        command.env("ROWGATE_KEY", key);
        failure(&done(command).await)
    };
    let refused = "4 error: Unauthorized: the API key or token is missing or not valid here; ";
    for (key, tenant) in [
        (invented("desk"), &[][..]),
        (invented("other"), &[]),
        (desk.world.key("all"), &["--tenant", "other"]),
    ] {
        let said = with(key, tenant).await;
        assert!(said.starts_with(refused) && said.ends_with("\n  the key is that of ROWGATE_KEY"), "{said}");
    }
    let said = with("hunter2".to_owned(), &[]).await;
    assert_eq!(
        said,
        "2 error: ROWGATE_KEY: this is neither an API key, which looks like shop:dlk_..., nor a token"
    );
    // A stream ends with its key, too.
    let mut tail = desk.spawn("north", &["tail", "orders"]);
    assert!(line(&mut tail.stderr).await.starts_with("following "));
    let command = || desk.command("north", &["whoami"]);
    let revoked = command();
    desk.world.edit(
        "desk.yaml",
        "  claims: {region: north}\n",
        "  claims: {region: north}\n  revoked: true\n",
    );
    let status = tail.child.wait().await.expect("it is our child");
    let said = line(&mut tail.stderr).await;
    assert_eq!((status.code(), said.starts_with("error: Unauthorized: ")), (Some(4), true), "{said}");
    let said = failure(&done(revoked).await);
    assert!(said.starts_with("4 error: Unauthorized: "), "{said}");
}

/// `head` has enough, and that is no failure.
#[tokio::test]
async fn a_reader_that_leaves_ends_the_command_with_success() {
    let desk = Desk::open().await;
    for arguments in [
        &["get", "orders", "--all", "-o", "csv"][..],
        &["query", "select n, repeat('x', 1000) from generate_series(1, 9000) n"],
        &["tail", "orders"],
    ] {
        let mut running = desk.spawn("all", arguments);
        drop(running.stdout);
        let status = running.child.wait().await.expect("it is our child");
        assert_eq!(status.code(), Some(0), "{arguments:?}");
        while let Some(said) = running.stderr.next_line().await.expect("it is text") {
            assert!(!said.contains("error") && !said.contains("panic"), "{arguments:?}: {said}");
        }
    }
}
