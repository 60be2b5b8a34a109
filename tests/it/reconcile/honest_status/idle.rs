//! A cluster in which nothing changes and nobody asks: a minute without a write, and hardly a question.

use rowgate_tests::servers::operator::ACCOUNT;
use rowgate_tests::wait::until;
use tokio::time::Instant;

use super::stage::{Stage, key, scoped, tenant};
use super::turnstile::ask;
use crate::reconcile::scenarios::quiet::{reads_only, statements};

/// A second is one poll of the replicas by the operator; it also looks at everything at least five times meanwhile, more often
/// than one that is installed.
///
/// Seen to fail with a status that says the time of the pass, with a data plane that writes again and again what it
/// serves, and with an operator that reads each key's Secret at each look.
#[tokio::test]
async fn an_idle_minute_writes_nothing_but_the_lease_and_heartbeats_and_asks_for_no_object() {
    let stage = Stage::new(Some(10)).await;
    let more: String = (0..28).map(|n| key(&format!("key-{n}"), "acme", "")).collect();
    let keys = key("web", "acme", "") + &key("north", "acme", &scoped("['*']", "north")) + &more;
    stage.namespace.apply(&(tenant("acme", "['*']", "south", "true") + &keys)).await.ok();
    for (resource, name) in [("tenants", "acme"), ("apikeys", "web"), ("apikeys", "north")] {
        stage.namespace.told(resource, name, 1, "Served").await;
    }
    for n in 0..28 {
        stage.namespace.told("apikeys", &format!("key-{n}"), 1, "Served").await;
    }
    let passes = || stage.server.log().matches("from dl.applied").count();
    // those that are left out, too, as nothing has happened
    let looks = async || {
        let left_out = stage.operator.metric("rowgate_operator_passes_left_out_total").await;
        f64::from(u32::try_from(passes()).expect("a few")) + left_out.unwrap_or_default()
    };
    let another = async || {
        let end = looks().await + 1.0;
        until("another look", async || (end <= looks().await).then_some(())).await;
    };
    // what was made is compared once more
    another().await;
    let mut conn = stage.server.connect("rowgate").await;
    let xid = "select pg_snapshot_xmax(pg_current_snapshot())::text::bigint";
    let (mark, start, before) =
        (stage.namespace.cluster().audit_mark(), stage.server.log().len(), looks().await);
    let began = Instant::now();
    let first: i64 = ask(&mut conn, xid.to_owned()).await;
    for _ in 0..6 {
        stage.polls(10).await;
    }
    let last: i64 = ask(&mut conn, xid.to_owned()).await;
    let n_looks = looks().await - before;
    assert!(5.0 <= n_looks, "{n_looks} looks in a minute");

    let writes = stage.namespace.writes_since(&mark);
    assert!(writes.iter().all(|write| write.resource == "leases"), "{writes:?}");
    assert!(!writes.is_empty(), "the Lease was renewed");
    // the Lease each 6 s, by a write that asks nothing before; three watches, each begun anew every 200 s
    let user = format!("system:serviceaccount:{}:{ACCOUNT}", stage.namespace.name());
    let mut asked = stage.namespace.cluster().requests_since(&mark, &user);
    let n_seconds = usize::try_from(began.elapsed().as_secs()).expect("a minute or two");
    let n_renewed = asked.remove("update leases").unwrap_or_default();
    assert!(n_renewed <= n_seconds / 6 + 2, "{n_renewed} renewals in {n_seconds} s");
    let (watches, others): (Vec<_>, Vec<_>) = asked.into_iter().partition(|(it, _)| it.starts_with("watch "));
    assert!(others.is_empty(), "{others:?}");
    assert!(watches.iter().all(|(_, n)| *n <= n_seconds / 200 + 1), "{watches:?}");
    let log = stage.server.log();
    let written = statements(&log[start..]).into_iter().filter(|it| !reads_only(it));
    let (beats, others): (Vec<String>, Vec<String>) =
        written.partition(|it| it.contains("update control.replicas set beat_at"));
    assert!(others.is_empty(), "{others:#?}");
    // whatever writes takes a transaction's number, also where its text does not show it
    let n_beats = i64::try_from(beats.len()).expect("a small number");
    assert!(20 <= n_beats && last - first <= n_beats, "{n_beats} beats in {} transactions", last - first);
}
