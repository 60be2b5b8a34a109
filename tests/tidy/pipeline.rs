//! The order of the compiler: a surface such as rest, request, resolve, query, compile. No stage knows one that stands before it.

use std::path::Path;

use super::rust;

/// Each module of the crate and what it may name. `catalog`, `shape` and `text` are the values that every stage works with.
const MAY_KNOW: [(&str, &[&str]); 12] = [
    ("text", &["user_select"]),
    ("user_select", &["text"]),
    ("for_json", &["text", "user_select"]),
    ("shape", &["catalog", "text"]),
    ("catalog", &["shape", "text"]),
    ("ddl", &["catalog", "shape", "text"]),
    ("request", &["text"]),
    ("query", &["catalog", "request", "shape", "text"]),
    ("resolve", &["catalog", "query", "request", "shape", "text"]),
    ("compile", &["catalog", "query", "request", "shape", "text"]),
    ("rest", &["catalog", "compile", "query", "request", "resolve", "shape", "text"]),
    ("aggregates", &["catalog", "query", "request", "resolve", "rest"]),
];

/// The part of each source of the module that is compiled into the program, by its path.
fn sources(module: &str) -> Vec<(String, String)> {
    let root = Path::new("dataplane/sql/src");
    let of_module =
        |path: &Path| path.starts_with(root.join(module)) || path == root.join(format!("{module}.rs"));
    let files = rust().into_iter().filter(|(path, _)| of_module(path) && !path.ends_with("tests.rs"));
    files
        .map(|(path, text)| {
            let code = text.split("#[cfg(test)]").next().unwrap_or_default();
            let is_code = |line: &&str| !line.trim_start().starts_with("//");
            let code: Vec<_> = code.lines().filter(is_code).collect();
            let code = code.join("\n");
            (path.display().to_string(), code)
        })
        .collect()
}

#[test]
fn the_stages_of_the_compiler_know_only_what_follows_them() {
    for (module, may_know) in MAY_KNOW {
        let sources = sources(module);
        assert!(!sources.is_empty(), "{module} is a module");
        for (path, code) in sources {
            for after in code.split("crate::").skip(1) {
                let known: String =
                    after.chars().take_while(|c| c.is_ascii_lowercase() || *c == '_').collect();
                assert!(
                    !known.is_empty(),
                    "{path} imports several modules in one list; write one use for each, so that this test reads them"
                );
                let is_stage = MAY_KNOW.iter().any(|(stage, _)| *stage == known);
                assert!(
                    known == module || may_know.contains(&known.as_str()) || !is_stage,
                    "{path} names crate::{known}, and {module} must not know it"
                );
            }
        }
    }
}

/// What was wrong is a value there; the surface words it.
#[test]
fn only_a_surface_speaks_of_requests_as_they_are_written() {
    let words = [
        "Problem",
        "If-Match",
        "If-None-Match",
        "$filter",
        "$select",
        "$orderby",
        "$first",
        "PATCH",
        "Allow:",
    ];
    for module in ["resolve", "query", "compile"] {
        for (path, code) in sources(module) {
            for word in words {
                assert!(!code.contains(word), "{path} says {word}, which belongs to the rest surface");
            }
        }
    }
}
