//! What a role may do, and on which surface.

use std::collections::HashMap;
use std::sync::Arc;

use rowgate_core::name::EntityName;

use super::Entity;

/// What one role may do: entity by entity, absent means no.
#[derive(Debug, Clone, Default)]
pub struct Scope {
    /// Shared with the same rights over other protocols.
    pub entities: Arc<HashMap<EntityName, Rights>>,
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

impl Scope {
    /// The same rights over another protocol.
    #[must_use]
    pub fn on(&self, protocol: Protocol) -> Scope {
        Scope { protocol, ..self.clone() }
    }

    /// Whether the entity is served over it.
    #[must_use]
    pub fn serves(&self, entity: &Entity) -> bool {
        match self.protocol {
            Protocol::Rest => entity.rest,
            Protocol::GraphQl => entity.graphql.enabled.unwrap_or(entity.rest),
        }
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
