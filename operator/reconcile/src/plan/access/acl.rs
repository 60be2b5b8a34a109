//! Who may do what on every object of the database, and the statements from the present ACLs to that.

mod statements;

use std::collections::{BTreeMap, BTreeSet};

use rowgate_core::name::EntityName;
use rowgate_core::role::{SHARED_ROLE, TenantLogin};
use rowgate_pg::introspect::actual::{Acl, Cluster, QName, RelationKind, TenantDb};
use rowgate_sql::catalog::{Action, PermissionRecord};
use rowgate_sql::ddl::grants::{self, DefaultFor, Target};
use rowgate_sql::text::Ident;

use self::statements::{Right, statements};
use super::views::{Reached, with_read};
use super::{foreign, logins, rights};
use crate::desired::Desired;
use crate::plan::accept::{Accepted, On, qname};
use crate::plan::rows::of_set;
use crate::plan::{Of, Statement, differences};

/// What is to be changed, the narrowing apart, so that it can go first.
#[derive(Debug)]
pub(in crate::plan) struct Changes<T = Statement> {
    pub(in crate::plan) revokes: Vec<T>,
    /// What the tenant's own logins lack; the first thing that a new database needs.
    pub(in crate::plan) logins: Vec<T>,
    pub(in crate::plan) grants: Vec<T>,
    /// What takes rights from the owner of the views that keys reach: once those that it had them for are its no longer.
    pub(in crate::plan) of_views: Vec<T>,
}

impl Changes<Right> {
    fn written(self, is_apart: bool) -> Changes {
        let revokes = |rights| statements(rights, is_apart, grants::revoke);
        let grants = |rights| statements(rights, is_apart, grants::grant);
        Changes {
            revokes: revokes(self.revokes),
            logins: grants(self.logins),
            grants: grants(self.grants),
            of_views: revokes(self.of_views),
        }
    }
}

/// Privileges that should stand, by object.
type Wanted = BTreeMap<Target, Acl>;

/// What a change of grants is about.
pub(in crate::plan) struct Subjects<'a> {
    pub(in crate::plan) desired: &'a Desired,
    pub(in crate::plan) cluster: &'a Cluster,
    pub(in crate::plan) db: &'a TenantDb,
    pub(in crate::plan) accepted: &'a BTreeMap<EntityName, Accepted<'a>>,
    /// Role to permissions, for `datalake_user` and every set that is in use after this pass.
    pub(in crate::plan) permissions: &'a BTreeMap<String, Vec<PermissionRecord>>,
    pub(in crate::plan) reached: &'a Reached<'a>,
    /// Sets without members after this pass; they keep their rights until the last member is out.
    pub(in crate::plan) retiring: &'a BTreeSet<String>,
    /// An entity comes or goes in this plan, and rights with it.
    pub(in crate::plan) shift: bool,
    /// [`crate::plan::Closed::sets_are_apart`].
    pub(in crate::plan) is_apart: bool,
}

impl Subjects<'_> {
    /// Whether `role` has on `target` what the plan says and nothing else. In a database that is adopted, others keep what they have.
    fn plans(&self, target: &Target, role: &str) -> bool {
        let is_in_dl = match target {
            Target::Database(_) => false,
            Target::Schema(schema)
            | Target::Relation(schema, _)
            | Target::Sequence(schema, _)
            | Target::Columns(schema, ..) => schema.as_str() == "dl",
            Target::Routine(signature) => signature.starts_with("dl."),
        };
        // a permission set that this plan makes is ours before its role is there
        let is_ours = || self.cluster.roles.contains_key(role) || self.permissions.contains_key(role);
        !self.desired.is_adopted || is_in_dl || is_ours()
    }

    /// Whether the rights of `role` differ only because of the rest of the plan, not because they were changed by hand.
    fn follow(&self, role: &str) -> bool {
        if role != SHARED_ROLE && !role.starts_with("set_") {
            return false;
        }
        // a set without members is emptied
        let Some(permissions) = self.permissions.get(role) else { return true };
        let recorded = self.db.permission_sets.get(role).map(|set| &set.permissions);
        self.shift || !self.cluster.roles.contains_key(role) || recorded != Some(permissions)
    }
}

