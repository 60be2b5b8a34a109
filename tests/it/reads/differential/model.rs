//! What a key may read, worked out from the drawn values alone: it knows the manifest's meaning, and nothing of how the
//! product brings it about. Its SQL is for the superuser, whom no policy filters.

use std::collections::BTreeSet;

use super::manifest::view;
use super::policies::{Policy, Rows};
use super::world::{Body, Claims, Drawn, Entity, Key, Security};
use crate::reads::paging::columns::Column;

/// Who asks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Who<'a> {
    pub(super) key: &'a Key,
    /// The key's database role.
    pub(super) role: &'a str,
}

/// The table that policies look into.
const LOOKUP: usize = 0;

impl Drawn {
    /// The columns that a key reads of an entity, in declared order; none: there is no such entity for it.
    pub(super) fn readable(&self, key: &Key, entity: usize) -> Vec<&'static Column> {
        let relation = self.relation(&self.entities[entity]);
        let mut names: BTreeSet<&str> = BTreeSet::new();
        for permission in self.permissions(key).iter().filter(|permission| permission.entity == entity) {
            if permission.actions.iter().any(|action| ["read", "update", "delete"].contains(action)) {
                names.extend(&relation.key);
            }
            if permission.actions.contains(&"read") {
                let all = || relation.columns.iter().map(|c| c.name).collect();
                let included: Vec<&str> = permission.include.clone().unwrap_or_else(all);
                names.extend(included.iter().filter(|name| !permission.exclude.contains(name)));
            }
        }
        relation.columns.iter().copied().filter(|column| names.contains(column.name)).collect()
    }

    /// The columns that a key may write with an action; of `delete` all, or none.
    pub(super) fn settable(&self, key: &Key, entity: usize, action: &str) -> BTreeSet<&'static str> {
        let relation = self.relation(&self.entities[entity]);
        let all = || relation.columns.iter().map(|c| c.name).collect::<Vec<_>>();
        let mut names = BTreeSet::new();
        for permission in self.permissions(key).iter().filter(|permission| permission.entity == entity) {
            match permission.actions.contains(&action) {
                true if action == "delete" => names.extend(all()),
                true => {
                    let included = permission.include.clone().unwrap_or_else(all);
                    names.extend(included.into_iter().filter(|name| !permission.exclude.contains(name)));
                }
                false => {}
            }
        }
        names
    }

    /// Those that the key's role writes by SQL: of every entity over the relation.
    pub(super) fn reach(&self, key: &Key, relation: usize, action: &str) -> BTreeSet<&'static str> {
        let over = |entity: &Entity| entity.relation == relation;
        let entities = self.entities.iter().enumerate().filter(|(_, entity)| over(entity));
        entities.flat_map(|(i, _)| self.settable(key, i, action)).collect()
    }

    /// The columns that the key's role reads by SQL: those of every entity over the relation.
    pub(super) fn reached(&self, key: &Key, relation: usize) -> BTreeSet<&'static str> {
        let over = |entity: &Entity| entity.relation == relation;
        let entities = self.entities.iter().enumerate().filter(|(_, entity)| over(entity));
        entities.flat_map(|(i, _)| self.readable(key, i)).map(|column| column.name).collect()
    }

    /// The rows of a relation that a key sees, as an item of `from`.
    pub(super) fn visible(&self, relation: usize, who: Who<'_>) -> String {
        let of = &self.relations[relation];
        match &of.body {
            Body::Table { security, .. } => {
                let condition = self.condition(&of.name, security, who, "read");
                format!("(select * from app.{0} {0} where {condition})", of.name)
            }
            // The rows under a view are those that its caller sees.
            Body::View(shape) => format!("({})", view(self, shape, |under| self.visible(under, who))),
        }
    }

    /// All rows of a relation, as an item of `from`. Through a view even the superuser would see what its owner sees.
    pub(super) fn stored(&self, relation: usize) -> String {
        let of = &self.relations[relation];
        match &of.body {
            Body::Table { .. } => format!("app.{}", of.name),
            Body::View(shape) => format!("({})", view(self, shape, |under| self.stored(under))),
        }
    }

    /// What policies say of a row that is read, made, changed or deleted, as it is or as it becomes.
    pub(super) fn condition(&self, table: &str, security: &Security, who: Who<'_>, action: &str) -> String {
        let policies = match security {
            Security::LeftOut => return "false".to_owned(),
            Security::None => return "true".to_owned(),
            Security::Existing(policies) | Security::Policies(policies) => policies,
        };
        let is_scripts = matches!(security, Security::Existing(_));
        let saying = || policies.iter().filter(|policy| policy.says(action, is_scripts));
        let opens = saying().filter(|policy| !policy.restrictive && about(policy, who));
        let closes = saying().filter(|policy| policy.restrictive && about(policy, who));
        let opens: Vec<String> = opens.map(|policy| self.rows(table, policy, who)).collect();
        let closes: Vec<String> = closes.map(|policy| self.rows(table, policy, who)).collect();
        if opens.is_empty() {
            return "false".to_owned();
        }
        let closes = closes.iter().map(|condition| format!(" and ({condition})")).collect::<String>();
        format!("({}){closes}", opens.join(" or "))
    }

    fn rows(&self, table: &str, policy: &Policy, who: Who<'_>) -> String {
        let claims = self.claims(who.key);
        let text = match &policy.rows {
            Rows::Claim("grade", name) => format!("{table}.grade = {}::int", claim(claims, name)),
            Rows::Claim(column, name) => format!("{table}.{column} = {}", claim(claims, name)),
            Rows::Literal(column, value) => format!("{table}.{column} = '{value}'"),
            Rows::Expression(text) => {
                let text = text
                    .replace("{user}", &format!("'{}'", who.role))
                    .replace("{region}", &claim(claims, "region"))
                    .replace("{grade}", &claim(claims, "grade"))
                    .replace("{me}", table);
                match text.contains("{lookup}") {
                    true => text.replace("{lookup}", &self.visible(LOOKUP, who)),
                    false => text,
                }
            }
        };
        format!("({text}\n)")
    }
}

/// Whether a policy is about the caller. Unscoped keys are `datalake_user`, and nobody else is.
fn about(policy: &Policy, who: Who<'_>) -> bool {
    let Some(roles) = &policy.roles else { return true };
    match who.role {
        "datalake_user" => roles.iter().any(|role| role == "datalake_user"),
        _ => roles.contains(&who.key.name),
    }
}

fn claim(claims: &Claims, name: &str) -> String {
    match claims.get(name) {
        Some(value) => format!("'{}'::text", value.replace('\'', "''")),
        None => "null::text".to_owned(),
    }
}
