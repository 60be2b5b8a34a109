//! What the log keeps, for how long and for whom, and what its limit of bytes gives up first.

use rowgate_crds::Reason;
use rowgate_tests::servers::postgres::{execute, rows};
use rowgate_tests::wait::until;
use rowgate_tests::world::status::{condition, ready};
use serde_json::Value;

use super::fixture::{Bank, told};

const INSERT: &str = "insert into bank.accounts values";

/// A subscription as it stands in the tenant's database, whose key is gone, so that nothing is sent.
fn subscribe(id: &str, state: &str, columns: &str, values: &str) -> String {
    format!(
        "insert into dl.subscriptions (id, name, owner_key, origin, url, suspend, state, {columns})
         values ('{id}', '{id}', '01arz3ndektsv4rrffq69g5fav', 'api', 'https://example.org', true, '{state}', {values});"
    )
}

/// All events so far are of that many days ago.
fn age(days: u32) -> String {
    format!(
        "update dl.outbox set slot = ((current_date - {days}) - date '1970-01-01') % 10, at = at - interval '{days} days';
         update dl.ticks set at = at - interval '{days} days'; update dl.event_log set floor_day = current_date - {days}"
    )
}

async fn texts(bank: &Bank, query: &str) -> Vec<String> {
    let rows = rows(&mut bank.world.superuser("bank").await, query).await;
    rows.iter().map(|row| row["it"].as_str().expect("a text").to_owned()).collect()
}

const BACKLOG: &str = "select concat_ws(' ', subscription, op, image ->> 'id') as it from dl.backlog order by subscription, tick, seq";

fn healthy(status: &Value) -> (&str, &str, &str) {
    let found = condition(status, "EventsHealthy");
    let text = |name: &str| found[name].as_str().unwrap_or_default();
    (text("status"), text("reason"), text("message"))
}

async fn says(bank: &Bank, status: &str, reason: &str) -> String {
    until(reason, async || {
        let tenant = bank.world.status("Tenant", "bank");
        let (is, why, message) = healthy(&tenant);
        ((is, why) == (status, reason)).then(|| message.to_owned())
    })
    .await
}

/// What a subscription has not delivered outlasts the seven days, whether it is enabled or not; of what was delivered, or is for
/// others, nothing does. It goes with the subscription. What is older than 30
/// days waits for the data plane, which disables the subscription, so that nothing is lost in silence.
#[tokio::test]
async fn undelivered_events_outlast_the_log() {
    let bank = Bank::looked_at().await;
    let start = bank.now("all").await;
    let tick = |cursor: &str| cursor.split('.').nth(1).expect("a tick").to_owned();
    bank.sql(&format!("{INSERT} (1, 'north', 1), (2, 'north', 1)")).await;
    let (events, _) = bank.all("all", "accounts", &start).await;
    let first = events[0]["EventId"].as_str().expect("an id").split('.').collect::<Vec<_>>()[1..].join(", ");
    bank.sql("insert into bank.moves values (7, '2024-05-01', 1, 1); delete from bank.accounts where id = 2")
        .await;
    let end = tick(&bank.now("all").await);
    let from = tick(&start);
    let (at, of) = ("cursor_tick, cursor_seq", "array['bank.accounts'::regclass::oid]");
    for (id, state, more, values) in [
        ("all", "enabled", "", format!("{from}, 0")),
        ("deletes", "disabled", ", ops", format!("{from}, 0, '{{d}}'")),
        ("done", "enabled", "", format!("{end}, 0")),
        ("half", "disabled", ", rels", format!("{first}, {of}")),
    ] {
        bank.sql(&subscribe(id, state, &format!("{at}{more}"), &values)).await;
    }
    // as version 0019 left the log
    bank.sql(
        "do $$ begin for slot in 0..9 loop execute format('drop index dl.outbox_%s_seq_idx', slot); end loop; end $$;
         update dl.event_log set is_indexed = false",
    )
    .await;
    bank.sql(&age(9)).await;
    bank.sql(&format!("{INSERT} (5, 'north', 1)")).await;
    until("the end of nine days ago", async || {
        (texts(&bank, "select image ->> 'id' as it from dl.outbox").await == ["5"]).then_some(())
    })
    .await;
    // a day that is over is given it while it is empty
    let indexed = "select bool_or(indexname = format('outbox_%s_seq_idx', (current_date - 9 - date '1970-01-01') % 10))::text as it
                   from pg_indexes where schemaname = 'dl'";
    assert_eq!(texts(&bank, indexed).await, ["true"]);
    let kept = ["all i 1", "all i 2", "all i 7", "all d 2", "deletes d 2", "half i 2", "half d 2"];
    assert_eq!(texts(&bank, BACKLOG).await, kept);
    // what readers get begins behind it
    assert_eq!(told(&bank.all("all", "accounts", "start").await.0), ["insert 5"]);

    // delivered by now, given up, and too old
    bank.sql(&format!(
        "update dl.subscriptions set cursor_tick = {end} where id = 'half'; delete from dl.subscriptions where id = 'deletes';
         update dl.backlog set at = now() - interval '31 days' where image ->> 'id' = '1';
         insert into dl.audit (at, surface, action, subject) values (now() - interval '91 days', 'rest', 'x', 'old'), (now() - interval '89 days', 'rest', 'x', 'new');
         insert into dl.deliveries (subscription, batch, attempt, took_ms, n_events, n_bytes) select 'all', n, 1, 1, 1, 1 from generate_series(1, 250) n"
    ))
    .await;
    until("what has a bound of its own to go", async || {
        (texts(&bank, BACKLOG).await == ["all i 1", "all i 2", "all i 7", "all d 2"]
            && texts(&bank, "select subject as it from dl.audit").await == ["new"]
            && texts(&bank, "select count(*) || ' from ' || min(batch::int) as it from dl.deliveries").await
                == ["200 from 51"])
        .then_some(())
    })
    .await;
    says(&bank, "True", "EventsKept").await;
}

