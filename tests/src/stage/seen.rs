//! What a scenario sees: statuses, Events, Secrets, and the roles that were made.

use std::collections::BTreeMap;

use rowgate_core::derive::Root;
use rowgate_core::name::Ulid;
use rowgate_core::role::TenantLogin;
use rowgate_pg::connect::login::Login;
use rowgate_pg::control::installation::{Installation, Roots, open};
use serde_json::Value;

use super::{Event, Source, Stage};
use crate::wait::until_ok;
use crate::world::status::ready;

impl Stage {
    /// What is told of an object at this moment; null: nothing yet.
    pub async fn status(&self, kind: &str, name: &str) -> Value {
        let mut object = match &self.source {
            Source::Folder(folder) => folder.object(kind, name),
            Source::Cluster(cluster) => cluster.object(kind, name).await,
        };
        object.as_mut().map_or(Value::Null, |object| object["status"].take())
    }

    /// Waits until the object's `Ready` condition has this reason at this generation or a later one, and gives its status.
    pub async fn told(&self, kind: &str, name: &str, generation: i64, reason: &str) -> Value {
        self.ends(kind, name, generation, reason, |told| told == reason).await
    }

    /// Waits until the object is told that it is done, or why it cannot be.
    pub async fn settled(&self, kind: &str, name: &str, generation: i64) -> Value {
        let under_way = ["", "Progressing", "Drifted", "AwaitingReplicas", "NoReplica"];
        self.ends(kind, name, generation, "an end", |told| !under_way.contains(&told)).await
    }

    async fn ends(
        &self,
        kind: &str,
        name: &str,
        generation: i64,
        what: &str,
        end: impl Fn(&str) -> bool,
    ) -> Value {
        until_ok(&format!("{what} at generation {generation} for {kind} {name}"), async || {
            let status = self.status(kind, name).await;
            let observed = status["observedGeneration"].as_i64().unwrap_or(-1);
            let is_told = generation <= observed && end(ready(&status).0);
            if is_told { Ok(status) } else { Err(format!("{:?} at {observed}", ready(&status))) }
        })
        .await
    }

    /// What happened to an object.
    pub async fn events(&self, kind: &str, name: &str) -> Vec<Event> {
        match &self.source {
            Source::Folder(folder) => folder.events(kind, name),
            Source::Cluster(cluster) => cluster.events(kind, name).await,
        }
    }

    /// How often something was told of an object.
    pub async fn n_events(&self, kind: &str, name: &str, reason: &str) -> u64 {
        let events = self.events(kind, name).await;
        events.iter().filter(|event| event.reason == reason).map(|event| event.count).sum()
    }

    /// The entries of a Secret.
    pub async fn secret(&self, name: &str) -> Option<BTreeMap<String, String>> {
        match &self.source {
            Source::Folder(folder) => folder.secret(name),
            Source::Cluster(cluster) => cluster.secret(name).await,
        }
    }

    /// Kind and name of whom a Secret belongs to.
    pub async fn owner(&self, name: &str) -> Option<(String, String)> {
        let secret = match &self.source {
            Source::Folder(folder) => folder.secret_object(name),
            Source::Cluster(cluster) => cluster.object("Secret", name).await,
        };
        let owner = &secret?["metadata"]["ownerReferences"][0];
        Some((owner["kind"].as_str()?.to_owned(), owner["name"].as_str()?.to_owned()))
    }

    /// The key in a Secret that is there.
    pub async fn key(&self, name: &str) -> String {
        let mut secret = self.secret(name).await.unwrap_or_else(|| panic!("there is no Secret {name}"));
        secret.remove("apiKey").unwrap_or_else(|| panic!("Secret {name} holds no key"))
    }

    /// What the process has installed.
    pub async fn installation(&self) -> &Installation {
        let open = async || {
            let [operator, dataplane] = match &self.source {
                Source::Folder(folder) => folder.roots().await,
                Source::Cluster(cluster) => cluster.roots().await,
            };
            let root = |hex: String| Root::from_hex(&hex).expect("a root");
            let roots = Roots { operator: root(operator), dataplane: root(dataplane) };
            let id = Ulid::from_parts(1_700_000_000_000, [1; 10]);
            let installation = open(self.server.superuser("postgres"), &roots, id).await;
            installation.unwrap_or_else(|error| panic!("{error}"))
        };
        self.installation.get_or_init(open).await
    }

    /// One of the logins of a tenant that was told its id, on its own database.
    pub async fn login(&self, tenant: &str, login: TenantLogin) -> Login {
        let status = self.status("Tenant", tenant).await;
        let id = status["tenantId"].as_str().and_then(|id| id.parse().ok()).expect("it has its id");
        let database = status["database"].as_str().expect("it has a database");
        self.installation().await.tenant(&id, login, database)
    }

    /// The database role of a scoped key, on the database of this tenant.
    pub async fn role(&self, key: &str, tenant: &str) -> Login {
        let tenant = self.status("Tenant", tenant).await;
        let database = tenant["database"].as_str().expect("it has a database");
        let status = self.status("ApiKey", key).await;
        self.installation().await.key(status["role"].as_str().expect("it has its role"), database)
    }

    /// The id of a key that was told it.
    pub async fn id(&self, key: &str) -> String {
        self.status("ApiKey", key).await["apiKeyId"].as_str().expect("it has its id").to_owned()
    }
}
