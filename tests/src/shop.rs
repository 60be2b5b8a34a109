//! The example shop, and small changes to it.

use std::fs;

use crate::postgres::Server;
use crate::world::{World, examples};

impl World {
    /// The example shop.
    pub async fn shop() -> World {
        let world = World::new(&[]).await;
        for entry in fs::read_dir(examples().join("shop")).expect("the example is committed") {
            let path = entry.expect("a readable folder").path();
            if path.is_file() {
                let name = path.file_name().expect("a file");
                fs::copy(&path, world.manifests().join(name)).expect("the folder is ours");
            }
        }
        world
    }

    /// The example shop on a server that runs already.
    pub async fn shop_on(server: &Server) -> World {
        World::shop().await.over(server)
    }

    /// Further statements of the shop's script, once it has made its schema. The script runs once.
    pub fn shop_script(&self, statements: &str) {
        let schema = "    create schema shop;\n";
        self.edit("bootstrap.yaml", schema, &format!("{schema}{statements}"));
    }

    /// Exposes another table of the shop, without row-level security. Nobody may read it yet.
    pub fn shop_entity(&self, table: &str) {
        let entity = format!(
            "    - name: {table}\n      source: {{schema: shop, object: {table}}}\n      rowLevelSecurity: {{none: true}}\n"
        );
        self.edit("tenant.yaml", "  entities:\n", &format!("  entities:\n{entity}"));
    }

    /// Lets unscoped keys read an entity of the shop.
    pub fn shop_permission(&self, entity: &str) {
        let permission = format!("      - entity: {entity}\n        actions: [read]\n");
        self.edit("tenant.yaml", "    permissions:\n", &format!("    permissions:\n{permission}"));
    }

    /// The address of a path below the shop's API.
    #[must_use]
    pub fn shop_url(&self, path: &str) -> String {
        format!("{}/auth/shop/api{path}", self.url())
    }
}
