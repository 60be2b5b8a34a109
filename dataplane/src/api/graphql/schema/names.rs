//! The entities of a schema under their names.

use std::collections::BTreeMap;
use std::ops::Deref;

use rowgate_core::name::EntityName;
use rowgate_sql::catalog::{Catalog, Entity, Scope};
use rowgate_sql::graphql_names::{Names, Taken, is_name};

use crate::api::openapi::access::{Access, Resolver, Rows};

/// An entity that the key may use.
pub(crate) struct Named<'a> {
    pub(crate) entity: &'a Entity,
    pub(crate) access: Access<'a>,
    names: Names,
}

/// All that the scope may use and a schema can name, by name.
pub(crate) fn named<'a>(catalog: &'a Catalog, scope: &'a Scope) -> BTreeMap<&'a EntityName, Named<'a>> {
    let resolver = Resolver::new(catalog, scope);
    let mut taken = Taken::default();
    let mut named = BTreeMap::new();
    for (name, entity) in catalog.entities.iter().filter(|(_, entity)| scope.serves(entity)) {
        let Some(access) = resolver.access(entity) else { continue };
        // a type needs a field
        if let Access::Rows(rows) = &access
            && !rows.readable.is_empty()
            && !rows.readable.iter().any(|at| is_name(&rows.field(*at).name))
        {
            continue;
        }
        let names = Names::new(name, &entity.graphql);
        if taken.takes(&names, matches!(access, Access::Call(..))) {
            named.insert(name, Named { entity, access, names });
        }
    }
    named
}

impl Deref for Named<'_> {
    type Target = Names;

    fn deref(&self) -> &Names {
        &self.names
    }
}

impl Named<'_> {
    pub(crate) fn rows(&self) -> Option<&Rows<'_>> {
        match &self.access {
            Access::Rows(rows) => Some(rows),
            Access::Call(..) => None,
        }
    }

    /// Whether a row can be named by its key: all fields of the key are arguments.
    pub(crate) fn has_key(&self) -> bool {
        self.entity.key.iter().all(|at| is_name(&self.entity.fields[*at].name))
    }
}
