//! The example shop, and small changes to it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::servers::postgres::Server;
use crate::world::{World, examples};

/// The files of the example shop, by name.
#[must_use]
pub fn shop() -> BTreeMap<String, String> {
    texts(&examples().join("shop"))
}

/// The files of a folder, by name.
pub(crate) fn texts(folder: &Path) -> BTreeMap<String, String> {
    let entries = fs::read_dir(folder).expect("the folder is there");
    let files = entries.map(|entry| entry.expect("a readable folder").path()).filter(|path| path.is_file());
    let named = |path: PathBuf| {
        let name = path.file_name()?.to_str()?.to_owned();
        Some((name, fs::read_to_string(path).ok()?))
    };
    files.filter_map(named).collect()
}

impl World {
    /// The example shop.
    pub async fn shop() -> World {
        World::new(&[]).await.with_shop()
    }

    /// The example shop on a server that runs already.
    #[must_use]
    pub fn shop_on(server: &Server) -> World {
        World::on(server, &[]).with_shop()
    }

    pub(crate) fn with_shop(self) -> World {
        shop().iter().for_each(|(name, text)| self.write(name, text));
        self
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
