//! Which Secrets of ours are there, and in which version. Pure: what a watch of their metadata says comes in as values.
//!
//! Their contents are never among it: a Secret that has changed since it was read is read again.

use std::collections::BTreeMap;

use kube::api::ObjectMeta;
use kube::core::PartialObjectMeta;
use kube::runtime::watcher::Event;
use rowgate_reconcile::source::Version;

use super::collection::name;

/// By namespace, then by name.
pub(crate) type Versions = BTreeMap<String, BTreeMap<Box<str>, Version>>;

#[derive(Debug, Default)]
pub(crate) struct SecretVersions {
    /// `None`: they are not watched, or not for long enough to know them all.
    known: Option<Versions>,
    /// The list that is coming in.
    listing: Versions,
}

/// Another object of the name has another uid, another state of it another resource version.
pub(crate) fn version(meta: &ObjectMeta) -> Option<Version> {
    let (uid, version) = (meta.uid.as_deref()?, meta.resource_version.as_deref()?);
    Some(Version(format!("{uid}/{version}").into()))
}

impl SecretVersions {
    /// The versions, once the first list has come to its end.
    pub(crate) fn known(&self) -> Option<&Versions> {
        self.known.as_ref()
    }

    /// Takes over what the watch says. True when a Secret is gone, or may be: one that came, or is another than before, is
    /// what a pass has just written, or is found by the next look.
    pub(crate) fn take<K>(&mut self, event: Event<PartialObjectMeta<K>>) -> bool {
        match event {
            Event::Init => {
                self.listing.clear();
                false
            }
            Event::InitApply(secret) => {
                put(&mut self.listing, &secret.metadata);
                false
            }
            Event::InitDone => {
                let listed = std::mem::take(&mut self.listing);
                let is_gone = |(namespace, before): (&String, &BTreeMap<Box<str>, Version>)| {
                    let now = listed.get(namespace);
                    before.keys().any(|name| now.is_none_or(|now| !now.contains_key(name)))
                };
                let gone = self.known.as_ref().is_none_or(|before| before.iter().any(is_gone));
                self.known = Some(listed);
                gone
            }
            Event::Apply(secret) => {
                self.known.iter_mut().for_each(|known| put(known, &secret.metadata));
                false
            }
            Event::Delete(secret) => {
                let (namespace, name) = name(&secret.metadata);
                let known = self.known.as_mut().and_then(|known| known.get_mut(&namespace));
                known.is_some_and(|known| known.remove(name.as_str()).is_some())
            }
        }
    }

    /// Nothing is known any more: callers have to read.
    pub(crate) fn forget(&mut self) {
        *self = SecretVersions::default();
    }
}

fn put(versions: &mut Versions, meta: &ObjectMeta) {
    let Some(version) = version(meta) else { return };
    let (namespace, name) = name(meta);
    versions.entry(namespace).or_default().insert(name.into(), version);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(name: &str, version: &str) -> PartialObjectMeta<()> {
        let metadata = ObjectMeta {
            namespace: Some("n".into()),
            name: Some(name.into()),
            uid: Some("u".into()),
            resource_version: Some(version.into()),
            ..ObjectMeta::default()
        };
        PartialObjectMeta { metadata, ..PartialObjectMeta::default() }
    }

    /// What is known after each event, `!` where it woke.
    fn known_after(events: Vec<Event<PartialObjectMeta<()>>>) -> Vec<String> {
        let mut versions = SecretVersions::default();
        let mut take = |event| {
            let woke = if versions.take(event) { "!" } else { "" };
            let known = versions.known().map(|known| {
                let each = known.values().flatten().map(|(name, version)| format!("{name}={}", version.0));
                each.collect::<Vec<_>>().join(" ")
            });
            known.unwrap_or_else(|| "unknown".into()) + woke
        };
        events.into_iter().map(&mut take).collect()
    }

    #[test]
    fn a_secret_that_goes_wakes_and_one_that_comes_or_changes_does_not() {
        let events = vec![
            Event::Apply(secret("early", "1")),
            Event::Init,
            Event::InitApply(secret("a", "1")),
            Event::Init,
            Event::InitApply(secret("b", "2")),
            Event::InitDone,
            Event::Apply(secret("c", "3")),
            Event::Apply(secret("b", "4")),
            Event::Delete(secret("b", "5")),
            Event::Delete(secret("b", "5")),
        ];
        assert_eq!(
            known_after(events),
            [
                "unknown",
                "unknown",
                "unknown",
                "unknown",
                "unknown",
                "b=u/2!",
                "b=u/2 c=u/3",
                "b=u/4 c=u/3",
                "c=u/3!",
                "c=u/3"
            ]
        );
    }

    #[test]
    fn a_list_tells_what_is_gone_when_it_has_ended() {
        let mut events = vec![Event::InitApply(secret("a", "1")), Event::InitApply(secret("b", "1"))];
        events.extend([Event::InitDone, Event::Init, Event::InitApply(secret("a", "1"))]);
        events.extend([Event::InitApply(secret("b", "2")), Event::InitDone]);
        events.extend([Event::Init, Event::InitApply(secret("b", "2")), Event::InitDone]);
        let known = known_after(events);
        assert_eq!(
            known[2..],
            [
                "a=u/1 b=u/1!",
                "a=u/1 b=u/1",
                "a=u/1 b=u/1",
                "a=u/1 b=u/1",
                "a=u/1 b=u/2",
                "a=u/1 b=u/2",
                "a=u/1 b=u/2",
                "b=u/2!"
            ]
        );
    }
}
