//! Rights to write, planted by hand into a tenant that runs. Each is what a faulty plan would leave behind; the comparison
//! of writes has to find every one.

use rowgate_tests::servers::postgres::execute;

use super::comparing::{Tenant, texts};
use super::running;
use super::writing::draw_writers;

/// One that no other test draws.
const SEED: u64 = 1_000_001;

/// The reconciler would repair them, so a data plane alone serves the tenant.
#[tokio::test]
async fn a_planted_right_to_write_is_caught() {
    let (mut world, mut tenants) = running::start(&[SEED], draw_writers).await;
    let replica = world.replica().await;
    assert!(!world.kill().await.success(), "nobody repairs any more");
    let tenant = &mut tenants[0];
    replica.url().clone_into(&mut tenant.url);
    let numbers = |nth: u64, n: u64| nth * 1_000..nth * 1_000 + n;
    let planted = [
        (
            "checks that every row passes",
            policies(tenant, "('ALL', 'INSERT', 'UPDATE')", "with check (true)").await,
        ),
        ("rows that everybody may delete", opened(tenant, "delete", "using (true)").await),
        ("rows that everybody may change", opened(tenant, "update", "using (true)").await),
        ("a grant to everybody", granted("insert, update, delete")),
    ];
    for (nth, (name, (plant, undo))) in (0..).zip(planted) {
        execute(&mut tenant.model, &plant).await;
        let written = running::write(tenant, numbers(nth, running::N_CASES)).await;
        assert!(written.is_err(), "nobody noticed: {name}\n{plant}");
        execute(&mut tenant.model, &undo).await;
    }
    let again = running::write(tenant, numbers(9, 100)).await;
    again.unwrap_or_else(|difference| panic!("something was left behind: {difference}"));
}

/// Changes all permissive policies for these commands, and back.
async fn policies(tenant: &mut Tenant, commands: &str, change: &str) -> (String, String) {
    let made = |what: &str| {
        format!(
            "select format('alter policy %I on app.%I {what};', policyname, tablename, coalesce(with_check, qual)) \
             from pg_policies where schemaname = 'app' and permissive = 'PERMISSIVE' and cmd in {commands}"
        )
    };
    let plant = texts(&mut tenant.model, &made(change)).await.expect("the superuser asks").concat();
    let undo = texts(&mut tenant.model, &made("with check (%s)")).await.expect("the superuser asks").concat();
    assert!(!plant.is_empty(), "another seed is needed: there is no such policy");
    (plant, undo)
}

/// One more policy for each table, and none.
async fn opened(tenant: &mut Tenant, command: &str, rows: &str) -> (String, String) {
    let made = |what: &str| {
        format!(
            "select format('{what};', tablename) from pg_tables where schemaname = 'app' and tablename <> 't0'"
        )
    };
    let plant = made(&format!("create policy opened on app.%I for {command} {rows}"));
    let plant = texts(&mut tenant.model, &plant).await.expect("the superuser asks").concat();
    let undo = texts(&mut tenant.model, &made("drop policy opened on app.%I")).await;
    (plant, undo.expect("the superuser asks").concat())
}

fn granted(rights: &str) -> (String, String) {
    let tables = "on all tables in schema app";
    (format!("grant {rights} {tables} to public"), format!("revoke {rights} {tables} from public"))
}
