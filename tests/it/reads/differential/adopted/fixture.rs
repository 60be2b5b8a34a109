//! Databases of an application that drawn tenants adopt.

use std::fmt::Write as _;
use std::mem::take;

use rowgate_tests::servers::postgres::{Server, execute};
use rowgate_tests::wait::until_ok;
use rowgate_tests::world::World;
use rowgate_tests::world::status::ready;
use serde_json::{Value, json};

use super::super::comparing::Tenant;
use super::super::draw::draw;
use super::super::manifest::{bootstrap, documents, key_name, text};
use super::super::running;
use super::super::world::{Body, Drawn, Scope, Security};

/// Tenants that are served, each in the database of an application of its own.
pub(super) struct Adopted {
    pub(super) world: World,
    pub(super) tenants: Vec<Tenant>,
    /// It ends after the others.
    _server: Server,
}

impl Adopted {
    /// One application and one tenant for each seed, on one server.
    pub(super) async fn start(seeds: &[u64]) -> Adopted {
        let server = Server::own().await;
        let drawn: Vec<Drawn> = seeds.iter().map(|seed| adoptable(*seed)).collect();
        let mut world = World::on(&server, &[]).compared_every(1);
        for drawn in &drawn {
            make(&server, drawn).await;
            world.write(&file(drawn), &manifest(drawn));
        }
        world.spawn(|_| ());
        for drawn in &drawn {
            lend(&server, &world, &drawn.slug).await;
        }
        let mut tenants = Vec::new();
        for drawn in drawn {
            let keys = drawn.keys.iter().map(|key| ("ApiKey", key_name(&drawn, &key.name)));
            for (kind, name) in [("Tenant", drawn.slug.clone())].into_iter().chain(keys) {
                says(&world, kind, &name, "Served").await;
            }
            let sessions = [server.connect(&drawn.slug).await, server.connect(&drawn.slug).await];
            let key = |name: &str| world.secret(name).expect("an ApiKey that is served has a Secret");
            tenants.push(running::tenant(&world, drawn, key, sessions).await);
        }
        Adopted { world, tenants, _server: server }
    }
}

/// The tenant of this seed without what is refused in a database of an application: its views, and the lines of its script that grant
/// rights to PUBLIC or add policies. What were policies of the script are policies of the manifest.
fn adoptable(seed: u64) -> Drawn {
    let mut drawn = draw(seed);
    drawn.slug = format!("a{seed}");
    drawn.relations.retain(|relation| matches!(relation.body, Body::Table { .. }));
    for relation in &mut drawn.relations {
        let Body::Table { security, handmade, .. } = &mut relation.body else { continue };
        handmade.clear();
        if let Security::Existing(policies) = security {
            let policies = take(policies);
            *security = Security::Policies(policies);
        }
    }
    // tables stand before views, so that they keep their positions; entities over tables may move
    let n_tables = drawn.relations.len();
    let (mut positions, mut n_kept) = (Vec::new(), 0);
    for entity in &drawn.entities {
        let is_kept = entity.relation < n_tables;
        positions.push(is_kept.then_some(n_kept));
        n_kept += usize::from(is_kept);
    }
    drawn.entities.retain(|entity| entity.relation < n_tables);
    let of_keys = drawn.keys.iter_mut().filter_map(|key| match &mut key.scope {
        Scope::Permissions(permissions) => Some(permissions),
        Scope::Unscoped | Scope::SameAsShared => None,
    });
    for permissions in of_keys.chain([&mut drawn.shared]) {
        permissions.retain_mut(|permission| {
            let position = positions[permission.entity];
            permission.entity = position.unwrap_or_default();
            position.is_some()
        });
    }
    drawn
}

/// What the application has beside its tables: views of them, and grants to its other roles.
fn beside(drawn: &Drawn) -> String {
    let name = &drawn.slug;
    let mut script = format!(
        "create schema reports;
         grant usage on schema app, reports to {name}_writer, {name}_reader;
         grant select, insert, update, delete on all tables in schema app to {name}_writer;\n"
    );
    for table in drawn.relations.iter().map(|relation| &relation.name) {
        writeln!(
            script,
            "create view reports.{table} as select n, region from app.{table};
             grant select (n) on app.{table} to {name}_reader;"
        )
        .expect("writing to a string");
    }
    script + &format!("grant select on all tables in schema reports to {name}_reader")
}

/// The application's roles, its database, and what its owner makes there. All have the tenant's slug in their names.
async fn make(server: &Server, drawn: &Drawn) {
    let name = &drawn.slug;
    let mut postgres = server.connect("postgres").await;
    for role in ["", "_writer", "_reader"] {
        execute(&mut postgres, &format!("create role {name}{role} login")).await;
    }
    execute(&mut postgres, &format!("create database {name} owner {name}")).await;
    let mut owner = server.connect(name).await;
    execute(&mut owner, &format!("set session authorization {name}")).await;
    execute(&mut owner, &bootstrap(drawn)).await;
    execute(&mut owner, &beside(drawn)).await;
}

/// Runs the line for a DBA that the status gives.
async fn lend(server: &Server, world: &World, slug: &str) {
    let message = says(world, "Tenant", slug, "RightsMissing").await;
    let (_, line) = message.split_once("a DBA can run: ").expect("it names the line");
    execute(&mut server.connect(slug).await, line).await;
}

/// Waits until `Ready` has this reason, and gives its message.
pub(super) async fn says(world: &World, kind: &str, name: &str, reason: &str) -> String {
    until_ok(&format!("{reason} of {kind} {name}"), async || {
        let status = world.status(kind, name);
        let (found, message) = ready(&status);
        if found == reason { Ok(message.to_owned()) } else { Err(format!("{found}: {message}")) }
    })
    .await
}

/// The file of the manifest.
pub(super) fn file(drawn: &Drawn) -> String {
    format!("{}.yaml", drawn.slug)
}

/// The Tenant, which adopts the database, and then its ApiKeys.
pub(super) fn adopting(drawn: &Drawn) -> Vec<Value> {
    documents(drawn, &json!({"name": drawn.slug, "create": false}))
}

pub(super) fn manifest(drawn: &Drawn) -> String {
    text(adopting(drawn))
}

/// The login that becomes the application's owner, `t<id>_owner`.
pub(super) fn login(world: &World, slug: &str) -> String {
    let status = world.status("Tenant", slug);
    format!("t{}_owner", status["tenantId"].as_str().expect("a Tenant that is served has an id"))
}
