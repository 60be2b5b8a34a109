//! The console in a real browser: a query over three levels, a webhook that its receiver refuses first, a request from the API
//! reference, and nothing that leaves the origin.
//!
//! With `ROWGATE_PICTURES=docs/images` the pictures of README.md are taken.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use rowgate_tests::world::World;
use serde_json::{Value, json};

use super::fixture::{files, path_from};
use crate::keys::tokens::clients::{packages, tests};

/// Seen to fail with a script from elsewhere in the page, with an inline script, with the texts of the keys in the list of
/// keys, without the policy, without the files of the editor's workers, and where the proxy passes on what is answered with a
/// secret.
#[tokio::test]
async fn a_person_asks_the_shop_in_a_browser() {
    let mut world = World::shop().await;
    // the receiver is on this machine
    world.edit("tenant.yaml", "spec:\n  database:\n", "spec:\n  webhooks: {allowHttp: true}\n  database:\n");
    world
        .start_with(|command| {
            command.arg("--console").arg(files()).args(["--webhook-ranges", "127.0.0.0/8"]);
        })
        .await;
    let keys = ["north", "shop-admin", "south"].map(|name| world.key(name));
    let pictures = std::env::var_os("ROWGATE_PICTURES").map(|folder| tests().join("..").join(folder));
    let input = json!({"keys": keys, "pictures": pictures.as_deref().map(Path::to_string_lossy)});
    let seen = browse(&world, &input.to_string());

    let all = [
        "best_sellers",
        "customers",
        "order_lines",
        "order_summary",
        "orders",
        "place_order",
        "products",
        "stock",
    ];
    assert_eq!(
        seen["entities"],
        json!({"all": all, "fewer": ["customers", "order_lines", "orders"], "preview": 3})
    );
    let orders = &seen["graphql"]["data"]["orders"];
    let first = &orders["items"][0];
    assert_eq!((&first["id"], &first["customer"]["name"]), (&json!(1), &json!("Chen Gruber")), "{orders}");
    assert_eq!(first["lines"]["items"][0]["product"]["title"], "Large clock", "{orders}");
    let counts: i64 = orders["groupBy"]
        .as_array()
        .expect("groups")
        .iter()
        .map(|it| it["aggregations"]["count"].as_i64().expect("a number"))
        .sum();
    assert_eq!(counts, 300, "{orders}");
    assert_eq!(seen["sql"]["cells"], json!(["1", "12345678901234567890.10", "NULL", "Bela Costa"]));
    assert_eq!(seen["sql"]["scoped"], "north");
    assert_eq!(seen["sql"]["exported"], "{\"region\":\"north\"}\n");
    assert_eq!(seen["events"], json!({"answered": 201, "op": "insert"}));
    let expected = json!({
        "refused": 403,
        "test": "The test message was not taken: the receiver answered 500.",
        "request": ["orders.insert", 7],
        "response": "out of paper",
        "redriven": "1 dead letter is sent again.",
        "counted": "A replay would send 1 event.",
        "received": ["test", "row.batch", "row.batch", "row.batch"],
    });
    assert_eq!(seen["webhooks"], expected);
    let reference = &seen["reference"];
    assert_eq!((&reference["status"], &reference["rows"]), (&json!(200), &json!(3)), "{reference}");
    assert_eq!(reference["sent"], "/console/proxy/shop/shop-admin/auth/shop/api/customers");
    let curl = reference["curl"].as_str().expect("a text");
    assert!(
        curl.contains(&format!("'{}/auth/shop/api/customers?", world.url())) && !curl.contains("dlk_"),
        "{curl}"
    );
    assert_eq!((&seen["ground"], &seen["hash"]), (&json!("rgb(20, 23, 28)"), &json!("#shop/north/graphql")));
    assert_eq!(seen["other"], json!(["refused", "refused", "refused"]));

    for none in ["complaints", "foreign", "leaks"] {
        assert_eq!(seen[none], json!([]), "{none}");
    }
    assert!(
        seen["answers"].as_u64().is_some_and(|n| 40 < n),
        "what the browser got was looked at: {}",
        seen["answers"]
    );
}

fn browse(world: &World, input: &str) -> Value {
    let mut command = Command::new("node");
    command
        .arg(tests().join("clients/console/browser.mjs"))
        .arg(packages())
        .arg(world.url())
        .arg(path_from("chromium.sh"));
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("Node.js is installed");
    child.stdin.take().expect("it is piped").write_all(input.as_bytes()).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    assert!(
        output.status.success(),
        "the browser's script failed; what it said stands above; {}",
        world.log()
    );
    serde_json::from_slice(&output.stdout).expect("it prints JSON")
}
