//! SQL that a key sends itself: what runs in its own sessions, and which tables it may name there.

use std::cell::LazyCell;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use rowgate_core::secret::Credential;
use rowgate_pg::wire::{Ask, Query, Values};
use rowgate_sql::catalog::{Entity, EntityKind, Field, Rights, TypeKind};
use rowgate_sql::shape::Shape;
use rowgate_sql::text::{Bind, Ident, Sql};
use rowgate_sql::user_select::{ColumnType, Readable, Relation, UserSelect};

use crate::auth::key_context::KeyContext;

impl KeyContext {
    /// Asks for nothing but the key: whether it lives and has the role that it is known with.
    pub(crate) fn check(&self, credential: &Credential) -> Ask {
        let mut nothing = Sql::new();
        nothing.lit("select");
        Ask {
            key: self.key.clone(),
            by_any_secret: credential.is_of_owner(),
            role: self.key.role.clone(),
            statement_timeout_ms: self.snapshot.catalog.limits.statement_timeout_ms,
            watched: None,
            sql: nothing,
            shape: Arc::new(Shape { columns: Vec::new(), position: Vec::new(), count: None }),
            nested: None,
        }
    }

    /// Whether callers may write SQL for this tenant.
    pub(crate) fn writes_sql(&self) -> bool {
        self.snapshot.catalog.limits.callers_sql
    }

    /// A checked SELECT, which gives one value within the tenant's time for a statement.
    pub(crate) fn query(&self, select: &UserSelect, binds: Vec<Bind>) -> Query {
        self.query_of(self.text_of(select), binds)
    }

    /// The SELECT over what the key may read of its tables.
    pub(crate) fn text_of(&self, select: &UserSelect) -> Arc<str> {
        let is_fenced = self.is_fenced(select);
        select.sql(|relation| self.readable(relation, &is_fenced)).into_parts().0.into()
    }

    /// The statement that shows how PostgreSQL would run it.
    pub(crate) fn explain_of(&self, select: &UserSelect) -> Arc<str> {
        let is_fenced = self.is_fenced(select);
        select.explain(|relation| self.readable(relation, &is_fenced)).into_parts().0.into()
    }

    /// Whether views of the SELECT are worked out before its conditions. Asked of a view alone, and once.
    fn is_fenced<'a>(&'a self, select: &'a UserSelect) -> LazyCell<bool, impl FnOnce() -> bool + 'a> {
        LazyCell::new(|| select.may_raise(|of, column| self.types_of(select, of, column)))
    }

