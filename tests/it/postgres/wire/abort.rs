//! Callers that go away never leave their rows to another.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rowgate_sql::shape::Encoding::{Int4, Quoted, Text};
use rowgate_tests::servers::postgres::shared;
use rowgate_tests::wait::until;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::encoders::Random;
use super::fixture::{Tenant, utf8};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_thousand_callers_of_which_many_go_away_get_their_own_rows_only() {
    let tenant = Arc::new(Tenant::found(shared().await, "wire_abort").await);
    let pool = tenant.pool_as(tenant.login.clone(), 4);
    let mut usual = 0;
    for _cold_and_warm in 0..2 {
        let began = Instant::now();
        let asking =
            (0..32).map(|_| pool.read(tenant.ask("a", "select owner from app.notes", &[Text]), usize::MAX));
        futures_util::future::join_all(asking)
            .await
            .into_iter()
            .for_each(|page| drop(page.expect("an answer")));
        usual = u64::try_from(began.elapsed().as_micros()).expect("not long");
    }
    let mut random = Random(11);
    let mut callers = JoinSet::new();
    let (mut n_answered, mut n_gone) = (0, 0);
    for number in 0..2_000 {
        if 32 <= callers.len() {
            // however busy the machine is by now, about half go
            match callers.join_next().await.expect("32 callers").expect("no caller panics") {
                true => (n_answered, usual) = (n_answered + 1, usual - usual / 64),
                false => (n_gone, usual) = (n_gone + 1, usual + usual / 64 + 1),
            }
        }
        let (key, other) = if random.next().is_multiple_of(2) { ("a", "b") } else { ("b", "a") };
        // From gone before anything was sent to an answer in time.
        let patience = Duration::from_micros(random.next() % (usual + usual / 2));
        let (tenant, pool) = (Arc::clone(&tenant), pool.clone());
        callers.spawn(async move {
            // The marker tells this question's answer from another's of the same key.
            let text = format!("select {} as marker, owner, note from app.notes order by id", number % 100);
            let ask = tenant.ask(key, &text, &[Int4, Text, Text]);
            let Ok(answer) = timeout(patience, pool.read(ask, usize::MAX)).await else { return false };
            let page = answer.expect("an answer");
            let marker = format!("{{\"0\":{},\"1\":\"{}\"", number % 100, tenant.role(key));
            assert_eq!(page.n_rows, 50);
            assert_eq!(utf8(&page).matches(&marker).count(), 50, "{}", utf8(&page));
            assert!(!utf8(&page).contains(&tenant.role(other)));
            true
        });
    }
    while let Some(caller) = callers.join_next().await {
        match caller.expect("no caller panics") {
            true => n_answered += 1,
            false => n_gone += 1,
        }
    }
    assert!(100 < n_answered && 100 < n_gone, "{n_answered} answered, {n_gone} gone: nothing was tried");

    pool.close().await;
    let ask = tenant.ask("a", "select 1", &[Int4]);
    assert!(pool.read(ask, usize::MAX).await.is_err());
}

#[tokio::test]
async fn an_exchange_outlives_its_caller_and_its_connection_is_used_again() {
    let mut tenant = Tenant::found(shared().await, "wire_outlive").await;
    let pool = tenant.pool();
    let pid = tenant.text(&pool, "a", "select pg_backend_pid()").await;
    let slow = tenant.ask("a", "select 'the first caller', pg_sleep(0.5)", &[Text, Quoted]);
    let caller = tokio::spawn({
        let pool = pool.clone();
        async move { pool.read(slow, usize::MAX).await }
    });
    let running = "select 1 from pg_stat_activity
        where datname = current_database() and state = 'active' and query like '%the first caller%'
        and pid <> pg_backend_pid()";
    until("the slow statement", async || {
        sqlx::query(running).fetch_optional(&mut tenant.superuser).await.expect("rows")
    })
    .await;
    caller.abort();
    assert!(caller.await.expect_err("aborted").is_cancelled());
    assert_eq!(tenant.text(&pool, "a", "select pg_backend_pid()").await, pid);
}
