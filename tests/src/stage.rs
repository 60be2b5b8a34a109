//! Where a scenario of reconciling plays, written once for both sources: a folder that standalone reads, and an API
//! server with the operator under the chart's rights. Each is a real process beside whatever serves, over a PostgreSQL of
//! its own.

mod cluster;
mod folder;
mod seen;

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::PathBuf;
use std::time::SystemTime;

use nix::sys::signal::Signal;
use rowgate_pg::control::installation::Installation;
use serde_json::Value;
use tokio::sync::OnceCell;

use crate::servers::cluster::AuditMark;
use crate::servers::data_plane::{DataPlane, send};
use crate::servers::postgres::Server;
use crate::shop::shop;
use crate::steps::Steps;
use crate::wait::until;
use crate::world::{Answer, SELDOM, get};
use cluster::InCluster;
use folder::InFolder;

/// What an object that is done says here: a data plane runs, so it is served.
pub const DONE: &str = "Served";

/// Which source the resources come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum On {
    Folder,
    Cluster,
}

/// How a stage differs from the usual one.
#[derive(Debug, Clone, Copy)]
pub struct Wish<'a> {
    /// Further settings of PostgreSQL.
    pub postgres: &'a [&'a str],
    /// Further flags of what serves.
    pub serving: &'a [&'a str],
    /// After how many seconds everything is compared although nothing changed.
    pub resync_seconds: u32,
    /// What the process asks for passes by [`Stage::steps`].
    pub by_steps: bool,
}

impl Default for Wish<'_> {
    fn default() -> Self {
        Wish { postgres: &[], serving: &[], resync_seconds: 1, by_steps: false }
    }
}

impl Wish<'_> {
    /// Everything is compared seldom: for what waits for nothing that only such a look finds.
    #[must_use]
    pub fn seldom() -> Self {
        Wish { resync_seconds: SELDOM, ..Wish::default() }
    }
}

/// Everything ends with this value, or with the test process.
#[derive(Debug)]
pub struct Stage {
    pub server: Server,
    source: Source,
    /// What was put last, by kind and name.
    documents: BTreeMap<(String, String), String>,
    installation: OnceCell<Installation>,
    steps: Steps,
}

#[derive(Debug)]
enum Source {
    Folder(Box<InFolder>),
    Cluster(Box<InCluster>),
}

/// A moment of a source.
#[derive(Debug)]
pub enum WriteMark {
    Files(BTreeMap<PathBuf, (String, SystemTime)>),
    Log(AuditMark),
}

/// Something that was told of an object, and how often.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    pub reason: String,
    pub note: String,
    pub warning: bool,
    pub count: u64,
}

impl Stage {
    /// Puts these manifests and starts what reconciles them.
    pub async fn open(on: On, manifests: &str) -> Stage {
        Stage::with(on, Wish::default(), manifests).await
    }

    /// The example shop, which is compared seldom.
    pub async fn shop(on: On) -> Stage {
        Stage::with(on, Wish::seldom(), &shop().into_values().collect::<Vec<_>>().join("\n---\n")).await
    }

    pub async fn with(on: On, wish: Wish<'_>, manifests: &str) -> Stage {
        let server = Server::with(wish.postgres).await;
        Stage::over(on, wish, server, manifests).await
    }

    /// As [`Stage::with`], on this server.
    pub async fn over(on: On, wish: Wish<'_>, server: Server, manifests: &str) -> Stage {
        let steps = Steps::default();
        let url = if wish.by_steps { steps.before(&server) } else { server.url() };
        let source = match on {
            On::Folder => Source::Folder(Box::new(InFolder::new(&server, url, wish))),
            On::Cluster => Source::Cluster(Box::new(InCluster::new(url, wish, &steps).await)),
        };
        let (documents, installation) = (BTreeMap::new(), OnceCell::new());
        let mut stage = Stage { server, source, documents, installation, steps };
        stage.put(manifests).await;
        stage.start().await;
        stage
    }

