//! What a role may do, and on which surface.

use std::collections::HashMap;

use rowgate_core::name::EntityName;

use super::Entity;

/// What one role may do: entity by entity, absent means no.
#[derive(Debug, Clone, Default)]
pub struct Scope {
    pub entities: HashMap<EntityName, Rights>,
    /// What does not belong to it is not there.
    pub surface: Surface,
}

/// A family of requests that an entity may be kept from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Surface {
    #[default]
    Rest,
    GraphQl,
}

impl Scope {
    /// The same rights on another surface.
    #[must_use]
    pub fn on(&self, surface: Surface) -> Scope {
        Scope { surface, ..self.clone() }
    }

    /// Whether the entity belongs to the scope's surface.
    #[must_use]
    pub fn serves(&self, entity: &Entity) -> bool {
        match self.surface {
            Surface::Rest => entity.rest,
            Surface::GraphQl => entity.graphql.enabled.unwrap_or(entity.rest),
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
