//! While it is adopted: who sees which rows.

use futures_util::TryStreamExt as _;
use rowgate_tests::servers::postgres::{attempt, execute, rows};
use rowgate_tests::wait::until;
use serde_json::json;

use super::fixture::{LINE, Store, TENANT};

#[tokio::test]
async fn an_application_goes_on_and_keys_see_what_their_policies_say() {
    let store = Store::served().await;
    let (world, all, north) = (&store.world, store.key("all"), store.key("north"));
    let count = async |key: &str, entity: &str| {
        let answer = world.get(key, &format!("/auth/store/api/{entity}?$count=true&$first=1")).await;
        answer.body["count"].as_i64().unwrap_or_else(|| panic!("{answer:?}"))
    };
    // 50 of each region, and each tenth is a draft, all of the north
    assert_eq!(count(&all, "orders").await, 90);
    assert_eq!(count(&north, "orders").await, 40);
    assert_eq!(count(&all, "customers").await, 10);
    assert_eq!(world.get(&north, "/auth/store/api/customers").await.status, 404);
    for role in ["store", "store_writer"] {
        assert_eq!(store.seen(role, "app.orders").await, 100, "{role}");
    }
    // a view of the application counts for its readers what it did
    let total =
        rows(&mut store.as_role("store_reader").await, "select sum(n)::int8 as n from app.totals").await;
    assert_eq!(total, [json!({"n": 100})]);

    let mut writer = store.as_role("store_writer").await;
    execute(&mut writer, "insert into app.orders (customer, region) values (1, 'west')").await;
    let changes = "do $$ declare n int; begin update app.orders set note = 'seen' where region = 'south';
        get diagnostics n = row_count; assert n = 50; end $$";
    execute(&mut writer, changes).await;
    let mut owner = store.as_role("store").await;
    let mut copied = owner.copy_out_raw("copy app.orders to stdout").await.expect("COPY by the owner");
    let mut n_lines = 0;
    while let Some(bytes) = copied.try_next().await.expect("rows") {
        n_lines += bytes.iter().filter(|byte| **byte == b'\n').count();
    }
    drop(copied);
    assert_eq!(n_lines, 101);
    let sees_all = async |role: &str| {
        until(role, async || {
            let all = "do $$ begin assert (select count(*) from app.orders) = 101; end $$";
            attempt(&mut store.as_role(role).await, all).await.ok()
        })
        .await;
    };
    // who is given a right sees every row from the next look on
    execute(&mut owner, "grant select on app.orders to store_late").await;
    sees_all("store_late").await;
    assert_eq!(count(&all, "orders").await, 91);
    // and so while keys are not served the table
    execute(&mut owner, "create policy beside on app.orders to store_dumps using (true)").await;
    store.says("PolicyRefused").await;
    execute(&mut owner, "grant select on app.orders to store_reader").await;
    sees_all("store_reader").await;
    assert_eq!(world.get(&all, "/auth/store/api/orders").await.status, 503);
}

#[tokio::test]
async fn a_dba_is_asked_for_one_line_and_adopting_goes_on_by_itself() {
    let mut store = Store::new(&[("store.yaml", TENANT)]).await;
    store.world.spawn(|_| ());
    let message = store.says("RightsMissing").await;
    assert!(message.ends_with(&format!("a DBA can run: {LINE}")), "{message}");
    let before = store.dump();
    store.lend().await;
    // again, as a DBA may
    store.lend().await;
    store.is_served().await;
    assert_ne!(store.dump(), before);
}
