//! Drawn tenants in a real process, and the cases that are asked of them.

use std::collections::BTreeMap;
use std::ops::Range;

use rowgate_tests::client::Client;
use rowgate_tests::servers::postgres::execute;
use rowgate_tests::world::World;
use rowgate_tests::world::status::ready;
use sqlx::{PgConnection, Row as _};

use super::asking::Case;
use super::changing::Outcome;
use super::comparing::{Kind, Tenant};
use super::manifest::{key_name, manifest};
use super::world::Drawn;
use super::writing::Write;

/// How many cases a tenant is asked; a tenant's cases are the same whoever asks them.
pub(super) const N_CASES: u64 = 750;

/// Of sessions whose answers are compared with those over HTTP.
const SETTINGS: &str =
    "set search_path = pg_catalog; set timezone = 'UTC'; set intervalstyle = 'iso_8601'; set jit = off";

/// How many cases came out how.
pub(super) type Tally = BTreeMap<Kind, usize>;

/// Starts one process with a tenant for each seed, as `draw` makes it.
pub(super) async fn start(seeds: &[u64], draw: fn(u64) -> Drawn) -> (World, Vec<Tenant>) {
    let mut world = World::new(&[]).await;
    let drawn: Vec<Drawn> = seeds.iter().map(|seed| draw(*seed)).collect();
    for tenant in &drawn {
        world.write(&format!("{}.yaml", tenant.slug), &manifest(tenant));
    }
    world.start().await;
    let mut tenants = Vec::new();
    for drawn in drawn {
        let status = world.status("Tenant", &drawn.slug);
        let (reason, message) = ready(&status);
        assert_eq!(reason, "Served", "{}: {message}; {}", drawn.slug, world.log());
        let sessions = [world.superuser(&drawn.slug).await, world.superuser(&drawn.slug).await];
        tenants.push(tenant(&world, drawn, |name| world.key(name), sessions).await);
    }
    (world, tenants)
}

/// A tenant that is served. `key`: the key string of an ApiKey by its name. `sessions`: two of the superuser in its database.
pub(super) async fn tenant(
    world: &World,
    drawn: Drawn,
    key: impl Fn(&str) -> String,
    sessions: [PgConnection; 2],
) -> Tenant {
    let secret = |name: &str| {
        let name = key_name(&drawn, name);
        let role = world.status("ApiKey", &name)["role"].as_str().expect("it is ready").to_owned();
        (key(&name), role)
    };
    let secrets = drawn.keys.iter().map(|key| secret(&key.name)).collect();
    let [mut roles, mut model] = sessions;
    for session in [&mut roles, &mut model] {
        execute(session, SETTINGS).await;
    }
    let mut known = Vec::new();
    for (i, relation) in drawn.relations.iter().enumerate() {
        known.push(keys(&mut model, &relation.key, &drawn.stored(i)).await);
    }
    Tenant { url: world.url(), client: Client::new(), secrets, roles, model, known, drawn }
}

#[expect(clippy::disallowed_methods, reason = "the text is the test's own; no request reaches it")]
pub(super) async fn keys(
    connection: &mut PgConnection,
    key: &[&str],
    from: &str,
) -> Vec<Vec<Option<String>>> {
    let columns: Vec<String> = key.iter().map(|name| format!("{name}::text")).collect();
    let sql = format!("select array[{}] from {from} r order by 1", columns.join(", "));
    let rows = sqlx::query(sqlx::AssertSqlSafe(sql)).fetch_all(connection).await;
    rows.expect("the superuser reads everything").iter().map(|row| row.get(0)).collect()
}

/// A seed for a case of a tenant.
fn case_seed(slug: &str, case: u64) -> u64 {
    slug.bytes().fold(case, |seed, byte| seed.wrapping_mul(0x100_0000_01b3) ^ u64::from(byte))
}

/// Asks `n` cases, and stops at the first that differs.
pub(super) async fn ask(tenant: &mut Tenant, n: u64) -> Result<Tally, String> {
    let mut tally = Tally::new();
    for number in 0..n {
        let case = Case::draw(&tenant.drawn, case_seed(&tenant.drawn.slug, number));
        match tenant.check(&case).await {
            Ok(kind) => *tally.entry(kind).or_default() += 1,
            Err(difference) => {
                let (key, entity) = (&tenant.drawn.keys[case.key], &tenant.drawn.entities[case.entity]);
                return Err(format!(
                    "tenant {}, case {number}: {} asks {} {:?}\n{difference}",
                    tenant.drawn.slug, key.name, entity.name, case.question
                ));
            }
        }
    }
    Ok(tally)
}

/// Makes the writes with these numbers, which follow on each other, and stops at the first that differs.
pub(super) async fn write(
    tenant: &mut Tenant,
    numbers: Range<u64>,
) -> Result<BTreeMap<Outcome, usize>, String> {
    let mut tally = BTreeMap::new();
    for number in numbers {
        let case = Write::draw(&tenant.drawn, case_seed(&tenant.drawn.slug, number), number);
        match tenant.write(&case).await {
            Ok(outcome) => *tally.entry(outcome).or_default() += 1,
            Err(difference) => {
                let (key, entity) = (&tenant.drawn.keys[case.key], &tenant.drawn.entities[case.entity]);
                return Err(format!(
                    "tenant {}, case {number}: {} sends {} {case:?}\n{difference}",
                    tenant.drawn.slug, key.name, entity.name
                ));
            }
        }
    }
    Ok(tally)
}
