//! Random filters of the whole grammar through HTTP, beside SQL that the test writes by itself from the same tree, read
//! as superuser with the policy written in.
//!
//! Seen to fail, each within 2,000 cases, with these planted in the compiler one at a time: `lt` as `<=`; `ne` as `is
//! distinct from`; `not` that makes NULL true; `mod` with the sign of the divisor; `round` of a numeric's halves to the
//! even neighbour; `tolower` as `upper`; `trim` of blanks at the left only; `ge` not turned round when a constant stands
//! first; null left out of an `in` list; `second` rounded.

use std::time::Instant;

use rand::rngs::StdRng;
use rand::seq::{IndexedRandom as _, SliceRandom as _};
use rand::{RngExt as _, SeedableRng as _};
use sqlx::PgConnection;

use super::columns::COLUMNS;
use super::fixture::{Fixture, numbers};
use super::grammar::{Term, Tree, tree};
use super::question::escape;
use super::{judging, spelling};
use crate::reads::differential::{given, texts};

/// Entity, the table that its rows are in, and the key.
const ENTITIES: [(&str, &str, &[&str]); 3] =
    [("loose", "loose", &["id"]), ("strict", "strict", &["k1", "k2"]), ("shown", "loose", &["id"])];

/// A tree and the page that is asked of it.
struct Case {
    entity: (&'static str, &'static str, &'static [&'static str]),
    tree: Tree,
    filter: String,
    order: Vec<(&'static str, bool)>,
    first: Option<usize>,
}

/// What an agreed case was.
#[derive(Debug, Default)]
struct Tally {
    n_rows: usize,
    n_none: usize,
    n_all: usize,
    n_errors: usize,
    /// One side met an error that the other did not get to: PostgreSQL promises no order of conditions.
    n_either: usize,
}

#[tokio::test]
async fn a_filter_finds_what_an_oracle_finds() {
    let mut fixture = Fixture::new(&["terms"]).await;
    let key = fixture.world.key("terms-reader");
    let mut sql = fixture.world.superuser("terms").await;
    let settings = "set search_path = pg_catalog; set timezone = 'UTC'; set jit = off";
    rowgate_tests::servers::postgres::execute(&mut sql, settings).await;
    let (cases, seed, began) = (given("ROWGATE_CASES", 2_000), given("ROWGATE_SEED", 0), Instant::now());
    let mut tally = Tally::default();
    for n in 0..cases {
        check(&fixture, &key, &mut sql, seed + n, &mut tally).await;
        if (n + 1) % 10_000 == 0 || n + 1 == cases {
            println!("{} of {cases} filters agree after {} s: {tally:?}", n + 1, began.elapsed().as_secs());
        }
    }
    // Filters that find nothing, everything or an error would agree with anything.
    let percent = |n: usize| 100 * n / usize::try_from(cases).expect("a number of cases");
    if 1_000 <= cases {
        assert!(30 <= percent(tally.n_rows) && 5 <= percent(tally.n_none), "{tally:?}");
        assert!((2..20).contains(&percent(tally.n_errors)) && percent(tally.n_either) < 3, "{tally:?}");
    }
    assert!(fixture.world.stop().await.success());
}

async fn check(fixture: &Fixture, key: &str, sql: &mut PgConnection, seed: u64, tally: &mut Tally) {
    let case = Case::draw(seed, sql).await;
    let statement = case.sql(&case.tree);
    let told = format!("ROWGATE_SEED={seed} ROWGATE_CASES=1: {}\n{statement}", case.filter);
    let answer = fixture.get(key, &case.url()).await;
    let expected = oracle(sql, &statement).await.unwrap_or_else(|error| panic!("{told}: {error}"));
    match (answer.status, expected) {
        (400, None) => {
            assert_eq!(answer.error_code(), "InvalidValue", "{told}: {}", answer.text);
            tally.n_errors += 1;
        }
        (200, Some(mut expected)) => {
            let n_all = expected.len();
            expected.truncate(case.first.unwrap_or(n_all));
            let found: Vec<i64> =
                answer.rows(&told).iter().map(|row| row["n"].as_i64().expect("a number")).collect();
            assert_eq!(found, expected, "{told}");
            assert_eq!(answer.page(&told).1.is_some(), found.len() < n_all, "{told}");
            match found.len() {
                0 => tally.n_none += 1,
                _ if 100 < n_all => tally.n_all += 1,
                _ => tally.n_rows += 1,
            }
        }
        (status, expected) => {
            let either = (status == 200 || (status == 400 && answer.error_code() == "InvalidValue"))
                && case.may_stop_early(sql).await;
            assert!(either, "{told}: {status} {} and the oracle has {expected:?}", answer.text);
            tally.n_either += 1;
        }
    }
}

