//! Who may do what on every object of the database, and the statements from the present ACLs to that.

use std::collections::{BTreeMap, BTreeSet};

use rowgate_core::name::EntityName;
use rowgate_core::role::TenantLogin;
use rowgate_pg::actual::{Acl, Cluster, RelationKind, TenantDb};
use rowgate_sql::catalog::{Action, PermissionRecord};
use rowgate_sql::ddl::grants::{self, DefaultFor, Target};
use rowgate_sql::text::{Ident, Sql};

use super::accept::{Accepted, qname};
use super::foreign;
use crate::desired::Desired;

/// Statements, the narrowing ones apart, so that they can go first.
#[derive(Debug, Default)]
pub(super) struct Changes {
    pub(super) revokes: Vec<Sql>,
    /// What the tenant's own logins lack; the first thing that a new database needs.
    pub(super) logins: Vec<Sql>,
    pub(super) grants: Vec<Sql>,
}

/// Privileges that should stand, by object.
type Wanted = BTreeMap<Target, Acl>;

/// What a change of grants is about.
pub(super) struct Subjects<'a> {
    pub(super) desired: &'a Desired,
    pub(super) cluster: &'a Cluster,
    pub(super) db: &'a TenantDb,
    pub(super) accepted: &'a BTreeMap<EntityName, Accepted<'a>>,
    /// Role to permissions, for `datalake_user` and every set that is in use after this pass.
    pub(super) permissions: &'a BTreeMap<String, Vec<PermissionRecord>>,
    /// Sets that nobody will be in after this pass; they keep what they have until nobody is.
    pub(super) retiring: &'a BTreeSet<String>,
}

/// Every difference between the ACLs that are and those that the permissions call for, retiring sets left alone.
pub(super) fn changes(subjects: &Subjects<'_>) -> Changes {
    let wanted = wanted(subjects);
    let mut changes = differences(subjects, &wanted, &|role| !subjects.retiring.contains(role));
    defaults(&mut changes, subjects.db);
    changes
}

/// What the owner's future objects give to anybody is taken back. PUBLIC may use types, as PostgreSQL has it.
fn defaults(changes: &mut Changes, db: &TenantDb) {
    let mut revoke = |letter: char, schema: Option<&Ident>, role: &str| {
        let kind =
            DefaultFor::from_letter(letter).filter(|kind| (*kind, role) != (DefaultFor::Types, "public"));
        changes.revokes.extend(kind.and_then(|kind| grants::revoke_default(kind, schema, role)));
    };
    if !db.default_acl.contains_key(&'f') {
        revoke('f', None, "public");
    }
    for (letter, acl) in &db.default_acl {
        acl.keys().for_each(|role| revoke(*letter, None, role));
    }
    for ((schema, letter), acl) in &db.default_acl_in {
        let schema = ident(schema);
        acl.keys().for_each(|role| revoke(*letter, Some(&schema), role));
    }
}

/// Everything that the retiring sets still hold, to be revoked.
pub(super) fn retired(subjects: &Subjects<'_>) -> Vec<Sql> {
    differences(subjects, &Wanted::new(), &|role| subjects.retiring.contains(role)).revokes
}

fn differences(subjects: &Subjects<'_>, wanted: &Wanted, about: &dyn Fn(&str) -> bool) -> Changes {
    let nothing = Acl::new();
    let mut changes = Changes::default();
    let mut object = |target: Target, actual: &Acl| {
        diff(&mut changes, &target, actual, wanted.get(&target).unwrap_or(&nothing), about);
    };
    if let Some(database) = &subjects.cluster.database {
        object(Target::Database(subjects.desired.database.clone()), &database.acl);
    }
    let ours = |owner: &str| foreign::is_ours(subjects.desired, owner);
    for (name, schema) in subjects.db.schemas.iter().filter(|(_, schema)| ours(&schema.owner)) {
        object(Target::Schema(ident(name)), &schema.acl);
    }
    for ((schema, name), relation) in subjects.db.relations.iter().filter(|(_, it)| ours(&it.owner)) {
        let (schema, name) = (ident(schema), ident(name));
        match relation.kind {
            RelationKind::Sequence => object(Target::Sequence(schema, name), &relation.acl),
            _ => object(Target::Relation(schema, name), &relation.acl),
        }
    }
    for (signature, routine) in subjects.db.routines.iter().filter(|(_, routine)| ours(&routine.owner)) {
        object(Target::Routine(signature.clone()), &routine.acl);
    }
    columns(&mut changes, subjects, wanted, about);
    changes
}

