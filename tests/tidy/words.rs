//! One word for one thing: names that were given up for standard terms do not come back as files, modules or types.
//! The glossary of ARCHITECTURE.md says what each thing is called.

use std::collections::BTreeSet;
use std::path::Path;

use super::rust;

/// Words that no name holds, as a part neither: `LaneStatus` has `lane` in it.
const NOWHERE: [&str; 24] = [
    "told",
    "seat",
    "lane",
    "lanes",
    "misfit",
    "misfits",
    "suspect",
    "suspects",
    "keyring",
    "stranger",
    "strangers",
    "road",
    "roads",
    "looker",
    "glance",
    "relook",
    "shelf",
    "sightings",
    "linger",
    "patience",
    "allowance",
    "tries",
    "attic",
    "gallery",
];
/// Words that are no whole name; within longer ones they are English.
const ALONE: [&str; 38] = [
    "waiting",
    "places",
    "place",
    "mark",
    "opening",
    "dial",
    "miss",
    "known",
    "recognize_anew",
    "uses",
    "catalogs",
    "ways",
    "way",
    "coming",
    "sent",
    "here",
    "only",
    "how",
    "nothing",
    "ending",
    "bounds",
    "ground",
    "shell",
    "settle",
    "leave",
    "bury",
    "kept",
    "chance",
    "turns",
    "dead_calls",
    "soon",
    "most",
    "fire",
    "vault",
    "attic",
    "gallery",
    "truth",
    "turn",
];

/// `CallLane` and `call_lane` in lower-case words.
fn words(name: &str) -> Vec<String> {
    let mut spaced = String::new();
    for c in name.chars() {
        if c.is_uppercase() && !spaced.is_empty() {
            spaced.push('_');
        }
        spaced.extend(c.to_lowercase());
    }
    spaced.split(['_', '-']).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

fn is_given_up(name: &str) -> bool {
    let words = words(name);
    words.iter().any(|word| NOWHERE.contains(&word.as_str())) || ALONE.contains(&words.join("_").as_str())
}

/// The types, traits and modules that a source declares.
fn declared(text: &str) -> impl Iterator<Item = &str> {
    let kinds = ["struct", "enum", "trait", "type", "mod", "union"];
    text.lines().filter_map(move |line| {
        let line = line.trim_start();
        let line = match line.strip_prefix("pub") {
            Some(rest) if rest.starts_with('(') => rest.split_once(')')?.1,
            Some(rest) => rest,
            None => line,
        };
        let (kind, rest) = line.trim_start().split_once(' ')?;
        let name = rest.split(|c: char| !c.is_alphanumeric() && c != '_').next()?;
        kinds.contains(&kind).then_some(name)
    })
}

/// As `path: name`, of all sources.
fn given_up() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (path, text) in rust() {
        let parts = path.iter().filter_map(|part| Path::new(part).file_stem()?.to_str());
        for name in parts.chain(declared(&text)).filter(|name| is_given_up(name)) {
            found.insert(format!("{}: {name}", path.display()));
        }
    }
    found
}

#[test]
fn no_name_holds_a_word_that_was_given_up() {
    let found = given_up();
    assert!(found.is_empty(), "the glossary of ARCHITECTURE.md has another word for {found:#?}");
}

#[test]
fn a_name_is_judged_by_its_words() {
    for name in ["Lane", "CallLane", "lane_status", "told", "Place", "places", "Miss", "Looker"] {
        assert!(is_given_up(name), "{name}");
    }
    for name in [
        "Planes",
        "Replacement",
        "PlaceHolder",
        "Unknown",
        "ReadOnly",
        "permit",
        "lingering_close",
        "MissingKey",
    ] {
        assert!(!is_given_up(name), "{name}");
    }
    let source = "pub(crate) struct Lane;\n    pub mod told;\npub enum Fine { A }\nlet mod_x = 3;\n";
    assert_eq!(declared(source).collect::<Vec<_>>(), ["Lane", "told", "Fine"]);
}
