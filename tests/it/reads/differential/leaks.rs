//! Leaks planted by hand into a tenant that runs. Each is what a faulty plan would leave behind; the comparison has to
//! find every one.

use rowgate_tests::servers::postgres::execute;

use super::comparing::{Tenant, texts};
use super::draw::draw;
use super::model::Who;
use super::running;
use super::world::{Body, Scope, Shape};

/// What is done to the database, and what undoes it.
struct Leak {
    name: &'static str,
    plant: String,
    undo: String,
}

/// The reconciler would repair them, so a data plane alone serves the tenant.
#[tokio::test]
async fn a_planted_leak_is_caught() {
    let (mut world, mut tenants) = running::start(&[SEED], draw).await;
    let replica = world.replica().await;
    assert!(!world.kill().await.success(), "nobody repairs any more");
    let tenant = &mut tenants[0];
    replica.url().clone_into(&mut tenant.url);
    running::ask(tenant, running::N_CASES).await.unwrap_or_else(|difference| panic!("{difference}"));
    for leak in leaks(tenant).await {
        execute(&mut tenant.model, &leak.plant).await;
        let asked = running::ask(tenant, running::N_CASES).await;
        assert!(asked.is_err(), "nobody noticed: {}\n{}", leak.name, leak.plant);
        execute(&mut tenant.model, &leak.undo).await;
    }
    let again = running::ask(tenant, running::N_CASES).await;
    again.unwrap_or_else(|difference| panic!("a leak was left behind: {difference}"));
}

/// One that no other test draws.
const SEED: u64 = 1_000_000;

async fn leaks(tenant: &mut Tenant) -> Vec<Leak> {
    let table = most_hidden(tenant).await;
    let (column, key) = narrow(tenant);
    let (_, role) = &tenant.secrets[key.0];
    let (table, object, entity) = (&tenant.drawn.relations[table].name, &column.0, &column.1);
    let column = column.2;
    let views = |is_meant: &dyn Fn(usize) -> bool, owner: &str| -> String {
        let views = tenant.drawn.relations.iter().enumerate();
        let views = views.filter(|(i, of)| matches!(of.body, Body::View(_)) && is_meant(*i));
        let each = views.map(|(_, of)| {
            format!(
                "do $$ begin execute format('alter view app.{} owner to %I', (select replace(pg_get_userbyid(datdba), '_owner', '_{owner}') \
                 from pg_database where datname = current_database())); end $$;",
                of.name
            )
        });
        let sql: String = each.collect();
        assert!(!sql.is_empty(), "another seed is needed: no view is one");
        sql
    };
    let is_nested = |i: usize| tenant.drawn.relations.iter().any(|of| reads(&of.body, i));
    let set = format!("(select set_role from dl.keys where role = '{role}')");
    let grant = |word: &str, to: &str| {
        format!(
            "do $$ begin execute format('{word} select ({column}) on app.{object} {to} %I', {set}); end $$;"
        )
    };
    let mut leaks = vec![
        Leak {
            name: "a policy that lets everything through",
            plant: format!("create policy leak on app.{table} using (true)"),
            undo: format!("drop policy leak on app.{table}"),
        },
        Leak {
            name: "row-level security is off",
            plant: format!("alter table app.{table} disable row level security"),
            undo: format!("alter table app.{table} enable row level security"),
        },
        // the data plane closes these; plain SQL as the key's role shows what they would give away
        Leak {
            name: "views belong to the owner of the tables",
            plant: views(&|_| true, "owner"),
            undo: views(&|_| true, "views"),
        },
        Leak {
            name: "a view under a view belongs to the owner of the tables",
            plant: views(&is_nested, "owner"),
            undo: views(&is_nested, "views"),
        },
        Leak {
            name: "the claim of another key",
            plant: "create table dl.kept as table dl.claims; \
                    update dl.claims set value = translate(value, 'nsw', 'swn') where name = 'region'"
                .to_owned(),
            undo: "update dl.claims c set value = k.value from dl.kept k where (c.role, c.name) = (k.role, k.name); \
                   drop table dl.kept"
                .to_owned(),
        },
        Leak {
            name: "a column is granted that no permission names",
            plant: grant("grant", "to"),
            undo: grant("revoke", "from"),
        },
        Leak {
            name: "a column is granted and served that no permission names",
            plant: format!(
                "{} create table dl.kept as table dl.permission_sets; \
                 update dl.permission_sets set permissions = (select jsonb_agg(case when p ->> 'entity' = '{entity}' \
                 and p ->> 'action' = 'read' then jsonb_set(p, '{{columns}}', (p -> 'columns') || '\"{column}\"') \
                 else p end) from jsonb_array_elements(permissions) p) where role = {set}; \
                 update dl.state set generation = generation + 1",
                grant("grant", "to")
            ),
            undo: format!(
                "{} update dl.permission_sets s set permissions = k.permissions from dl.kept k where s.role = k.role; \
                 drop table dl.kept; update dl.state set generation = generation + 1",
                grant("revoke", "from")
            ),
        },
    ];
    leaks.push(restrictive(tenant).await);
    leaks
}

