//! Who reads the wall clock and randomness: the reconciler and the operator each in one module, so that all else is given them.

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
fn one_module_of_the_reconciler_and_one_of_the_operator_read_clock_and_randomness() {
    let modules = ["operator/reconcile/src/entropy.rs", "operator/src/entropy.rs"];
    let sources = super::rust();
    for module in modules {
        let text = sources.get(Path::new(module)).expect("the module is there");
        assert!(text.contains(READS[0]) && text.contains(READS[3]), "{module} reads neither");
    }
    for (path, text) in sources.iter().filter(|(path, _)| path.starts_with("operator")) {
        if modules.iter().any(|module| path == Path::new(module)) {
            continue;
        }
        for reads in READS {
            assert!(!text.contains(reads), "{} reads {reads}; take it from entropy", path.display());
        }
    }
}
