//! What was found otherwise than the manifests say, in words: each statement of a plan names the difference that it undoes.
//! A statement that only follows from another change names none.

use std::collections::{BTreeMap, BTreeSet};

use rowgate_core::role::SHARED_ROLE;
use rowgate_pg::introspect::actual::{Membership, Role, TenantDb, Trigger};
use rowgate_sql::ddl::grants::Target;
use rowgate_sql::ddl::roles::Kind;

use super::Op;
use super::accept::Accepted;
use crate::desired::Desired;

/// Differences that are named, and names in one of them. The others are counted.
pub(super) const MAX_NAMED: usize = 5;

/// Every difference that the plan undoes, in its order, with the ApiKeys beside the roles that stand for them; as many as a
/// person reads. `None`: no statement names one.
#[must_use]
pub fn drift(ops: &[Op], desired: &Desired, db: &TenantDb) -> Option<String> {
    let mut all: Vec<&str> = Vec::new();
    let mut seen = BTreeSet::new();
    let statements = ops.iter().flat_map(|op| &op.statements);
    for difference in statements.flat_map(|statement| &statement.undoes) {
        if seen.insert(difference) {
            all.push(difference);
        }
    }
    (!all.is_empty()).then(|| sentence(&all, &known(desired, db)))
}

fn sentence(all: &[&str], known: &BTreeMap<String, String>) -> String {
    let named = all.iter().take(MAX_NAMED).map(|difference| with_keys(difference, known));
    let named = named.collect::<Vec<_>>().join("; ");
    match all.len().saturating_sub(MAX_NAMED) {
        0 => named,
        n_more => format!("{named}; and {n_more} more"),
    }
}

/// What the roles of keys stand for, by role.
fn known(desired: &Desired, db: &TenantDb) -> BTreeMap<String, String> {
    let mut known = BTreeMap::new();
    let mut holders: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for key in &desired.keys {
        let role = key.role().to_string();
        if role != SHARED_ROLE {
            known.insert(role, format!("ApiKey {}", key.name));
        }
        let set = db.keys.get(&key.id).and_then(|row| row.set_role.as_deref());
        if let Some(set) = set.filter(|set| set.starts_with("set_")) {
            holders.entry(set).or_default().push(&key.name);
        }
    }
    for (set, keys) in holders {
        known.insert(set.to_owned(), format!("the rights of ApiKey {}", list(keys)));
    }
    known
}

/// The same with what each role stands for behind it.
fn with_keys(difference: &str, known: &BTreeMap<String, String>) -> String {
    let named = known.iter().filter(|(role, _)| difference.contains(*role));
    named
        .fold(difference.to_owned(), |text, (role, what)| text.replacen(role, &format!("{role} ({what})"), 1))
}

/// Names, as many as a person reads.
pub(super) fn list<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.into_iter().collect();
    match names.len().saturating_sub(MAX_NAMED) {
        0 => names.join(", "),
        n_more => format!("{} and {n_more} more", names[..MAX_NAMED].join(", ")),
    }
}

/// `grant select on shop.orders to joe`
pub(super) fn right(privileges: &[&str], target: &Target, role: &str) -> String {
    let privileges: Vec<String> = privileges.iter().map(|it| it.to_ascii_lowercase()).collect();
    let privileges = list(privileges.iter().map(String::as_str));
    let on = match target {
        Target::Database(name) => format!("database {}", name.as_str()),
        Target::Schema(name) => format!("schema {}", name.as_str()),
        Target::Relation(schema, name) => format!("{}.{}", schema.as_str(), name.as_str()),
        Target::Sequence(schema, name) => format!("sequence {}.{}", schema.as_str(), name.as_str()),
        Target::Routine(signature) => format!("routine {signature}"),
        Target::Columns(schema, name, columns) => {
            let columns = list(columns.iter().map(|it| it.as_str()));
            return format!(
                "grant {privileges} ({columns}) on {}.{} to {role}",
                schema.as_str(),
                name.as_str()
            );
        }
    };
    format!("grant {privileges} on {on} to {role}")
}

