//! The Makefile names tests by their paths: each name is one of a test that is there.

use std::collections::BTreeSet;
use std::fs;

use super::{root, rust};

/// The path of each test of this program, as `--list` prints them.
fn tests() -> BTreeSet<String> {
    let mut tests = BTreeSet::new();
    for (path, text) in rust() {
        let Ok(path) = path.strip_prefix("tests/it") else { continue };
        let file = path.with_extension("").display().to_string();
        let module = file.strip_suffix("/mod").unwrap_or(&file).replace('/', "::");
        let bodies = text.split("#[test]").chain(text.split("#[tokio::test")).skip(1);
        for body in bodies {
            let Some((_, after)) = body.split_once("fn ") else { continue };
            tests.insert(format!("{module}::{}", after.split('(').next().unwrap_or_default()));
        }
        let scenarios =
            text.split("scenarios!(").nth(1).and_then(|it| it.split(')').next()).unwrap_or_default();
        for name in scenarios.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            tests.extend(["on_folder", "on_cluster"].map(|on| format!("{module}::{on}::{name}")));
        }
    }
    tests
}

/// The words of a variable of the Makefile that name tests.
fn named(variable: &str) -> Vec<String> {
    let makefile = fs::read_to_string(root().join("Makefile")).expect("it is there").replace("\\\n", " ");
    let sets = |line: &str| line.strip_prefix(variable)?.strip_prefix(" := ").map(str::to_owned);
    let value = makefile.lines().find_map(sets).expect("the Makefile sets it");
    value.split_whitespace().filter(|word| !word.starts_with("--")).map(str::to_owned).collect()
}

/// Seen to fail with a module that was renamed, and whose tests then ran on the newest PostgreSQL alone.
#[test]
fn every_filter_of_the_makefile_names_a_test() {
    let tests = tests();
    assert!(500 < tests.len(), "{} tests are found in the sources", tests.len());
    for filter in named("on_oldest") {
        assert!(tests.iter().any(|test| test.contains(&filter)), "no test is called {filter}");
    }
    for soak in named("soaks") {
        assert!(tests.contains(&soak), "there is no test {soak}");
    }
}
