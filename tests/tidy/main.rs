//! The rules of ARCHITECTURE.md that a compiler does not hold: who may know whom, and where things stand.

mod entropy;
mod filters;
mod folders;
mod messages;
mod once;
mod pages;
mod pipeline;
mod words;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use rowgate_standalone::postgres::binaries;

fn root() -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    tests.parent().expect("the tests stand in the workspace").to_owned()
}

/// Every file that git knows or would take, with its text; pictures and the like are left out.
fn files() -> BTreeMap<PathBuf, String> {
    let output = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard", "-z"])
        .current_dir(root())
        .output()
        .expect("git runs");
    assert!(output.status.success(), "git ls-files failed");
    let names = String::from_utf8(output.stdout).expect("our file names are UTF-8");
    names
        .split_terminator('\0')
        .filter_map(|name| Some((PathBuf::from(name), fs::read_to_string(root().join(name)).ok()?)))
        .collect()
}

fn rust() -> BTreeMap<PathBuf, String> {
    let mut files = files();
    files.retain(|path, _| path.extension().is_some_and(|extension| extension == "rs"));
    assert!(20 < files.len(), "git lists the sources");
    files
}

/// The packages on which `package` depends in a build, itself included.
fn tree(package: &str) -> Vec<String> {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--offline", "--locked", "--edges", "normal", "--prefix", "none"])
        .args(["--format", "{p}", "--package", package])
        .current_dir(root())
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("cargo prints UTF-8");
    text.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
}

/// Times are arguments there: `jiff` gives their type, and nothing asks it for the present.
#[test]
fn the_core_reads_no_clock() {
    let now = concat!("::", "now(");
    for (path, text) in rust().iter().filter(|(path, _)| path.starts_with("dataplane/core")) {
        assert!(!text.contains(now), "{} reads the clock", path.display());
    }
}

#[test]
fn crates_know_only_what_stands_to_their_left() {
    for (package, strangers) in [
        ("rowgate-core", &["rowgate-sql", "rowgate-pg", "rowgate-crds", "tokio", "rand", "sqlx"][..]),
        ("rowgate-sql", &["rowgate-pg", "rowgate-crds", "tokio", "rand", "sqlx", "axum"]),
        ("rowgate-crds", &["rowgate-sql", "rowgate-pg", "tokio", "sqlx", "kube-client"]),
        ("rowgate-pg", &["rowgate-crds", "rowgate-reconcile", "axum", "hyper", "kube-core", "kube-client"]),
        ("rowgate-export", &["rowgate-program", "rowgate-crds", "axum", "hyper", "kube-core", "arrow-array"]),
        ("rowgate-reconcile", &["rowgate-dataplane", "axum", "hyper", "reqwest", "kube-client"]),
        ("rowgate-program", &["rowgate-crds", "rowgate-reconcile", "axum", "hyper", "kube-core"]),
        ("rowgate-standalone", &["rowgate-dataplane", "rowgate-operator", "axum", "hyper", "kube-client"]),
        ("rowgate-client", &["rowgate-sql", "rowgate-pg", "rowgate-program", "rowgate-crds", "axum", "sqlx"]),
        ("rowgate-operator", &["rowgate-dataplane", "rowgate-standalone", "rowgate-tests"]),
        ("rowgate-dataplane", &["kube-client", "kube-runtime", "rowgate-operator", "rowgate-tests"]),
    ] {
        let tree = tree(package);
        assert!(tree.iter().any(|name| name == package));
        for stranger in strangers {
            assert!(!tree.iter().any(|name| name == stranger), "{package} must not know {stranger}");
        }
    }
}

#[test]
fn one_rustls_provider_at_most_is_linked() {
    // Both at once make rustls panic at run time: it cannot choose.
    for package in ["rowgate-client", "rowgate-dataplane", "rowgate-operator", "rowgate-tests"] {
        let tree = tree(package);
        let linked: Vec<&str> =
            ["aws-lc-rs", "ring"].into_iter().filter(|name| tree.iter().any(|have| have == name)).collect();
        assert!(linked.len() < 2, "{package} links {linked:?}");
    }
}

