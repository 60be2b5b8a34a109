//! The first requests to try: one `curl` line for each key.

use std::fmt::Write as _;

use rowgate_crds::{Action, ApiKey, Permission, SameAs, Tenant};

/// A key that works, and a request to try with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UsableKey {
    pub(crate) slug: String,
    /// The ApiKey's name.
    pub(crate) name: String,
    pub(crate) role: String,
    /// The key itself.
    pub(crate) key: String,
    /// An entity that the key may read; `None`: there is none.
    pub(crate) entity: Option<String>,
}

/// One block of text for all keys, with the tenants in the given order.
pub(crate) fn text(url: &str, usable: &[UsableKey]) -> String {
    let mut text = String::new();
    let mut tenant = "";
    for key in usable {
        if key.slug != tenant {
            tenant = &key.slug;
            write!(text, "\nServing {url}/auth/{tenant}/api. Try:\n")
                .expect("writing to a string cannot fail");
        }
        let path = match &key.entity {
            Some(entity) => format!("/{entity}?$first=3"),
            None => String::new(),
        };
        write!(
            text,
            "\n# key {} ({})\ncurl -H 'X-API-Key: {}' '{url}/auth/{tenant}/api{path}'\n",
            key.name, key.role, key.key
        )
        .expect("writing to a string cannot fail");
    }
    text
}

/// The entity to show for `key`: of those that it may read, the one that most of the tenant's keys may read, so that the
/// examples show how two keys get different rows.
pub(crate) fn entity(tenant: &Tenant, key: &ApiKey, keys: &[ApiKey]) -> Option<String> {
    let n_readers = |entity: &str| keys.iter().filter(|other| may_read(tenant, other, entity)).count();
    let names = tenant.spec.entities.iter().map(|entity| entity.name.as_str());
    names
        .filter(|name| may_read(tenant, key, name))
        // The first of several equals: max_by_key alone would take the last.
        .rev()
        .max_by_key(|name| n_readers(name))
        .map(str::to_owned)
}

fn may_read(tenant: &Tenant, key: &ApiKey, entity: &str) -> bool {
    let shared = tenant.spec.shared.iter().flat_map(|shared| &shared.permissions);
    match &key.spec.scope {
        None => reads(shared, entity),
        Some(scope) if scope.same_as == Some(SameAs::Shared) => reads(shared, entity),
        Some(scope) => reads(scope.permissions.iter(), entity),
    }
}

fn reads<'a>(mut permissions: impl Iterator<Item = &'a Permission>, entity: &str) -> bool {
    permissions.any(|permission| permission.entity == entity && permission.actions.contains(&Action::Read))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_entity_shown_is_the_one_that_most_keys_may_read() {
        let tenant: Tenant = serde_yaml::from_str(
            "apiVersion: rowgate.dev/v1alpha1
kind: Tenant
metadata: {name: shop}
spec:
  database: {name: shop}
  shared: {permissions: [{entity: products, actions: [read]}, {entity: orders, actions: [read]}]}
  entities:
    - {name: products, source: {object: products}, keyFields: [id]}
    - {name: orders, source: {object: orders}, keyFields: [id]}",
        )
        .expect("a tenant");
        let key = |scope: &str| -> ApiKey {
            let head = "apiVersion: rowgate.dev/v1alpha1\nkind: ApiKey\nmetadata: {name: k}\n";
            serde_yaml::from_str(&format!("{head}spec: {{tenantRef: {{name: shop}}{scope}}}")).expect("a key")
        };
        let all = key("");
        let orders =
            key(", scope: {permissions: [{entity: orders, actions: [read], fields: {include: ['*']}}]}");
        let nothing = key(", scope: {permissions: [{entity: orders, actions: [delete]}]}");
        let keys = [all.clone(), orders.clone(), nothing.clone()];
        assert_eq!(entity(&tenant, &all, &keys).as_deref(), Some("orders"));
        assert_eq!(entity(&tenant, &orders, &keys).as_deref(), Some("orders"));
        assert_eq!(entity(&tenant, &nothing, &keys), None);
        assert_eq!(entity(&tenant, &all, std::slice::from_ref(&all)).as_deref(), Some("products"));
    }

    #[test]
    fn the_lines_can_be_pasted() {
        let key = UsableKey {
            slug: "shop".into(),
            name: "everything".into(),
            role: "datalake_user".into(),
            key: "shop:dlk_x".into(),
            entity: Some("orders".into()),
        };
        let text = text("http://127.0.0.1:8080", &[key]);
        assert!(text.contains(
            "\ncurl -H 'X-API-Key: shop:dlk_x' 'http://127.0.0.1:8080/auth/shop/api/orders?$first=3'\n"
        ));
    }
}
