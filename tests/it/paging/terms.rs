//! Random functions and arithmetic through HTTP, beside SQL that this file writes by itself, read as superuser with the
//! policy written in. Seen to fail: floor for ceiling together with minus for add, at the first such case.

use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};

use super::fixture::{Fixture, numbers};
use super::question::escape;
use super::seeds;

/// A filter's text and SQL's.
type Both = (String, String);

const TEXTS: &[&str] = &["", "a", "A", "b", "a b", "\u{e4}", "it's", "50%", "_", "sum", "\\"];

#[tokio::test]
async fn functions_and_arithmetic_find_what_sql_finds() {
    let mut fixture = Fixture::new(&["terms"]).await;
    let key = fixture.world.key("terms-reader");
    let mut sql = fixture.world.superuser("terms").await;
    rowgate_tests::postgres::execute(&mut sql, "set search_path = pg_catalog; set timezone = 'UTC'").await;
    let mut n_with_rows = 0;
    let mut n_answered = 0;
    for seed in seeds("TERMS_SEED", 400) {
        let mut rng = StdRng::seed_from_u64(seed);
        let (filter, condition) = condition(&mut rng, 2);
        let url = format!("/auth/terms/api/loose?$first=-1&$select=n&$filter={}", escape(&filter));
        let statement = format!("select n from t.loose where owner = 'a' and ({condition}) order by id");
        let told = format!("TERMS_SEED={seed}: {filter}\n{statement}");
        let answer = fixture.get(&key, &url).await;
        match numbers(&mut sql, &statement).await {
            Ok(expected) => {
                let rows = answer.rows(&told);
                let found: Vec<i64> = rows.iter().map(|row| row["n"].as_i64().expect("a number")).collect();
                let expected: Vec<i64> = expected.into_iter().map(i64::from).collect();
                assert_eq!(found, expected, "{told}");
                n_answered += 1;
                n_with_rows += usize::from(!found.is_empty());
            }
            // A range left, or a division by zero.
            Err(error)
                if error
                    .as_database_error()
                    .and_then(|e| e.code())
                    .is_some_and(|code| code.starts_with("22")) =>
            {
                assert_eq!(
                    (answer.status, answer.error_code().as_str()),
                    (400, "InvalidValue"),
                    "{told}: {error}"
                );
            }
            Err(error) => panic!("{told}: {error}"),
        }
    }
    assert!(n_with_rows > 0 && n_answered > 0, "every filter was empty");
    assert!(fixture.world.stop().await.success());
}

fn condition(rng: &mut StdRng, depth: usize) -> Both {
    match rng.random_range(0..if depth == 0 { 6 } else { 9 }) {
        0 => {
            let (a, b) = number(rng, 2);
            let (c, d) = number(rng, 1);
            compared(rng, (a, b), (c, d))
        }
        1 => {
            let sides = [text(rng, 2), text(rng, 1)];
            let [a, b] = sides;
            compared(rng, (a.0, format!("{} collate \"C\"", a.1)), b)
        }
        2 => {
            let (day, n) = (part(rng), rng.random_range(-1..60).to_string());
            compared(rng, day, (n.clone(), n))
        }
        3 => {
            let (a, b) = (text(rng, 1), constant(rng));
            let (word, sql) = match rng.random_range(0..3) {
                0 => ("contains", format!("position({} in ({})) > 0", b.1, a.1)),
                1 => ("startswith", format!("left({0}, length({1})) collate \"C\" = {1}", a.1, b.1)),
                _ => (
                    "endswith",
                    format!(
                        "length({1}) = 0 and {0} is not null or right({0}, nullif(length({1}), 0)) collate \"C\" = {1}",
                        a.1, b.1
                    ),
                ),
            };
            (format!("{word}({},{})", a.0, b.0), sql)
        }
        4 => ("flag".into(), "flag = true".into()),
        5 => {
            let (a, b, c) = (number(rng, 1), number(rng, 1), number(rng, 0));
            (
                format!("{} in ({},{})", a.0, b.0, c.0),
                format!("({0}) = ({1}) or ({0}) = ({2})", a.1, b.1, c.1),
            )
        }
        6 => {
            let (filter, sql) = condition(rng, depth - 1);
            (format!("not ({filter})"), format!("not ({sql})"))
        }
        word => {
            let word = if word == 7 { "and" } else { "or" };
            let [a, b] = [condition(rng, depth - 1), condition(rng, depth - 1)];
            (format!("({}) {word} ({})", a.0, b.0), format!("({}) {word} ({})", a.1, b.1))
        }
    }
}

