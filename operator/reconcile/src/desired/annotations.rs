//! Annotations: switches that stand beside a spec.

use rowgate_crds::MODE;

/// Of [`MODE`]: the plan is shown in the status, and nothing of it is run.
const OBSERVE: &str = "Observe";
/// Characters of a value that messages show.
const MAX_SHOWN: usize = 40;

/// What the annotation says, if it is set.
pub(crate) fn value<'a>(metadata: &'a kube_core::ObjectMeta, name: &str) -> Option<&'a str> {
    metadata.annotations.as_ref()?.get(name).map(String::as_str)
}

/// A sentence for each of `names` that is set: a switch that is ignored must not look as if it worked.
pub(crate) fn unserved(metadata: &kube_core::ObjectMeta, names: &[&str]) -> Vec<String> {
    let set = names.iter().filter(|name| value(metadata, name).is_some());
    set.map(|name| format!("not served yet: the annotation {name} on this kind; remove it")).collect()
}

/// Whether the plan is shown and not run.
///
/// # Errors
/// The annotation says something else, of which nothing is run either.
pub(crate) fn observes(metadata: &kube_core::ObjectMeta) -> Result<bool, String> {
    match value(metadata, MODE) {
        None => Ok(false),
        Some(OBSERVE) => Ok(true),
        Some(other) => {
            let shown: String = other.chars().take(MAX_SHOWN).collect();
            Err(format!(
                "the annotation {MODE} says {shown:?}, which is no mode, so that nothing changes; set it to {OBSERVE}, or remove it"
            ))
        }
    }
}