/// Every difference between the ACLs that are and those that the permissions call for, retiring sets left alone.
pub(in crate::plan) fn changes(subjects: &Subjects<'_>) -> Changes {
    let wanted = wanted(subjects);
    let differences = differences(subjects, &wanted, &|role| !subjects.retiring.contains(role));
    let mut changes = differences.written(subjects.is_apart);
    if !subjects.desired.is_adopted {
        defaults(&mut changes, subjects.db);
    }
    changes
}

/// What the owner's future objects give to anybody is taken back. PUBLIC may use types, as PostgreSQL has it.
fn defaults(changes: &mut Changes, db: &TenantDb) {
    let mut revoke = |letter: char, schema: Option<&Ident>, role: &str| {
        let kind =
            DefaultFor::from_letter(letter).filter(|kind| (*kind, role) != (DefaultFor::Types, "public"));
        let revoke = kind.and_then(|kind| grants::revoke_default(kind, schema, role));
        let place = schema.map(|schema| format!(" in schema {}", schema.as_str())).unwrap_or_default();
        let what = kind.map_or("objects", DefaultFor::as_str);
        let differs = format!("default privileges{place} grant rights on {what} to {role}");
        changes.revokes.extend(revoke.map(|sql| Statement::from(sql).undoing([differs])));
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
pub(in crate::plan) fn retired(subjects: &Subjects<'_>) -> Vec<Statement> {
    let differences = differences(subjects, &Wanted::new(), &|role| subjects.retiring.contains(role));
    differences.written(subjects.is_apart).revokes
}

fn differences(subjects: &Subjects<'_>, wanted: &Wanted, about: &dyn Fn(&str) -> bool) -> Changes<Right> {
    let nothing = Acl::new();
    let mut changes =
        Changes { revokes: Vec::new(), logins: Vec::new(), grants: Vec::new(), of_views: Vec::new() };
    let mut object = |target: Target, actual: &Acl| {
        let about = |role: &str| about(role) && subjects.plans(&target, role);
        diff(&mut changes, subjects, &target, actual, wanted.get(&target).unwrap_or(&nothing), &about);
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
    for (target, login, privilege) in logins::rights(subjects) {
        want(target, &login, privilege);
    }
    let database = Target::Database(desired.database.clone());
    let routine = |signature: &str| Target::Routine(signature.to_owned());
    let views = TenantLogin::Views.role(&desired.tenant);
    // what a policy reads is seen once it stands, and most read this
    if subjects.reached.is_any() {
        want(Target::Relation(ident("dl"), ident("own_claims")), &views, "SELECT");
    }
    for ((schema, name), privilege) in subjects.reached.privileges() {
        want(Target::Relation(ident(schema), ident(name)), &views, privilege);
    }
    for (role, permissions) in *permissions {
        if role.starts_with("set_") {
            want(database.clone(), role, "CONNECT");
        }
        want(Target::Schema(ident("dl")), role, "USAGE");
        want(Target::Relation(ident("dl"), ident("own_claims")), role, "SELECT");
        want(routine("dl.claim(text)"), role, "EXECUTE");
        for permission in permissions {
            let Some(entity) = accepted.get(&permission.entity) else { continue };
            let name = qname(entity.spec);
            let (schema, object) = (ident(&name.0), ident(&name.1));
            want(Target::Schema(schema.clone()), role, "USAGE");
            let relation = match entity.on {
                On::Relation(relation) => relation,
                // nothing of what it does: that runs with the caller's rights
                On::Routine(signature, _) => {
                    want(routine(signature), role, "EXECUTE");
                    continue;
                }
            };
            if entity.record.events && permission.action == Action::Read {
                want(routine("dl.permitted(oid,json)"), role, "EXECUTE");
            }
            // resolving lets no EXECUTE through on these
            let Some(privilege) = privilege(permission.action) else { continue };
            if permission.action == Action::Delete {
                want(Target::Relation(schema.clone(), object.clone()), role, privilege);
            }
            for column in &permission.columns {
                let target = Target::Columns(schema.clone(), object.clone(), vec![ident(column)]);
                want(target, role, privilege);
            }
            // a PUT resets the columns that it does not name
            if let Action::Create | Action::Update = permission.action {
                for (schema, sequence) in &relation.sequences {
                    want(Target::Sequence(ident(schema), ident(sequence)), role, "USAGE");
                }
            }
            for signature in called(&name, db) {
                if let Some(called) =
                    db.routines.get(signature).filter(|routine| routine.declared.schema != "dl")
                {
                    want(Target::Schema(ident(&called.declared.schema)), role, "USAGE");
                    want(routine(signature), role, "EXECUTE");
                }
            }
        }
    }
    wanted
}

/// Routines that run when the relation is used: its own, and those of every relation under a view.
fn called<'a>(relation: &QName, db: &'a TenantDb) -> BTreeSet<&'a String> {
    with_read(db, [relation.clone()]).into_values().flat_map(|relation| &relation.routines).collect()
}

/// Of PostgreSQL, on tables and views; `None` for routines.
pub(super) fn privilege(action: Action) -> Option<&'static str> {
    match action {
        Action::Read => Some("SELECT"),
        Action::Create => Some("INSERT"),
        Action::Update => Some("UPDATE"),
        Action::Delete => Some("DELETE"),
        Action::Execute => None,
    }
}