/// Beyond its limit the log gives up whole days, and says so; writers go on, and so do subscriptions.
#[tokio::test]
async fn beyond_its_limit_the_log_gives_up_the_oldest_days() {
    let bank = Bank::looked_at().await;
    let start = bank.now("all").await;
    let from: i64 = start.split('.').nth(1).and_then(|tick| tick.parse().ok()).expect("a tick");
    bank.sql(&subscribe("late", "disabled", "cursor_tick, cursor_seq", &format!("{from}, 0"))).await;
    bank.sql(&format!("{INSERT} (1, 'north', 1)")).await;
    let _made_a_tick = bank.now("all").await;
    bank.sql(&age(3)).await;
    bank.sql("insert into bank.moves select n, '2024-05-01', n, n from generate_series(1, 20000) n").await;
    let two_days = bank.now("all").await;
    // those are of yesterday, and a leaf of its own
    bank.sql(
        "with gone as (delete from dl.outbox where image ->> 'at' is not null returning *)
            insert into dl.outbox select ((current_date - 1) - date '1970-01-01') % 10, seq, xid, at - interval '1 day', rel, op, cause, image from gone;
         update dl.ticks set at = at - interval '1 day' where number = (select max(number) from dl.ticks)",
    )
    .await;
    let leaf = "select format('truncate only dl.outbox_%s', (current_date - date '1970-01-01') % 10) as it";
    let truncate = texts(&bank, leaf).await.remove(0);
    bank.sql(&truncate).await;
    says(&bank, "True", "EventsKept").await;
    bank.world.edit("bank.yaml", "  shared:\n", "  limits: {maxOutboxBytes: 1048576}\n  shared:\n");
    let message = says(&bank, "False", "HistoryShortened").await;
    assert!(message.contains("limits.maxOutboxBytes") && message.contains("raise it"), "{message}");
    bank.sql(&format!("{INSERT} (2, 'north', 1)")).await;
    assert_eq!(told(&bank.all("all", "accounts,moves", "start").await.0), ["insert 2"]);
    for cursor in [&start, &two_days] {
        let reply = bank.ask("all", &format!("?after={cursor}")).await;
        // behind yesterday's last tick nothing was lost
        let expected = if cursor == &two_days { 200 } else { 400 };
        assert_eq!(reply.status.as_u16(), expected, "{cursor}: {reply:?}");
    }
    let n = texts(&bank, "select count(*)::text as it from dl.backlog").await;
    assert_eq!(n, ["20001"], "what the subscription has not delivered is kept");

    // today alone
    bank.sql("insert into bank.moves select n, '2024-06-01', n, n from generate_series(1, 20000) n").await;
    let message = says(&bank, "False", "OutboxFull").await;
    assert!(message.contains("raise the limit"), "{message}");
    bank.sql(&format!("{INSERT} (3, 'north', 1)")).await;
}

/// A session that holds a day's leaf keeps it from being emptied, and the status says so.
#[tokio::test]
async fn a_day_that_cannot_be_emptied_is_told() {
    let bank = Bank::looked_at().await;
    bank.sql(&format!("{INSERT} (1, 'north', 1)")).await;
    bank.sql(&age(9)).await;
    let mut holds = bank.world.superuser("bank").await;
    let leaf = "select format('begin; lock table only dl.outbox_%s in access share mode', (current_date - 9 - date '1970-01-01') % 10) as it";
    let lock = texts(&bank, leaf).await.remove(0);
    execute(&mut holds, &lock).await;
    let message = says(&bank, "False", "RetentionLate").await;
    assert!(message.contains("end transactions"), "{message}");
    execute(&mut holds, "rollback").await;
    says(&bank, "True", "EventsKept").await;
}

/// A policy that no stored row can be judged by is said in the status, before anybody misses an event.
#[tokio::test]
async fn a_policy_that_needs_more_than_a_stored_row_is_said_in_the_status() {
    let bank = Bank::open().await;
    bank.world.edit(
        "bank.yaml",
        "expression: 'true'",
        "expression: 'ctid is not null and accounts is not null'",
    );
    until("a warning", async || {
        let warnings = bank.world.status("Tenant", "bank")["warnings"].to_string();
        (warnings.contains("policy admins names a system column") && warnings.contains("bank.accounts"))
            .then_some(())
    })
    .await;
    bank.world.edit(
        "bank.yaml",
        "expression: 'ctid is not null and accounts is not null'",
        "expression: 'accounts is not null'",
    );
    until("no warning", async || {
        // a pass that was cut short says nothing of policies
        let status = bank.world.status("Tenant", "bank");
        (ready(&status).0 == Reason::Served.as_str() && !status["warnings"].to_string().contains("admins"))
            .then_some(())
    })
    .await;
    let start = bank.now("all").await;
    bank.sql(&format!("{INSERT} (1, 'north', 1, 'x', 'y', 3)")).await;
    assert_eq!(told(&bank.all("all", "accounts", &start).await.0), ["insert 1"]);
}
