//! Adding manifests to a folder that a standalone Rowgate may be reading at this moment.

use std::path::Path;
use std::{fs, io};

use rowgate_core::yaml;
use rowgate_reconcile::source::dir::{check, check_with};
use serde_json::Value;

use super::draft::Draft;
use super::{SetRelationshipError, say};

/// Writes each into a file of its own, if the folder has no further mistake with all of them. No file is replaced.
pub(super) fn add(dir: &Path, drafts: &[Draft], manifests: &[Value]) -> Result<(), SetRelationshipError> {
    let names = drafts.iter().map(|draft| format!("relationship-{}.yaml", draft.object_name()));
    let files: Vec<(String, String)> = names.zip(manifests.iter().map(yaml::document_of)).collect();
    let taken = files.iter().map(|(name, _)| dir.join(name)).find(|path| path.exists());
    if let Some(path) = taken {
        return Err(exists(&path));
    }
    let before = check(dir);
    let mut further = check_with(dir, &files);
    further.retain(|problem| !before.contains(problem));
    if !further.is_empty() {
        let lines: Vec<String> = further.iter().map(ToString::to_string).collect();
        return Err(SetRelationshipError::Mistakes(lines.join("\n")));
    }
    for (name, text) in &files {
        let path = dir.join(name);
        write_new(&path, text).map_err(|source| match source.kind() {
            io::ErrorKind::AlreadyExists => exists(&path),
            _ => SetRelationshipError::Write { path: path.clone(), source },
        })?;
        say(&format!("wrote {}", path.display()));
    }
    Ok(())
}

/// A reader of the folder finds the whole file or none: it gets its name once it is written. No file is replaced.
pub(crate) fn write_new(path: &Path, text: &str) -> io::Result<()> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidFilename)?.to_string_lossy();
    let hidden = path.with_file_name(format!(".{name}.{}", std::process::id()));
    fs::write(&hidden, text)?;
    let linked = fs::hard_link(&hidden, path);
    let removed = fs::remove_file(&hidden);
    linked.and(removed)
}

fn exists(path: &Path) -> SetRelationshipError {
    SetRelationshipError::Mistakes(format!(
        "{} exists and was not replaced; edit it, or choose another --name",
        path.display()
    ))
}
