//! A folder of sources holds at most twelve files beside each other, so that a newcomer sees what it is about.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::rust;

const MAX_FILES: usize = 12;

/// Folders that still hold more, with their number of today. Only shrink this list: a folder that needs its line no longer
/// fails the test, and so does one that grows.
const NOT_YET: [(&str, usize); 6] = [
    ("tests/it", 44),
    ("tests/it/neighbours", 18),
    ("tests/it/scenarios", 19),
    ("tests/it/wire", 13),
    ("tests/it/writes", 25),
    ("tests/src", 19),
];

/// How many files stand in each folder of sources.
fn counts() -> BTreeMap<PathBuf, usize> {
    let mut counts = BTreeMap::new();
    for path in rust().into_keys() {
        let folder = path.parent().expect("a file has a folder").to_owned();
        *counts.entry(folder).or_default() += 1;
    }
    counts
}

#[test]
fn folders_hold_twelve_files_at_most() {
    let counts = counts();
    let mut wrong: Vec<String> = Vec::new();
    for (folder, &n_files) in &counts {
        let allowed = NOT_YET.iter().find(|(path, _)| Path::new(path) == folder);
        let max = allowed.map_or(MAX_FILES, |(_, n_files)| *n_files);
        if max < n_files {
            wrong
                .push(format!("{} holds {n_files} files: find the idea that divides them", folder.display()));
        }
    }
    for (path, allowed) in NOT_YET {
        let n_files = counts.get(Path::new(path)).copied().unwrap_or_default();
        if n_files < allowed {
            wrong.push(format!(
                "{path} holds {n_files} files, not {allowed}: shrink or remove its line in NOT_YET"
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
