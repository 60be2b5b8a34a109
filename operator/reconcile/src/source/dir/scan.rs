//! One scan of the folder: which objects are accepted, kept or gone. Pure: files and time come in as values.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::accept::{accept, identify};
use super::folder::{ManifestFile, line_of};
use super::objects::{Key, Objects, Stored};
use crate::source::SourceProblem;

/// How long an object stays missing before it counts as deleted: editors rename.
pub(super) const DELETION_GRACE: Duration = Duration::from_secs(1);

/// What is known between two scans.
#[derive(Debug, Clone, Default)]
pub(super) struct Memory {
    pub objects: Objects,
    /// The document that each object was accepted from: the same one again needs no judging.
    pub documents: BTreeMap<Key, Value>,
    /// Since when an object is missing from readable files.
    pub missing: BTreeMap<Key, Instant>,
}

/// What one scan found.
#[derive(Debug)]
pub(super) struct Scan {
    pub memory: Memory,
    pub problems: Vec<SourceProblem>,
    pub deleted: Vec<Stored>,
}

/// The folder declares nothing, although this many objects are known.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Emptied(pub usize);

/// Judges `files` against what was known. `new_uid` gives each new object its own.
///
/// # Errors
///
/// When objects are known and the folder declares none: a vanished mount must not look like a mass deletion.
pub(super) fn scan(
    memory: &Memory,
    files: &[ManifestFile],
    now: Instant,
    new_uid: &mut dyn FnMut() -> String,
) -> Result<Scan, Emptied> {
    let mut objects = Objects::new();
    let mut accepted_from = BTreeMap::new();
    let mut problems = Vec::new();
    let mut declared: BTreeMap<Key, &str> = BTreeMap::new();
    let mut faulty: BTreeSet<&str> = BTreeSet::new();

    for file in files {
        let mut refuse = |message: String| {
            faulty.insert(&file.name);
            problems.push(SourceProblem { file: file.name.clone(), message });
        };
        let documents = match &file.documents {
            Ok(documents) => documents,
            Err(reason) => {
                refuse(reason.clone());
                continue;
            }
        };
        for document in documents {
            let key = match identify(document) {
                Ok(key) => key,
                Err(reason) => {
                    refuse(reason);
                    continue;
                }
            };
            if let Some(first) = declared.get(&key) {
                refuse(format!(
                    "{key} is already declared in {first}, which takes effect; remove one of the two"
                ));
                continue;
            }
            declared.insert(key.clone(), &file.name);
            let old = memory.objects.get(&key);
            let known = memory.documents.get(&key);
            let again = old.filter(|_| known == Some(document));
            let accepted = match again {
                Some(old) => Ok(Stored { file: file.name.clone(), ..old.clone() }),
                None => accept(&key, document, old, &file.name, new_uid),
            };
            match accepted {
                Ok(stored) => {
                    accepted_from.insert(key.clone(), document.clone());
                    objects.insert(key, stored);
                }
                Err(errors) => {
                    let kept = if old.is_some() { "; the last accepted version stays in force" } else { "" };
                    for error in errors {
                        let line = line_of(&file.text, &error.path).map(|n| format!("line {n}, "));
                        refuse(format!("{}{key}: {error}{kept}", line.unwrap_or_default()));
                    }
                    accepted_from.extend(known.map(|known| (key.clone(), known.clone())));
                    objects.extend(old.map(|old| (key, old.clone())));
                }
            }
        }
    }

    let is_kept = |key: &Key, old: &Stored| {
        // The object may be in the part that cannot be read, or may have been moved there.
        faulty.contains(old.file.as_str()) || unreadable_mentions(files, &key.name)
    };
    let mut missing = BTreeMap::new();
    let mut deleted = Vec::new();
    for (key, old) in memory.objects.iter().filter(|(key, _)| !declared.contains_key(*key)) {
        if !is_kept(key, old) {
            let since = *memory.missing.get(key).unwrap_or(&now);
            if memory.missing.contains_key(key) && DELETION_GRACE <= now.duration_since(since) {
                deleted.push(old.clone());
                continue;
            }
            missing.insert(key.clone(), since);
        }
        objects.insert(key.clone(), old.clone());
    }

    let some_gone = !missing.is_empty() || !deleted.is_empty();
    match declared.is_empty() && some_gone {
        true => Err(Emptied(memory.objects.len())),
        false => {
            Ok(Scan { memory: Memory { objects, documents: accepted_from, missing }, problems, deleted })
        }
    }
}

fn unreadable_mentions(files: &[ManifestFile], name: &str) -> bool {
    files.iter().any(|file| file.documents.is_err() && file.text.contains(name))
}
