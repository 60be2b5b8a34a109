//! Who reads the wall clock and randomness: one module for the reconciler and the operator, so that all else is given them.

use std::path::Path;

/// Written in two parts, or this file would be the first find.
const READS: [&str; 6] = [
    concat!("Timestamp::", "now"),
    concat!("Zoned::", "now"),
    concat!("System", "Time"),
    concat!("rand::", "r"),
    concat!("Utc::", "now"),
    concat!("OffsetDateTime::", "now"),
];

#[test]
fn one_module_reads_clock_and_randomness_for_the_reconciler_and_the_operator() {
    let module = Path::new("operator/reconcile/src/entropy.rs");
    let sources = super::rust();
    let text = sources.get(module).expect("the module is there");
    assert!(text.contains(READS[0]) && text.contains(READS[3]), "it reads neither");
    let others = sources.iter().filter(|(path, _)| path.starts_with("operator") && *path != module);
    for (path, text) in others {
        for reads in READS {
            assert!(!text.contains(reads), "{} reads {reads}; take it from entropy", path.display());
        }
    }
}
