//! Random values of every type go in as they came out, by POST and by PATCH, and are what PostgreSQL holds.

use rand::SeedableRng as _;
use rand::rngs::StdRng;
use rowgate_tests::servers::postgres::rows;
use serde_json::value::RawValue;

use super::fixture::Fixture;
use super::random::{columns, script, seed};

/// What a new row's id is greater by.
const MORE: usize = 1_000;

/// Seen to fail with base 64 within arrays and composites stored as it is sent, and with JSON that loses its blanks.
#[tokio::test]
async fn what_is_read_is_stored_again_as_it_was() {
    let mut fixture = Fixture::new(&script(&mut StdRng::seed_from_u64(seed())), &["random"]).await;
    let (page, _) = fixture.page(&format!("random?$first=-1&$select=id,{}", names().join(","))).await;
    let read: Vec<Box<RawValue>> = serde_json::from_str(&format!("[{page}]")).expect("JSON");
    // The fields behind the key.
    let fields = |row: usize| {
        let (_, fields) = read[row % read.len()].get().split_once(',').expect("the key comes first");
        fields
    };
    let all: Vec<usize> = (0..read.len()).collect();
    for some in all.chunks(10) {
        let new = |row: &usize| format!("{{\"id\":{},{}", row + MORE, fields(*row));
        let (status, made) = fixture.send("POST", "random", &list(some, new)).await;
        assert_eq!(status, 201, "{made}");
    }
    differing(&mut fixture, 0).await;
    // another row's values in the place of those that are there
    for row in all {
        let path = format!("random/id/{}", row + MORE);
        let (status, changed) = fixture.send("PATCH", &path, &format!("{{{}", fields(row + 1))).await;
        let expected = format!("{{\"value\":[{{\"id\":{},{}]}}", row + MORE, fields(row + 1));
        assert_eq!(status, 200, "{changed}");
        let select = format!("?$select=id,{}", names().join(","));
        same(&fixture.get(&(path + &select)).await.1, &expected);
    }
    differing(&mut fixture, 1).await;
    assert!(fixture.world.stop().await.success());
}

/// The rows are long: what is told is where they part.
fn same(found: &str, expected: &str) {
    let parted = found.bytes().zip(expected.bytes()).position(|(a, b)| a != b);
    let around = |text: &str, at: usize| {
        String::from_utf8_lossy(&text.as_bytes()[at.saturating_sub(200)..text.len().min(at + 100)])
            .into_owned()
    };
    let parted =
        parted.or_else(|| (found.len() != expected.len()).then_some(found.len().min(expected.len())));
    if let Some(at) = parted {
        panic!("VALUES_SEED={} {}\nand not\n{}", seed(), around(found, at), around(expected, at));
    }
}

/// An array of JSON has one dimension when it is written: a list in it is an element.
fn names() -> Vec<String> {
    columns().into_iter().filter(|name| !matches!(name.as_str(), "js_2" | "jb_2")).collect()
}

fn list(rows: &[usize], one: impl Fn(&usize) -> String) -> String {
    format!("[{}]", rows.iter().map(one).collect::<Vec<_>>().join(","))
}

/// Compares each new row with the old one from which its values are, `off` rows on, as PostgreSQL prints them. Lower bounds
/// of arrays are not shown, and so not kept.
async fn differing(fixture: &mut Fixture, off: usize) {
    let differs = |column: &String| {
        format!(
            "case when regexp_replace(a.{column}::text, '^\\[[-0-9:\\]\\[]*=', '') \
             is distinct from regexp_replace(b.{column}::text, '^\\[[-0-9:\\]\\[]*=', '') then '{column}' end"
        )
    };
    // a function takes a hundred arguments at most
    let lists: Vec<String> = names()
        .chunks(50)
        .map(|some| format!("concat_ws(' ', {})", some.iter().map(differs).collect::<Vec<_>>().join(", ")))
        .collect();
    let query = format!(
        "select b.id, concat_ws(' ', {}) as it from (select *, count(*) over () as n from v.random where id < {MORE}) a \
         join v.random b on b.id - {MORE} = (a.id - {off} + a.n) % a.n order by 1",
        lists.join(", ")
    );
    let found = rows(&mut fixture.world.superuser("values").await, &query).await;
    assert_eq!(found.len(), super::random::ROWS);
    for row in found {
        assert_eq!(row["it"].as_str().map(str::trim), Some(""), "VALUES_SEED={} {row}", seed());
    }
}
