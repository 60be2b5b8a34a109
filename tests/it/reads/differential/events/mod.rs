//! Random changes of random tables: each key is given the events that the manifest means, with the fields that it may read, and
//! no others. An event is meant for a key where the policies allow it the stored row, and, unless it is a delete, the row of now.
//!
//! A case is one event and one key. `ROWGATE_CASES` says how many there are at least, `ROWGATE_SEED` which tenant is the first.

use rowgate_tests::servers::postgres::execute;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::comparing::{Difference, Tenant, shown, texts};
use super::draw::draw;
use super::manifest::{is_captured, manifest};
use super::model::Who;
use super::world::{Body, Drawn};
use super::{given, running};

/// One process has so many tenants at most.
const N_TENANTS: u64 = 4;

#[tokio::test]
async fn a_key_is_given_the_events_that_the_manifest_means() {
    let (cases, mut seed) = (given("ROWGATE_CASES", 2_000), given("ROWGATE_SEED", 0));
    let (mut n_asked, mut n_given) = (0, 0);
    while n_asked < cases {
        let n_tenants = (cases - n_asked).div_ceil(2_000).min(N_TENANTS);
        let seeds: Vec<u64> = (seed..seed + n_tenants).collect();
        let (mut world, mut tenants) = running::start(&seeds, draw_captured).await;
        for tenant in &mut tenants {
            change(tenant).await;
            for pair in pairs(&tenant.drawn) {
                let (asked, given) = compare(tenant, pair).await.unwrap_or_else(|difference| {
                    panic!("{}\n\nmake soak SEED={seed}\n{difference}\n", manifest(&tenant.drawn))
                });
                n_asked += asked;
                n_given += given;
            }
        }
        assert!(world.stop().await.success());
        println!("{n_asked} of {cases} cases agree, of which {n_given} are given");
        seed += n_tenants;
    }
    // cases of which all or none are given would agree with anything
    assert!(n_asked < 10 * n_given && 10 * n_given < 9 * n_asked, "{n_given} of {n_asked}");
}

fn draw_captured(seed: u64) -> Drawn {
    Drawn { captures: true, ..draw(seed) }
}

/// Positions of keys and of the entities whose tables are captured. Neighbours are of different tables.
fn pairs(drawn: &Drawn) -> Vec<(usize, usize)> {
    let entities = drawn.entities.iter().enumerate().filter(|(_, entity)| is_captured(drawn, entity));
    let entities: Vec<usize> = entities.map(|(i, _)| i).collect();
    (0..drawn.keys.len()).flat_map(|key| entities.iter().map(move |entity| (key, *entity))).collect()
}

/// Rows change hands, go, and come back.
async fn change(tenant: &mut Tenant) {
    for entity in tenant.drawn.entities.iter().filter(|entity| is_captured(&tenant.drawn, entity)) {
        let table = &tenant.drawn.relation(entity).name;
        let script = format!(
            "create temporary table kept as select * from app.{table};
             update app.{table} a set region = b.region, grade = b.grade, owner = b.owner, ok = b.ok
                from app.{table} b where b.n = 1 + (a.n * 5) % (select count(*) from app.{table})::int and a.n % 3 = 0;
             delete from app.{table} where n % 5 = 2;
             insert into app.{table} select * from kept where n % 10 = 2;
             update app.{table} set n = n + 1000 where n % 7 = 5;
             drop table kept"
        );
        execute(&mut tenant.model, &script).await;
    }
}

#[derive(Deserialize)]
struct Page {
    events: Vec<Event>,
    #[serde(rename = "hasMore")]
    has_more: bool,
}

#[derive(Deserialize)]
struct Event {
    op: String,
    data: Box<RawValue>,
}

