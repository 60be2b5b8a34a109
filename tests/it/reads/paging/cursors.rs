//! A cursor is good for the question and the key that it was made for, and for nothing else; rows that come and go
//! between pages move no other row.

use rowgate_tests::servers::postgres::execute;
use serde_json::Value;

use super::fixture::Fixture;

/// The token in the link to the next page.
async fn token(fixture: &Fixture, key: &str, url: &str) -> String {
    let answer = fixture.get(key, url).await;
    let (_, next) = answer.page(url);
    let (_, token) = next.and_then(|next| next.split_once("$after=")).expect("another page");
    token.to_owned()
}

#[tokio::test]
async fn a_cursor_is_good_for_one_question_of_one_key() {
    let mut fixture = Fixture::new(&["cursors", "elsewhere"]).await;
    let [reader, twin, stranger] =
        ["cursors-reader", "cursors-twin", "elsewhere-reader"].map(|name| fixture.world.key(name));
    let question = "/auth/cursors/api/loose?$first=3&$orderby=txt,i4%20desc&$filter=n%20gt%205";
    let good = token(&fixture, &reader, question).await;
    assert_eq!(fixture.get(&reader, &format!("{question}&$after={good}")).await.status, 200);
    // Page size and selection belong to no question.
    let other_size = question.replace("$first=3", "$first=5&$select=n");
    assert_eq!(fixture.get(&reader, &format!("{other_size}&$after={good}")).await.status, 200);

    let mut refused = vec![
        (&reader, question.to_owned(), String::new()),
        (&reader, question.to_owned(), "x".to_owned()),
        (&reader, question.to_owned(), format!("{good}A")),
        (&reader, question.to_owned(), format!("{good}{good}")),
        (&reader, question.to_owned(), "A".repeat(12_000)),
        (&reader, question.replace("loose", "shown"), good.clone()),
        (&reader, question.replace("%20desc", ""), good.clone()),
        (&reader, question.replace("txt,", "txt_c,"), good.clone()),
        (&reader, question.replace("$orderby=txt,i4%20desc&", ""), good.clone()),
        (&reader, question.replace("gt%205", "gt%206"), good.clone()),
        (&reader, question.replace("&$filter=n%20gt%205", ""), good.clone()),
        (&twin, question.to_owned(), good.clone()),
        (&stranger, question.replace("/cursors/", "/elsewhere/"), good.clone()),
    ];
    for at in 0..good.len() {
        let other = if good.as_bytes()[at] == b'A' { "B" } else { "A" };
        refused.push((&reader, question.to_owned(), format!("{}{other}{}", &good[..at], &good[at + 1..])));
        refused.push((&reader, question.to_owned(), good[..at].to_owned()));
    }
    let mut bodies = Vec::new();
    for (key, question, token) in refused {
        let answer = fixture.get(key, &format!("{question}&$after={token}")).await;
        assert_eq!(
            (answer.status, answer.error_code().as_str()),
            (400, "InvalidCursor"),
            "{question} {token}"
        );
        let mut body: Value = serde_json::from_str(&answer.text).expect("a problem is JSON");
        assert!(body["error"]["requestId"].take().is_string());
        bodies.push(body.to_string());
    }
    bodies.dedup();
    assert_eq!(bodies.len(), 1, "nothing tells why: {bodies:?}");
    assert!(fixture.world.stop().await.success());
}

#[tokio::test]
async fn rows_that_come_and_go_between_pages_move_no_other_row() {
    let mut fixture = Fixture::new(&["moving"]).await;
    let key = fixture.world.key("moving-reader");
    let mut sql = fixture.world.superuser("moving").await;
    let ns = |rows: &[Value]| -> Vec<i64> {
        rows.iter().map(|row| row["n"].as_i64().expect("a number")).collect()
    };
    for (i, order) in
        ["n", "n%20desc", "txt_icu%20desc,f8", "mood,txt_blind%20desc", "num"].into_iter().enumerate()
    {
        let url = format!("/auth/moving/api/loose?$orderby={order}&$select=n&$first=");
        let before = ns(&fixture.get(&key, &format!("{url}-1")).await.rows(&url));
        let mut seen = Vec::new();
        let mut next = Some(format!("{url}7"));
        let mut gone = Vec::new();
        while let Some(url) = next {
            let answer = fixture.get(&key, &url).await;
            let page = ns(&answer.rows(&url));
            next = answer.page(&url).1.map(str::to_owned);
            // The very row where the page ended goes, so does one not yet seen, and copies of the first one come.
            let last = *page.last().expect("no page is empty");
            let unseen = before.iter().find(|n| !seen.contains(*n) && !page.contains(n)).copied();
            seen.extend(page);
            let doomed = if seen.len() % 3 == 0 { unseen } else { None };
            gone.extend(doomed);
            let (id, doomed) = (10_000 * (i + 1) + seen.len(), doomed.unwrap_or(last));
            execute(
                &mut sql,
                &format!(
                    "delete from t.loose where n in ({last}, {doomed}); insert into t.loose (id, n, owner, txt_icu, f8) \
                     values ({id}, -{id}, 'a', 'm', 0), (-{id}, -{id} - 1, 'a', null, 'NaN')"
                ),
            )
            .await;
        }
        seen.retain(|n| before.contains(n));
        let expected: Vec<i64> = before.into_iter().filter(|n| !gone.contains(n)).collect();
        assert_eq!(seen, expected, "{order}");
        execute(&mut sql, "delete from t.loose where n < 0").await;
    }
    assert!(fixture.world.stop().await.success());
}

/// A page after others may be empty and still know how many rows there are. Seen to fail with 0 for every empty page.
#[tokio::test]
async fn an_empty_page_after_others_counts_what_is_there() {
    let fixture = Fixture::new(&["counts"]).await;
    let key = fixture.world.key("counts-reader");
    let question = "/auth/counts/api/loose?$first=5&$orderby=n&$filter=n%20lt%2040&$count=true";
    let first = fixture.get(&key, question).await;
    let (rows, next) = first.page(question);
    assert!(!rows.is_empty() && 5 < first.count().expect("a count"), "{rows}");
    let next = next.expect("more rows").to_owned();
    let mut sql = fixture.world.superuser("counts").await;
    execute(&mut sql, "delete from t.loose where n > 10").await;
    let last = fixture.get(&key, &next).await;
    assert_eq!((last.page(&next), last.count()), (("", None), Some(5)));
    let none = question.replace("lt%2040", "gt%2040");
    let none = fixture.get(&key, &none).await;
    assert_eq!((none.page("none"), none.count()), (("", None), Some(0)));
}
