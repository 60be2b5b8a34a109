//! Many writers that know the same version of a row.

use std::time::Instant;

use futures_util::future::join_all;
use rowgate_tests::servers::postgres::connect;
use sqlx::{PgConnection, Row as _};

use super::fixture::Farm;
use crate::reads::differential::given;

const WRITERS: usize = 8;

/// Adds one to row 1, if it is still of this version; the new version.
async fn add(conn: &mut PgConnection, version: &str) -> Result<String, String> {
    let text = "update f.trees set n = n + 1, dl_expected_ts = $1::text::timestamptz where id = 1 returning dl_expected_ts::text";
    match sqlx::query(text).bind(version).fetch_one(conn).await {
        Ok(row) => Ok(row.get(0)),
        Err(sqlx::Error::Database(error)) => Err(error.code().unwrap_or_default().into_owned()),
        Err(error) => panic!("{error}"),
    }
}

/// `ROWGATE_CASES` says how many rounds (`make soak` takes 100,000).
#[tokio::test]
async fn of_writers_with_one_version_exactly_one_wins() {
    let (rounds, began) = (given("ROWGATE_CASES", 2_000), Instant::now());
    let farm = Farm::open().await;
    let logins = [farm.login("every").await, farm.login("owner").await, farm.login("superuser").await];
    let mut writers = Vec::new();
    for login in logins.iter().cycle().take(WRITERS) {
        writers.push(connect(login).await.expect("a login"));
    }
    let mut version = farm.version(1).await;
    for round in 0..rounds {
        let told = join_all(writers.iter_mut().map(|conn| add(conn, &version))).await;
        let won: Vec<&String> = told.iter().filter_map(|it| it.as_ref().ok()).collect();
        let [next] = won[..] else { panic!("round {round}: {told:?}") };
        assert!(
            told.iter().all(|it| it.is_ok() || *it == Err("DL409".to_owned())),
            "round {round}: {told:?}"
        );
        assert_ne!(*next, version, "round {round}");
        version = next.clone();
    }
    let row = farm.rows("select n, dl_expected_ts::text v from f.trees where id = 1").await;
    assert_eq!((row[0]["n"].as_u64(), row[0]["v"].as_str()), (Some(rounds), Some(version.as_str())));
    println!("{rounds} rounds of {WRITERS} writers: one won each, in {} s", began.elapsed().as_secs());
}
