//! Adding manifests to a folder that a standalone Rowgate may be reading at this moment.

use std::fs;
use std::path::Path;

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
        write_new(dir, name, text)?;
        say(&format!("wrote {}", dir.join(name).display()));
    }
    Ok(())
}

/// A reader of the folder finds the whole file or none: it gets its name once it is written.
fn write_new(dir: &Path, name: &str, text: &str) -> Result<(), SetRelationshipError> {
    let (path, hidden) = (dir.join(name), dir.join(format!(".{name}.{}", std::process::id())));
    let failed = |source| SetRelationshipError::Write { path: path.clone(), source };
    fs::write(&hidden, text).map_err(failed)?;
    let linked = fs::hard_link(&hidden, &path);
    let removed = fs::remove_file(&hidden);
    match linked {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Err(exists(&path)),
        Err(source) => Err(failed(source)),
        Ok(()) => removed.map_err(failed),
    }
}

fn exists(path: &Path) -> SetRelationshipError {
    SetRelationshipError::Mistakes(format!(
        "{} exists and was not replaced; edit it, or choose another --name",
        path.display()
    ))
}