fn reads(body: &Body, relation: usize) -> bool {
    match body {
        Body::Table { .. } => false,
        Body::View(Shape::Part { of, .. } | Shape::Groups { of }) => *of == relation,
        Body::View(Shape::Join { left, right }) => [left, right].contains(&&relation),
    }
}

/// Restrictive policies that were made permissive.
async fn restrictive(tenant: &mut Tenant) -> Leak {
    let made = |kind: &'static str| {
        format!(
            "select format('drop policy %1$I on app.%2$I; create policy %1$I on app.%2$I as {kind} for %3$s using (%4$s);', \
             policyname, tablename, cmd, qual) from pg_policies where schemaname = 'app' and permissive = 'RESTRICTIVE' \
             and cmd in ('ALL', 'SELECT')"
        )
    };
    let (plant, undo) = (made("permissive"), made("restrictive"));
    let plant = texts(&mut tenant.model, &plant).await.expect("the superuser asks").concat();
    let undo = texts(&mut tenant.model, &undo).await.expect("the superuser asks").concat();
    assert!(!plant.is_empty(), "another seed is needed: no policy is restrictive");
    Leak { name: "restrictive policies are permissive", plant, undo }
}

/// The table of which the keys that read it are shown least.
async fn most_hidden(tenant: &mut Tenant) -> usize {
    let mut most = (0, 0);
    for (i, relation) in tenant.drawn.relations.iter().enumerate() {
        let Body::Table { n_rows, .. } = &relation.body else { continue };
        let mut n_hidden = 0;
        for (key, (_, role)) in tenant.drawn.keys.iter().zip(&tenant.secrets) {
            if tenant.drawn.reached(key, i).is_empty() {
                continue;
            }
            let sql = format!("select count(*)::text from {} r", tenant.drawn.visible(i, Who { key, role }));
            let seen = texts(&mut tenant.model, &sql).await.expect("the superuser asks");
            n_hidden += n_rows - seen[0].parse::<usize>().expect("a count");
        }
        most = most.max((n_hidden, i));
    }
    most.1
}

/// A scoped key, and of an entity that it reads: object, name and a column that it does not read.
fn narrow(tenant: &Tenant) -> ((String, String, &'static str), (usize,)) {
    let drawn = &tenant.drawn;
    for (k, key) in drawn.keys.iter().enumerate() {
        if !matches!(key.scope, Scope::Permissions(_)) {
            continue;
        }
        for (e, entity) in drawn.entities.iter().enumerate() {
            let reached = drawn.reached(key, entity.relation);
            let relation = drawn.relation(entity);
            let closed = relation.columns.iter().find(|column| !reached.contains(column.name));
            if let (Some(closed), true, false) = (closed, entity.rest, drawn.readable(key, e).is_empty()) {
                return ((relation.name.clone(), entity.name.clone(), closed.name), (k,));
            }
        }
    }
    panic!("another seed is needed: every key reads all columns of what it reads");
}
