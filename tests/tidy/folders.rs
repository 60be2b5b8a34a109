//! A folder of sources holds at most twelve files beside each other, so that a newcomer sees what it is about.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::rust;

const MAX_FILES: usize = 12;

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
    let wrong: Vec<String> = counts()
        .iter()
        .filter(|&(_, &n_files)| MAX_FILES < n_files)
        .map(|(folder, n_files)| {
            format!("{} holds {n_files} files: find the idea that divides them", folder.display())
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
