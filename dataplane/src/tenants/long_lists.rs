//! Documents whose lists are too long to be asked for together, as seen since the catalog was read.

use std::collections::HashSet;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};

use parking_lot::Mutex;
use rowgate_sql::compile::CompiledDocument;

/// Beyond so many all are forgotten, and each is found once more.
const MAX_DOCUMENTS: usize = 1000;

/// The name of a document is a hash of its statements, without values. Of two documents with one name both are asked for in the slower way.
#[derive(Default)]
pub(crate) struct LongLists {
    hasher: RandomState,
    names: Mutex<HashSet<u64>>,
}

impl LongLists {
    fn name(&self, document: &CompiledDocument) -> u64 {
        let mut hasher = self.hasher.build_hasher();
        for sql in document.levels.iter().filter_map(|level| level.sql.as_ref()) {
            hasher.write(sql.as_str().as_bytes());
        }
        hasher.finish()
    }

    /// Whether the document was noted, as it is with its lists together.
    pub(crate) fn hold(&self, together: &CompiledDocument) -> bool {
        // a tenant without long lists hashes nothing for them
        let names = self.names.lock();
        !names.is_empty() && names.contains(&self.name(together))
    }

    pub(crate) fn note(&self, together: &CompiledDocument) {
        let name = self.name(together);
        let mut names = self.names.lock();
        if MAX_DOCUMENTS <= names.len() {
            names.clear();
        }
        names.insert(name);
    }
}
