//! Openings planted by hand into an adopted database. Each is what docs/decisions/adopting.md rejects or what a faulty plan would leave, and
//! the comparison that is named has to find it.

use std::collections::BTreeSet;

use rowgate_tests::servers::postgres::execute;
use serde_json::{Value, json};

use super::super::comparing::{Difference, Tenant, texts};
use super::super::manifest::text;
use super::super::running;
use super::fixture::{Adopted, adopting, file, login, manifest, says};
use super::roles;

/// One that no other test draws.
const SEED: u64 = 3_000_000;
/// An opening of every table is found within the first few.
const N_CASES: u64 = 150;
const NO_CHANGE: &str = "select";

/// What is compared.
#[derive(Debug, Clone, Copy)]
enum Compared {
    Requests,
    Keys,
    Application,
    Login,
}

impl Compared {
    const ALL: [Compared; 4] = [Compared::Requests, Compared::Keys, Compared::Application, Compared::Login];

    async fn check(self, tenant: &mut Tenant, login: &str) -> Result<(), Difference> {
        match self {
            Compared::Requests => running::ask(tenant, N_CASES).await.map(|_| ()),
            Compared::Keys => roles::of_keys(tenant).await,
            Compared::Application => roles::of_the_application(tenant).await,
            Compared::Login => roles::of_the_login(tenant, login).await,
        }
    }
}

/// What is done to the database, and what undoes it.
struct Planted {
    name: &'static str,
    found_by: Compared,
    /// What is there before, and shows nothing yet.
    before: String,
    plant: String,
    undo: String,
}

/// The reconciler would repair them, so a data plane alone serves the tenant.
#[tokio::test]
async fn a_planted_opening_of_an_adopted_database_is_caught() {
    let mut adopted = Adopted::start(&[SEED]).await;
    a_view_is_never_served(&adopted).await;
    let replica = adopted.world.replica().await;
    let login = login(&adopted.world, &adopted.tenants[0].drawn.slug);
    assert!(!adopted.world.kill().await.success(), "it repairs no more");
    let tenant = &mut adopted.tenants[0];
    replica.url().clone_into(&mut tenant.url);
    for opening in openings(tenant, &login).await {
        let Planted { name, found_by, before, plant, undo } = opening;
        execute(&mut tenant.model, &before).await;
        let closed = found_by.check(tenant, &login).await;
        closed.unwrap_or_else(|difference| panic!("before {name}: {difference}"));
        execute(&mut tenant.model, &plant).await;
        let open = found_by.check(tenant, &login).await;
        assert!(open.is_err(), "{found_by:?} did not find: {name}\n{plant}");
        execute(&mut tenant.model, &undo).await;
    }
    for compared in Compared::ALL {
        let again = compared.check(tenant, &login).await;
        again.unwrap_or_else(|difference| panic!("an opening was left behind: {difference}"));
    }
}

/// The manifest may name a view of the application and give every key a permission to it: it is refused, and the rest is served.
async fn a_view_is_never_served(adopted: &Adopted) {
    let Adopted { world, tenants, .. } = adopted;
    let Tenant { drawn, secrets, .. } = &tenants[0];
    let slug = &drawn.slug;
    let mut documents = adopting(drawn);
    let add = |list: &mut Value, item: Value| list.as_array_mut().expect("a list").push(item);
    let spec = &mut documents[0]["spec"];
    let source = json!({"schema": "reports", "object": "t1"});
    let view = json!({"name": "REPORT", "kind": "View", "source": source, "keyFields": ["n"]});
    add(&mut spec["entities"], view);
    add(&mut spec["shared"]["permissions"], json!({"entity": "REPORT", "actions": ["read"]}));
    world.write(&file(drawn), &text(documents));
    let message = says(world, "Tenant", slug, "ViewUnsafe").await;
    assert!(message.contains("reports.t1 is a view of the application"), "{message}");
    for (key, _) in secrets {
        let answer = world.get(key, &format!("/auth/{slug}/api/REPORT")).await;
        assert!(!answer.status.is_success(), "{answer:?}");
    }
    world.write(&file(drawn), &manifest(drawn));
    says(world, "Tenant", slug, "Served").await;
}

async fn openings(tenant: &mut Tenant, login: &str) -> [Planted; 5] {
    let owner = tenant.drawn.slug.clone();
    let keys: BTreeSet<String> = tenant.secrets.iter().map(|(_, role)| format!("\"{role}\"")).collect();
    let keys = keys.into_iter().collect::<Vec<_>>().join(", ");
    let (grants, revokes) =
        (granted("reports", "grant", "to", &keys), granted("reports", "revoke", "from", &keys));
    let inherits = format!("grant \"{owner}\" to \"{login}\" with inherit true");
    let no_more = format!("revoke \"{owner}\" from \"{login}\"");
    let as_it_was = changed(tenant, "%2$s").await;
    [
        Planted {
            name: "rowgate_others is a policy for PUBLIC",
            found_by: Compared::Requests,
            before: NO_CHANGE.to_owned(),
            plant: changed(tenant, "public").await,
            undo: as_it_was.clone(),
        },
        Planted {
            name: "the login inherits from the owner of the tables",
            found_by: Compared::Login,
            before: NO_CHANGE.to_owned(),
            plant: inherits.clone(),
            undo: no_more.clone(),
        },
        // by itself it opens nothing to keys
        Planted {
            name: "the login inherits from the owner of the tables, and keys read views that it owns",
            found_by: Compared::Keys,
            before: views_of(tenant, login, &keys),
            plant: inherits,
            undo: format!("{no_more}; drop schema own cascade"),
        },
        Planted {
            name: "views of the application are granted to keys",
            found_by: Compared::Keys,
            before: NO_CHANGE.to_owned(),
            plant: grants,
            undo: revokes,
        },
        Planted {
            name: "rowgate_others leaves out the application's roles",
            found_by: Compared::Application,
            before: NO_CHANGE.to_owned(),
            plant: changed(tenant, "pg_read_all_data").await,
            undo: as_it_was,
        },
    ]
}

/// Makes every `rowgate_others` a policy `TO` these roles; `%2$s` stands for those that it has.
async fn changed(tenant: &mut Tenant, to: &str) -> String {
    let sql = format!(
        "select format('alter policy rowgate_others on app.%1$I to {to};', tablename, \
         (select string_agg(quote_ident(r), ', ' order by r) from unnest(roles) r)) \
         from pg_policies where schemaname = 'app' and policyname = 'rowgate_others'"
    );
    let script = texts(&mut tenant.model, &sql).await.expect("the superuser asks").concat();
    assert!(!script.is_empty(), "every table has the policy");
    script
}

/// Views of the login's in schema `own`, which keys may read.
fn views_of(tenant: &Tenant, login: &str, keys: &str) -> String {
    let tables = tenant.drawn.relations.iter().map(|relation| &relation.name);
    let views = tables.map(|table| {
        format!("create view own.{table} as select n from app.{table}; alter view own.{table} owner to \"{login}\"; ")
    });
    format!("create schema own; {}{}", views.collect::<String>(), granted("own", "grant", "to", keys))
}

fn granted(schema: &str, word: &str, to: &str, keys: &str) -> String {
    format!(
        "{word} usage on schema {schema} {to} {keys}; {word} select on all tables in schema {schema} {to} {keys}"
    )
}
