//! Which Secrets of ours are there, and in which version. Pure: what a watch of their metadata says comes in as values.
//!
//! What they hold is never among it: a Secret that is another than the one that was read is read anew.

use std::collections::BTreeMap;

use kube::api::ObjectMeta;
use kube::core::PartialObjectMeta;
use kube::runtime::watcher::Event;
use rowgate_reconcile::source::Version;

use super::collection::{Name, name};

#[derive(Debug, Default)]
pub(crate) struct Sightings {
    /// `None`: nobody watches, or not for long enough to know them all.
    known: Option<BTreeMap<Name, Version>>,
    /// The list that is coming in.
    listing: BTreeMap<Name, Version>,
}

/// Another object of the name has another uid, another state of it another resource version.
pub(crate) fn version(meta: &ObjectMeta) -> Option<Version> {
    let (uid, version) = (meta.uid.as_deref()?, meta.resource_version.as_deref()?);
    Some(Version(format!("{uid}/{version}").into()))
}

impl Sightings {
    /// The versions, once the first list has come to its end.
    pub(crate) fn known(&self) -> Option<&BTreeMap<Name, Version>> {
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
                self.listing.extend(named(&secret.metadata));
                false
            }
            Event::InitDone => {
                let listed = std::mem::take(&mut self.listing);
                let before = self.known.replace(listed.clone());
                before.is_none_or(|before| before.keys().any(|name| !listed.contains_key(name)))
            }
            Event::Apply(secret) => {
                self.known.iter_mut().for_each(|known| known.extend(named(&secret.metadata)));
                false
            }
            Event::Delete(secret) => {
                let known = self.known.as_mut();
                known.is_some_and(|known| known.remove(&name(&secret.metadata)).is_some())
            }
        }
    }

    /// Nothing is known any more: whoever wants to know reads.
    pub(crate) fn forget(&mut self) {
        *self = Sightings::default();
    }
}

fn named(meta: &ObjectMeta) -> Option<(Name, Version)> {
    Some((name(meta), version(meta)?))
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
    fn told(events: Vec<Event<PartialObjectMeta<()>>>) -> Vec<String> {
        let mut sightings = Sightings::default();
        let mut tell = |event| {
            let woke = if sightings.take(event) { "!" } else { "" };
            let known = sightings.known().map(|known| {
                let each = known.iter().map(|((_, name), version)| format!("{name}={}", version.0));
                each.collect::<Vec<_>>().join(" ")
            });
            known.unwrap_or_else(|| "unknown".into()) + woke
        };
        events.into_iter().map(&mut tell).collect()
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
            told(events),
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
        let told = told(events);
        assert_eq!(
            told[2..],
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
