//! The cluster that all others are copies of, made once per machine, and copies of others.

use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use rowgate_pg::connect::login::Login;
use rowgate_standalone::postgres::{Postgres, PostgresConfig, SESSION_MEMORY, binaries};
use tokio::sync::OnceCell;

use super::{QUICK, Server, bin, connect_to, execute};
use crate::scratch::Scratch;

/// How a template is made; another way needs another template.
const RECIPE: &str = include_str!("../../../../dataplane/standalone/src/postgres/cluster.rs");

/// The superuser proves its password with one round of SCRAM, as the roles that the product makes: 4,096 rounds cost a test
/// process 50 ms for each connection.
const FEWER_ROUNDS: &str = "set scram_iterations = 1; alter role ROLE password 'PASSWORD'";

/// Fills a state folder with an initialised cluster, as if standalone had run there before.
pub async fn seed(state: &Path) {
    let template = template().await;
    copy(template, state);
}

/// Makes `to` a copy of a folder, with owners and modes.
pub(crate) fn copy(from: &Path, to: &Path) {
    let status = Command::new("cp").arg("-a").arg(from).arg(to).status().expect("cp runs");
    assert!(status.success(), "{} cannot be copied", from.display());
}

impl Server {
    /// A fresh cluster that is reached by its socket, whatever [`OVER`](super::OVER) says.
    pub(crate) async fn plain() -> Server {
        Server::start(&[], Scratch::new()).await
    }

    /// As [`Server::plain`], over a copy of the state folder of a server that does not run.
    pub(crate) async fn copy_of(state: &Path) -> Server {
        let scratch = Scratch::new();
        copy(state, &scratch.path().join("state"));
        Server::start(&[], scratch).await
    }

    /// The state folder of its launcher.
    pub(crate) fn state(&self) -> PathBuf {
        self.scratch.path().join("state")
    }
}

async fn template() -> &'static Path {
    static TEMPLATE: OnceCell<PathBuf> = OnceCell::const_new();
    TEMPLATE.get_or_init(make_template).await
}

async fn make_template() -> PathBuf {
    let mut recipe = DefaultHasher::new();
    (RECIPE, FEWER_ROUNDS).hash(&mut recipe);
    let name = format!("template-{}-{:016x}", super::binaries().fingerprint(), recipe.finish());
    let path = binaries::cache().join(name);
    if path.is_dir() {
        return path;
    }
    let scratch = Scratch::new();
    let state = scratch.path().join("state");
    fs::create_dir(&state).expect("the folder is ours");
    fs::set_permissions(&state, std::os::unix::fs::PermissionsExt::from_mode(0o711)).expect("it is ours");
    let settings = QUICK.map(str::to_owned).to_vec();
    let wish = PostgresConfig { state: state.clone(), bin: bin(), settings, session_memory: SESSION_MEMORY };
    let postgres = Postgres::start(&wish, &|_| ()).await.unwrap_or_else(|error| panic!("{error}"));
    let Login { role, password, .. } = postgres.superuser().clone();
    let fewer_rounds = FEWER_ROUNDS.replace("ROLE", &role).replace("PASSWORD", password.reveal());
    execute(&mut connect_to(postgres.superuser()).await, &fewer_rounds).await;
    postgres.stop().await.unwrap_or_else(|error| panic!("{error}"));

    // The cache may be another file system: copy beside, then rename. Another test process may have been first.
    fs::create_dir_all(binaries::cache()).expect("the cache folder is ours");
    let draft = path.with_added_extension(std::process::id().to_string());
    copy(&state, &draft);
    if fs::rename(&draft, &path).is_err() {
        assert!(path.is_dir(), "{} cannot be made", path.display());
        fs::remove_dir_all(&draft).expect("the draft is ours");
    }
    path
}
