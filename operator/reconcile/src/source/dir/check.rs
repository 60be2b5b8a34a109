//! `check --manifests DIR`: everything that can be known to be wrong without a database.

use std::collections::BTreeMap;
use std::path::Path;

use rowgate_core::nearest::nearest;
use rowgate_crds::{ApiKey, Bootstrap, Permission, Relationship, Tenant, WebhookSubscription};

use super::folder::{self, ManifestFile};
use super::objects::{FileKind, Key, Stored};
use super::scan::{Memory, scan};
use crate::source::{Described, SourceProblem};

/// Judges a manifest folder as a first start would, and the references within it.
#[must_use]
pub fn check(dir: &Path) -> Vec<SourceProblem> {
    check_with(dir, &[])
}

/// As [`check`], of the folder as it would be with further files, each with its name and its text.
#[must_use]
pub fn check_with(dir: &Path, further: &[(String, String)]) -> Vec<SourceProblem> {
    let files = match folder::read(dir) {
        Ok(files) => {
            let further = further.iter().map(|(name, text)| ManifestFile::new(name.clone(), text.clone()));
            files.into_iter().chain(further).collect::<Vec<_>>()
        }
        Err(error) => {
            let message = format!("cannot read the folder: {error}; name another with --manifests");
            return vec![SourceProblem { file: dir.display().to_string(), message }];
        }
    };
    if files.is_empty() {
        let message = "holds no *.yaml, *.yml or *.json; put a Tenant there".to_owned();
        return vec![SourceProblem { file: dir.display().to_string(), message }];
    }
    let now = std::time::Instant::now();
    let scanned = scan(&Memory::default(), &files, now, &mut String::new)
        .expect("nothing was known, so nothing is gone");
    let objects = scanned.memory.objects;
    let tenants: BTreeMap<(&str, &str), Tenant> = objects
        .values()
        .filter_map(|stored| Some(((&*stored.key.namespace, &*stored.key.name), typed(stored)?)))
        .collect();
    let mut problems = scanned.problems;
    for stored in objects.values() {
        let namespace = stored.key.namespace.as_str();
        let mut messages = Vec::new();
        if let Some(tenant) = typed::<Tenant>(stored) {
            let shared = tenant.spec.shared.iter().flat_map(|shared| &shared.permissions);
            messages.extend(unknown_entities(shared, &tenant));
            let scripts = tenant.spec.database.bootstrap.iter().flat_map(Bootstrap::references);
            let secret = tenant.spec.database.server_secret_ref.as_ref();
            messages.extend(secret.and_then(|it| missing_server(&objects, namespace, &it.name)));
            messages.extend(scripts.filter_map(|it| missing_script(&objects, namespace, &it.name, &it.key)));
        }
        if let Some(key) = typed::<ApiKey>(stored) {
            let name = key.spec.tenant_ref.name.as_str();
            let scope = key.spec.scope.iter().flat_map(|scope| &scope.permissions);
            match tenants.get(&(namespace, name)) {
                Some(tenant) => messages.extend(unknown_entities(scope, tenant)),
                None => messages
                    .push(format!("spec.tenantRef: there is no Tenant {name} in namespace {namespace}")),
            }
        }
        if let Some(relationship) = typed::<Relationship>(stored) {
            let spec = &relationship.spec;
            let name = spec.tenant_ref.name.as_str();
            match tenants.get(&(namespace, name)) {
                Some(tenant) => {
                    let ends = [("spec.from", &spec.from.entity), ("spec.to", &spec.to.entity)];
                    messages.extend(
                        ends.into_iter().filter_map(|(at, entity)| unknown_entity(at, entity, tenant)),
                    );
                }
                None => messages
                    .push(format!("spec.tenantRef: there is no Tenant {name} in namespace {namespace}")),
            }
        }
        if let Some(subscription) = typed::<WebhookSubscription>(stored) {
            let name = subscription.spec.tenant_ref.name.as_str();
            if !tenants.contains_key(&(namespace, name)) {
                messages.push(format!("spec.tenantRef: there is no Tenant {name} in namespace {namespace}"));
            }
        }
        let problem = |message| SourceProblem {
            file: stored.file.clone(),
            message: format!("{}: {message}", stored.key),
        };
        problems.extend(messages.into_iter().map(problem));
    }
    problems.sort();
    problems
}

pub(super) fn typed<T: Described>(stored: &Stored) -> Option<T> {
    (stored.key.kind == FileKind::Resource(T::KIND)).then(|| stored.typed().ok()).flatten()
}

fn unknown_entities<'a>(permissions: impl Iterator<Item = &'a Permission>, tenant: &Tenant) -> Vec<String> {
    permissions.filter_map(|it| unknown_entity("a permission", &it.entity, tenant)).collect()
}

/// `what` names an entity that the Tenant does not declare.
fn unknown_entity(what: &str, name: &str, tenant: &Tenant) -> Option<String> {
    let known: Vec<&str> = tenant.spec.entities.iter().map(|entity| entity.name.as_str()).collect();
    let near = nearest(name, known.iter().copied());
    let hint = near.map_or_else(|| known.join(", "), |near| format!("did you mean {near}?"));
    let message =
        format!("{what} names the entity {name}, which Tenant {} does not have; {hint}", tenant.slug());
    (!known.contains(&name)).then_some(message)
}

fn missing_server(objects: &BTreeMap<Key, Stored>, namespace: &str, name: &str) -> Option<String> {
    let of = Key { kind: FileKind::Secret, namespace: namespace.to_owned(), name: name.to_owned() };
    match objects.get(&of) {
        None => {
            Some(format!("spec.database.serverSecretRef: there is no Secret {name} in namespace {namespace}"))
        }
        Some(stored) if stored.object["stringData"].get("url").is_none() => {
            Some(format!("spec.database.serverSecretRef: the Secret {name} has no key url"))
        }
        Some(_) => None,
    }
}

fn missing_script(objects: &BTreeMap<Key, Stored>, namespace: &str, name: &str, key: &str) -> Option<String> {
    let of = Key { kind: FileKind::ConfigMap, namespace: namespace.to_owned(), name: name.to_owned() };
    match objects.get(&of) {
        None => {
            Some(format!("spec.database.bootstrap: there is no ConfigMap {name} in namespace {namespace}"))
        }
        Some(stored) if stored.object["data"].get(key).is_none() => {
            Some(format!("spec.database.bootstrap: the ConfigMap {name} has no key {key}"))
        }
        Some(_) => None,
    }
}