    /// As [`KeyContext::query`], of a statement that was compiled or checked.
    pub(crate) fn query_of(&self, text: Arc<str>, binds: Vec<Bind>) -> Query {
        let statement_timeout_ms = self.snapshot.catalog.limits.statement_timeout_ms;
        Query {
            key: self.key.id.clone(),
            role: self.key.role.clone(),
            statement_timeout_ms,
            limit: Duration::from_millis(statement_timeout_ms.into()),
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

    /// What stands for a table that the SELECT names; `None`: it is none of an entity.
    fn readable<F: FnOnce() -> bool>(
        &self,
        relation: &Relation,
        is_fenced: &LazyCell<bool, F>,
    ) -> Option<Readable> {
        let scope = self.snapshot.scope(&self.key);
        let rights = |entity: &Entity| scope.entities.get(&entity.name).filter(|it| it.read.contains(&true));
        let entities = self.snapshot.catalog.entities.values().filter(|entity| is_named(entity, relation));
        let mut all: Vec<(&Entity, &Rights)> =
            entities.filter_map(|entity| Some((entity.as_ref(), rights(entity)?))).collect();
        // where a name without a schema is looked for: in `public` and then in the schemas of entities
        all.sort_by_key(|(entity, _)| (entity.schema.as_str() != "public", &entity.schema, &entity.name));
        let (schema, table) =
            all.first().map(|(entity, _)| (entity.schema.clone(), entity.object.clone()))?;
        let is_view = all.iter().any(|(entity, _)| entity.kind == EntityKind::View);
        let same: Vec<_> = all.into_iter().filter(|(entity, _)| entity.schema == schema).collect();
        let flags = same.iter().map(|(entity, _)| entity.hidden_by().map(|flag| &entity.fields[flag].column));
        // an entity of the same table that hides none, or others, shows them
        let hidden_by = flags.reduce(|one, other| one.filter(|_| one == other)).flatten().cloned();
        let works_out_flag = same.iter().any(|(entity, _)| {
            entity.hidden_by().is_some_and(|flag| hidden_by.is_some() && entity.fields[flag].is_worked_out)
        });
        // an index may try a condition again on a row before the flag
        let is_fenced = (is_view || hidden_by.is_some()) && **is_fenced;
        let mut columns: Vec<(Ident, bool)> = Vec::new();
        for (entity, rights) in same {
            for (field, may) in entity.fields.iter().zip(&rights.read) {
                match columns.iter_mut().find(|(column, _)| *column == field.column) {
                    Some((_, is_read)) => *is_read |= *may,
                    None => columns.push((field.column.clone(), *may)),
                }
            }
        }
        let columns = match columns.iter().all(|(_, is_read)| *is_read) {
            true => None,
            false => {
                Some(columns.into_iter().filter(|(_, is_read)| *is_read).map(|(column, _)| column).collect())
            }
        };
        Some(Readable { schema, table, columns, is_fenced, hidden_by, works_out_flag })
    }

    /// The types of the columns of this name that `of`, or a table of the SELECT, shows to the key; none where it names a table that is no
    /// entity's.
    fn types_of(&self, select: &UserSelect, of: Option<&Relation>, column: &str) -> Vec<ColumnType> {
        let (entities, scope) = (&self.snapshot.catalog.entities, self.snapshot.scope(&self.key));
        let named = |relation| entities.values().filter(move |entity| is_named(entity, relation));
        if select.relations.iter().any(|relation| named(relation).next().is_none()) {
            return Vec::new();
        }
        let relations = of.map_or(select.relations.as_slice(), std::slice::from_ref);
        let fields = relations.iter().flat_map(named).flat_map(|entity| {
            let rights = scope.entities.get(&entity.name).map_or(&[][..], |rights| &rights.read);
            entity.fields.iter().zip(rights).filter(|(_, may)| **may).map(|(field, _)| field)
        });
        let of = |field: &Field| ColumnType {
            base_oid: field.ty.base_oid,
            is_enum: field.ty.kind == TypeKind::Enum,
            is_worked_out: field.is_worked_out,
        };
        fields.filter(|field| field.column.as_str() == column).map(of).collect()
    }

    /// Whether a table of the SELECT may hold rows that somebody does not see.
    pub(crate) fn hides_rows(&self, select: &UserSelect) -> bool {
        let entities = || self.snapshot.catalog.entities.values();
        let is_open = |relation: &Relation| {
            let mut named = entities().filter(|entity| is_named(entity, relation)).peekable();
            named.peek().is_some() && named.all(|entity| !entity.hides)
        };
        !select.relations.iter().all(is_open)
    }

    /// Likewise of the relations with these oids.
    pub(crate) fn hides_rows_of(&self, relations: &BTreeSet<u32>) -> bool {
        let entities = || self.snapshot.catalog.entities.values();
        let is_open = |oid: &u32| {
            let mut shown = entities().filter(|entity| entity.relations.first() == Some(oid)).peekable();
            shown.peek().is_some() && shown.all(|entity| !entity.hides)
        };
        !relations.iter().all(is_open)
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
}

/// Whether the name may be that of the entity's table, without its schema too.
fn is_named(entity: &Entity, relation: &Relation) -> bool {
    let is_its_schema = relation.schema.as_deref().is_none_or(|schema| schema == entity.schema.as_str());
    is_its_schema && relation.name == entity.object.as_str()
}
