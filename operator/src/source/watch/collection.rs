//! The objects of one kind that are known to be there. Pure: what a watch says comes in as values.
//!
//! Nothing vanishes by itself: an object is gone when a watch says that it was deleted, or when a list that came to its end
//! does not hold it. A list that is still coming in, or breaks off, changes nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use kube::Resource;
use kube::api::ObjectMeta;
use kube::runtime::watcher::Event;

use super::listed::Listed;

/// Namespace and name.
pub(crate) type Name = (String, String);

/// What is known of one object.
#[derive(Debug)]
pub(crate) enum KnownObject<T> {
    /// As it stands there now.
    Understood(Arc<T>),
    NotUnderstood(Box<UnreadableObject<T>>),
}

/// An object that stands there in a form that is not understood.
#[derive(Debug)]
pub(crate) struct UnreadableObject<T> {
    /// As it stands there now.
    meta: ObjectMeta,
    /// As it was last understood; `None`: never.
    last: Option<Arc<T>>,
    /// Why it is not understood.
    problem: String,
}

impl<T: Resource> KnownObject<T> {
    /// As it stands there now.
    pub(crate) fn meta(&self) -> &ObjectMeta {
        match self {
            KnownObject::Understood(object) => object.meta(),
            KnownObject::NotUnderstood(unreadable) => &unreadable.meta,
        }
    }

    /// As it was last understood; `None`: never.
    pub(crate) fn object(&self) -> Option<&Arc<T>> {
        match self {
            KnownObject::Understood(object) => Some(object),
            KnownObject::NotUnderstood(unreadable) => unreadable.last.as_ref(),
        }
    }

    /// Why what the API server has now is not understood.
    pub(crate) fn problem(&self) -> Option<&str> {
        match self {
            KnownObject::Understood(_) => None,
            KnownObject::NotUnderstood(unreadable) => Some(&unreadable.problem),
        }
    }

    fn is(&self, meta: &ObjectMeta) -> bool {
        self.meta().uid == meta.uid
    }
}

#[derive(Debug)]
pub(crate) struct Collection<T> {
    /// `None` until the first list has come to its end.
    known: Option<BTreeMap<Name, KnownObject<T>>>,
    /// The list that is coming in.
    listing: Vec<Listed<T>>,
}

impl<T> Default for Collection<T> {
    fn default() -> Collection<T> {
        Collection { known: None, listing: Vec::new() }
    }
}

impl<T: Resource> Collection<T> {
    /// The objects, once the first list has come to its end.
    pub(crate) fn known(&self) -> Option<&BTreeMap<Name, KnownObject<T>>> {
        self.known.as_ref()
    }

    /// Takes over what the watch says. True when there is something new to look at; `is_new` compares two versions of one
    /// object.
    pub(crate) fn take(
        &mut self,
        event: Event<Listed<T>>,
        is_new: fn(&ObjectMeta, &ObjectMeta) -> bool,
    ) -> bool {
        match event {
            Event::Init => {
                self.listing.clear();
                false
            }
            Event::InitApply(listed) => {
                self.listing.push(listed);
                false
            }
            Event::InitDone => self.list_ended(is_new),
            Event::Apply(listed) => {
                let Some(known) = &mut self.known else { return false };
                let name = name(&listed.meta);
                let old = known.remove(&name);
                let turned = old.as_ref().is_none_or(|old| is_new(old.meta(), &listed.meta));
                known.insert(name, held(listed, old));
                turned
            }
            Event::Delete(listed) => {
                let Some(known) = &mut self.known else { return false };
                let name = name(&listed.meta);
                // this is outdated for an object that was recreated under the same name meanwhile
                let is_same = known.get(&name).is_some_and(|held| held.is(&listed.meta));
                is_same && known.remove(&name).is_some()
            }
        }
    }

    /// The API server does not know the kind. What a watch has shown before stays. True when nothing was known.
    pub(crate) fn is_undefined(&mut self) -> bool {
        let is_new = self.known.is_none();
        self.known.get_or_insert_default();
        is_new
    }

    fn list_ended(&mut self, is_new: fn(&ObjectMeta, &ObjectMeta) -> bool) -> bool {
        let first = self.known.is_none();
        let mut before = self.known.take().unwrap_or_default();
        let mut turned = first;
        let mut known = BTreeMap::new();
        for listed in std::mem::take(&mut self.listing) {
            let name = name(&listed.meta);
            let old = before.remove(&name);
            turned |= old.as_ref().is_none_or(|old| is_new(old.meta(), &listed.meta));
            known.insert(name, held(listed, old));
        }
        self.known = Some(known);
        turned || !before.is_empty()
    }

    /// Puts what a write of ours answered in the place of the version that it was made from. The watch says the same later.
    pub(crate) fn wrote(&mut self, from: Option<&str>, listed: Listed<T>) {
        let Some(known) = &mut self.known else { return };
        let name = name(&listed.meta);
        if known.get(&name).is_some_and(|held| held.meta().resource_version.as_deref() == from) {
            let old = known.remove(&name);
            known.insert(name, held(listed, old));
        }
    }
}

