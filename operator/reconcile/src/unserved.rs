//! Switches and fields that this version does not serve: what was set is told, and what depends on it stays closed.

use std::collections::BTreeMap;

use rowgate_crds::Reason;

use crate::plan::Finding;
use crate::status::Findings;

/// The value of an annotation.
pub(crate) fn annotation<'a>(metadata: &'a kube_core::ObjectMeta, name: &str) -> Option<&'a str> {
    metadata.annotations.as_ref()?.get(name).map(String::as_str)
}

/// A sentence for each of `names` that is set: a switch that nobody reads must not look as if it worked.
pub(crate) fn unserved_annotations(metadata: &kube_core::ObjectMeta, names: &[&str]) -> Vec<String> {
    let set = names.iter().filter(|name| annotation(metadata, name).is_some());
    set.map(|name| format!("not served yet: the annotation {name} on this kind; remove it")).collect()
}

/// Entities that ask for what this version does not serve stay closed: `entities[<name>]...` in a finding.
pub(crate) fn closed(findings: &Findings) -> BTreeMap<String, Finding> {
    let mut closed = BTreeMap::new();
    for (_, text) in &findings.stalled {
        let name =
            text.split_once("entities[").and_then(|(_, rest)| rest.split_once(']')).map(|(name, _)| name);
        if let Some(name) = name {
            closed.insert(name.to_owned(), Finding::new(Reason::NotServedYet, text.clone()));
        }
    }
    closed
}
