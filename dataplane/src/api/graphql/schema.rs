//! The schema of a permission set: what its keys can ask for, and nothing else. It is built once for each catalog.

mod build;
pub(crate) mod cache;
mod documents;
mod groups;
pub(crate) mod mutations;
pub(crate) mod names;
pub(crate) mod scalars;
mod subscriptions;
mod validate;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use async_graphql::dynamic;
use async_graphql::registry::{MetaField, MetaType, MetaTypeName, Registry};
use rowgate_core::name::EntityName;
use rowgate_core::problem::Problem;
use rowgate_sql::catalog::{Catalog, Scope};

use documents::Documents;
use mutations::Verb;
pub(crate) use validate::Introspects;

/// What one permission set may ask for.
pub(crate) struct Schema {
    pub(crate) executable: dynamic::Schema,
    /// The rights that it was built for.
    pub(crate) scope: Arc<Scope>,
    queries: HashMap<String, Query>,
    mutations: HashMap<String, (Verb, EntityName)>,
    /// Their fields have the names of those lists.
    subscriptions: HashMap<String, EntityName>,
    /// What the types of rows are called.
    types: HashMap<EntityName, String>,
    /// And those of their filters.
    filters: HashSet<String>,
    documents: Documents,
    /// About how many bytes it takes.
    n_bytes: usize,
}

/// A field of the type Query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Query {
    Rows(EntityName),
    ByKey(EntityName),
}

/// What a type of a schema takes in memory, with what leads to it: an estimate.
const BYTES_PER_TYPE: usize = 8 << 10;

impl Schema {
    pub(super) fn new(catalog: &Catalog, scope: Arc<Scope>, introspects: bool) -> Result<Schema, Problem> {
        let entities = names::named(catalog, &scope);
        let executable = build::executable(catalog, &scope, &entities, introspects).map_err(|error| {
            tracing::error!(%error, "a GraphQL schema could not be built");
            Problem::internal()
        })?;
        let (mut queries, mut mutations) = (HashMap::new(), HashMap::new());
        let mut subscriptions = HashMap::new();
        let (mut types, mut filters) = (HashMap::new(), HashSet::new());
        for (name, named) in entities {
            types.insert(name.clone(), named.ty.clone());
            filters.insert(named.with("FilterInput"));
            if subscriptions::has(catalog, &scope, &named) {
                subscriptions.insert(named.root.clone(), name.clone());
            }
            mutations.extend(
                mutations::verbs(&named).into_iter().map(|(field, verb)| (field, (verb, name.clone()))),
            );
            if let Some(rows) = named.rows() {
                queries.extend(rows.lists.then(|| (named.root.clone(), Query::Rows(name.clone()))));
                queries.extend(
                    (rows.reads && named.has_key()).then(|| (named.by_key(), Query::ByKey(name.clone()))),
                );
            }
        }
        let n_bytes = executable.registry().types.len() * BYTES_PER_TYPE;
        let documents = Documents::default();
        Ok(Schema {
            executable,
            scope,
            queries,
            mutations,
            subscriptions,
            types,
            filters,
            documents,
            n_bytes,
        })
    }

    pub(crate) fn registry(&self) -> &Registry {
        self.executable.registry()
    }

    pub(crate) fn query(&self, field: &str) -> Option<&Query> {
        self.queries.get(field)
    }

    pub(crate) fn mutation(&self, field: &str) -> Option<&(Verb, EntityName)> {
        self.mutations.get(field)
    }

    pub(crate) fn subscription(&self, field: &str) -> Option<&EntityName> {
        self.subscriptions.get(field)
    }

    /// The type of a row of the entity.
    pub(crate) fn type_of(&self, entity: &EntityName) -> &str {
        self.types.get(entity).map_or("", String::as_str)
    }

    /// The type that a field of an input type takes, without what surrounds it.
    pub(crate) fn input(&self, input: &str, field: &str) -> String {
        let input = MetaTypeName::concrete_typename(input);
        let ty = match self.registry().types.get(input) {
            Some(MetaType::InputObject { input_fields, .. }) => {
                input_fields.get(field).map(|field| field.ty.as_str())
            }
            _ => None,
        };
        ty.map_or(String::new(), |ty| MetaTypeName::concrete_typename(ty).to_owned())
    }

    /// Whether an input type filters rows of an entity, and not the values of a field.
    pub(crate) fn is_filter_of_rows(&self, input: &str) -> bool {
        self.filters.contains(input)
    }

    /// A field of an object type.
    pub(crate) fn field(&self, ty: &str, field: &str) -> Option<&MetaField> {
        self.registry().types.get(ty)?.field_by_name(field)
    }
}
