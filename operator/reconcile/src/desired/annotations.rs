//! Annotations: switches that stand beside a spec.

/// What the annotation says, if it is set.
pub(crate) fn value<'a>(metadata: &'a kube_core::ObjectMeta, name: &str) -> Option<&'a str> {
    metadata.annotations.as_ref()?.get(name).map(String::as_str)
}

/// A sentence for each of `names` that is set: a switch that is ignored must not look as if it worked.
pub(crate) fn unserved(metadata: &kube_core::ObjectMeta, names: &[&str]) -> Vec<String> {
    let set = names.iter().filter(|name| value(metadata, name).is_some());
    set.map(|name| format!("not served yet: the annotation {name} on this kind; remove it")).collect()
}
