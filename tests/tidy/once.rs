//! What is there once: one lock, one backoff, one place for YAML, one decoder of URLs, one list of the ways into SQL text.

use std::collections::BTreeSet;
use std::path::Path;

use super::rust;

/// The sources of the programs whose text matches, the part for tests included.
fn sources_with(is_found: impl Fn(&str) -> bool) -> BTreeSet<String> {
    let programs = rust().into_iter().filter(|(path, _)| !path.starts_with("tests"));
    programs.filter(|(_, text)| is_found(text)).map(|(path, _)| path.display().to_string()).collect()
}

#[test]
fn locks_are_those_that_a_panic_does_not_poison() {
    let names_a_lock = |text: &str| {
        text.split("std::sync::").skip(1).any(|after| {
            let named = after.split(';').next().unwrap_or_default();
            ["Mutex", "RwLock", "Condvar"].iter().any(|lock| named.contains(lock))
        })
    };
    assert_eq!(sources_with(names_a_lock), BTreeSet::new(), "use parking_lot");
}

#[test]
fn pauses_between_tries_grow_in_one_place() {
    let grows = |text: &str| {
        text.lines().filter(|line| line.contains("* 2") || line.contains("_pow(")).any(|line| {
            let line = line.to_lowercase();
            ["pause", "backoff", "delay"].iter().any(|word| line.contains(word)) && !line.contains("assert")
        })
    };
    let only = BTreeSet::from(["dataplane/core/src/backoff.rs".to_owned()]);
    assert_eq!(sources_with(grows), only, "use rowgate_core::backoff");
}

#[test]
fn yaml_is_read_and_written_in_one_place() {
    let only = BTreeSet::from(["dataplane/core/src/yaml.rs".to_owned()]);
    let names_it =
        |text: &str| text.split("#[cfg(test)]").next().unwrap_or_default().contains("serde_yaml::");
    let is_tests = |path: &String| Path::new(path).starts_with("crds/tests");
    let found: BTreeSet<_> = sources_with(names_it).into_iter().filter(|path| !is_tests(path)).collect();
    assert_eq!(found, only, "use rowgate_core::yaml");
}

#[test]
fn urls_are_decoded_in_one_place() {
    let only = BTreeSet::from(["dataplane/core/src/percent.rs".to_owned()]);
    assert_eq!(sources_with(|text| text.contains("percent_decode")), only, "use rowgate_core::percent");
}

#[test]
fn sql_text_is_made_of_nothing_else() {
    const EVERYWHERE: [&str; 8] =
        ["lit", "statement", "number", "ident", "built_in", "bind", "checked", "begin_with"];
    const IN_DDL: [&str; 2] = ["literal", "owners"];
    let sources = rust();
    let text = &sources[Path::new("dataplane/sql/src/text.rs")];
    let of_sql =
        text.split("impl Sql {").nth(1).and_then(|of| of.split("\n}\n").next()).expect("it is there");
    let mut ways = BTreeSet::new();
    for function in of_sql.split("fn ").skip(1) {
        let (name, body) = function.split_once('(').expect("a function");
        if body.contains("push") || body.contains("extend") {
            ways.insert(name);
        }
    }
    let listed: BTreeSet<_> = EVERYWHERE.into_iter().chain(IN_DDL).collect();
    assert_eq!(ways, listed, "text.rs lists the ways in; is another one needed?");
    for way in IN_DDL {
        let call = format!(".{way}(");
        let found = sources_with(|text| text.contains(&call));
        let ddl = |path: &&String| !path.starts_with("dataplane/sql/src/ddl");
        assert_eq!(found.iter().find(ddl), None, "only ddl writes {way}");
    }
}

#[test]
fn tasks_are_started_by_those_who_wait_for_them() {
    // who starts a task, and what waits for it or ends it
    const STARTS: [(&str, &str); 6] = [
        ("dataplane/src/tenants/built_cache.rs", "task.await"),
        ("dataplane/src/api/graphql/query.rs", "answered.await"),
        ("dataplane/src/export_jobs/write.rs", "writing.await"),
        ("dataplane/pg/src/connect/gate.rs", "accepting"),
        ("dataplane/standalone/src/run.rs", "signals.abort()"),
        ("operator/reconcile/src/source/dir.rs", "task.await"),
    ];
    let starts = |text: &str| {
        let program = text.split("#[cfg(test)]").next().unwrap_or_default();
        program.contains("tokio::spawn(") || program.contains("spawn_blocking(")
    };
    for path in sources_with(starts).into_iter().filter(|path| !path.ends_with("tests.rs")) {
        let known = STARTS.iter().find(|(known, _)| *known == path);
        let (_, ended) = known.unwrap_or_else(|| panic!("{path} starts a task; who waits for it?"));
        assert!(rust()[Path::new(&path)].contains(ended), "{path}: nothing is found that ends its tasks");
    }
}
