//! Entities that a scope has a permission on and that cannot be served now, and what leads to them.

use std::collections::HashMap;

use rowgate_core::problem::Code::*;

use super::refusals::check;
use super::*;
use crate::catalog::{Catalog, ClosedEntity, Scope};

/// `lines` and what nothing stands for, of which these columns may be read.
fn closed(catalog: &Catalog, columns: &[&str]) -> Scope {
    let lines = &catalog.entities[&entity_name("lines")];
    let columns = columns.iter().map(ToString::to_string).collect();
    let mut closed = ClosedEntity::from(&**lines);
    closed.grant(&PermissionRecord { entity: lines.name.clone(), action: Action::Read, columns });
    let granted = Scope::clone(&catalog.scopes["set_x"]);
    let mut entities = HashMap::clone(&granted.entities);
    entities.remove(&lines.name);
    let closed = HashMap::from(["lines", "gone"].map(|name| (entity_name(name), closed.clone())));
    Scope { closed: closed.into(), entities: entities.into(), ..granted }
}

fn read(catalog: &Catalog, scope: &Scope, entity: &str, options: &str) -> Result<Query, Problem> {
    let request = query_string::parse(options).expect("well-formed");
    let cursors = Cursors { key: &key(), caller: "k1" };
    rest::collection(catalog, scope, &entity_name(entity), &request, cursors)
}

#[test]
fn an_entity_that_does_not_exist_now_is_unavailable_to_who_has_a_permission_on_it() {
    let mut catalog = catalog();
    let with = closed(&catalog, &["order_id"]);
    catalog.entities.remove(&entity_name("lines")).expect("an entity");
    for (scope, entity, code, words) in [
        (&with, "lines", Unavailable, "cannot be served now"),
        (&with, "absent", EntityNotFound, "no such entity"),
        (&Scope::default(), "lines", EntityNotFound, "no such entity"),
    ] {
        check(read(&catalog, scope, entity, ""), code, words, entity);
        let written = rest::may_insert(&catalog, scope, &entity_name(entity)).expect_err("a refusal");
        assert_eq!(written.code, code, "{entity}");
    }
}

/// Whether the entity is in the catalog, as one on which nothing is granted yet, or not.
#[test]
fn what_leads_there_is_unavailable_to_who_may_read_what_it_compares() {
    let catalog = catalog();
    let with = closed(&catalog, &["order_id", "line"]);
    let without = closed(&catalog, &["line"]);
    let nothing = Scope { closed: HashMap::new().into(), ..with.clone() };
    for options in [
        "$expand=lines",
        "$expand=parcels($select=id)",
        "$filter=parcels/any(p: p/id gt 1)",
        "$filter=lines/any()",
        "$orderby=parcels/id",
    ] {
        check(read(&catalog, &with, "orders", options), Unavailable, "cannot be served now", options);
        for scope in [&without, &nothing] {
            check(read(&catalog, scope, "orders", options), UnknownField, "no relationship", options);
        }
    }
    let compares = "$expand=secretive";
    check(
        read(&catalog, &with, "orders", compares),
        UnknownField,
        "no relationship",
        "what compares a secret",
    );

    let names = catalog.names_away(&with);
    let away = ["lines", "parcels", "gone", "gone_by_pk", "createGone", "GoneFilterInput"];
    assert!(away.iter().all(|name| names.contains(*name)), "{names:?}");
    assert!(!names.contains("secretive") && !names.contains("closed"), "{names:?}");
    assert!(catalog.names_away(&nothing).is_empty());
}
