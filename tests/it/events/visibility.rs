//! A key is given what row-level security lets it see, with the fields that it may read.

use rowgate_tests::wait::until;

use super::fixture::{Bank, told};

/// The stored row is asked about, the live row too, and deletes by the stored row alone.
#[tokio::test]
async fn a_key_is_given_what_its_role_may_see() {
    let bank = Bank::open().await;
    let start = bank.now("north").await;
    bank.sql(
        "insert into bank.accounts values (1, 'north', 1, 'secret'), (2, 'south', 1, ''), (3, 'south', 1, ''), (4, 'north', 1, ''), (5, 'north', 1, '');
         update bank.accounts set region = 'north' where id = 2; update bank.accounts set region = 'south' where id = 4;
         update bank.accounts set balance = 2 where id in (1, 3, 4); delete from bank.accounts where id in (3, 5)",
    )
    .await;
    let (north, _) = bank.all("north", "accounts", &start).await;
    // of 4 only what came before it went south would be its own, and it does not see that row now; 3 never was its own
    assert_eq!(told(&north), ["insert 1", "update 2", "update 1", "delete 5"], "{north:#?}");
    let fields: Vec<&String> = north[0]["data"].as_object().expect("a row").keys().collect();
    assert_eq!(fields, ["id", "region", "balance"], "{north:#?}");
    let (all, _) = bank.all("all", "accounts", &start).await;
    assert_eq!(
        told(&all),
        [
            "insert 1", "insert 2", "insert 4", "update 2", "update 4", "update 1", "update 4", "delete 3",
            "delete 5"
        ],
        "{all:#?}"
    );
    assert_eq!(all[0]["data"]["note"], "secret");
    assert_eq!(all[0]["data"]["balance"], 1, "the row as it was: {:#?}", all[0]);

    // tables that are not there, not captured, or not the key's own, are told alike
    for (key, tables) in [("north", "moves"), ("all", "quiet"), ("all", "absent"), ("north", "bank.moves")] {
        let reply = bank.ask(key, &format!("?tables={tables}")).await;
        assert_eq!(
            (reply.status.as_u16(), reply.json()["error"]["code"].as_str()),
            (400, Some("BadRequest")),
            "{key} {tables}: {reply:?}"
        );
    }
    assert_eq!(bank.page("north", "?tables=bank.accounts").await["events"].as_array().map(Vec::len), Some(0));

    // rights that end, end for events of before as well
    bank.world.edit("bank.yaml", "claims: {region: north}", "claims: {region: south}");
    until("the other claim", async || {
        let (given, _) = bank.all("north", "accounts", &start).await;
        (told(&given) == ["update 4", "update 4", "delete 3"]).then_some(())
    })
    .await;
    let manifest = "      - {entity: accounts, actions: [read], fields: {include: [id, region, balance]}}";
    bank.world.edit(
        "bank.yaml",
        manifest,
        "      - {entity: accounts, actions: [read], fields: {include: [id, region]}}",
    );
    until("fewer fields", async || {
        let (given, _) = bank.all("north", "accounts", &start).await;
        given[0]["data"].as_object().is_some_and(|data| data.len() == 2).then_some(())
    })
    .await;
}

/// A column that the stored row lacks does not count as NULL.
#[tokio::test]
async fn a_row_that_was_stored_without_a_column_of_a_policy_is_withheld() {
    let bank = Bank::open().await;
    bank.sql("insert into bank.accounts values (1, 'north', 1)").await;
    assert_eq!(bank.all("all", "accounts", "start").await.0.len(), 1);
    bank.sql("alter table bank.accounts rename balance to amount").await;
    bank.world.edit("bank.yaml", "expression: 'true'", "expression: 'amount is null or amount < 5'");
    let two = "insert into bank.accounts (id, region, amount) values (2, 'north', 1)";
    bank.sql(two).await;
    until("the other policy", async || {
        let reply = bank.ask("all", "?tables=accounts&after=start").await;
        let events = reply.json()["events"].as_array().cloned().unwrap_or_default();
        (told(&events) == ["insert 2"]).then_some(())
    })
    .await;
}
