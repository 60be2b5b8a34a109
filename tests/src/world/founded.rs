//! Worlds as they stand behind their first start: installation, tenants and keys are there, and nothing runs. The first test of this
//! process that asks for the same manifests starts and stops such a world and keeps it; each is a copy. To found an installation and a
//! tenant takes more of a core than all else that a small test does, and is tested elsewhere.

use std::collections::BTreeMap;
use std::fs;
use std::sync::LazyLock;

use parking_lot::Mutex;
use tokio::sync::OnceCell;

use super::World;
use crate::servers::postgres::{OVER, Server, copy};
use crate::shop::texts;

/// Manifests by the names of their files.
type Manifests = BTreeMap<String, String>;

static FOUNDATIONS: LazyLock<Mutex<BTreeMap<Manifests, &'static OnceCell<Foundation>>>> =
    LazyLock::new(Mutex::default);

/// Neither runs.
struct Foundation {
    server: Server,
    world: World,
}

impl World {
    /// As [`World::new`], behind its first start.
    pub async fn founded(files: &[(&str, &str)]) -> World {
        World::bare(files).found().await
    }

    /// As [`World::shop`], behind its first start.
    pub async fn founded_shop() -> World {
        World::founded_shop_with(|_| ()).await
    }

    /// As [`World::founded_shop`], with these changes of its manifests before the first start.
    pub async fn founded_shop_with(change: impl FnOnce(&World)) -> World {
        let world = World::bare(&[]).with_shop();
        change(&world);
        world.found().await
    }

    async fn found(self) -> World {
        let foundation = foundation(texts(&self.manifests())).await;
        copy(&foundation.server.state(), &self.state());
        copy(&foundation.world.state().join("."), &self.state());
        self
    }

    /// As [`World::on`] a server of its own, behind its first start.
    pub async fn founded_on_a_server(files: &[(&str, &str)]) -> (Server, World) {
        // another way to the server is another server
        if std::env::var_os(OVER).is_some() {
            let server = Server::own().await;
            let world = World::on(&server, files);
            return (server, world);
        }
        let named = files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
        let foundation = foundation(named.collect()).await;
        let server = Server::copy_of(&foundation.server.state()).await;
        let world = World::on(&server, files);
        copy(&foundation.world.state(), &world.state());
        (server, world)
    }
}

/// What these manifests have made.
async fn foundation(files: Manifests) -> &'static Foundation {
    let cell: &OnceCell<_> =
        FOUNDATIONS.lock().entry(files.clone()).or_insert_with(|| Box::leak(Box::default()));
    cell.get_or_init(async || {
        let mut server = Server::plain().await;
        let files: Vec<_> = files.iter().map(|(name, text)| (&**name, &**text)).collect();
        let mut world = World::on(&server, &files);
        world.start().await;
        assert!(world.stop().await.success(), "{}", world.log());
        server.shut_down().await;
        // what a copy logs is its own
        fs::remove_file(server.state().join("postgres.log")).expect("the server has written it");
        Foundation { server, world }
    })
    .await
}
