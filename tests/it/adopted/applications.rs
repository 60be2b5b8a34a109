//! Wagtail and Unleash, whose own migrations made their tables, are adopted and given back, while a client of each writes all the time and
//! notices every error and every statement that touches another number of rows than before.

mod beside;
mod client;

use rowgate_tests::servers::postgres::{Server, rows};
use rowgate_tests::world::World;

use self::beside::Beside;
use self::client::Program;

const GUEST: &str = "apiVersion: rowgate.dev/v1alpha1
kind: Tenant
metadata: {name: guest}
spec: {database: {}}
";

/// An application, and what its manifest says.
struct Application {
    name: &'static str,
    schema: &'static str,
    /// It makes more tables than this.
    n_tables: u64,
    manifest: &'static str,
    /// Entities with `rowLevelSecurity: {none: true}`, and their tables.
    open: &'static [(&'static str, &'static str)],
    /// An entity with a policy, its table, and the rows that a key sees of it.
    filtered: (&'static str, &'static str, &'static str),
    /// An entity with events that the client of the application causes.
    captured: &'static str,
    /// The entity that is taken out, and its table.
    leaves: (&'static str, &'static str),
    /// The table that a role gains a right on while it is adopted, and rows of it that are always there.
    late: (&'static str, &'static str),
}

const WAGTAIL: Application = Application {
    name: "wagtail",
    schema: "app",
    n_tables: 50,
    manifest: include_str!("applications/wagtail.yaml"),
    open: &[
        ("redirects", "wagtailredirects_redirect"),
        ("tags", "taggit_tag"),
        ("collections", "wagtailcore_collection"),
        ("people", "auth_user"),
    ],
    filtered: ("pages", "wagtailcore_page", "depth <= 2"),
    captured: "redirects",
    leaves: ("tags", "taggit_tag"),
    late: ("wagtailredirects_redirect", "old_path like '%/kept/%'"),
};

const UNLEASH: Application = Application {
    name: "unleash",
    schema: "public",
    n_tables: 80,
    manifest: include_str!("applications/unleash.yaml"),
    open: &[
        ("features", "features"),
        ("strategies", "feature_strategies"),
        ("segments", "segments"),
        ("log", "events"),
    ],
    filtered: ("environments", "feature_environments", "environment = 'development'"),
    captured: "features",
    leaves: ("segments", "segments"),
    late: ("feature_environments", "feature_name like '%-kept-%'"),
};

#[tokio::test]
async fn applications_notice_nothing_while_they_are_adopted_and_given_back() {
    let (server, url) = Server::with_two_ways(&[]).await;
    // a folder that declares nothing any more is a mistake
    let mut world = World::on(&server, &[("guest.yaml", GUEST)]).over(&server, url).compared_every(1);
    world.spawn(|_| ());
    let one = |application| goes_on(application, &server, &world);
    let (wagtail, unleash) = tokio::join!(Box::pin(one(&WAGTAIL)), Box::pin(one(&UNLEASH)));
    println!("statements that wrote rows: {wagtail} of Wagtail, {unleash} of Unleash");
    let mut postgres = server.connect("postgres").await;
    let made = rows(&mut postgres, "select rolname::text from pg_roles where rolname ~ '^(key_|set_)'").await;
    assert!(made.is_empty(), "{made:?}");
}

/// Returns how many statements of its client wrote rows.
async fn goes_on(application: &'static Application, server: &Server, world: &World) -> u64 {
    let Application { name, schema, .. } = *application;
    let program = Program { name, schema, port: server.port() };
    let it = Beside { application, program, server, world };
    it.make().await;
    let before = (it.schema_dump().await, it.database_rights().await);
    let mut writer = it.program.write();
    writer.compares().await;

    it.lend().await;
    it.is_served().await;
    it.program.copy().await;
    assert!(it.dump_of_the_owner().await.contains("\nCOPY "), "rows are dumped");
    it.a_role_is_late().await;
    it.one_entity_leaves().await;
    it.is_given_back().await;

    let n_writes = writer.ends_well().await;
    it.the_late_role_goes().await;
    assert!(it.schema_dump().await == before.0, "the schema of {name} is another one than before");
    assert_eq!(it.database_rights().await, before.1);
    n_writes
}