    /// Makes or replaces what the documents of a text declare.
    pub async fn put(&mut self, manifests: &str) {
        for (key, text) in documents(manifests) {
            match &self.source {
                Source::Folder(folder) => folder.put(&key, &text),
                Source::Cluster(cluster) => cluster.put(&text).await,
            }
            self.documents.insert(key, text);
        }
    }

    /// Replaces `from`, which must stand there exactly once, in what was put last for this object.
    pub async fn edit(&mut self, kind: &str, name: &str, from: &str, to: &str) {
        let text = &self.documents[&(kind.to_owned(), name.to_owned())];
        assert_eq!(text.matches(from).count(), 1, "{from:?} in {text}");
        let text = text.replace(from, to);
        self.put(&text).await;
    }

    /// Tries to put one document that breaks a rule, and gives what is said of it. The API server refuses it; the folder's
    /// source keeps what it accepted before and tells the process' log. Then it is as before.
    pub async fn refused(&mut self, manifest: &str) -> String {
        let mut documents = documents(manifest);
        let (key, text) = documents.pop_first().expect("a document");
        match &self.source {
            Source::Folder(folder) => folder.refused(&key, &text, self.documents.get(&key)).await,
            Source::Cluster(cluster) => cluster.refused(&text).await,
        }
    }

    /// Takes an object away: removes its manifest, or deletes it without waiting for its end.
    pub async fn remove(&mut self, kind: &str, name: &str) {
        let key = (kind.to_owned(), name.to_owned());
        self.documents.remove(&key).expect("it was put");
        match &self.source {
            Source::Folder(folder) => folder.remove(&key),
            Source::Cluster(cluster) => cluster.remove(kind, name).await,
        }
    }

    /// Waits until nothing is known of the object any more.
    pub async fn gone(&self, kind: &str, name: &str) {
        until(&format!("the end of {kind} {name}"), async || match &self.source {
            Source::Folder(folder) => folder.object(kind, name).is_none().then_some(()),
            Source::Cluster(cluster) => cluster.object(kind, name).await.is_none().then_some(()),
        })
        .await;
    }

    /// Whether an object that is deleted stays until all was done for it, as in a cluster: there its last spec is followed. A
    /// manifest that was removed from a folder says nothing any more, so nothing is destroyed for it.
    #[must_use]
    pub fn holds_deleted(&self) -> bool {
        matches!(self.source, Source::Cluster(_))
    }

    /// Writes a Secret by hand. One that is there goes on belonging to whom it belongs.
    pub async fn set_secret(&self, name: &str, entries: &BTreeMap<String, String>) {
        match &self.source {
            Source::Folder(folder) => folder.set_secret(name, entries),
            Source::Cluster(cluster) => cluster.set_secret(name, entries).await,
        }
    }

    /// Deletes a Secret by hand.
    pub async fn drop_secret(&self, name: &str) {
        match &self.source {
            Source::Folder(folder) => folder.drop_secret(name),
            Source::Cluster(cluster) => cluster.drop_secret(name).await,
        }
    }

    /// Now, for [`Stage::writes_since`].
    #[must_use]
    pub fn mark(&self) -> WriteMark {
        match &self.source {
            Source::Folder(folder) => WriteMark::Files(folder.written()),
            Source::Cluster(cluster) => WriteMark::Log(cluster.mark()),
        }
    }

    /// What reconciling has written into the source since then: the names of files, or verb and path of requests in their
    /// order, those for its Lease left out.
    #[must_use]
    pub fn writes_since(&self, mark: &WriteMark) -> Vec<String> {
        match (&self.source, mark) {
            (Source::Folder(folder), WriteMark::Files(before)) => folder.written_since(before),
            (Source::Cluster(cluster), WriteMark::Log(mark)) => cluster.writes_since(mark),
            _ => panic!("a mark of another stage"),
        }
    }

    /// Where it is served.
    #[must_use]
    pub fn url(&self) -> String {
        match &self.source {
            Source::Folder(folder) => folder.url(),
            Source::Cluster(cluster) => cluster.url(),
        }
    }