/// What a right of `role` on `target` belongs to: a permission set, or the entity for which all unscoped keys hold it.
fn of(subjects: &Subjects<'_>, target: &Target, role: &str) -> Of {
    if let Some(records) = subjects.permissions.get(role).filter(|_| role != SHARED_ROLE) {
        return of_set(role, &rights::hash(records));
    }
    let is_on = |entity: &&Accepted<'_>| match target {
        Target::Relation(schema, object) | Target::Columns(schema, object, _) => {
            entity.relation().is_some() && entity.spec.schema == *schema && entity.spec.object == *object
        }
        Target::Routine(signature) => matches!(entity.on, On::Routine(its, _) if its == signature),
        Target::Database(_) | Target::Schema(_) | Target::Sequence(..) => false,
    };
    let is_meant = role == SHARED_ROLE || subjects.reached.is_of(role);
    let entity = subjects.accepted.values().find(is_on).filter(|_| is_meant);
    entity.map_or(Of::Tenant, |entity| Of::Entity(entity.spec.name.to_string()))
}

/// One that undoes nothing yet.
fn right(subjects: &Subjects<'_>, target: &Target, role: &str, privilege: &str) -> Right {
    let of = of(subjects, target, role);
    let (target, privilege, role) = (target.clone(), privilege.to_owned(), role.to_owned());
    Right { target, privilege, role, of, undoes: Vec::new() }
}

fn diff(
    changes: &mut Changes<Right>,
    subjects: &Subjects<'_>,
    target: &Target,
    actual: &Acl,
    wanted: &Acl,
    about: &dyn Fn(&str) -> bool,
) {
    let none = BTreeSet::new();
    for (role, privileges) in actual.iter().filter(|(role, _)| about(role)) {
        let keep = wanted.get(role).unwrap_or(&none);
        let extra: Vec<&str> =
            privileges.difference(keep).map(|privilege| privilege.trim_end_matches('*')).collect();
        let (on, off): (Vec<&str>, Vec<&str>) =
            extra.iter().partition(|privilege| keep.contains(**privilege));
        let on = (!on.is_empty())
            .then(|| format!("{} has the grant option", differences::right(&on, target, role)));
        let off = (!off.is_empty() && !subjects.follow(role))
            .then(|| format!("{} was added", differences::right(&off, target, role)));
        let mut revokes: Vec<_> =
            extra.iter().map(|privilege| right(subjects, target, role, privilege)).collect();
        if let Some(first) = revokes.first_mut() {
            first.undoes.extend(on.into_iter().chain(off));
        }
        let list = if subjects.reached.is_of(role) { &mut changes.of_views } else { &mut changes.revokes };
        list.extend(revokes);
    }
    for (role, privileges) in wanted {
        let have = actual.get(role).unwrap_or(&none);
        let missing: Vec<&str> = privileges.difference(have).map(String::as_str).collect();
        // what may be granted on is taken back with that
        let gone: Vec<&str> =
            missing.iter().copied().filter(|privilege| !have.contains(&format!("{privilege}*"))).collect();
        let differs = (!gone.is_empty() && !subjects.follow(role))
            .then(|| format!("{} is missing", differences::right(&gone, target, role)));
        let is_login = role.starts_with('t') && !subjects.reached.is_of(role);
        let list = if is_login { &mut changes.logins } else { &mut changes.grants };
        let mut grants: Vec<_> =
            missing.iter().map(|privilege| right(subjects, target, role, privilege)).collect();
        if let Some(first) = grants.first_mut() {
            first.undoes.extend(differs);
        }
        list.extend(grants);
    }
}

