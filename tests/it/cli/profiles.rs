//! Profiles, and which server and key are used. The file is its owner's alone, and no command prints a key.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;
use tokio::process::Command;

use super::fixture::{Desk, Done, done, done_with, failure};

fn mode(path: &std::path::Path) -> u32 {
    fs::metadata(path).expect("it is there").permissions().mode() & 0o777
}

#[tokio::test]
async fn a_profile_is_added_used_listed_and_removed() {
    let desk = Desk::open().await;
    let url = desk.world.url();
    let none = failure(&done(desk.bare(&["whoami"])).await);
    assert_eq!(
        none,
        "2 error: there is no profile yet; add a profile with `rowgate profile add`, or set ROWGATE_URL and ROWGATE_KEY"
    );
    let add = async |name: &str, key: &str, more: &[&str]| {
        done_with(desk.bare(&[&["profile", "add", name], more].concat()), key).await
    };
    let all = format!("{}\n", desk.world.key("all"));
    let without = failure(&add("desk", &all, &[]).await);
    assert_eq!(
        without,
        "2 error: give the URL of the server with --url, such as --url http://127.0.0.1:8080"
    );
    let at = ["--url", &url];
    let wrong = failure(&add("desk", "hunter2", &at).await);
    assert_eq!(wrong, "2 error: this is neither an API key, which looks like shop:dlk_..., nor a token");
    assert!(!desk.profiles().exists());

    let Done { code, stdout, stderr } = add("desk", &all, &at).await;
    let saved = "saved the profile \"desk\", which is the current one; `rowgate whoami` tries it\n";
    assert_eq!((code, stdout.as_str(), stderr.as_str()), (0, "", saved));
    assert_eq!((mode(&desk.profiles()), mode(desk.profiles().parent().expect("a folder"))), (0o600, 0o700));
    let added = add("north", &desk.world.key("north"), &at).await;
    assert_eq!(
        added.stderr,
        "saved the profile \"north\"; `rowgate profile use north` makes it the current one\n"
    );

    let listed = json(desk.bare(&["profile", "list"])).await;
    let row =
        |name: &str, current: bool| json!({"name": name, "url": url, "tenant": "desk", "current": current});
    assert_eq!(listed, json!([row("desk", true), row("north", false)]));
    let n_rows = async |more: &[&str]| {
        let rows = json(desk.bare(&[&["get", "orders", "--all"], more].concat())).await;
        rows.as_array().expect("a list").len()
    };
    assert_eq!((n_rows(&[]).await, n_rows(&["--profile", "north"]).await), (250, 125));
    let mut named = desk.bare(&["query", "select count(*) as n from orders"]);
    named.env("ROWGATE_PROFILE", "north").env("ROWGATE_KEY", "ignored");
    assert_eq!(json(named).await, json!([{"n": 125}]));
    assert_eq!(done(desk.bare(&["profile", "use", "north"])).await.code, 0);
    assert_eq!(n_rows(&[]).await, 125);

    assert_eq!(done(desk.bare(&["profile", "remove", "north"])).await.code, 0);
    assert_eq!(
        failure(&done(desk.bare(&["whoami"])).await),
        "2 error: choose a profile with `rowgate profile use` or --profile"
    );
    let gone = failure(&done(desk.bare(&["whoami", "--profile", "north"])).await);
    assert_eq!(gone, "2 error: there is no profile \"north\"; there are desk");
    assert!(!fs::read_to_string(desk.profiles()).expect("it is there").contains(&desk.world.key("north")));
}

#[tokio::test]
async fn a_file_that_others_may_read_is_refused_and_a_refused_key_is_traced_to_its_profile() {
    let desk = Desk::open().await;
    let url = desk.world.url();
    let add = desk.bare(&["profile", "add", "desk", "--url", &url]);
    assert_eq!(done_with(add, &rowgate_tests::world::invented("desk")).await.code, 0);
    let refused = failure(&done(desk.bare(&["whoami"])).await);
    assert!(refused.starts_with("4 error: Unauthorized: "), "{refused}");
    assert!(refused.ends_with("\n  the key is that of the profile \"desk\""), "{refused}");

    let path = desk.profiles();
    fs::set_permissions(&path, Permissions::from_mode(0o640)).expect("the file is ours");
    let shown = path.display();
    let expected = format!(
        "2 error: {shown} holds keys, and others may read or change it (mode 640); run: chmod 600 '{shown}'"
    );
    for arguments in [&["whoami"][..], &["profile", "list"], &["profile", "use", "desk"]] {
        assert_eq!(failure(&done(desk.bare(arguments)).await), expected, "{arguments:?}");
    }
    // The environment needs no file.
    let who = desk.json("north", &["whoami"]).await;
    assert_eq!(
        (&who["url"], &who["tenant"], &who["entities"][0]["name"]),
        (&json!(url), &json!("desk"), &json!("orders"))
    );
    assert_eq!(who["entities"].as_array().map(Vec::len), Some(1));
}

#[tokio::test]
async fn half_a_connection_is_refused() {
    let desk = Desk::open().await;
    let mut no_key = desk.bare(&["whoami"]);
    no_key.env("ROWGATE_URL", desk.world.url());
    let mut no_url = desk.bare(&["whoami"]);
    no_url.env("ROWGATE_KEY", desk.world.key("all"));
    for (command, expected) in [
        (
            no_key,
            "2 error: ROWGATE_URL is set, and ROWGATE_KEY is not; set both, or name a profile with --profile",
        ),
        (no_url, "2 error: ROWGATE_URL is not set; set it, or use --url"),
    ] {
        assert_eq!(failure(&done(command).await), expected);
    }
}

async fn json(command: Command) -> serde_json::Value {
    let done = done(command).await;
    assert_eq!((done.code, done.stderr.as_str()), (0, ""), "{done:?}");
    serde_json::from_str(&done.stdout).unwrap_or_else(|error| panic!("{error} in {done:?}"))
}
