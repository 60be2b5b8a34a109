//! Reconciling in the test's own process: a folder of manifests, a PostgreSQL of its own, and what becomes of them.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rowgate_core::derive::Root;
use rowgate_core::name::Ulid;
use rowgate_core::role::TenantLogin;
use rowgate_pg::connect::login::Login;
use rowgate_pg::control::installation::{Installation, Roots, open};
use rowgate_reconcile::source::dir::DirSource;
use rowgate_reconcile::{PublicUrls, Settings, run};
use serde_json::Value;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::scratch::Scratch;
use crate::servers::postgres::Server;
use crate::wait::until_ok;
use crate::world::status::ready;

/// No data plane runs, so an object that is done in the database says `NoReplica` and not `Served`.
pub const DONE: &str = "NoReplica";

/// The loop, its folders and its server. It ends with this value.
#[derive(Debug)]
pub struct Reconciler {
    pub server: Server,
    pub installation: Installation,
    folder: Scratch,
    shutdown: CancellationToken,
    running: Option<JoinHandle<()>>,
}

impl Reconciler {
    /// Reconciles `files`, by name, on a fresh PostgreSQL.
    pub async fn new(files: &[(&str, &str)]) -> Reconciler {
        let server = Server::own().await;
        let roots = Roots { operator: Root::new([1; 32]), dataplane: Root::new([2; 32]) };
        let id = Ulid::from_parts(1_700_000_000_000, [1; 10]);
        let installation = open(server.superuser("postgres"), &roots, id).await;
        let installation = installation.unwrap_or_else(|error| panic!("{error}"));
        let folder = Scratch::new();
        fs::create_dir(folder.path().join("manifests")).expect("the folder is ours");
        let state = folder.path().join("state");
        fs::create_dir(&state).expect("the folder is ours");
        for (name, root) in [("operator.root", &roots.operator), ("dataplane.root", &roots.dataplane)] {
            fs::write(state.join(name), root.reveal_hex()).expect("the folder is ours");
        }
        let shutdown = CancellationToken::new();
        let mut reconciler = Reconciler { server, installation, folder, shutdown, running: None };
        files.iter().for_each(|(name, text)| reconciler.write(name, text));
        reconciler.start_every(Duration::from_secs(1));
        reconciler
    }

    /// Goes on where it was; everything is looked at again after this long without a change.
    pub fn start_every(&mut self, resync: Duration) {
        let source = DirSource::open(self.folder.path().join("manifests"), self.state());
        let source = source.unwrap_or_else(|error| panic!("{error}"));
        self.shutdown = CancellationToken::new();
        let settings = Settings {
            resync,
            urls: PublicUrls::at("http://127.0.0.1:8080"),
            webhook_ranges: Vec::new(),
            server_namespaces: rowgate_reconcile::ServerNamespaces::All,
        };
        let looping = run(Arc::new(source), self.installation.clone(), settings, self.shutdown.clone());
        self.running = Some(tokio::spawn(async move {
            looping.await;
        }));
    }

    /// Waits until the loop has ended by itself.
    pub async fn ended(&mut self) {
        let running = self.running.take().expect("it was started");
        running.await.expect("the loop ends without a panic");
    }

    pub async fn stop(&mut self) {
        self.shutdown.cancel();
        self.ended().await;
    }

    /// Makes or replaces a manifest in one step, as a good editor does.
    pub fn write(&self, name: &str, text: &str) {
        let (path, draft) =
            (self.folder.path().join("manifests").join(name), self.folder.path().join("draft"));
        fs::write(&draft, text).expect("the folder is ours");
        fs::rename(&draft, path).expect("the folder is ours");
    }

    #[must_use]
    pub fn manifests(&self) -> PathBuf {
        self.folder.path().join("manifests")
    }

    #[must_use]
    pub fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    /// The file that stands for `status`, whole; `None`: not written yet.
    #[must_use]
    pub fn file(&self, kind: &str, name: &str) -> Option<Value> {
        let path = self.state().join(format!("status/{kind}_default_{name}.yaml"));
        serde_yaml::from_str(&fs::read_to_string(path).ok()?).ok()
    }

    /// Waits until the object's `Ready` condition has this reason at this generation or a later one, and gives its
    /// status.
    pub async fn told(&self, kind: &str, name: &str, generation: i64, reason: &str) -> Value {
        until_ok(&format!("{reason} at generation {generation} for {kind} {name}"), async || {
            let status = self.file(kind, name).map(|file| file["status"].clone()).unwrap_or_default();
            let observed = status["observedGeneration"].as_i64().unwrap_or(-1);
            let is_told = generation <= observed && ready(&status).0 == reason;
            if is_told { Ok(status) } else { Err(format!("{:?} at {observed}", ready(&status))) }
        })
        .await
    }

    /// The entries of a Secret.
    #[must_use]
    pub fn secret(&self, name: &str) -> Option<BTreeMap<String, String>> {
        let text = fs::read_to_string(self.secret_file(name)).ok()?;
        let value: Value = serde_yaml::from_str(&text).ok()?;
        serde_json::from_value(value["stringData"].clone()).ok()
    }

    #[must_use]
    pub fn secret_file(&self, name: &str) -> PathBuf {
        self.state().join(format!("secrets/default/{name}.yaml"))
    }

    /// One of the logins of a tenant that is done, on its own database.
    #[must_use]
    pub fn login(&self, tenant: &str, login: TenantLogin) -> Login {
        let status = &self.file("tenant", tenant).expect("the tenant was told something")["status"];
        let id = status["tenantId"].as_str().and_then(|id| id.parse().ok()).expect("it has its id");
        self.installation.tenant(&id, login, status["database"].as_str().expect("it has a database"))
    }

    /// The database role of a scoped key, on its tenant's database.
    #[must_use]
    pub fn key(&self, name: &str, database: &str) -> Login {
        let status = &self.file("apikey", name).expect("the key was told something")["status"];
        self.installation.key(status["role"].as_str().expect("it has its role"), database)
    }
}

impl Drop for Reconciler {
    fn drop(&mut self) {
        self.shutdown.cancel();
        self.running.take().iter().for_each(JoinHandle::abort);
    }
}
