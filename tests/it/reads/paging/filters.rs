//! 400 random filters beside the same conditions in SQL, and comparisons that no row can answer.

use rand::SeedableRng as _;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use serde_json::Value;

use super::fixture::{ENTITIES, Entity, Fixture, numbers};
use super::question::{condition, escape};
use super::seeds;

#[tokio::test]
async fn a_filter_finds_what_the_same_condition_finds_in_sql() {
    let mut fixture = Fixture::new(&["filters"]).await;
    let key = fixture.world.key("filters-reader");
    let mut sql = fixture.as_key("filters", "filters-reader").await;
    let mut n_with_rows = 0;
    for seed in seeds("FILTER_SEED", 400) {
        let mut rng = StdRng::seed_from_u64(seed);
        let Entity { name, key: order, .. } = ENTITIES[..3].choose(&mut rng).expect("three");
        let condition = condition(&mut rng, &ENTITIES[0], 3);
        let url =
            format!("/auth/filters/api/{name}?$first=-1&$select=n&$filter={}", escape(&condition.filter));
        let statement =
            format!("select n from t.{name} where {} order by {}", condition.sql, order.join(", "));
        let told = format!("FILTER_SEED={seed}: {}\n{statement}", condition.filter);
        let rows = fixture.get(&key, &url).await.rows(&told);
        let found: Vec<i32> = rows.iter().map(n).collect();
        let expected = numbers(&mut sql, &statement).await.unwrap_or_else(|error| panic!("{told}: {error}"));
        assert_eq!(found, expected, "{told}");
        n_with_rows += usize::from(!found.is_empty());
    }
    assert!(n_with_rows > 0, "every filter was empty");

    for filter in
        ["txt_c eq txt_icu", "txt_c lt txt_icu", "txt_icu ne txt_blind", "folded gt vc_icu", "nm eq txt_icu"]
    {
        let url = format!("/auth/filters/api/loose?$filter={}", escape(filter));
        let answer = fixture.get(&key, &url).await;
        assert_eq!((answer.status, answer.error_code().as_str()), (400, "InvalidValue"), "{filter}");
    }
    for filter in ["ints eq '{1'", "rng eq '[1'", "doc eq '{'", "mood eq 'glad'", "ip eq 'x'", "span eq 'x'"]
    {
        let url = format!("/auth/filters/api/loose?$filter={}", escape(filter));
        let answer = fixture.get(&key, &url).await;
        assert_eq!((answer.status, answer.error_code().as_str()), (400, "InvalidFilter"), "{filter}");
    }
    for (options, code) in [
        ("$filter=h%20eq%20'a=>1'", "InvalidFilter"),
        ("$filter=h%20in%20('')", "InvalidFilter"),
        ("$filter=h%20lt%20h", "InvalidFilter"),
        ("$orderby=h", "InvalidOrderBy"),
        ("$filter=c%20eq%20txt", "InvalidFilter"),
        // Its operators stand where the role of a key may not look.
        ("$filter=q%20eq%20'(1)'", "InvalidFilter"),
        ("$filter=path%20eq%20'a..b'", "InvalidFilter"),
        ("$orderby=long%20desc&$first=1", "InvalidOrderBy"),
    ] {
        let answer = fixture.get(&key, &format!("/auth/filters/api/alien?{options}")).await;
        assert_eq!((answer.status, answer.error_code().as_str()), (400, code), "{options}: {}", answer.text);
    }
    for (options, expected) in [
        ("$filter=c%20eq%20null", vec![4]),
        // The operators of citext stand in a schema of the tenant; those of text would find one row less.
        ("$filter=c%20eq%20'a'", vec![1, 2]),
        ("$filter=c%20ne%20'A'", vec![3, 5]),
        ("$filter=c%20in%20('B','C',null)", vec![3, 4, 5]),
        ("$filter=c%20in%20('B',c)", vec![1, 2, 3, 5]),
        ("$filter='B'%20le%20c", vec![3, 5]),
        ("$filter=not%20(c%20gt%20'A')", vec![1, 2]),
        ("$filter=c%20lt%20'C'%20and%20c%20eq%20c", vec![1, 2, 3]),
        ("$orderby=c", vec![1, 2, 3, 5, 4]),
        ("$orderby=c%20desc", vec![4, 5, 3, 1, 2]),
        ("$filter=path%20gt%20'a'", vec![2, 3]),
        ("$orderby=path%20desc", vec![4, 5, 3, 2, 1]),
        // A NULL in spite of its domain, which says NOT NULL.
        ("$orderby=must&$first=4", vec![1, 2, 3, 4]),
        ("$orderby=must%20desc&$first=2", vec![5, 4]),
        ("$filter=cs%20eq%20'{A}'", vec![1, 2, 4]),
        ("$orderby=cs%20desc", vec![3, 1, 2, 4, 5]),
        ("$orderby=long%20desc", vec![4, 3, 2, 1, 5]),
    ] {
        let rows = fixture.get(&key, &format!("/auth/filters/api/alien?{options}")).await.rows(options);
        assert_eq!(rows.iter().map(n).collect::<Vec<_>>(), expected, "{options}");
    }
    for (options, expected) in [
        ("$orderby=c", [1, 2, 3, 5, 4]),
        ("$orderby=c%20desc", [4, 5, 3, 1, 2]),
        ("$orderby=path,c%20desc", [1, 2, 3, 4, 5]),
    ] {
        let mut url = format!("/auth/filters/api/alien?$select=n&$first=1&{options}");
        for (i, n) in expected.into_iter().enumerate() {
            let answer = fixture.get(&key, &url).await;
            let (row, next) = answer.page(&url);
            assert_eq!((row, next.is_some()), (&*format!("{{\"n\":{n}}}"), i < 4), "{url}");
            url = next.unwrap_or_default().to_owned();
        }
    }
    let first = "/auth/filters/api/alien?$select=n&$orderby=must&$first=4";
    let answer = fixture.get(&key, first).await;
    let next = answer.page(first).1.expect("the row whose domain lies");
    assert_eq!(fixture.get(&key, next).await.page(next), ("{\"n\":5}", None));
    assert!(fixture.world.stop().await.success());
}

fn n(row: &Value) -> i32 {
    i32::try_from(row["n"].as_i64().expect("a number")).expect("an int4")
}