fn wanted(subjects: &Subjects<'_>) -> Wanted {
    let Subjects { desired, db, accepted, permissions, .. } = subjects;
    let mut wanted = Wanted::new();
    let mut want = |target: Target, role: &str, privilege: &str| {
        wanted.entry(target).or_default().entry(role.to_owned()).or_default().insert(privilege.to_owned());
    };
    let database = Target::Database(desired.database.clone());
    let dl = |name: &str| Target::Relation(ident("dl"), ident(name));
    let routine = |signature: &str| Target::Routine(signature.to_owned());
    // the keys login has no business here: what the owner makes in this database must never run as a role that creates roles
    let [_, _, auth, sql] = TenantLogin::ALL.map(|login| login.role(&desired.tenant));
    for login in [&auth, &sql] {
        want(database.clone(), login, "CONNECT");
    }
    want(Target::Schema(ident("dl")), &auth, "USAGE");
    for table in ["state", "keys", "key_secrets", "entities", "permission_sets"] {
        want(dl(table), &auth, "SELECT");
    }
    want(routine("dl.revoke(text)"), &auth, "EXECUTE");
    for (role, permissions) in *permissions {
        if role.starts_with("set_") {
            want(database.clone(), role, "CONNECT");
        }
        want(Target::Schema(ident("dl")), role, "USAGE");
        want(dl("claims"), role, "SELECT");
        want(routine("dl.claim(text)"), role, "EXECUTE");
        for permission in permissions {
            let Some(entity) = accepted.get(&permission.entity) else { continue };
            let (schema, object) = qname(entity.spec);
            let (schema, object) = (ident(&schema), ident(&object));
            want(Target::Schema(schema.clone()), role, "USAGE");
            let privilege = match permission.action {
                Action::Read => "SELECT",
                Action::Create => "INSERT",
                Action::Update => "UPDATE",
                Action::Delete => "DELETE",
            };
            if permission.action == Action::Delete {
                want(Target::Relation(schema.clone(), object.clone()), role, privilege);
            }
            for column in &permission.columns {
                let target = Target::Columns(schema.clone(), object.clone(), vec![ident(column)]);
                want(target, role, privilege);
            }
            if permission.action == Action::Create {
                for (schema, sequence) in &entity.relation.sequences {
                    want(Target::Sequence(ident(schema), ident(sequence)), role, "USAGE");
                }
            }
            for signature in called(entity, db) {
                if let Some(called) = db.routines.get(signature).filter(|routine| routine.schema != "dl") {
                    want(Target::Schema(ident(&called.schema)), role, "USAGE");
                    want(routine(signature), role, "EXECUTE");
                }
            }
        }
    }
    wanted
}

/// Routines that run when the entity is used: its own, and those of every relation under a view.
fn called<'a>(entity: &Accepted<'a>, db: &'a TenantDb) -> BTreeSet<&'a String> {
    let mut routines = BTreeSet::new();
    let mut seen = BTreeSet::new();
    let mut todo = vec![entity.relation];
    while let Some(relation) = todo.pop() {
        if seen.insert(relation.oid) {
            routines.extend(&relation.routines);
            todo.extend(relation.reads.iter().filter_map(|name| db.relations.get(name)));
        }
    }
    routines
}

fn diff(changes: &mut Changes, target: &Target, actual: &Acl, wanted: &Acl, about: &dyn Fn(&str) -> bool) {
    let none = BTreeSet::new();
    for (role, privileges) in actual.iter().filter(|(role, _)| about(role)) {
        let keep = wanted.get(role).unwrap_or(&none);
        let extra = privileges.difference(keep).map(|privilege| privilege.trim_end_matches('*'));
        changes.revokes.extend(extra.filter_map(|privilege| grants::revoke(privilege, target, role)));
    }
    for (role, privileges) in wanted {
        let have = actual.get(role).unwrap_or(&none);
        let missing = privileges.difference(have);
        let list = if role.starts_with('t') { &mut changes.logins } else { &mut changes.grants };
        list.extend(missing.filter_map(|privilege| grants::grant(privilege, target, role)));
    }
}

/// Column privileges, one statement per relation, role and privilege.
fn columns(changes: &mut Changes, subjects: &Subjects<'_>, wanted: &Wanted, about: &dyn Fn(&str) -> bool) {
    let none = Acl::new();
    let ours = |owner: &str| foreign::is_ours(subjects.desired, owner);
    for ((schema, name), relation) in subjects.db.relations.iter().filter(|(_, it)| ours(&it.owner)) {
        let (schema, name) = (ident(schema), ident(name));
        let mut revoke: BTreeMap<(String, String), Vec<Ident>> = BTreeMap::new();
        let mut grant = revoke.clone();
        for column in &relation.columns {
            let target = Target::Columns(schema.clone(), name.clone(), vec![ident(&column.name)]);
            let wanted = pairs(wanted.get(&target).unwrap_or(&none));
            // revoking a privilege on the table takes it from every column too
            let taken = |pair: &(String, String)| {
                relation.acl.get(&pair.0).is_some_and(|privileges| {
                    privileges.iter().any(|privilege| privilege.trim_end_matches('*') == pair.1)
                        && pair.1 != "DELETE"
                })
            };
            let actual: BTreeSet<_> = pairs(&column.acl).into_iter().filter(|pair| !taken(pair)).collect();
            for (role, privilege) in actual.difference(&wanted).filter(|(role, _)| about(role)) {
                let privilege = privilege.trim_end_matches('*').to_owned();
                revoke.entry((privilege, role.clone())).or_default().push(ident(&column.name));
            }
            for (role, privilege) in wanted.difference(&actual) {
                grant.entry((privilege.clone(), role.clone())).or_default().push(ident(&column.name));
            }
        }
        let target = |columns| Target::Columns(schema.clone(), name.clone(), columns);
        let revokes =
            revoke.into_iter().filter_map(|((p, role), columns)| grants::revoke(&p, &target(columns), &role));
        changes.revokes.extend(revokes);
        let grants =
            grant.into_iter().filter_map(|((p, role), columns)| grants::grant(&p, &target(columns), &role));
        changes.grants.extend(grants);
    }
}

fn pairs(acl: &Acl) -> BTreeSet<(String, String)> {
    acl.iter().flat_map(|(role, privileges)| privileges.iter().map(|p| (role.clone(), p.clone()))).collect()
}

fn ident(name: &str) -> Ident {
    Ident::new(name).expect("names that PostgreSQL told or accepted fit it")
}