    /// `GET` with a key. `path` begins after the address.
    pub async fn get(&self, key: &str, path: &str) -> Answer {
        get(&format!("{}{path}", self.url()), key).await
    }

    /// Whether a key works; it must be answered with 200 or 401.
    pub async fn opens(&self, key: &str, path: &str) -> bool {
        let answer = self.get(key, path).await;
        assert!([200, 401].contains(&answer.status.as_u16()), "{answer:?}");
        answer.status == 200
    }

    /// What `/readyz` of what serves says.
    pub async fn is_ready(&self) -> bool {
        match &self.source {
            Source::Folder(folder) => folder.is_ready().await,
            Source::Cluster(cluster) => cluster.is_ready().await,
        }
    }

    /// How many requests to try were printed; `None`: nobody prints any.
    #[must_use]
    pub fn n_printed_requests(&self) -> Option<usize> {
        match &self.source {
            Source::Folder(folder) => Some(folder.log().matches("\ncurl ").count()),
            Source::Cluster(_) => None,
        }
    }

    /// One more data plane over the same control database.
    pub async fn replica(&self) -> DataPlane {
        match &self.source {
            Source::Folder(folder) => folder.replica().await,
            Source::Cluster(cluster) => cluster.replica(&self.server).await,
        }
    }

    /// Starts the process that reconciles, or starts it again.
    pub async fn start(&mut self) {
        match &mut self.source {
            Source::Folder(folder) => folder.start(),
            Source::Cluster(cluster) => cluster.start(&self.server).await,
        }
        self.steps.meant_for(self.pid());
    }

    /// SIGTERM for what reconciles, and its end.
    pub async fn stop(&mut self) {
        send(self.pid(), Signal::SIGTERM);
        assert!(self.ended().await, "an orderly end");
    }

    /// Waits until what reconciles has ended by itself; true: well.
    pub async fn ended(&mut self) -> bool {
        match &mut self.source {
            Source::Folder(folder) => folder.ended().await,
            Source::Cluster(cluster) => cluster.ended().await,
        }
    }

    /// Of the process that reconciles; on a folder it serves, too.
    #[must_use]
    pub fn pid(&self) -> u32 {
        match &self.source {
            Source::Folder(folder) => folder.pid(),
            Source::Cluster(cluster) => cluster.pid(),
        }
    }

    /// Of each process of ours: what reconciles, and what serves where that is another one.
    #[must_use]
    pub fn pids(&self) -> Vec<u32> {
        match &self.source {
            Source::Folder(folder) => vec![folder.pid()],
            Source::Cluster(cluster) => cluster.pids(),
        }
    }

    /// What all of them have logged so far.
    #[must_use]
    pub fn logs(&self) -> String {
        match &self.source {
            Source::Folder(folder) => folder.log(),
            Source::Cluster(cluster) => cluster.logs(),
        }
    }

    /// What the process that reconciles now has logged so far.
    #[must_use]
    pub fn log(&self) -> String {
        match &self.source {
            Source::Folder(folder) => folder.log(),
            Source::Cluster(cluster) => cluster.log(),
        }
    }

    /// Of a stage that was wished for `by_steps`.
    #[must_use]
    pub fn steps(&self) -> &Steps {
        &self.steps
    }
}

impl Drop for Stage {
    /// A scenario that fails shows what was said meanwhile.
    fn drop(&mut self) {
        if std::thread::panicking() {
            let _nobody_reads =
                writeln!(std::io::stdout(), "the process that reconciled said:\n{}", self.log());
        }
    }
}

/// The documents of a text, by kind and name.
fn documents(text: &str) -> BTreeMap<(String, String), String> {
    let parts = text.split("---\n").filter(|part| part.lines().any(|line| line.starts_with("kind:")));
    let named = |part: &str| {
        let document: Value = serde_yaml::from_str(part).unwrap_or_else(|error| panic!("{error}: {part}"));
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        ((text(&document["kind"]), text(&document["metadata"]["name"])), part.to_owned())
    };
    parts.map(named).collect()
}
