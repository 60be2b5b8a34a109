//! Which differences between two versions of an object are worth a look. Our own status writes are not.

use kube::api::ObjectMeta;

use crate::source::finalizer::FINALIZER;

/// Another spec, a deletion, an annotation, a finalizer (ours: only taken away); or another object under the name.
pub(crate) fn of_object(old: &ObjectMeta, new: &ObjectMeta) -> bool {
    old.uid != new.uid
        || old.generation != new.generation
        || old.deletion_timestamp != new.deletion_timestamp
        || old.annotations != new.annotations
        || foreign(old).ne(foreign(new))
        || (has_ours(old) && !has_ours(new))
}

fn foreign(meta: &ObjectMeta) -> impl Iterator<Item = &String> {
    meta.finalizers.iter().flatten().filter(|name| *name != FINALIZER)
}

pub(crate) fn has_ours(meta: &ObjectMeta) -> bool {
    meta.finalizers.iter().flatten().any(|name| name == FINALIZER)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn what_somebody_wants_is_a_change_and_what_we_wrote_is_none() {
        let object = |generation, finalizers: &[&str], annotation: &str, version: &str| ObjectMeta {
            generation: Some(generation),
            finalizers: Some(finalizers.iter().map(ToString::to_string).collect()),
            annotations: Some(BTreeMap::from([("a".to_owned(), annotation.to_owned())])),
            resource_version: Some(version.to_owned()),
            ..ObjectMeta::default()
        };
        let old = object(1, &[FINALIZER, "x"], "1", "1");
        for (new, expected) in [
            (object(1, &[FINALIZER, "x"], "1", "2"), false),
            (object(2, &[FINALIZER, "x"], "1", "2"), true),
            (object(1, &[FINALIZER], "1", "2"), true),
            (object(1, &["x"], "1", "2"), true),
            (object(1, &[FINALIZER, "x"], "2", "2"), true),
        ] {
            assert_eq!(of_object(&old, &new), expected, "{new:?}");
        }
        assert!(!of_object(&object(1, &["x"], "1", "1"), &old), "ours was put there");
    }
}