#[test]
fn built_sql_text_leaves_through_one_door() {
    let needle = concat!("Assert", "SqlSafe(");
    let doors: Vec<_> = rust()
        .into_iter()
        .filter(|(path, text)| !path.starts_with("tests") && text.contains(needle))
        .map(|(path, _)| path)
        .collect();
    assert!(doors.len() <= 1, "{doors:?}");
    for door in doors {
        assert!(
            door.starts_with("dataplane/pg/src/connect/session")
                || door == Path::new("dataplane/pg/src/connect/session.rs")
        );
    }
}

#[test]
fn what_runs_statements_knows_no_surface() {
    for (path, text) in rust().into_iter().filter(|(path, _)| path.starts_with("dataplane/src/execute")) {
        for word in ["axum", "hyper", "crate::api", "std::net"] {
            assert!(!text.contains(&format!("use {word}")), "{} must not know {word}", path.display());
        }
    }
}

#[test]
fn files_are_short_and_say_what_they_are_for() {
    for (path, text) in rust() {
        let n_lines = text.lines().count();
        assert!(n_lines <= 400, "{} has {n_lines} lines; split it at an idea", path.display());
        let first = text.lines().next().unwrap_or_default();
        assert!(
            first.starts_with("//! ") && 12 < first.len(),
            "{} opens with no line of purpose",
            path.display()
        );
    }
}

#[test]
fn the_top_level_holds_what_the_architecture_lists() {
    let allowed = [
        "Cargo.toml",
        "Cargo.lock",
        "operator",
        "dataplane",
        "crds",
        "charts",
        "Dockerfile",
        ".dockerignore",
        "tests",
        "README.md",
        "ARCHITECTURE.md",
        "CHANGELOG.md",
        "LICENSE",
        "Makefile",
        "examples",
        "docs",
        ".cargo",
        ".ci",
        ".gitignore",
        "clippy.toml",
        "deny.toml",
        "rustfmt.toml",
        "rust-toolchain.toml",
    ];
    for path in files().keys() {
        let top = path.iter().next().and_then(|name| name.to_str()).expect("a name");
        assert!(allowed.contains(&top), "{top} does not belong to the top level");
    }
}

#[test]
fn the_custom_resources_are_generated_from_the_types() {
    for kind in rowgate_crds::Kind::ALL {
        for folder in ["crds", "charts/rowgate/crds"] {
            let path = format!("{folder}/{}.yaml", kind.as_str().to_lowercase());
            let committed = fs::read_to_string(root().join(&path)).expect("the definition is committed");
            assert!(committed == rowgate_crds::yaml(kind), "{path} is stale; run `make crds`");
        }
    }
}

#[test]
fn no_file_names_a_machine() {
    // Written in two parts, or this file would be the first find.
    let paths =
        [concat!("/ro", "ot/"), concat!("/wo", "rk/"), concat!("/Us", "ers/"), concat!("arti", "factory")];
    for (path, text) in files() {
        for needle in paths {
            assert!(!text.contains(needle), "{} holds {needle}", path.display());
        }
    }
}

#[test]
fn the_script_downloads_the_postgresql_that_the_launcher_looks_for() {
    let script = fs::read_to_string(root().join("tests/setup/postgres.sh")).expect("the script is committed");
    assert!(script.contains(&format!("\n  18) version={} ;;\n", binaries::PACKAGE)));
}

#[test]
fn the_images_are_built_with_our_rust_and_run_as_the_chart_says() {
    let read = |file: &str| fs::read_to_string(root().join(file)).expect("the file is committed");
    let dockerfile = read("Dockerfile");
    let pinned = read("rust-toolchain.toml");
    let version =
        pinned.split("channel = \"").nth(1).and_then(|rest| rest.split('"').next()).expect("a channel");
    assert!(dockerfile.contains(&format!("FROM rust:{version}-")), "rust-toolchain.toml says {version}");
    let pods = read("charts/rowgate/templates/_helpers.tpl");
    let user = pods.split("runAsUser: ").nth(1).and_then(|rest| rest.lines().next()).expect("a user");
    assert!(dockerfile.contains(&format!("\nUSER {user}:{user}\n")), "the chart runs it as {user}");
}
