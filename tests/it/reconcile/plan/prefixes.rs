//! Every prefix of a plan is safe, for random pairs of manifests: read cell by cell as every role, on PostgreSQL.
//!
//! Each step of a walk is a pair: the manifest that the database stands at, and the next one. What the old and the new
//! manifest allow is read from PostgreSQL itself, before and after the plan; in between, after each operation, nobody
//! may reach more than in one of the two, and every table stands behind its old or its new policies.
//!
//! Seen to fail, within ten steps of both seeds, with faults planted in `plan/contents.rs`: keys not taken out of their
//! old permission set before policies change (`pauses` skipped), and grants in an operation before the revokes. And with the
//! `dl_expected_ts` that is about to go left to whom it was granted, under new policies.

use std::collections::BTreeSet;

use rowgate_tests::servers::postgres::Server;

use super::manifests::{self, Dice};
use super::reading::Moment;
use super::{World, installation, text};

/// Pairs per walk; every walk has a database of its own.
const N_PAIRS: usize = 40;

#[tokio::test]
async fn no_prefix_of_a_plan_gives_more_than_the_old_or_the_new_manifest_one() {
    walk(1).await;
}

#[tokio::test]
async fn no_prefix_of_a_plan_gives_more_than_the_old_or_the_new_manifest_two() {
    walk(2).await;
}

async fn walk(seed: u64) {
    let server = Server::own().await;
    let installation = installation(&server).await;
    let mut desired = manifests::first(&installation);
    let mut world = World::new(server, installation, &desired, manifests::TABLES).await;
    world.settle(&desired).await;
    let mut dice = Dice::new(seed);
    let mut old = world.moment().await;
    let (mut n_prefixes, mut n_cells, mut n_protected) = (0, 0, 0);
    for step in 0..N_PAIRS {
        let next = manifests::next(&desired, &mut dice, &world.installation);
        let outcome = world.plan(&next).await;
        let mut between: Vec<Moment> = Vec::new();
        for op in &outcome.ops {
            world.apply(op).await;
            between.push(world.moment().await);
        }
        let case = || format!("seed {seed}, step {step}:\n{}", text(&outcome.ops));
        let again = world.plan(&next).await;
        assert_eq!(text(&again.ops), "", "a second plan does something after {}", case());
        let new = between.pop().unwrap_or_default();
        let new = if outcome.ops.is_empty() { world.moment().await } else { new };
        for (n, moment) in between.iter().enumerate() {
            let broken = more(&old, moment, &new);
            assert_eq!(broken, [""; 0], "after operation {} of {}", n + 1, case());
        }
        assert_eq!(new.naked, [""; 0], "after {}", case());
        n_prefixes += between.len();
        n_protected += new.protected.len();
        n_cells += new.roles.values().map(BTreeSet::len).sum::<usize>();
        (old, desired) = (new, next);
    }
    assert!(
        3 * N_PAIRS < n_prefixes && 20 * N_PAIRS < n_cells && N_PAIRS / 4 < n_protected,
        "seed {seed} is worth a test: {n_prefixes} prefixes, {n_cells} cells, {n_protected} protected tables"
    );
}

/// What `between` allows and neither end does.
fn more(old: &Moment, between: &Moment, new: &Moment) -> Vec<String> {
    let mut broken = Vec::new();
    for (role, reach) in &between.roles {
        let (old, new) = (old.of_role(role), new.of_role(role));
        let extra = reach.iter().filter(|cell| !old.contains(*cell) && !new.contains(*cell));
        broken.extend(extra.map(|cell| format!("role {role} reaches {cell}")));
    }
    for id in between.keys.keys() {
        let (old, new) = (old.of_key(id), new.of_key(id));
        let reach = between.of_key(id);
        let extra = reach.iter().filter(|cell| !old.contains(*cell) && !new.contains(*cell));
        broken.extend(extra.map(|cell| format!("key {id} reaches {cell}")));
    }
    for (table, policies) in &between.policies {
        let ends = [old.policies.get(table), new.policies.get(table)];
        if !ends.contains(&Some(policies)) {
            broken.push(format!("{table} has the policies of neither end: {policies:?}"));
        }
    }
    broken.extend(
        old.protected
            .intersection(&new.protected)
            .filter(|table| !between.protected.contains(*table))
            .map(|table| format!("{table} is protected at both ends and not between")),
    );
    // until a table is protected nobody may write to it more than before
    for table in new.protected.difference(&between.protected) {
        for (role, reach) in &between.roles {
            let old = old.of_role(role);
            let writes =
                reach.iter().filter(|cell| cell.contains(&format!(" {table}.")) && !cell.contains(" of "));
            let more = writes.filter(|cell| !old.contains(*cell));
            broken.extend(more.map(|cell| format!("role {role} got {cell} before {table} was protected")));
        }
    }
    broken.extend(between.naked.iter().map(|table| format!("{table} is reached without forced policies")));
    broken
}