/// A version that cannot be understood leaves the last one in force, under its own generation.
fn held<T: Resource>(listed: Listed<T>, old: Option<KnownObject<T>>) -> KnownObject<T> {
    let Listed { meta, object } = listed;
    match object {
        Ok(object) => KnownObject::Understood(object),
        Err(problem) => {
            let last = old.filter(|old| old.is(&meta)).and_then(|old| old.object().cloned());
            KnownObject::NotUnderstood(Box::new(UnreadableObject { meta, last, problem }))
        }
    }
}

pub(crate) fn name(meta: &ObjectMeta) -> Name {
    (meta.namespace.clone().unwrap_or_default(), meta.name.clone().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use kube::api::DynamicObject;

    use super::*;

    fn listed(name: &str, generation: i64, value: Result<i32, String>) -> Listed<DynamicObject> {
        let meta = ObjectMeta {
            namespace: Some("n".into()),
            name: Some(name.into()),
            uid: Some(format!("uid of {name}")),
            generation: Some(generation),
            resource_version: Some(generation.to_string()),
            ..ObjectMeta::default()
        };
        let object = value.map(|value| {
            let metadata = meta.clone();
            Arc::new(DynamicObject { types: None, metadata, data: value.into() })
        });
        Listed { meta, object }
    }

    fn is_new(old: &ObjectMeta, new: &ObjectMeta) -> bool {
        old.generation != new.generation
    }

    /// Feeds the events, and gives what is known after each: names with values, `!` where it woke.
    fn known_after(events: Vec<Event<Listed<DynamicObject>>>) -> Vec<String> {
        let mut collection: Collection<DynamicObject> = Collection::default();
        let mut take = |event| {
            let woke = collection.take(event, is_new);
            let known = collection.known().map(|known| {
                let each = known.iter().map(|((_, name), held)| match (held.object(), held.problem()) {
                    (Some(object), None) => format!("{name}{}", object.data),
                    (Some(object), Some(_)) => format!("{name}{}?", object.data),
                    (None, _) => format!("{name}?"),
                });
                each.collect::<Vec<_>>().join(" ")
            });
            format!("{}{}", known.unwrap_or_else(|| "unknown".into()), if woke { "!" } else { "" })
        };
        events.into_iter().map(&mut take).collect()
    }

    #[test]
    fn nothing_is_known_before_the_first_list_has_ended() {
        let events = vec![
            Event::Init,
            Event::InitApply(listed("a", 1, Ok(1))),
            Event::Init,
            Event::InitApply(listed("b", 1, Ok(1))),
            Event::InitDone,
        ];
        assert_eq!(known_after(events), ["unknown", "unknown", "unknown", "unknown", "b1!"]);
    }

    #[test]
    fn what_a_list_does_not_hold_is_gone_only_when_it_has_ended() {
        let events = vec![
            Event::InitApply(listed("a", 1, Ok(1))),
            Event::InitApply(listed("b", 1, Ok(1))),
            Event::InitDone,
            Event::Init,
            Event::InitApply(listed("b", 2, Ok(2))),
            Event::Init,
            Event::InitApply(listed("b", 2, Ok(2))),
            Event::InitApply(listed("c", 1, Ok(1))),
            Event::InitDone,
            Event::Init,
            Event::InitApply(listed("b", 2, Ok(2))),
            Event::InitApply(listed("c", 1, Ok(1))),
            Event::InitDone,
        ];
        let known = known_after(events);
        assert_eq!(
            known[2..],
            [
                "a1 b1!", "a1 b1", "a1 b1", "a1 b1", "a1 b1", "a1 b1", "b2 c1!", "b2 c1", "b2 c1", "b2 c1",
                "b2 c1"
            ]
        );
    }

    #[test]
    fn what_cannot_be_understood_stays_as_it_was() {
        let events = vec![
            Event::InitApply(listed("a", 1, Ok(1))),
            Event::InitDone,
            Event::Apply(listed("a", 2, Err("no".into()))),
            Event::Apply(listed("b", 1, Err("no".into()))),
            Event::Apply(listed("a", 3, Ok(3))),
            Event::Delete(listed("b", 1, Err("no".into()))),
        ];
        assert_eq!(known_after(events)[1..], ["a1!", "a1?!", "a1? b?!", "a3 b?!", "a3!"]);
    }

    #[test]
    fn a_version_that_says_nothing_new_wakes_nobody_and_old_news_removes_nothing() {
        let mut old = listed("a", 1, Ok(1));
        old.meta.uid = Some("another".into());
        let events = vec![
            Event::InitApply(listed("a", 1, Ok(1))),
            Event::InitDone,
            Event::Apply(listed("a", 1, Ok(7))),
            Event::Delete(old),
            Event::Delete(listed("a", 1, Ok(7))),
        ];
        assert_eq!(known_after(events)[1..], ["a1!", "a7", "a7", "!"]);
    }

    #[test]
    fn an_answer_replaces_only_the_version_it_was_made_from() {
        let mut collection = Collection::default();
        collection.take(Event::InitApply(listed("a", 5, Ok(5))), is_new);
        collection.take(Event::InitDone, is_new);
        collection.wrote(Some("4"), listed("a", 6, Ok(6)));
        let value = |collection: &Collection<DynamicObject>| {
            let held = collection.known().expect("listed").values().next().expect("one");
            held.object().and_then(|object| object.data.as_i64())
        };
        assert_eq!(value(&collection), Some(5));
        collection.wrote(Some("5"), listed("a", 6, Ok(6)));
        assert_eq!(value(&collection), Some(6));
    }
}
