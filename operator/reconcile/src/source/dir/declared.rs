//! What a folder of manifests declares, for commands that add to it.

use std::path::Path;

use rowgate_crds::{Relationship, Tenant};

use super::check::typed;
use super::objects::{self, Objects};
use super::scan::{Memory, scan};
use super::{SourceError, folder};

/// The objects that a standalone Rowgate would accept.
#[derive(Debug, Clone, Default)]
pub struct Declared {
    pub tenants: Vec<Tenant>,
    pub relationships: Vec<Relationship>,
}

impl Declared {
    /// In a folder of manifests; those with mistakes are left out.
    ///
    /// # Errors
    ///
    /// When the folder cannot be read.
    pub fn in_manifests(dir: &Path) -> Result<Declared, SourceError> {
        let files =
            folder::read(dir).map_err(|source| SourceError::Unreadable { path: dir.to_owned(), source })?;
        let scanned = scan(&Memory::default(), &files, std::time::Instant::now(), &mut String::new);
        Ok(scanned.map_or_else(|_| Declared::default(), |scan| Declared::of(&scan.memory.objects)))
    }

    /// As a standalone Rowgate has noted it in its state folder; nothing where none has run.
    ///
    /// # Errors
    ///
    /// When the note cannot be read.
    pub fn in_state(state: &Path) -> Result<Declared, SourceError> {
        Ok(Declared::of(&objects::load(&state.join("objects.json"))?))
    }

    fn of(objects: &Objects) -> Declared {
        Declared {
            tenants: objects.values().filter_map(typed).collect(),
            relationships: objects.values().filter_map(typed).collect(),
        }
    }
}
