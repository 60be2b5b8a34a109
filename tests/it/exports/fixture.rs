//! A tenant with a table of many types, one of which each key reads other rows, and a view that waits for the test at its row 20,000.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use reqwest::header::HeaderMap;
use rowgate_tests::client::{Client, Reply};
use rowgate_tests::servers::postgres::{Server, execute, rows};
use rowgate_tests::wait::until;
use rowgate_tests::world::{SELDOM, World};
use serde_json::{Value, json};
use sqlx::PgConnection;

pub(super) const TENANT: &str = include_str!("tenant.yaml");

/// The rows of `bulk` and of `gated`.
pub(super) const BULK: usize = 30_000;

pub(super) struct Depot {
    pub(super) world: World,
    pub(super) server: Server,
    client: Client,
}

/// What a link gives.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Given {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    pub(super) bytes: Vec<u8>,
}

/// Held, it stops whoever reads `gated`.
pub(super) struct Gate(PgConnection);

impl Depot {
    pub(super) async fn open() -> Depot {
        Depot::open_with(|_| ()).await
    }

    pub(super) async fn open_with(change: impl FnOnce(&mut Command)) -> Depot {
        Depot::compared_every(SELDOM, change).await
    }

    /// Everything is compared after so many seconds although nothing changed, and what failed is tried again within half of them.
    pub(super) async fn compared_every(seconds: u32, change: impl FnOnce(&mut Command)) -> Depot {
        let (server, world) = World::founded_on_a_server(&[("depot.yaml", TENANT)]).await;
        let mut world = world.compared_every(seconds);
        world.start_with(change).await;
        Depot { world, server, client: Client::new() }
    }

    /// Below the address of exports.
    pub(super) async fn ask(&self, key: &str, method: &str, path: &str) -> Reply {
        self.send(key, method, &format!("/api/ddl/exports{path}"), "").await
    }

    pub(super) async fn send(&self, key: &str, method: &str, path: &str, body: &str) -> Reply {
        let (url, key) = (format!("{}{path}", self.world.url()), self.world.key(key));
        let headers = [("X-API-Key", key.as_str()), ("Content-Type", "application/json")];
        self.client.send(method, &url, &headers, body).await
    }

    pub(super) async fn start(&self, key: &str, body: &Value) -> Reply {
        self.send(key, "POST", "/api/ddl/exports", &body.to_string()).await
    }

    /// The id of an export that was taken.
    pub(super) async fn started(&self, key: &str, body: Value) -> String {
        let reply = self.start(key, &body).await;
        assert_eq!(reply.status, 202, "{body}: {reply:?}");
        let id = reply.json()["id"].as_str().expect("an id").to_owned();
        assert_eq!(reply.header("location"), Some(&*format!("/api/ddl/exports/{id}")));
        id
    }

    pub(super) async fn job(&self, key: &str, id: &str) -> Value {
        let reply = self.ask(key, "GET", &format!("/{id}")).await;
        assert_eq!(reply.status, 200, "{reply:?}");
        reply.json()
    }

    /// The export once it has this status.
    pub(super) async fn reached(&self, key: &str, id: &str, status: &str) -> Value {
        until(&format!("an export that is {status}"), async || {
            let job = self.job(key, id).await;
            let ended = ["succeeded", "failed", "cancelled"].iter().any(|end| job["status"] == *end);
            assert!(!ended || job["status"] == status, "{job}");
            (job["status"] == status).then_some(job)
        })
        .await
    }

    /// An export that succeeds, and its file.
    pub(super) async fn export(&self, key: &str, body: Value) -> (Value, Vec<u8>) {
        let id = self.started(key, body).await;
        let job = self.reached(key, &id, "succeeded").await;
        let given = self.follow(url(&job), &[]).await;
        assert_eq!(given.status, 200, "{job}");
        assert_eq!(job["bytes"], given.bytes.len(), "{job}");
        (job, given.bytes)
    }

    pub(super) async fn text(&self, key: &str, body: Value) -> String {
        String::from_utf8(self.export(key, body).await.1).expect("UTF-8")
    }

    /// Without a key.
    pub(super) async fn follow(&self, url: &str, headers: &[(&str, &str)]) -> Given {
        self.follow_by("GET", url, headers).await
    }

    pub(super) async fn follow_by(&self, method: &str, url: &str, headers: &[(&str, &str)]) -> Given {
        let response = self.client.open(method, url, headers, "").await;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let bytes = response.bytes().await.expect("a whole answer").to_vec();
        Given { status, headers, bytes }
    }

    pub(super) async fn sql(&self, script: &str) {
        execute(&mut self.server.connect("depot").await, script).await;
    }

    /// In the control database.
    pub(super) async fn control(&self, query: &str) -> Vec<Value> {
        rows(&mut self.server.connect("rowgate").await, query).await
    }

    pub(super) async fn change_control(&self, script: &str) {
        execute(&mut self.server.connect("rowgate").await, script).await;
    }

    pub(super) async fn gate(&self) -> Gate {
        let mut connection = self.server.connect("depot").await;
        execute(&mut connection, "select pg_advisory_lock(7)").await;
        Gate(connection)
    }

    /// Waits until an export stands at the gate, having written rows.
    pub(super) async fn at_the_gate(&self, key: &str, id: &str) {
        let mut connection = self.server.connect("depot").await;
        until("an export at the gate", async || {
            let query = "select 1 from pg_locks where locktype = 'advisory' and objid = 7 and not granted";
            let is_there = !rows(&mut connection, query).await.is_empty();
            (is_there && self.job(key, id).await["rows"].as_u64() != Some(0)).then_some(())
        })
        .await;
    }

    pub(super) fn folder(&self) -> PathBuf {
        self.world.state().join("exports")
    }

    /// The names of all files.
    pub(super) fn files(&self) -> BTreeSet<String> {
        let names = fs::read_dir(self.folder()).expect("the folder is there").flatten();
        names.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    }
}

impl Gate {
    pub(super) async fn open(mut self) {
        execute(&mut self.0, "select pg_advisory_unlock(7)").await;
    }
}

pub(super) fn url(job: &Value) -> &str {
    job["url"].as_str().unwrap_or_else(|| panic!("{job} has a link"))
}

/// Rows that wait at the gate. They come in the order in which they stand: to sort them would be to pass the gate first.
pub(super) fn gated() -> Value {
    json!({"entity": "gated", "format": "csv"})
}
