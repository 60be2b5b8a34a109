//! What a newcomer pastes first: one `curl` line per key, and how to change something.

use std::fmt::Write as _;

use rowgate_crds::{Action, ApiKey, Permission, SameAs, Tenant};

/// A key that works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Door {
    pub(super) slug: String,
    /// The ApiKey's name.
    pub(super) name: String,
    pub(super) role: String,
    /// The key itself.
    pub(super) key: String,
    /// What it may read; `None`: nothing.
    pub(super) entity: Option<String>,
}

/// One block of text for all doors, the tenants in the order given.
pub(super) fn text(url: &str, doors: &[Door]) -> String {
    let mut text = String::new();
    let mut tenant = "";
    for door in doors {
        if door.slug != tenant {
            tenant = &door.slug;
            write!(text, "\n{url}/auth/{tenant}/api is served. Try:\n").expect("a string takes all");
        }
        let path = match &door.entity {
            Some(entity) => format!("/{entity}?$first=3"),
            None => String::new(),
        };
        write!(
            text,
            "\n# key {} ({})\ncurl -H 'X-API-Key: {}' '{url}/auth/{tenant}/api{path}'\n",
            door.name, door.role, door.key
        )
        .expect("a string takes all");
    }
    text
}

/// Which entity to show for `key`: of those it may read, the one that most of the tenant's keys may read too, so that
/// a reader sees how two keys get different rows.
pub(super) fn entity(tenant: &Tenant, key: &ApiKey, keys: &[ApiKey]) -> Option<String> {
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
        let door = Door {
            slug: "shop".into(),
            name: "everything".into(),
            role: "datalake_user".into(),
            key: "shop:dlk_x".into(),
            entity: Some("orders".into()),
        };
        let text = text("http://127.0.0.1:8080", &[door]);
        assert!(text.contains(
            "\ncurl -H 'X-API-Key: shop:dlk_x' 'http://127.0.0.1:8080/auth/shop/api/orders?$first=3'\n"
        ));
    }
}
