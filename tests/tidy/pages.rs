//! Rules of the pages: the map stays a map, and what pages name exists.

use std::path::Path;

use super::{files, root};

/// Bytes. ARCHITECTURE.md is read in one sitting; decisions have their own pages under docs/decisions.
const MAX_MAP: usize = 12_000;

fn map() -> String {
    files().remove(Path::new("ARCHITECTURE.md")).expect("the map is committed")
}

#[test]
fn the_map_is_short() {
    let len = map().len();
    assert!(
        len <= MAX_MAP,
        "ARCHITECTURE.md has {len} bytes of at most {MAX_MAP}; move decisions to docs/decisions"
    );
}

#[test]
fn every_path_that_architecture_names_exists() {
    let map = map();
    let top = files().into_keys().filter(|path| 1 < path.iter().count());
    let top: Vec<String> = top.filter_map(|path| Some(path.iter().next()?.to_str()?.to_owned())).collect();
    let named: Vec<&str> = map
        .split('`')
        .skip(1)
        .step_by(2)
        .filter(|span| span.split_once('/').is_some_and(|(first, _)| top.iter().any(|name| name == first)))
        .filter(|span| !span.contains(['<', '*', '{', ' ']))
        .collect();
    assert!(40 < named.len(), "paths are recognized: {named:?}");
    let missing: Vec<&&str> = named.iter().filter(|path| !root().join(path).exists()).collect();
    assert!(missing.is_empty(), "ARCHITECTURE.md names what does not exist: {missing:?}");
}

#[test]
fn every_link_of_a_page_leads_to_a_file() {
    let mut broken = Vec::new();
    for (path, text) in files() {
        if path.extension().is_none_or(|extension| extension != "md") {
            continue;
        }
        let folder = root().join(path.parent().expect("a file has a folder"));
        for rest in text.split("](").skip(1) {
            let target = rest.split([')', '#']).next().unwrap_or_default();
            if !target.is_empty() && !target.contains("://") && !folder.join(target).exists() {
                broken.push(format!("{}: {target}", path.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn the_indexes_list_every_page() {
    for folder in ["docs", "docs/decisions"] {
        let index = files().remove(&Path::new(folder).join("README.md")).expect("the index is committed");
        for path in files().keys().filter(|path| path.parent() == Some(Path::new(folder))) {
            let name = path.file_name().and_then(|name| name.to_str()).expect("a name");
            assert!(
                name == "README.md" || index.contains(&format!("]({name})")),
                "{folder}/README.md lists no {name}"
            );
        }
    }
}

#[test]
fn no_file_cites_a_page_that_is_not_here() {
    // Written in two parts, or this file would be the first find.
    let pages = [
        concat!("contract", ".md"),
        concat!("contract,", " section"),
        concat!("contract", " section"),
        concat!("house", ".md"),
        concat!("/architecture", ".md"),
        concat!("`architecture", ".md"),
        concat!("performance", ".md"),
        concat!("rese", "arch/"),
    ];
    for (path, text) in files() {
        for page in pages {
            assert!(!text.contains(page), "{} cites {page}", path.display());
        }
    }
}