/// Column privileges, by relation, role and privilege.
fn columns(
    changes: &mut Changes<Right>,
    subjects: &Subjects<'_>,
    wanted: &Wanted,
    about: &dyn Fn(&str) -> bool,
) {
    let none = Acl::new();
    let ours = |owner: &str| foreign::is_ours(subjects.desired, owner);
    for ((schema, name), relation) in subjects.db.relations.iter().filter(|(_, it)| ours(&it.owner)) {
        let (schema, name) = (ident(schema), ident(name));
        let mut revoke: BTreeMap<(String, String), Vec<Ident>> = BTreeMap::new();
        let mut grant = revoke.clone();
        // of those, what is not only taken back with a right on the whole table
        let mut gone = revoke.clone();
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
            let is_planned = |role: &str| about(role) && subjects.plans(&target, role);
            for (role, privilege) in actual.difference(&wanted).filter(|(role, _)| is_planned(role)) {
                let privilege = privilege.trim_end_matches('*').to_owned();
                revoke.entry((privilege, role.clone())).or_default().push(ident(&column.name));
            }
            for (role, privilege) in wanted.difference(&actual) {
                grant.entry((privilege.clone(), role.clone())).or_default().push(ident(&column.name));
                let there = column.acl.get(role);
                if !there.is_some_and(|it| it.iter().any(|it| it.trim_end_matches('*') == privilege)) {
                    gone.entry((privilege.clone(), role.clone())).or_default().push(ident(&column.name));
                }
            }
        }
        let target = |columns| Target::Columns(schema.clone(), name.clone(), columns);
        let revokes = revoke.into_iter().map(|((p, role), columns)| {
            let target = target(columns);
            let differs = (!subjects.follow(&role)).then(|| {
                let option = grant.contains_key(&(p.clone(), role.clone()));
                let differs = if option { "has the grant option" } else { "was added" };
                format!("{} {differs}", differences::right(&[&p], &target, &role))
            });
            Right { undoes: differs.into_iter().collect(), ..right(subjects, &target, &role, &p) }
        });
        changes.revokes.extend(revokes.collect::<Vec<_>>());
        let grants = grant.into_iter().map(|((p, role), columns)| {
            let gone = gone.get(&(p.clone(), role.clone())).filter(|_| !subjects.follow(&role));
            let differs = gone.map(|gone| {
                format!("{} is missing", differences::right(&[&p], &target(gone.clone()), &role))
            });
            let target = target(columns);
            Right { undoes: differs.into_iter().collect(), ..right(subjects, &target, &role, &p) }
        });
        changes.grants.extend(grants);
    }
}

fn pairs(acl: &Acl) -> BTreeSet<(String, String)> {
    acl.iter().flat_map(|(role, privileges)| privileges.iter().map(|p| (role.clone(), p.clone()))).collect()
}

pub(super) fn ident(name: &str) -> Ident {
    Ident::new(name).expect("names that PostgreSQL told or accepted fit it")
}