/// `None`: a range left, a division by zero, or collations that do not meet.
async fn oracle(sql: &mut PgConnection, statement: &str) -> Result<Option<Vec<i64>>, String> {
    match numbers(sql, statement).await {
        Ok(found) => Ok(Some(found.into_iter().map(i64::from).collect())),
        Err(error) => {
            let code = error.as_database_error().and_then(|error| error.code()).unwrap_or_default();
            let is_value = code.starts_with("22") || code == "42P21" || code == "42P22";
            is_value.then_some(None).ok_or_else(|| error.to_string())
        }
    }
}

impl Case {
    async fn draw(seed: u64, sql: &mut PgConnection) -> Case {
        let mut rng = StdRng::seed_from_u64(seed);
        let entity = *ENTITIES.choose(&mut rng).expect("three");
        let depth = rng.random_range(0..4);
        let mut tree = tree(&mut rng, depth);
        for (term, value) in tree.constants() {
            let known = rng.random_bool(0.6).then(|| occurring(entity.1, term));
            let at: usize = rng.random_range(0..1_000);
            if let Some(Ok(found)) = match known {
                Some(question) => Some(texts(sql, &question).await),
                None => None,
            } && !found.is_empty()
            {
                *value = found[at % found.len()].clone().into();
            }
        }
        let filter = spelling::filter(&mut rng, &tree);
        let mut names: Vec<&str> = COLUMNS.iter().map(|column| column.name).chain(["n", "owner"]).collect();
        names.shuffle(&mut rng);
        let n_terms = rng.random_range(0..4);
        let order = names.into_iter().take(n_terms).map(|name| (name, rng.random())).collect();
        let first = rng.random_bool(0.3).then(|| rng.random_range(1..20));
        Case { entity, tree, filter, order, first }
    }

    fn url(&self) -> String {
        let terms: Vec<String> = self
            .order
            .iter()
            .map(|(name, descending)| format!("{name}{}", if *descending { "%20desc" } else { "" }))
            .collect();
        let orderby = if terms.is_empty() { String::new() } else { format!("&$orderby={}", terms.join(",")) };
        let first = self.first.map_or("-1".to_owned(), |first| first.to_string());
        let (name, filter) = (self.entity.0, escape(&self.filter));
        format!("/auth/terms/api/{name}?$first={first}&$select=n{orderby}&$filter={filter}")
    }

    /// `tree` over the rows that the policy shows, which are set apart before anything else is computed of them.
    fn sql(&self, tree: &Tree) -> String {
        let (_, table, key) = self.entity;
        let terms = self.order.iter().map(|(name, descending)| {
            format!("{name} {}", if *descending { "desc nulls first" } else { "asc nulls last" })
        });
        let order: Vec<String> = terms.chain(key.iter().map(|name| (*name).to_owned())).collect();
        format!(
            "select n from (select * from t.{table} where owner = 'a' offset 0) r where {} order by {}",
            judging::condition(tree),
            order.join(", ")
        )
    }

    /// Whether one of several conditions fails by itself, or a page may be full before the row that fails.
    async fn may_stop_early(&self, sql: &mut PgConnection) -> bool {
        let leaves = self.tree.leaves();
        if leaves.len() == 1 && self.first.is_none() {
            return false;
        }
        for leaf in leaves {
            if oracle(sql, &self.sql(leaf)).await == Ok(None) {
                return true;
            }
        }
        false
    }
}

/// What a term comes to: a constant that some row meets tells two functions apart. Moments are read in more forms than
/// PostgreSQL writes.
fn occurring(table: &str, term: &Term) -> String {
    let is_known = ["text", "int2", "int4", "int8", "numeric", "float4", "float8"].contains(&term.ty());
    format!(
        "select distinct ({0})::text collate \"C\" from t.{table} where owner = 'a' and {is_known} and ({0}) is not null \
         order by 1",
        judging::term(term)
    )
}
