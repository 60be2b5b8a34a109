//! Prints the CustomResourceDefinitions: `crdgen` all of them, `crdgen tenant` one.

use std::io::Write;
use std::process::ExitCode;

use rowgate_crds::{Kind, yaml};

fn main() -> ExitCode {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    if let Some(unknown) = wanted.iter().find(|name| Kind::ALL.iter().all(|kind| !named(*kind, name))) {
        let _ = writeln!(std::io::stderr(), "unknown kind {unknown}; the kinds are {}", names().join(", "));
        return ExitCode::from(2);
    }
    let kinds = Kind::ALL
        .into_iter()
        .filter(|kind| wanted.is_empty() || wanted.iter().any(|name| named(*kind, name)));
    let documents: Vec<String> = kinds.map(yaml).collect();
    match std::io::stdout().write_all(documents.join("---\n").as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn names() -> Vec<String> {
    Kind::ALL.into_iter().map(|kind| kind.as_str().to_lowercase()).collect()
}

fn named(kind: Kind, name: &str) -> bool {
    kind.as_str().eq_ignore_ascii_case(name)
}
