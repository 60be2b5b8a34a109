//! What entities are called in a schema. What cannot be spelt, or has the name of something else, is left out.

use std::collections::{BTreeMap, HashSet};

use rowgate_core::name::EntityName;
use rowgate_sql::catalog::{Catalog, Entity, Scope};

use super::scalars;
use crate::api::openapi::access::{Access, Resolver, Rows};

/// An entity that the key may use, under its names.
pub(crate) struct Named<'a> {
    pub(crate) entity: &'a Entity,
    pub(crate) access: Access<'a>,
    /// The type of one row, or of what a call gives; other types begin with it.
    pub(crate) ty: String,
    /// The root field: the list of rows, or the call.
    pub(crate) root: String,
    /// What precedes `_by_pk`.
    pub(crate) singular: String,
}

/// All that the scope may use, by name.
pub(crate) fn named<'a>(catalog: &'a Catalog, scope: &'a Scope) -> BTreeMap<&'a EntityName, Named<'a>> {
    let resolver = Resolver::new(catalog, scope);
    let mut taken = Taken::new();
    let mut named = BTreeMap::new();
    for (name, entity) in catalog.entities.iter().filter(|(_, entity)| scope.serves(entity)) {
        let Some(access) = resolver.access(entity) else { continue };
        let singular = entity.graphql.singular.clone();
        let it = Named {
            entity,
            access,
            ty: singular.clone().unwrap_or_else(|| capital(name.as_str())),
            root: entity.graphql.plural.clone().unwrap_or_else(|| name.to_string()),
            singular: singular.unwrap_or_else(|| name.to_string()),
        };
        if taken.takes(&it) {
            named.insert(name, it);
        }
    }
    named
}

impl Named<'_> {
    pub(crate) fn rows(&self) -> Option<&Rows<'_>> {
        match &self.access {
            Access::Rows(rows) => Some(rows),
            Access::Call(..) => None,
        }
    }

    pub(crate) fn by_key(&self) -> String {
        format!("{}_by_pk", self.singular)
    }

    /// A type that begins with that of the entity.
    pub(crate) fn with(&self, suffix: &str) -> String {
        format!("{}{suffix}", self.ty)
    }

    /// A mutation, or the type of its input.
    pub(crate) fn verb(&self, verb: &str) -> String {
        format!("{verb}{}", self.ty)
    }
}

/// Suffixes of the types of an entity.
pub(crate) const SUFFIXES: [&str; 10] = [
    "",
    "Connection",
    "FilterInput",
    "OrderByInput",
    "Key",
    "Group",
    "GroupFields",
    "Aggregations",
    "Field",
    "NumericField",
];
const VERBS: [&str; 6] = ["create", "createMany", "update", "upsert", "delete", "execute"];
const INPUTS: [&str; 3] = ["Create", "Update", "Upsert"];

struct Taken {
    types: HashSet<String>,
    queries: HashSet<String>,
    mutations: HashSet<String>,
}

impl Taken {
    fn new() -> Taken {
        let ours = [
            "Query",
            "Mutation",
            "Subscription",
            "OrderBy",
            "HavingInput",
            "HavingValueInput",
            scalars::TEXT_FORM_FILTER,
        ];
        let of_graphql = ["ID", "String", "Int", "Float", "Boolean"];
        let scalars = scalars::ALL.iter().flat_map(|scalar| [scalar.name, scalar.filter]);
        let types = ours.into_iter().chain(of_graphql).chain(scalars).map(str::to_owned);
        Taken { types: types.collect(), queries: HashSet::new(), mutations: HashSet::new() }
    }

    /// Whether the names are free, which they are no more.
    fn takes(&mut self, it: &Named<'_>) -> bool {
        let types = SUFFIXES.iter().map(|suffix| it.with(suffix));
        let types: Vec<_> =
            types.chain(INPUTS.iter().map(|verb| format!("{}Input", it.verb(verb)))).collect();
        let mut mutations: Vec<_> = VERBS.iter().map(|verb| it.verb(verb)).collect();
        let mut queries = Vec::new();
        match it.access {
            Access::Rows(_) => queries.extend([it.root.clone(), it.by_key()]),
            Access::Call(..) => mutations.push(it.root.clone()),
        }
        let is_free = is_name(&it.ty)
            && types.iter().all(|name| is_name(name) && !self.types.contains(name))
            && queries.iter().all(|name| is_name(name) && !self.queries.contains(name))
            && mutations.iter().all(|name| is_name(name) && !self.mutations.contains(name));
        if is_free {
            self.types.extend(types);
            self.queries.extend(queries);
            self.mutations.extend(mutations);
        }
        is_free
    }
}

/// Whether GraphQL can spell the name and does not keep it for itself.
pub(crate) fn is_name(name: &str) -> bool {
    let mut chars = name.chars();
    let begins = chars.next().is_some_and(|c| c == '_' || c.is_ascii_alphabetic());
    begins && chars.all(|c| c == '_' || c.is_ascii_alphanumeric()) && !name.starts_with("__")
}

pub(super) fn capital(name: &str) -> String {
    let mut chars = name.chars();
    chars.next().map(|first| first.to_ascii_uppercase().to_string() + chars.as_str()).unwrap_or_default()
}
