//! What a role may do, and on which surface.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use rowgate_core::name::EntityName;

use super::{Action, Entity, EntityKind, EntityRecord, GraphQlNames, PermissionRecord};
use crate::graphql_names::Names;
use crate::text::Ident;

/// What one role may do: entity by entity, absent means no.
#[derive(Debug, Clone, Default)]
pub struct Scope {
    /// Shared with the same rights over other protocols.
    pub entities: Arc<HashMap<EntityName, Rights>>,
    /// Those that it has a permission on and that cannot be used now: what they stand for does not exist, or none of the columns
    /// is granted yet, as in a table that was just created.
    pub closed: Arc<HashMap<EntityName, ClosedEntity>>,
    /// What does not belong to it is not there.
    pub protocol: Protocol,
}

/// A family of requests that an entity may be kept from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Protocol {
    #[default]
    Rest,
    GraphQl,
}

/// An entity that is closed: over which protocols it is served, what it is called, and what the role may read of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClosedEntity {
    rest: bool,
    graphql: GraphQlNames,
    schema: Ident,
    object: Ident,
    /// A table whose changes are captured.
    has_events: bool,
    /// Columns, as of the permissions.
    readable: BTreeSet<String>,
}

impl From<&EntityRecord> for ClosedEntity {
    fn from(record: &EntityRecord) -> ClosedEntity {
        ClosedEntity {
            rest: record.rest,
            graphql: record.graphql.clone(),
            schema: record.schema.clone(),
            object: record.object.clone(),
            has_events: record.kind == EntityKind::Table && record.events,
            readable: BTreeSet::new(),
        }
    }
}

impl From<&Entity> for ClosedEntity {
    fn from(entity: &Entity) -> ClosedEntity {
        ClosedEntity {
            rest: entity.rest,
            graphql: entity.graphql.clone(),
            schema: entity.schema.clone(),
            object: entity.object.clone(),
            has_events: entity.kind == EntityKind::Table && entity.events,
            readable: BTreeSet::new(),
        }
    }
}

impl ClosedEntity {
    pub(crate) fn grant(&mut self, permission: &PermissionRecord) {
        if permission.action == Action::Read {
            self.readable.extend(permission.columns.iter().cloned());
        }
    }

    pub(super) fn names(&self, name: &EntityName) -> Names {
        Names::new(name, &self.graphql)
    }

    /// Whether the role may read these columns, and anything of the entity at all.
    pub(super) fn reads<'a>(&self, mut columns: impl Iterator<Item = &'a str>) -> bool {
        !self.readable.is_empty() && columns.all(|column| self.readable.contains(column))
    }
}

impl Protocol {
    fn serves(self, rest: bool, graphql: Option<bool>) -> bool {
        match self {
            Protocol::Rest => rest,
            Protocol::GraphQl => graphql.unwrap_or(rest),
        }
    }
}

impl Scope {
    /// The same rights over another protocol.
    #[must_use]
    pub fn on(&self, protocol: Protocol) -> Scope {
        Scope { protocol, ..self.clone() }
    }

    /// Whether the entity is served over it.
    #[must_use]
    pub fn serves(&self, entity: &Entity) -> bool {
        self.protocol.serves(entity.rest, entity.graphql.enabled)
    }

    /// Whether an entity of [`Scope::closed`] is one whose events the role reads, and is served; `is_asked` is told its name, schema and object.
    #[must_use]
    pub fn lacks_events(&self, is_asked: impl Fn(&EntityName, &Ident, &Ident) -> bool) -> bool {
        let of_events = |it: &ClosedEntity| it.has_events && it.reads(std::iter::empty());
        let mut closed = self.closed.iter().filter(|(name, it)| of_events(it) && self.is_closed(name));
        closed.any(|(name, it)| is_asked(name, &it.schema, &it.object))
    }

    /// Whether the entity is one of [`Scope::closed`], and served over it.
    #[must_use]
    pub fn is_closed(&self, entity: &EntityName) -> bool {
        self.closed.get(entity).is_some_and(|it| self.protocol.serves(it.rest, it.graphql.enabled))
    }
}

/// Rights on one entity. Each list is as long as the entity's `fields`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rights {
    /// `read[i]`: field `i` may be read. All false: no read permission at all.
    pub read: Vec<bool>,
    pub create: Vec<bool>,
    pub update: Vec<bool>,
    pub delete: bool,
    /// The routine may be called.
    pub execute: bool,
}

impl Rights {
    /// Whether any field may be read, created or updated.
    pub(super) fn is_of_any_field(&self) -> bool {
        [&self.read, &self.create, &self.update].iter().any(|list| list.contains(&true))
    }
}
