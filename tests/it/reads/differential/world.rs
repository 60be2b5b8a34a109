//! What one random tenant is: relations, entities, permissions and keys, as plain values.

use std::collections::BTreeMap;

use super::policies::Policy;
use crate::reads::paging::columns::Column;

/// Claims by name.
pub(super) type Claims = BTreeMap<&'static str, &'static str>;

/// A whole tenant.
#[derive(Debug)]
pub(super) struct Drawn {
    pub(super) slug: String,
    pub(super) relations: Vec<Relation>,
    pub(super) entities: Vec<Entity>,
    pub(super) shared: Vec<Permission>,
    pub(super) shared_claims: Claims,
    pub(super) keys: Vec<Key>,
    /// Whether the changes of its tables are events.
    pub(super) captures: bool,
}

/// A table or a view of the schema `app`.
#[derive(Debug)]
pub(super) struct Relation {
    pub(super) name: String,
    pub(super) columns: Vec<&'static Column>,
    pub(super) key: Vec<&'static str>,
    pub(super) body: Body,
}

#[derive(Debug)]
pub(super) enum Body {
    Table {
        n_rows: usize,
        security: Security,
        /// Lines of the owner's own script that open what no manifest opens. Applying has to take them back.
        handmade: Vec<String>,
    },
    /// Over relations that come before it, by their positions.
    View(Shape),
}

#[derive(Debug)]
pub(super) enum Shape {
    /// Some rows of one.
    Part { of: usize, keep: &'static str },
    /// Each row of the left one, and columns of the right one's row with the same `n`.
    Join { left: usize, right: usize },
    /// Rows per region.
    Groups { of: usize },
}

#[derive(Debug)]
pub(super) enum Security {
    LeftOut,
    None,
    /// Made by the script, before Rowgate came.
    Existing(Vec<Policy>),
    Policies(Vec<Policy>),
}

#[derive(Debug)]
pub(super) struct Entity {
    pub(super) name: String,
    pub(super) relation: usize,
    /// Exposed names of columns.
    pub(super) mappings: BTreeMap<&'static str, String>,
    pub(super) rest: bool,
    /// Whether the table's security is said here; of twins only the first does.
    pub(super) declares: bool,
}

#[derive(Debug, Clone)]
pub(super) struct Permission {
    pub(super) entity: usize,
    pub(super) actions: Vec<&'static str>,
    /// Columns; `None`: all.
    pub(super) include: Option<Vec<&'static str>>,
    pub(super) exclude: Vec<&'static str>,
    /// Whether `fields` is left out altogether.
    pub(super) bare: bool,
}

#[derive(Debug)]
pub(super) struct Key {
    pub(super) name: String,
    pub(super) scope: Scope,
    pub(super) claims: Claims,
}

#[derive(Debug)]
pub(super) enum Scope {
    Unscoped,
    SameAsShared,
    Permissions(Vec<Permission>),
}

impl Entity {
    /// The name that a request uses for a column.
    pub(super) fn exposed<'a>(&'a self, column: &'a str) -> &'a str {
        self.mappings.get(column).map_or(column, String::as_str)
    }
}

impl Drawn {
    pub(super) fn relation(&self, entity: &Entity) -> &Relation {
        &self.relations[entity.relation]
    }

    pub(super) fn permissions<'a>(&'a self, key: &'a Key) -> &'a [Permission] {
        match &key.scope {
            Scope::Unscoped | Scope::SameAsShared => &self.shared,
            Scope::Permissions(permissions) => permissions,
        }
    }

    /// What `dl.claim` reads for this key.
    pub(super) fn claims<'a>(&'a self, key: &'a Key) -> &'a Claims {
        match key.scope {
            Scope::Unscoped => &self.shared_claims,
            Scope::SameAsShared | Scope::Permissions(_) => &key.claims,
        }
    }
}