fn compared(rng: &mut StdRng, a: Both, b: Both) -> Both {
    let (word, operator) = *[("eq", "="), ("ne", "<>"), ("gt", ">"), ("ge", ">="), ("lt", "<"), ("le", "<=")]
        .choose(rng)
        .expect("six");
    (format!("{} {word} {}", a.0, b.0), format!("({}) {operator} ({})", a.1, b.1))
}

/// A whole or decimal number, never a bare constant.
fn number(rng: &mut StdRng, depth: usize) -> Both {
    match rng.random_range(0..if depth == 0 { 2 } else { 6 }) {
        0 => field(rng, &["i2", "n", "positive", "i4", "money_like", "n"]),
        1 => field(rng, &["n", "positive"]),
        2 => {
            let (a, b) = (number(rng, depth - 1), number(rng, depth - 1));
            let (word, operator) = *[("add", "+"), ("sub", "-"), ("mul", "*"), ("div", "/"), ("mod", "%")]
                .choose(rng)
                .expect("five");
            (format!("({} {word} {})", a.0, b.0), format!("(({}) {operator} ({}))", a.1, b.1))
        }
        3 => {
            let (filter, sql) = number(rng, depth - 1);
            (format!("-({filter})"), format!("(- ({sql}))"))
        }
        4 => {
            let (filter, sql) = text(rng, depth - 1);
            let (other, constant) = constant(rng);
            match rng.random() {
                true => (format!("length({filter})"), format!("length({sql})")),
                false => {
                    (format!("indexof({filter},{other})"), format!("position({constant} in ({sql})) - 1"))
                }
            }
        }
        _ => {
            let (word, sql) =
                *[("round", "round"), ("floor", "floor"), ("ceiling", "ceil")].choose(rng).expect("three");
            (format!("{word}(money_like)"), format!("{sql}(money_like)"))
        }
    }
}

fn part(rng: &mut StdRng) -> Both {
    let (word, sql) = *[
        ("year(day)", "case when isfinite(day) then date_part('year', day) end"),
        ("month(ts)", "date_part('month', ts)"),
        ("day(date(tstz))", "date_part('day', tstz)"),
        ("hour(tm)", "date_part('hour', tm)"),
        ("minute(tstz)", "date_part('minute', tstz)"),
        ("second(ts)", "trunc(date_part('second', ts))"),
        ("hour(time(ts))", "date_part('hour', ts)"),
        ("hour(tmtz)", "date_part('hour', tmtz at time zone 'UTC')"),
    ]
    .choose(rng)
    .expect("some");
    (word.into(), sql.into())
}

fn text(rng: &mut StdRng, depth: usize) -> Both {
    match rng.random_range(0..if depth == 0 { 1 } else { 5 }) {
        0 => {
            let name = *["txt", "vc", "bp"].choose(rng).expect("some");
            (name.into(), format!("{name}::text collate \"C\""))
        }
        1 => {
            let (filter, sql) = text(rng, depth - 1);
            (format!("trim({filter})"), format!("trim(both from {sql})"))
        }
        2 => {
            let (filter, sql) = text(rng, depth - 1);
            let (other, constant) = constant(rng);
            (format!("concat({filter},{other})"), format!("({sql}) || {constant}"))
        }
        _ => {
            let (filter, sql) = text(rng, depth - 1);
            let (start, n) = (rng.random_range(0..4), rng.random_range(0..4));
            match rng.random() {
                true => {
                    (format!("substring({filter},{start})"), format!("substring(({sql}) from {})", start + 1))
                }
                false => (
                    format!("substring({filter},{start},{n})"),
                    format!("substring(({sql}) from {} for {n})", start + 1),
                ),
            }
        }
    }
}

fn field(rng: &mut StdRng, names: &[&str]) -> Both {
    let name = *names.choose(rng).expect("some");
    (name.into(), name.into())
}

fn constant(rng: &mut StdRng) -> Both {
    let text = format!("'{}'", TEXTS.choose(rng).expect("some").replace('\'', "''"));
    (text.clone(), format!("{text}::text"))
}
