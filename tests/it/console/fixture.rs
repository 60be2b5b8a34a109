//! The shop with a console, and requests to it as a browser writes them.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use rowgate_tests::servers::postgres::Server;
use rowgate_tests::sweep;
use rowgate_tests::world::World;
use serde_json::Value;

use crate::http::edge::raw;
use crate::keys::tokens::clients::tests;

/// What every refusal of the guard says.
pub(super) const OWN_PAGE_ONLY: &str =
    "the console answers its own page only; open it in a browser on this machine";

pub(super) struct Shop {
    pub(super) world: World,
    _server: Server,
}

/// An answer, as it came.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Reply {
    pub(super) status: u16,
    /// In lower case, a line each.
    pub(super) headers: String,
    pub(super) body: String,
}

impl Shop {
    /// With a page of one line, which is enough where no browser looks at it.
    pub(super) async fn open() -> Shop {
        let server = Server::own().await;
        let mut world = World::shop_on(&server);
        let files = world.folder().join("page");
        std::fs::create_dir(&files).expect("the folder is ours");
        std::fs::write(files.join("index.html"), "<title>a page</title>").expect("the folder is ours");
        // so that a forwarded host would count
        world
            .start_with(|command| {
                command.arg("--console").arg(&files).args(["--trusted-proxies", "127.0.0.0/8"]);
            })
            .await;
        Shop { world, _server: server }
    }

    /// As the page sends it: `Host`, `Origin` and `Sec-Fetch-Site` are its own.
    pub(super) async fn page(&self, line: &str, headers: &[(&str, &str)], body: &str) -> Reply {
        let origin = self.world.url();
        let own = [("Origin", origin.as_str()), ("Sec-Fetch-Site", "same-origin")];
        self.ask(line, &[&own, headers].concat(), body).await
    }

    /// `METHOD /path` with these headers, byte for byte.
    pub(super) async fn ask(&self, line: &str, headers: &[(&str, &str)], body: &str) -> Reply {
        ask(&self.world.url(), line, headers, body).await
    }
}

pub(super) async fn ask(url: &str, line: &str, headers: &[(&str, &str)], body: &str) -> Reply {
    let mut request = format!("{line} HTTP/1.1\r\nConnection: close\r\n");
    if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
        request += &format!("Host: {}\r\n", url.trim_start_matches("http://"));
    }
    for (name, value) in headers {
        request += &format!("{name}: {value}\r\n");
    }
    if !body.is_empty() {
        request += &format!("Content-Length: {}\r\n", body.len());
    }
    let answer = raw::send(url, format!("{request}\r\n{body}").as_bytes()).await;
    sweep::answer(line, "", &answer);
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{line}: {answer:?}"));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    let status = status.unwrap_or_else(|| panic!("{line}: {answer:?}"));
    Reply { status, headers: head.to_lowercase(), body: body.to_owned() }
}

impl Reply {
    pub(super) fn json(&self) -> Value {
        // an answer of unknown length comes in chunks
        let text = self.body.lines().find(|line| line.starts_with(['{', '['])).unwrap_or_default();
        serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub(super) fn rows(&self) -> usize {
        assert_eq!(self.status, 200, "{self:?}");
        self.json()["value"].as_array().unwrap_or_else(|| panic!("{self:?}")).len()
    }
}

/// The files of the console; bundles them the first time.
pub(crate) fn files() -> PathBuf {
    path_from("console.sh")
}

/// What a script of `tests/setup` prints, which puts there first what is not there yet.
pub(crate) fn path_from(script: &str) -> PathBuf {
    let output = Command::new(tests().join("setup").join(script)).stderr(Stdio::inherit()).output();
    let output = output.expect("bash runs");
    assert!(output.status.success(), "tests/setup/{script} failed; what it said stands above");
    PathBuf::from(String::from_utf8(output.stdout).expect("a path").trim())
}
