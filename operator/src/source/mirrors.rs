//! Objects that show subscriptions of the API: made, put back as they were, and removed with what they show.

use std::collections::HashMap;

use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, Preconditions};
use rowgate_crds::{API_VERSION, WebhookSubscription, WebhookSubscriptionSpec};
use rowgate_reconcile::mirrors::{SUBSCRIPTION, is_mirror};
use rowgate_reconcile::source::{Described as _, Mirror, Mirrors, ObjectRef, SourceError};
use serde_json::{Value, json};

use super::watch::listed::Listed;
use super::{KubeSource, MANAGER, ask_unless_refused, finalizer};

/// What the watch shows of an object.
struct There {
    object: ObjectRef,
    is_mirror: bool,
    is_undecided: bool,
    is_deleting: bool,
    /// `None`: it cannot be read.
    spec: Option<WebhookSubscriptionSpec>,
    has_labels: bool,
}

/// Makes the objects these. What the watch does not show yet is made again, which changes nothing.
pub(crate) async fn show(source: &KubeSource, all: &Mirrors) -> Result<(), SourceError> {
    let wanted: HashMap<(&str, &str), &Mirror> =
        all.mirrors.iter().map(|it| ((it.namespace.as_str(), it.name.as_str()), it)).collect();
    let there = source.subscriptions.map(|held| {
        let meta = held.meta();
        let object = ObjectRef {
            kind: WebhookSubscription::KIND,
            namespace: meta.namespace.clone().unwrap_or_default(),
            name: meta.name.clone().unwrap_or_default(),
            uid: meta.uid.clone().unwrap_or_default(),
        };
        let mirror = wanted.get(&(object.namespace.as_str(), object.name.as_str()));
        let is_mirror = is_mirror(meta);
        (is_mirror || mirror.is_some()).then(|| There {
            object: object.clone(),
            is_mirror,
            is_undecided: all
                .is_undecided(meta.labels.as_ref().and_then(|it| it.get(SUBSCRIPTION)).map(String::as_str)),
            is_deleting: meta.deletion_timestamp.is_some(),
            spec: held.problem().is_none().then(|| held.object().map(|it| it.spec.clone())).flatten(),
            has_labels: mirror.is_some_and(|it| {
                let labels = meta.labels.clone().unwrap_or_default();
                it.labels().iter().all(|(name, value)| labels.get(name) == Some(value))
            }),
        })
    });
    let mut missing = wanted.clone();
    for there in &there {
        let object = &there.object;
        let mirror = missing.remove(&(object.namespace.as_str(), object.name.as_str()));
        match mirror {
            _ if there.is_deleting => {
                finalizer::release::<WebhookSubscription>(&source.client, object).await?
            }
            Some(mirror) if there.has_labels && there.spec.as_ref() == Some(&mirror.spec) => {}
            Some(mirror) => {
                let spec = serde_json::to_value(&there.spec).expect("a spec is plain values");
                put_back(source, mirror, &spec).await?;
            }
            None if there.is_mirror && !there.is_undecided => remove(source, object).await?,
            None => {}
        }
    }
    for mirror in missing.into_values() {
        make(source, mirror).await?;
    }
    Ok(())
}

fn api(source: &KubeSource, namespace: &str) -> Api<Listed<WebhookSubscription>> {
    Api::namespaced(source.client.clone(), namespace)
}

async fn make(source: &KubeSource, mirror: &Mirror) -> Result<(), SourceError> {
    let attempt = || format!("make WebhookSubscription {}/{}", mirror.namespace, mirror.name);
    let object = json!({
        "apiVersion": API_VERSION, "kind": WebhookSubscription::KIND.as_str(),
        "metadata": { "name": mirror.name, "namespace": mirror.namespace, "labels": mirror.labels() },
        "spec": mirror.spec,
    });
    let params = PatchParams::apply(MANAGER).force();
    let api = api(source, &mirror.namespace);
    let change = Patch::Apply(&object);
    let made = ask_unless_refused(attempt, api.patch(&mirror.name, &params, &change)).await?;
    made.map(drop).map_err(|status| finalizer::refused(attempt(), &status))
}

/// What a hand has added goes, too.
async fn put_back(source: &KubeSource, mirror: &Mirror, there: &Value) -> Result<(), SourceError> {
    let attempt = || format!("put back WebhookSubscription {}/{}", mirror.namespace, mirror.name);
    let wanted = serde_json::to_value(&mirror.spec).expect("a spec is plain values");
    let change = json!({ "metadata": { "labels": mirror.labels() }, "spec": change(there, &wanted) });
    let params = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
    let api = api(source, &mirror.namespace);
    let change = Patch::Merge(&change);
    match ask_unless_refused(attempt, api.patch(&mirror.name, &params, &change)).await? {
        Ok(_) => {
            let Mirror { namespace, name, .. } = mirror;
            tracing::info!(
                namespace,
                name,
                "a WebhookSubscription of the API differed from it and is put back"
            );
            Ok(())
        }
        // the watch says so in a moment
        Err(status) if status.code == 404 => Ok(()),
        Err(status) => Err(finalizer::refused(attempt(), &status)),
    }
}

/// The merge patch that makes `wanted` of `there`.
fn change(there: &Value, wanted: &Value) -> Value {
    let (Value::Object(before), Value::Object(after)) = (there, wanted) else { return wanted.clone() };
    let removed = before.keys().filter(|name| !after.contains_key(*name)).map(|it| (it.clone(), Value::Null));
    let kept = after.iter().map(|(name, value)| {
        let before = before.get(name).unwrap_or(&Value::Null);
        (name.clone(), change(before, value))
    });
    Value::Object(removed.chain(kept).collect())
}

async fn remove(source: &KubeSource, object: &ObjectRef) -> Result<(), SourceError> {
    let attempt = || format!("delete {object}");
    let preconditions = Some(Preconditions { uid: Some(object.uid.clone()), resource_version: None });
    let params = DeleteParams { preconditions, ..DeleteParams::default() };
    let api = api(source, &object.namespace);
    match ask_unless_refused(attempt, api.delete(&object.name, &params)).await? {
        Ok(_) => finalizer::release::<WebhookSubscription>(&source.client, object).await,
        Err(status) if matches!(status.code, 404 | 409) => Ok(()),
        Err(status) => Err(finalizer::refused(attempt(), &status)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_hand_has_added_is_taken_away_and_what_it_took_is_given_back() {
        let there =
            json!({ "url": "https://b", "suspend": true, "filter": { "tables": ["a"], "ops": ["insert"] } });
        let wanted = json!({ "url": "https://a", "filter": { "ops": ["insert", "delete"] }, "batch": { "maxEvents": 5 } });
        assert_eq!(
            change(&there, &wanted),
            json!({
                "url": "https://a", "suspend": null, "batch": { "maxEvents": 5 },
                "filter": { "tables": null, "ops": ["insert", "delete"] },
            })
        );
    }
}
