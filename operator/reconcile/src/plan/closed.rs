//! What a statement belongs to, and what is closed because PostgreSQL refused one: that alone, and all else goes on.

use std::collections::{BTreeMap, BTreeSet};

use rowgate_core::name::Ulid;
use rowgate_crds::Reason;

use super::Finding;

/// The smallest part of the manifests that can be closed when a statement is refused.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Of {
    /// No part: without it the plan cannot go on.
    Tenant,
    /// By name.
    Entity(String),
    /// The same; the statement is one of its policies.
    Policies(String),
    /// A permission set, by the hash of its rights (its role is a new one in each plan until its row stands): the keys
    /// that are in it.
    Set(String),
    /// Several of them: the next plan tells them apart.
    Sets,
    Key(Ulid),
    /// A role that is to be dropped, by name: it stays, closed as it is.
    Role(String),
    /// What the application's roles see of a table whose entity is not served, by `schema.table`.
    Kept(String),
}

/// What stays closed in a plan, each with the reason.
#[derive(Debug, Clone, Default)]
pub struct Closed {
    pub entities: BTreeMap<String, Finding>,
    /// By [`Of::Set`]'s hash. Their keys hold nothing.
    pub sets: BTreeMap<String, Finding>,
    /// PostgreSQL refused a statement of several sets: each has statements of its own, so that the next refusal says which it is.
    pub sets_are_apart: bool,
    /// Nothing of theirs is written but what takes rights away.
    pub keys: BTreeMap<Ulid, Finding>,
    /// That cannot be dropped now, because objects of another database name them.
    pub roles: BTreeSet<String>,
    /// Of which the application's roles see what they saw.
    pub kept: BTreeSet<String>,
}

impl Closed {
    /// Closes what a refused statement belongs to. False: it belongs to nothing smaller than the tenant, or closing it
    /// did not help, so the plan would meet the same statement again.
    #[must_use]
    pub fn close(&mut self, of: &Of, refusal: &str) -> bool {
        let denied = |whom: &str| {
            let message = format!(
                "{refusal}; correct in the database what refuses it, or change scope and claims: until then {whom} denied everything"
            );
            Finding::new(Reason::StatementRefused, message)
        };
        match of {
            Of::Tenant => false,
            Of::Entity(name) => {
                let message = format!("{refusal}; correct its source in the database, or remove the entity");
                let finding = Finding::new(Reason::StatementRefused, message);
                self.entities.insert(name.clone(), finding).is_none()
            }
            Of::Policies(name) => {
                let message = format!("rowLevelSecurity: {refusal}; correct the policies");
                let finding = Finding::new(Reason::PolicyRefused, message);
                self.entities.insert(name.clone(), finding).is_none()
            }
            Of::Set(hash) => {
                // the rest may be written together, until one of them is refused
                self.sets_are_apart = false;
                self.sets.insert(hash.clone(), denied("every key with these permissions is")).is_none()
            }
            Of::Sets => !std::mem::replace(&mut self.sets_are_apart, true),
            Of::Role(role) => self.roles.insert(role.clone()),
            Of::Kept(table) => self.kept.insert(table.clone()),
            Of::Key(id) => self.keys.insert(id.clone(), denied("the key is")).is_none(),
        }
    }
}