/// `shop.orders`, and the entity that it is, where that has another name.
pub(super) fn table(entity: &Accepted<'_>) -> String {
    let (schema, object) = (entity.spec.schema.as_str(), entity.spec.object.as_str());
    match entity.spec.name.as_str() == object {
        true => format!("{schema}.{object}"),
        false => format!("{schema}.{object} (entity {})", entity.spec.name),
    }
}

/// What of a role is otherwise than that of its kind.
pub(super) fn attributes(name: &str, kind: Kind, present: &Role) -> Vec<String> {
    let (may_log_in, may_create) = (kind != Kind::Group, kind == Kind::RoleCreator);
    let not = |is: bool| if is { "" } else { "not " };
    let mut found = Vec::new();
    if present.login != may_log_in {
        found.push(format!("role {name} may {}log in", not(present.login)));
    }
    if present.create_role != may_create {
        found.push(format!("role {name} may {}create roles", not(present.create_role)));
    }
    if present.inherit {
        found.push(format!("role {name} inherits the rights of the roles that it is a member of"));
    }
    if present.connection_limit != -1 {
        found.push(format!("role {name} has the connection limit {}", present.connection_limit));
    }
    // what it was set to may be anything
    let settings = present.settings.iter().map(|it| it.split('=').next().unwrap_or_default());
    found.extend(settings.map(|setting| match setting.rsplit_once('/') {
        Some((database, setting)) => format!("role {name} has the setting {setting} in database {database}"),
        None => format!("role {name} has the setting {setting}"),
    }));
    found
}

/// A membership that is not to be, or not so.
pub(super) fn membership(there: &Membership, is_wanted: bool) -> String {
    match is_wanted {
        false => format!("role {} is a member of {}", there.member, there.role),
        true => {
            let option = |has: bool| if has { "true" } else { "false" };
            format!(
                "role {} is a member of {} with admin {}, inherit {}, set {}",
                there.member,
                there.role,
                option(there.admin),
                option(there.inherit),
                option(there.set)
            )
        }
    }
}

/// A trigger that does not stand as it should.
pub(super) fn trigger(there: Option<&Trigger>, name: &str, table: &str) -> String {
    match there {
        None => format!("trigger {name} on {table} is missing"),
        Some(there) if there.enabled != "A" => format!("trigger {name} on {table} does not always fire"),
        Some(_) => format!("trigger {name} on {table} was changed"),
    }
}

pub(super) fn no_membership(role: &str, member: &str) -> String {
    format!("role {member} is not a member of {role}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_are_named_as_a_person_reads() {
        let text = |all: &[&str]| sentence(all, &BTreeMap::new());
        assert_eq!(text(&["a", "b"]), "a; b");
        assert_eq!(text(&["a", "b", "c", "d", "e"]), "a; b; c; d; e");
        assert_eq!(text(&["a", "b", "c", "d", "e", "f", "g"]), "a; b; c; d; e; and 2 more");
        assert_eq!(list(["a", "b", "c", "d", "e", "f"]), "a, b, c, d, e and 1 more");
    }

    #[test]
    fn a_role_has_what_it_stands_for_beside_it() {
        let known = BTreeMap::from([("key_1".to_owned(), "ApiKey north".to_owned())]);
        assert_eq!(with_keys("role key_1 may log in", &known), "role key_1 (ApiKey north) may log in");
        assert_eq!(with_keys("role key_2 may log in", &known), "role key_2 may log in");
    }

    #[test]
    fn the_value_of_a_setting_is_not_told() {
        let settings = BTreeSet::from(["search_path=x".to_owned(), "shop/work_mem=1/2".to_owned()]);
        let role = Role { login: true, connection_limit: 3, settings, ..Role::default() };
        assert_eq!(
            attributes("key_1", Kind::Group, &role),
            [
                "role key_1 may log in",
                "role key_1 has the connection limit 3",
                "role key_1 has the setting search_path",
                "role key_1 has the setting work_mem in database shop",
            ]
        );
    }
}