/// How many events of the table there are, and how many the key is given.
async fn compare(tenant: &mut Tenant, (key, entity): (usize, usize)) -> Result<(u64, u64), Difference> {
    let Tenant { drawn, secrets, model, .. } = tenant;
    let ((secret, role), key) = (&secrets[key], &drawn.keys[key]);
    let readable = drawn.readable(key, entity);
    let entity = &drawn.entities[entity];
    let relation = drawn.relation(entity);
    let Body::Table { security, .. } = &relation.body else { return Err("a view is captured".to_owned()) };
    let (name, who) = (&relation.name, Who { key, role });
    let is_open =
        entity.rest && relation.key.iter().all(|key| readable.iter().any(|column| column.name == *key));
    let same: Vec<String> = relation.key.iter().map(|key| format!("l.{key} = {name}.{key}")).collect();
    let sql = format!(
        "select case o.op when 'i' then 'insert' when 'u' then 'update' else 'delete' end || ' '
            || (select to_json(a)::text from (select {} from (select {name}.*) r) a)
         from dl.outbox o cross join lateral json_populate_record(null::app.{name}, o.image) {name}
         where o.rel = 'app.{name}'::regclass and ({})
            and (o.op = 'd' or exists (select from {} l where {})) order by o.seq",
        shown(entity, &readable),
        drawn.condition(name, security, who, "read"),
        drawn.visible(entity.relation, who),
        same.join(" and "),
    );
    let url = format!("{}/api/ddl/events?tables={}&after=start&limit=1000", tenant.url, entity.name);
    let reply = tenant.client.get(&url, &[("x-api-key", secret.as_str())]).await;
    let all =
        texts(model, &format!("select count(*)::text from dl.outbox where rel = 'app.{name}'::regclass"))
            .await;
    let n: u64 = all.ok().and_then(|all| all[0].parse().ok()).ok_or("no events")?;
    if !is_open {
        return match reply.status == 400 && reply.json()["error"]["code"] == "BadRequest" {
            true => Ok((n, 0)),
            false => Err(format!("{}: {reply:?} and not 400 for {url}", key.name)),
        };
    }
    let expected = texts(model, &sql).await.map_err(|error| format!("{error}: {sql}"))?;
    let page: Page =
        serde_json::from_str(&reply.body).map_err(|error| format!("{error}: {reply:?} for {url}"))?;
    let found: Vec<String> = page.events.iter().map(|it| format!("{} {}", it.op, it.data.get())).collect();
    match found == expected && !page.has_more {
        true => Ok((n, found.len() as u64)),
        false => Err(format!("{} is given {found:#?}\nand not {expected:#?}\n{sql}", key.name)),
    }
}

/// Leaks planted into a tenant that runs, each caught within 100 keys and tables. The reconciler would repair them, so a data plane alone
/// serves the tenant.
#[tokio::test]
async fn a_planted_leak_of_events_is_caught() {
    let (mut world, mut tenants) = running::start(&[2_000_000], draw_captured).await;
    let replica = world.replica().await;
    assert!(!world.kill().await.success(), "it repairs no more");
    let tenant = &mut tenants[0];
    replica.url().clone_into(&mut tenant.url);
    change(tenant).await;
    let pairs = pairs(&tenant.drawn);
    let source = "select pg_get_functiondef('dl.permitted'::regproc)";
    let intact = texts(&mut tenant.model, source).await.expect("it is there").remove(0);
    for (leak, from, to) in [
        ("every image is allowed", "where (%s)%s)", "where (%s)%s or true)"),
        (
            "policies of other roles",
            "pg_get_expr(p.polqual, p.polrelid)",
            "replace(pg_get_expr(p.polqual, p.polrelid), 'CURRENT_USER = ', '''x'' is not null or ''x'' = ')",
        ),
        ("policies of other commands", "p.polcmd in ('r', '*')", "true"),
        ("restrictive policies are left out", "' and ' || restricts", "null"),
    ] {
        let planted = intact.replace(from, to);
        assert_ne!(planted, intact, "{leak}: there is no {from}");
        execute(&mut tenant.model, &planted).await;
        let mut is_caught = false;
        for pair in &pairs[..100] {
            is_caught |= compare(tenant, *pair).await.is_err();
        }
        assert!(is_caught, "not noticed: {leak}");
    }
    execute(&mut tenant.model, &intact).await;
    for pair in &pairs[..100] {
        compare(tenant, *pair).await.unwrap_or_else(|difference| panic!("{difference}"));
    }
}
