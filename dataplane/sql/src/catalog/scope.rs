//! What a role may do, and on which surface.

use std::collections::HashMap;
use std::sync::Arc;

use rowgate_core::name::EntityName;

use super::{Entity, EntityRecord, GraphQlNames};
use crate::graphql_names::Names;

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

/// Over which protocols an entity is served that is closed, and what GraphQL calls it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClosedEntity {
    rest: bool,
    graphql: GraphQlNames,
}

impl From<&EntityRecord> for ClosedEntity {
    fn from(record: &EntityRecord) -> ClosedEntity {
        ClosedEntity { rest: record.rest, graphql: record.graphql.clone() }
    }
}

impl From<&Entity> for ClosedEntity {
    fn from(entity: &Entity) -> ClosedEntity {
        ClosedEntity { rest: entity.rest, graphql: entity.graphql.clone() }
    }
}

impl ClosedEntity {
    pub(super) fn names(&self, name: &EntityName) -> Names {
        Names::new(name, &self.graphql)
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
