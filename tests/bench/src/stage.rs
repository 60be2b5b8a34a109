//! What everybody is measured on: one PostgreSQL with a table under row-level security, twice: as a tenant of ours, and
//! in a database `peer` whose policy reads a setting, as the other servers need it.

use std::fmt::Write as _;
use std::net::SocketAddr;

use rowgate_tests::data_plane::DataPlane;
use rowgate_tests::postgres::{Server, execute};
use rowgate_tests::world::World;

use crate::load::Requests;

/// Rows of the table; every fourth belongs to tenant `t1`, whose rows are asked for.
pub(crate) const ROWS: u64 = 100_000;
/// A tenant like the measured one, with one key, whose requests may wait.
pub(crate) const STORM: &str = "storm";
/// How many scoped keys there are.
pub(crate) const KEYS: usize = 256;
/// Connections to the database that each server may have.
pub(crate) const CONNECTIONS: usize = 8;

const TABLE: &str = "
    create table SCHEMA.items (
        id integer primary key, tenant text not null, sku uuid not null, name text not null, price numeric(12,2) not null,
        stock integer not null, active boolean not null, weight double precision not null, made timestamptz not null,
        note text);
    insert into SCHEMA.items select i, 't' || i % 4, md5(i::text)::uuid, 'item number ' || i, (i % 9999) / 100.0, i % 500,
        i % 3 = 0, i / 7.0, timestamptz '2026-01-01 00:00:00+00' + i * interval '1 minute',
        case when i % 5 > 0 then repeat('n', i % 40) end
        from generate_series(1, 100000) i;
";

/// `t<n % 4>` would let another tenant see nothing: requests ask for rows of `t1` only.
pub(crate) fn id(n: u64) -> u64 {
    // Numbers far apart from numbers that follow each other.
    n.wrapping_mul(0x9e37_79b9_7f4a_7c15) % (ROWS / 4) * 4 + 1
}

pub(crate) struct Stage {
    pub(crate) server: Server,
    _world: World,
    pub(crate) data_plane: DataPlane,
    pub(crate) keys: Vec<String>,
    pub(crate) storm_key: String,
}

impl Stage {
    pub(crate) async fn set() -> Stage {
        // As a server for requests would be run: it holds the table in memory.
        let server = Server::with(&["shared_buffers=256MB", "max_connections=200", "autovacuum=off"]).await;
        let mut world = World::on(
            &server,
            &[("bench.yaml", &manifest("bench", KEYS)), ("storm.yaml", &manifest(STORM, 1))],
        );
        world.start().await;
        let mut peer = server.database("peer").await;
        execute(&mut peer, &format!("create schema api; {}", TABLE.replace("SCHEMA", "api"))).await;
        execute(&mut peer, PEER).await;
        execute(&mut peer, "vacuum analyze").await;
        execute(&mut server.connect("bench").await, "vacuum analyze").await;
        server.database("pgb").await;
        let data_plane = world.replica().await;
        let keys = (0..KEYS).map(|i| world.key(&format!("bench-key{i}"))).collect();
        let storm_key = world.key(&format!("{STORM}-key0"));
        Stage { server, _world: world, data_plane, keys, storm_key }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        address(self.data_plane.url())
    }

    /// One row by its key, with the first `n_keys` keys in turn.
    pub(crate) fn row(&self, n_keys: usize) -> Requests {
        let keys = self.keys[..n_keys].to_vec();
        std::sync::Arc::new(move |n| {
            let key = &keys[id(n) as usize / 4 % keys.len()];
            request(&format!("/auth/bench/api/items/id/{}", id(n)), &format!("X-API-Key: {key}\r\n"))
        })
    }

    /// A hundred rows of ten columns.
    pub(crate) fn page(&self) -> Requests {
        let key = self.keys[0].clone();
        std::sync::Arc::new(move |n| {
            let path = format!("/auth/bench/api/items?$first=100&$filter=id%20gt%20{}", page_start(n));
            request(&path, &format!("X-API-Key: {key}\r\n"))
        })
    }
}

/// Where the n-th page begins: a hundred rows of `t1` follow.
pub(crate) fn page_start(n: u64) -> u64 {
    id(n) % (ROWS - 1000)
}

pub(crate) fn address(url: &str) -> SocketAddr {
    url.trim_start_matches("http://").parse().expect("an address of loopback")
}

pub(crate) fn request(path: &str, headers: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{headers}\r\n").into_bytes()
}

/// The peers' login becomes `reader` for each request, and `api.pre` says for which tenant, as our key statement does.
const PEER: &str = "
    create role reader nologin;
    create role peer_login login noinherit password 'peer';
    grant reader to peer_login;
    grant usage on schema api to reader;
    grant select on api.items to reader;
    alter table api.items enable row level security;
    alter table api.items force row level security;
    create policy own on api.items to reader using (tenant = current_setting('app.tenant', true));
    create function api.pre() returns void language sql as $$ select set_config('app.tenant', 't1', true) $$;
    grant execute on function api.pre() to reader;
";

fn manifest(tenant: &str, n_keys: usize) -> String {
    let table = TABLE.replace("SCHEMA", "b");
    let mut text = format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {tenant}-script}}\ndata:\n  schema.sql: |\n    create schema b;\
         {table}\n---\napiVersion: rowgate.dev/v1alpha1\nkind: Tenant\nmetadata: {{name: {tenant}}}\nspec:\n  \
         database: {{bootstrap: {{configMapRef: {{name: {tenant}-script}}}}}}\n  entities:\n    - name: items\n      \
         source: {{schema: b, object: items}}\n      \
         rowLevelSecurity: {{policies: [{{name: own, column: tenant, equals: {{claim: tenant}}}}]}}\n"
    );
    for i in 0..n_keys {
        write!(
            text,
            "---\napiVersion: rowgate.dev/v1alpha1\nkind: ApiKey\nmetadata: {{name: {tenant}-key{i}}}\nspec:\n  \
             tenantRef: {{name: {tenant}}}\n  claims: {{tenant: t1}}\n  \
             scope: {{permissions: [{{entity: items, actions: [read], fields: {{include: ['*']}}}}]}}\n"
        )
        .expect("a String takes it");
    }
    text
}
