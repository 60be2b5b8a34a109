//! Which file each table had at the end of an earlier exchange. A table that has the same one at the end of the next exchange was not
//! rewritten in it: it never returns to a file that it has left.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::catalog::fingerprint;

/// So many sets of relations are remembered.
const MAX_SETS: usize = 128;

/// For so long they are relied on. Where they have changed since, the batch is sent again though nothing was rewritten in it, which a long
/// read after a nightly load has no time for; reads that have little time come many times a second.
const FRESH: Duration = Duration::from_secs(1);

/// What a connection was given last.
#[derive(Default)]
pub(crate) struct RelationFiles {
    by_relations: HashMap<Vec<u32>, Noted>,
}

struct Noted {
    files: Vec<u8>,
    at: Instant,
}

impl RelationFiles {
    /// Whether [`RelationFiles::note`] will say at the end of an exchange that begins `now` if one of these was rewritten in it.
    pub(crate) fn are_known(&self, relations: &[u32], now: Instant) -> bool {
        self.by_relations.get(relations).is_some_and(|noted| now.duration_since(noted.at) < FRESH)
    }

    /// Notes the files of `relations`, as PostgreSQL gave them. True: they are those that were noted before. `None`: what has several files is
    /// not remembered.
    pub(crate) fn note(&mut self, relations: &[u32], files: Option<&[u8]>, now: Instant) -> bool {
        // a tenant's code may have put a statement of its own in the place of ours
        let files = files.filter(|files| files.len() <= fingerprint::binary_len(relations.len()));
        let before = self.by_relations.get_mut(relations);
        match (before, files) {
            (Some(noted), Some(files)) => {
                noted.at = now;
                let is_same = noted.files == files;
                if !is_same {
                    noted.files = files.to_vec();
                }
                is_same
            }
            (None, Some(files)) => {
                if MAX_SETS <= self.by_relations.len() {
                    self.by_relations.clear();
                }
                self.by_relations.insert(relations.to_vec(), Noted { files: files.to_vec(), at: now });
                false
            }
            (_, None) => {
                self.forget(relations);
                false
            }
        }
    }

    pub(crate) fn forget(&mut self, relations: &[u32]) {
        self.by_relations.remove(relations);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_files_than_before_are_told() {
        let (mut files, now) = (RelationFiles::default(), Instant::now());
        assert!(!files.are_known(&[1, 2], now));
        assert!(!files.note(&[1, 2], Some(b"a"), now));
        assert!(files.are_known(&[1, 2], now) && !files.are_known(&[1], now));
        assert!(files.note(&[1, 2], Some(b"a"), now));
        assert!(!files.note(&[1, 2], Some(b"b"), now));
        assert!(files.note(&[1, 2], Some(b"b"), now));
        assert!(!files.note(&[1, 2], None, now), "a table was put below one of them");
        assert!(!files.are_known(&[1, 2], now));
        assert!(!files.note(&[1, 2], Some(&[b'a'; 37]), now), "longer than two files");
        assert!(!files.are_known(&[1, 2], now));
    }

    #[test]
    fn what_was_noted_long_ago_is_asked_again() {
        let (mut files, now) = (RelationFiles::default(), Instant::now());
        let _new = files.note(&[1], Some(b"a"), now);
        assert!(files.are_known(&[1], now + FRESH / 2) && !files.are_known(&[1], now + FRESH));
        assert!(files.note(&[1], Some(b"a"), now + FRESH));
        assert!(files.are_known(&[1], now + FRESH));
    }

    #[test]
    fn the_sets_are_bounded() {
        let (mut files, now) = (RelationFiles::default(), Instant::now());
        for set in 0..1000 {
            let _new = files.note(&[set], Some(b"a"), now);
            assert!(files.are_known(&[set], now) && files.by_relations.len() <= MAX_SETS);
        }
    }
}
