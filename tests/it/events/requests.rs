//! What a reader may ask for, and how long it waits.

use rowgate_tests::servers::postgres::execute;
use rowgate_tests::wait::until;

use super::fixture::{Bank, cursor, told};

#[tokio::test]
async fn a_request_that_cannot_be_answered_is_told_why() {
    let bank = Bank::open().await;
    for (query, code, part) in [
        ("?tables=", "BadRequest", "accounts, moves"),
        ("?tables=accounts,nothing", "BadRequest", "\"nothing\""),
        ("?tables=accounts,bank.accounts", "BadRequest", "the same table"),
        ("?ops=upsert", "BadRequest", "insert, update, delete"),
        ("?limit=0", "BadRequest", "from 1 to 1000"),
        ("?limit=1001", "BadRequest", "from 1 to 1000"),
        ("?wait=31", "BadRequest", "from 0 to 30"),
        ("?since=1", "BadRequest", "\"since\""),
        ("?limit=1&limit=2", "BadRequest", "twice"),
        ("?after=x", "InvalidCursor", "EventId"),
        ("?after=1.2", "InvalidCursor", "EventId"),
        ("?after=1.-2.3", "InvalidCursor", "EventId"),
        ("?after=9.1.0", "InvalidCursor", "after=start"),
        ("?after=1.999.0", "InvalidCursor", "after=start"),
        ("?after=1.0.0", "InvalidCursor", "after=start"),
    ] {
        let reply = bank.ask("all", query).await;
        let error = &reply.json()["error"];
        assert_eq!((reply.status.as_u16(), error["code"].as_str()), (400, Some(code)), "{query}: {reply:?}");
        assert!(error["message"].as_str().is_some_and(|message| message.contains(part)), "{query}: {error}");
    }
}

#[tokio::test]
async fn a_page_has_the_ops_that_are_asked_for_and_goes_on_behind_its_cursor() {
    let bank = Bank::open().await;
    bank.sql("insert into bank.accounts values (1, 'north', 1), (2, 'north', 1), (3, 'north', 1); update bank.accounts set balance = 2 where id = 2").await;
    let page = bank.page("all", "?tables=accounts&after=start&ops=update").await;
    assert_eq!(told(page["events"].as_array().expect("events")), ["update 2"]);
    let page = bank.page("all", "?after=start&limit=2").await;
    assert_eq!(
        (told(page["events"].as_array().expect("events")), &page["hasMore"]),
        (vec!["insert 1".to_owned(), "insert 2".to_owned()], &true.into())
    );
    let page = bank.page("all", &format!("?limit=2&after={}", cursor(&page))).await;
    assert_eq!(told(page["events"].as_array().expect("events")), ["insert 3", "update 2"]);
}

/// A request that waits is answered by the event, and a key that is revoked meanwhile with 401.
#[tokio::test]
async fn a_request_waits_for_an_event() {
    let bank = Bank::open().await;
    let now = bank.now("all").await;
    let mut superuser = bank.world.superuser("bank").await;
    let (query, text) =
        (format!("?tables=accounts&after={now}&wait=30"), "insert into bank.accounts values (1, 'north', 1)");
    let (page, ()) = tokio::join!(bank.page("all", &query), execute(&mut superuser, text));
    assert_eq!(told(page["events"].as_array().expect("events")), ["insert 1"]);

    let query = format!("?tables=accounts&after={}&wait=30", cursor(&page));
    let revoke = async {
        bank.world.edit(
            "bank.yaml",
            "metadata: {name: all}\nspec: {tenantRef: {name: bank}}",
            "metadata: {name: all}\nspec: {tenantRef: {name: bank}, revoked: true}",
        );
        until("the revocation", async || (bank.ask("all", "").await.status == 401).then_some(())).await;
    };
    let (reply, ()) = tokio::join!(bank.ask("all", &query), revoke);
    assert_eq!(reply.status, 401, "{reply:?}");
}
