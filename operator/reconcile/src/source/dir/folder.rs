//! Reading the manifest folder: which files, have they changed, what documents do they hold.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rowgate_core::yaml::{self, YamlError};
use serde_json::Value;

/// What changes when a file is written, replaced, renamed or touched: name, times, size, inode.
pub(super) type Fingerprint = Vec<(String, [i64; 6])>;

/// One manifest file as it was read.
#[derive(Debug, Clone)]
pub(super) struct ManifestFile {
    pub name: String,
    pub text: String,
    /// The documents that are not empty; or why the file cannot be read.
    pub documents: Result<Vec<Value>, String>,
}

impl ManifestFile {
    pub(super) fn new(name: String, text: String) -> ManifestFile {
        let documents = parse(&name, &text);
        ManifestFile { name, text, documents }
    }
}

/// The manifest files of `dir` in the order of their names: `*.yaml`, `*.yml`, `*.json`, no hidden ones, one level.
fn names(dir: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        let is_manifest = [".yaml", ".yml", ".json"].iter().any(|ending| name.ends_with(ending));
        if is_manifest && !name.starts_with('.') && !entry.path().is_dir() {
            names.push(name);
        }
    }
    names.sort_unstable();
    Ok(names)
}

/// The folder's state, to be compared with a later one.
pub(super) fn fingerprint(dir: &Path) -> io::Result<Fingerprint> {
    let of = |name: String| {
        // A file that is gone again by now is a change of its own.
        let marks = fs::metadata(dir.join(&name)).map_or([-1; 6], |it| {
            let (size, inode) = (it.size().cast_signed(), it.ino().cast_signed());
            [it.mtime(), it.mtime_nsec(), it.ctime(), it.ctime_nsec(), size, inode]
        });
        (name, marks)
    };
    Ok(names(dir)?.into_iter().map(of).collect())
}

/// Reads every manifest file. A file that cannot be read says so in its place.
pub(super) fn read(dir: &Path) -> io::Result<Vec<ManifestFile>> {
    let read_one = |name: String| match fs::read_to_string(dir.join(&name)) {
        Ok(text) => ManifestFile::new(name, text),
        Err(error) => {
            let documents = Err(format!("cannot be read: {error}"));
            ManifestFile { name, text: String::new(), documents }
        }
    };
    Ok(names(dir)?.into_iter().map(read_one).collect())
}

fn parse(name: &str, text: &str) -> Result<Vec<Value>, String> {
    if name.ends_with(".json") {
        let value = serde_json::from_str(text).map_err(|error| format!("is not valid JSON: {error}"))?;
        return Ok(vec![value]);
    }
    let mut documents = Vec::new();
    for (i, document) in yaml::documents(text).enumerate() {
        let value = document.map_err(|error| match error {
            YamlError::Syntax { message, .. } => {
                format!("is not valid YAML: {message}; correct it and save")
            }
            what => format!("document {}: {what}", i + 1),
        })?;
        if !value.is_null() {
            documents.push(value);
        }
    }
    Ok(documents)
}

/// The line of `text`, counted from 1, that holds the last name of a field path such as `spec.entities[0].evnts`, when
/// there is exactly one. None for `spec` as a whole.
pub(super) fn line_of(text: &str, path: &str) -> Option<usize> {
    let field = path.rsplit_once('.')?.1.split('[').next().filter(|field| !field.is_empty())?;
    let names_it = |line: &str| {
        let line = line.split(" #").next().unwrap_or_default();
        line.match_indices(field).any(|(at, _)| {
            let before =
                line[..at].chars().next_back().is_none_or(|c| matches!(c, ' ' | '{' | ',' | '"' | '\''));
            before && line[at + field.len()..].trim_start_matches(['"', '\'', ' ']).starts_with(':')
        })
    };
    let mut lines = text.lines().enumerate().filter(|(_, line)| names_it(line)).map(|(i, _)| i + 1);
    match (lines.next(), lines.next()) {
        (Some(line), None) => Some(line),
        _ => None,
    }
}
