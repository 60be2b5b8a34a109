//! SQL that a key sends itself: what runs in its own sessions, and which tables it may name there.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use rowgate_core::secret::Credential;
use rowgate_pg::wire::{Ask, Query, Values};
use rowgate_sql::catalog::{Entity, Rights};
use rowgate_sql::shape::Shape;
use rowgate_sql::text::{Bind, Ident, Sql};
use rowgate_sql::user_select::{Relation, UserSelect};

use crate::auth::key_context::KeyContext;

/// Columns that functions in FROM name, beside those that are named after the function.
const OF_FUNCTIONS: [&str; 3] = ["key", "value", "ordinality"];

impl KeyContext {
    /// Asks for nothing but the key: whether it lives and has the role that it is known with.
    pub(crate) fn check(&self, credential: &Credential) -> Ask {
        let mut nothing = Sql::new();
        nothing.lit("select");
        Ask {
            credential: credential.clone(),
            key: self.key.clone(),
            role: self.key.role.clone(),
            statement_timeout_ms: self.snapshot.catalog.limits.statement_timeout_ms,
            watched: None,
            sql: nothing,
            shape: Arc::new(Shape { columns: Vec::new(), position: Vec::new(), count: None }),
            nested: None,
        }
    }

    /// A checked SELECT, which gives one value within the tenant's time for a statement.
    pub(crate) fn query(&self, select: &UserSelect, binds: Vec<Bind>) -> Query {
        let (text, _) = select.sql().into_parts();
        self.query_of(text.into(), binds)
    }

    /// As [`KeyContext::query`], of a statement that was compiled or checked.
    pub(crate) fn query_of(&self, text: Arc<str>, binds: Vec<Bind>) -> Query {
        let statement_timeout_ms = self.snapshot.catalog.limits.statement_timeout_ms;
        Query {
            key: self.key.id.clone(),
            role: self.key.role.clone(),
            statement_timeout_ms,
            limit: Duration::from_millis(statement_timeout_ms.into()),
            schemas: self.schemas(),
            text,
            binds,
            typing: None,
            values: Values::One,
            max_bytes: 1 << 20,
            chunks: None,
        }
    }

    /// Whether the SELECT names something that must not be used now, because its row-level security is off.
    pub(crate) fn names_unguarded(&self, select: &UserSelect) -> bool {
        let catalog = &self.snapshot.catalog;
        let unguarded = || catalog.unguarded.iter().filter_map(|name| catalog.entities.get(name));
        select.relations.iter().any(|relation| unguarded().any(|entity| is_named(entity, relation)))
    }

    /// The first table of the SELECT that no entity stands for of which the key may read anything: one that does not exist, and one
    /// that the key may not use, alike.
    pub(crate) fn unreadable<'a>(&self, select: &'a UserSelect) -> Option<&'a Relation> {
        let (catalog, scope) = (&self.snapshot.catalog, self.snapshot.scope(&self.key));
        let is_read = |entity: &Entity| {
            scope.entities.get(&entity.name).is_some_and(|rights| rights.read.contains(&true))
        };
        let is_known = |relation: &Relation| {
            catalog.entities.values().any(|entity| is_named(entity, relation) && is_read(entity))
        };
        let is_of_catalogs = |relation: &Relation| relation.schema.as_deref() == Some("information_schema");
        select.relations.iter().find(|relation| !is_known(relation) && !is_of_catalogs(relation))
    }

    /// Whether the SELECT names a table or a column that the key may not read, or none that is known. PostgreSQL checks rights when it
    /// begins to run a statement: an error before that, such as of a constant `1/0`, must not tell whether the name exists.
    pub(crate) fn hides(&self, select: &UserSelect) -> bool {
        if self.unreadable(select).is_some() {
            return true;
        }
        let readable: BTreeSet<String> =
            self.readable_columns(select).into_iter().flat_map(|(_, columns)| columns).collect();
        let is_table = |name: &str| select.relations.iter().any(|relation| relation.name == name);
        let is_known = |name: &String| {
            readable.contains(name)
                || select.aliases.contains(name)
                || OF_FUNCTIONS.contains(&name.as_str())
                || is_table(name)
        };
        !select.columns.iter().all(is_known)
    }

    /// The tables and views of which the key may read anything, as SQL names them.
    pub(crate) fn readable_tables(&self) -> Vec<String> {
        let scope = self.snapshot.scope(&self.key);
        let is_read = |entity: &&Arc<Entity>| {
            entity.routine.is_none()
                && scope.entities.get(&entity.name).is_some_and(|rights| rights.read.contains(&true))
        };
        let entities = self.snapshot.catalog.entities.values().filter(is_read);
        entities.map(|entity| format!("{}.{}", entity.schema.as_str(), entity.object.as_str())).collect()
    }

    /// The columns that the key may read of the tables of the SELECT, which are named as the SELECT names them.
    pub(crate) fn readable_columns(&self, select: &UserSelect) -> Vec<(String, Vec<String>)> {
        let columns = |(entity, rights): (&Entity, &Rights)| {
            let fields = entity.fields.iter().zip(&rights.read).filter(|(_, may)| **may);
            fields.map(|(field, _)| field.column.as_str().to_owned()).collect()
        };
        let of = |relation: &Relation| {
            let (scope, catalog) = (self.snapshot.scope(&self.key), &self.snapshot.catalog);
            let entity = catalog.entities.values().find(|entity| is_named(entity, relation))?;
            let rights = scope.entities.get(&entity.name)?;
            Some((relation.name.clone(), columns((entity, rights))))
        };
        select.relations.iter().filter_map(of).collect()
    }

    /// Where names without a schema are looked for: in `public` and then in the schemas of entities, whichever of these the key
    /// may use.
    fn schemas(&self) -> Vec<Ident> {
        let entities = self.snapshot.catalog.entities.values();
        let exposed: BTreeSet<&Ident> = entities.map(|entity| &entity.schema).collect();
        let others = exposed.into_iter().filter(|schema| schema.as_str() != "public").cloned();
        Ident::new("public").into_iter().chain(others).collect()
    }
}

/// Whether the name may be that of the entity's table, by the search path too.
fn is_named(entity: &Entity, relation: &Relation) -> bool {
    let is_its_schema = relation.schema.as_deref().is_none_or(|schema| schema == entity.schema.as_str());
    is_its_schema && relation.name == entity.object.as_str()
}
