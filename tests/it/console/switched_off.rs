//! Where there is no console: in `serve`, on an address of more than this machine, without its files, and where it is not wanted.

use rowgate_tests::servers::postgres::Server;
use rowgate_tests::world::World;

use super::fixture::{Reply, ask};

const PATHS: [&str; 5] = [
    "/",
    "/console",
    "/console/keys.json",
    "/console/assets/index.html",
    "/console/proxy/shop/shop-admin/auth/shop/api",
];

/// As the page asks.
async fn page(url: &str, path: &str) -> Reply {
    let headers = [("Origin", url), ("Sec-Fetch-Site", "same-origin"), ("X-Request-Id", "same")];
    ask(url, &format!("GET {path}"), &headers, "").await
}

/// Nothing is at any of its addresses, as at any other.
async fn is_nowhere(url: &str) {
    let body = page(url, "/nothing").await.body;
    for path in PATHS {
        let reply = page(url, path).await;
        assert_eq!((reply.status, &reply.body), (404, &body), "{path}");
        assert!(!reply.headers.contains("content-security-policy"), "{path}: {reply:?}");
    }
}

/// Seen to fail with a console on every address, and with one in `serve`.
#[tokio::test]
async fn a_console_is_for_this_machine_and_for_standalone_only() {
    let server = Server::own().await;
    let mut world = World::shop_on(&server);
    let files = world.folder().join("page");
    std::fs::create_dir(&files).expect("the folder is ours");
    std::fs::write(files.join("index.html"), "<title>a page</title>").expect("the folder is ours");

    world.start_with(|command| _ = command.arg("--console").arg(&files)).await;
    assert_eq!(page(&world.url(), "/").await.status, 200);
    let greeting = format!("\nOpen {}/ in a browser: ", world.url());
    assert!(world.log().contains(&greeting), "{}", world.log());
    let replica = world.serve().await;
    is_nowhere(&replica).await;
    world.stop().await;

    world.host = "0.0.0.0";
    world.start_with(|command| _ = command.arg("--console").arg(&files)).await;
    is_nowhere(&world.url()).await;
    let log = world.log();
    assert!(log.contains("the console is off: --listen is not an address of this machine alone"), "{log}");
    assert!(!log.contains("in a browser"), "{log}");
    world.stop().await;

    world.host = "127.0.0.1";
    world.start_with(|command| _ = command.args(["--console", "off"])).await;
    is_nowhere(&world.url()).await;
    assert!(!world.log().contains("in a browser"), "{}", world.log());
}

#[tokio::test]
async fn without_its_files_the_console_says_so() {
    let server = Server::own().await;
    let mut world = World::shop_on(&server);
    let empty = world.folder().join("empty");
    std::fs::create_dir(&empty).expect("the folder is ours");
    for folder in [None, Some(&empty)] {
        world
            .start_with(|command| {
                command.env_remove("ROWGATE_CONSOLE");
                folder.into_iter().for_each(|folder| _ = command.arg("--console").arg(folder));
            })
            .await;
        let reply = page(&world.url(), "/").await;
        assert_eq!(reply.status, 404, "{reply:?}");
        assert!(reply.headers.contains("content-type: text/plain"), "{reply:?}");
        assert!(reply.body.starts_with("The console has no files to show: "), "{reply:?}");
        assert!(reply.body.contains("run make console in a checkout"), "{reply:?}");
        assert_eq!(reply.body.lines().count(), 1, "{reply:?}");
        assert!(world.log().contains("The console has no files to show: "), "{}", world.log());
        assert!(!world.log().contains("in a browser"), "{}", world.log());
        assert_eq!(world.get(&world.key("north"), "/auth/shop/api/customers").await.status, 200);
        world.stop().await;
    }
}
