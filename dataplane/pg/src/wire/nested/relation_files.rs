//! In which files tables stood at the end of an earlier exchange. What stands in the same ones at the end of the next exchange was
//! not rewritten in it.

use std::collections::HashMap;

/// The type of the parameter that names relations, `oid[]`.
pub(crate) const OIDS: u32 = 1028;

/// So many sets of relations are remembered.
const MAX_SETS: usize = 128;

/// What a connection has been told. Files only ever change, so that it need not be the newest.
#[derive(Default)]
pub(crate) struct RelationFiles {
    by_relations: HashMap<Vec<u32>, Vec<u8>>,
}

impl RelationFiles {
    /// Whether [`RelationFiles::note`] will say if one of these was rewritten.
    pub(crate) fn has(&self, relations: &[u32]) -> bool {
        self.by_relations.contains_key(relations)
    }

    /// Notes the files of `relations` now. False: they are not those that were noted before, if any were. `None`: what stands in
    /// several files is not remembered.
    pub(crate) fn note(&mut self, relations: &[u32], files: Option<&[u8]>) -> bool {
        let before = self.by_relations.get(relations).map(Vec::as_slice);
        if before.is_some() && before == files {
            return true;
        }
        let is_new = before.is_none();
        match files {
            None => {
                self.by_relations.remove(relations);
            }
            Some(files) => {
                if is_new && MAX_SETS <= self.by_relations.len() {
                    self.by_relations.clear();
                }
                self.by_relations.insert(relations.to_vec(), files.to_vec());
            }
        }
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_files_than_before_are_told() {
        let mut files = RelationFiles::default();
        assert!(!files.has(&[1, 2]));
        assert!(files.note(&[1, 2], Some(b"a")));
        assert!(files.has(&[1, 2]) && !files.has(&[1]));
        assert!(files.note(&[1, 2], Some(b"a")));
        assert!(!files.note(&[1, 2], Some(b"b")));
        assert!(files.note(&[1, 2], Some(b"b")));
        assert!(!files.note(&[1, 2], None), "a table was put below one of them");
        assert!(!files.has(&[1, 2]));
        assert!(files.note(&[1, 2], None));
    }

    #[test]
    fn the_sets_are_bounded() {
        let mut files = RelationFiles::default();
        for set in 0..1000 {
            assert!(files.note(&[set], Some(b"a")));
            assert!(files.by_relations.len() <= MAX_SETS);
        }
    }
}
