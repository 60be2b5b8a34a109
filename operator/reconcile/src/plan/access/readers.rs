//! What policies read beyond their own table, and which keys may not: PostgreSQL runs an expression's subqueries with the
//! caller's grants, so such a key is refused whatever it asks of the table.

use std::collections::{BTreeMap, BTreeSet};

use rowgate_core::name::{EntityName, Ulid};
use rowgate_core::role::SHARED_ROLE;
use rowgate_crds::Reason;
use rowgate_pg::introspect::actual::{Policy, QName};
use rowgate_sql::catalog::{Action, EntityKind, PermissionRecord};

use crate::desired::KeySpec;
use crate::plan::Finding;
use crate::plan::accept::{Accepted, qname};

/// As many keys are named in one sentence.
const MAX_SENTENCES: usize = 5;

/// Who may do what, after this pass.
pub(in crate::plan) struct Readers<'a> {
    pub(in crate::plan) accepted: &'a BTreeMap<EntityName, Accepted<'a>>,
    /// By role.
    pub(in crate::plan) permissions: &'a BTreeMap<String, Vec<PermissionRecord>>,
    pub(in crate::plan) live: &'a [&'a KeySpec],
    /// The role of each key's rights.
    pub(in crate::plan) sets: &'a BTreeMap<Ulid, String>,
}

impl Readers<'_> {
    /// For each role and policy that do not fit: the keys, and a sentence that names them.
    pub(in crate::plan) fn blind(&self) -> BTreeMap<Finding, Vec<Ulid>> {
        let mut found = BTreeMap::new();
        let mut done = BTreeSet::new();
        for entity in self.accepted.values().filter(|entity| entity.spec.kind == EntityKind::Table) {
            let Some(relation) = entity.relation() else { continue };
            let table = qname(entity.spec);
            for (name, policy) in relation.policies.iter().filter(|(_, it)| !it.reads.is_empty()) {
                for role in self.permissions.keys().filter(|role| self.is_judged(role, &table, policy)) {
                    if done.insert((table.clone(), name, role)) {
                        found.extend(
                            self.unreadable(role, policy)
                                .map(|read| self.blind_key(role, entity, name, &read)),
                        );
                    }
                }
            }
        }
        found
    }

    /// Whether a statement of `role` on the table comes under the policy. A test of `current_user` inside the
    /// expression does not matter: PostgreSQL looks at the grants before it runs.
    fn is_judged(&self, role: &str, table: &QName, policy: &Policy) -> bool {
        let keys = self.keys(role).any(|key| policy.roles.contains(key.role().as_str()));
        let meant = keys || policy.roles.contains("public") || policy.roles.contains(role);
        meant && self.records(role, table).any(|record| comes_under(policy.command, record.action))
    }

    /// A table that the policy reads and the role may not, with the columns.
    fn unreadable(&self, role: &str, policy: &Policy) -> Option<String> {
        let ours = |table: &QName| (table.0.as_str(), table.1.as_str()) == ("dl", "own_claims");
        policy.reads.iter().filter(|(table, _)| !ours(table)).find_map(|(table, columns)| {
            let reads = self.records(role, table).filter(|record| record.action == Action::Read);
            let held: BTreeSet<&String> = reads.flat_map(|record| &record.columns).collect();
            let lacks: Vec<&str> =
                columns.iter().filter(|column| !held.contains(column)).map(String::as_str).collect();
            let name = format!("{}.{}", table.0, table.1);
            match lacks[..] {
                [] if held.is_empty() => Some(name),
                [] => None,
                _ => Some(format!("{name} ({})", lacks.join(", "))),
            }
        })
    }

    fn blind_key(&self, role: &str, entity: &Accepted<'_>, policy: &str, read: &str) -> (Finding, Vec<Ulid>) {
        let keys: Vec<&KeySpec> = self.keys(role).collect();
        let mut names: Vec<String> =
            keys.iter().take(MAX_SENTENCES).map(|key| format!("key {}", key.name)).collect();
        names.extend(
            (MAX_SENTENCES < keys.len()).then(|| format!("{} more keys", keys.len() - MAX_SENTENCES)),
        );
        names.extend((role == SHARED_ROLE).then(|| format!("{SHARED_ROLE} (the shared permissions)")));
        let message = format!(
            "policy {policy} reads {read}, which {} may not read, so every row is refused; grant read on it, or use dl.claim",
            names.join(", ")
        );
        let finding = Finding::new(Reason::PolicyUnreadable, message).of(entity.spec.name.as_str());
        (finding, keys.into_iter().map(|key| key.id.clone()).collect())
    }

    fn keys(&self, role: &str) -> impl Iterator<Item = &KeySpec> {
        self.live.iter().filter(move |key| self.sets.get(&key.id).is_some_and(|set| set == role)).copied()
    }

    /// What the role may do on the table, by whichever entity.
    fn records<'a>(&'a self, role: &str, table: &'a QName) -> impl Iterator<Item = &'a PermissionRecord> {
        let records = self.permissions.get(role).into_iter().flatten();
        records.filter(move |record| {
            self.accepted.get(&record.entity).is_some_and(|entity| entity.is_over(table))
        })
    }
}

fn comes_under(command: &str, action: Action) -> bool {
    match command {
        "SELECT" => action == Action::Read,
        "INSERT" => action == Action::Create,
        "UPDATE" => action == Action::Update,
        "DELETE" => action == Action::Delete,
        _ => true,
    }
}
