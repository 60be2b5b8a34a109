//! Views that keys reach belong to `t<id>_views`: through a view of the owner of its tables PostgreSQL would read past every policy.

use std::collections::{BTreeMap, BTreeSet};

use rowgate_core::name::EntityName;
use rowgate_core::role::TenantLogin;
use rowgate_pg::introspect::actual::{QName, Relation, RelationKind, TenantDb};
use rowgate_sql::catalog::PermissionRecord;
use rowgate_sql::ddl::grants::{self, Target};
use rowgate_sql::ddl::views;
use rowgate_sql::text::Sql;

use super::acl::{ident, privilege};
use crate::desired::Desired;
use crate::plan::accept::{Accepted, qname};
use crate::plan::{Of, Statement};

/// What keys reach by way of entities, and what these read in turn.
#[derive(Debug, Default)]
pub(in crate::plan) struct Reached<'a> {
    /// `t<id>_views`.
    own: String,
    owner_of_tables: String,
    /// With the entity that leads there.
    views: BTreeMap<&'a QName, &'a EntityName>,
    /// What it needs on what these read and write.
    privileges: BTreeMap<&'a QName, BTreeSet<&'static str>>,
}

impl<'a> Reached<'a> {
    /// `permissions`: by role, what may be done. Nothing is reached where `forces` has tables FORCEd on their owner, whose views stay its own.
    pub(in crate::plan) fn new(
        desired: &Desired,
        forces: bool,
        db: &'a TenantDb,
        accepted: &'a BTreeMap<EntityName, Accepted<'_>>,
        permissions: &BTreeMap<String, Vec<PermissionRecord>>,
    ) -> Reached<'a> {
        let [owner_of_tables, own] = owners(desired);
        let mut reached = Reached { own, owner_of_tables, ..Reached::default() };
        // views of an application stay its own, and none of them is an entity
        if forces || desired.is_adopted {
            return reached;
        }
        let mut seen = BTreeSet::new();
        let mut todo: Vec<(&QName, &EntityName)> = accepted
            .iter()
            .filter(|(_, entity)| entity.relation().is_some())
            .filter_map(|(name, entity)| Some((db.relations.get_key_value(&qname(entity.spec))?.0, name)))
            .collect();
        while let Some((name, entity)) = todo.pop() {
            let Some(relation) = db.relations.get(name).filter(|_| name.0 != "dl" && seen.insert(name))
            else {
                continue;
            };
            if relation.kind == RelationKind::View {
                reached.views.insert(name, entity);
                reached.may(db, relation.reads.iter(), "SELECT");
            }
            todo.extend(read_by(relation).map(|name| (name, entity)));
        }
        // the policies of a table that a view reads run with the rights of the view's owner
        let views: Vec<&QName> = reached.views.keys().copied().collect();
        for relation in with_read(db, views.into_iter().cloned()).into_values() {
            reached.may(db, relation.policies.values().flat_map(|policy| policy.reads.keys()), "SELECT");
        }
        for (name, entity) in accepted.iter().filter(|(_, entity)| entity.relation().is_some()) {
            let records = permissions.values().flatten().filter(|record| record.entity == *name);
            let written: BTreeSet<&str> = records.filter_map(|record| privilege(record.action)).collect();
            let view = qname(entity.spec);
            if !reached.views.contains_key(&view) {
                continue;
            }
            // on itself, too, which needs none
            let tables = with_read(db, [view]);
            written.into_iter().for_each(|privilege| reached.may(db, tables.keys().copied(), privilege));
        }
        reached
    }

    /// Whether `role` owns them.
    pub(in crate::plan) fn is_of(&self, role: &str) -> bool {
        self.own == role
    }

    pub(in crate::plan) fn is_any(&self) -> bool {
        !self.views.is_empty()
    }

    /// On what is not its own.
    pub(in crate::plan) fn privileges(&self) -> impl Iterator<Item = (&QName, &'static str)> {
        let others = self.privileges.iter().filter(|(name, _)| !self.views.contains_key(*name));
        others.flat_map(|(name, privileges)| privileges.iter().map(|privilege| (*name, *privilege)))
    }

    /// Whose a relation is once rights are granted.
    pub(in crate::plan) fn owner<'b>(&'b self, name: &QName, relation: &'b Relation) -> &'b str {
        if self.views.contains_key(name) { &self.own } else { &relation.owner }
    }

    /// Of PostgreSQL's own relations, and those of extensions, which no plan grants, PUBLIC has what there is to have.
    fn may(&mut self, db: &TenantDb, names: impl Iterator<Item = &'a QName>, privilege: &'static str) {
        for name in names.filter(|name| db.relations.contains_key(*name)) {
            self.privileges.entry(name).or_default().insert(privilege);
        }
    }

    /// What gives each view that keys reach to `t<id>_views`.
    pub(in crate::plan) fn given(&self, db: &TenantDb) -> Vec<Statement> {
        let mut statements = Vec::new();
        for (name, entity) in &self.views {
            if db.relations[*name].owner != self.owner_of_tables {
                continue;
            }
            let of = Of::Entity(entity.to_string());
            let is_served = db.entities.contains_key(entity.as_str());
            let differs =
                is_served.then(|| format!("view {}.{} belongs to {}", name.0, name.1, self.owner_of_tables));
            // PostgreSQL asks it of a view's new owner
            let schema = Target::Schema(ident(&name.0));
            let create = |sql: Option<_>| sql.map(|sql| of.clone().says(sql));
            statements.extend(create(grants::grant("CREATE", &schema, &[&self.own])));
            statements.push(of.clone().says(give(name, &self.own)).undoing(differs));
            statements.extend(create(grants::revoke("CREATE", &schema, &[&self.own])));
        }
        statements
    }

    /// What gives views that keys no longer reach to the owner of the tables: once nobody has a right on them.
    pub(in crate::plan) fn returned(&self, db: &TenantDb) -> Vec<Statement> {
        let is_left = |(name, relation): &(&QName, &Relation)| {
            relation.kind == RelationKind::View
                && relation.owner == self.own
                && !self.views.contains_key(*name)
        };
        let left = db.relations.iter().filter(is_left);
        left.map(|(name, _)| Of::Tenant.says(give(name, &self.owner_of_tables))).collect()
    }
}

fn give(name: &QName, owner: &str) -> Sql {
    views::give(&ident(&name.0), &ident(&name.1), &ident(owner))
}

/// The owner of the tables, and that of views which keys reach.
pub(in crate::plan) fn owners(desired: &Desired) -> [String; 2] {
    [desired.owner.clone(), TenantLogin::Views.role(&desired.tenant)]
}

/// What its rules and its policies read.
fn read_by(relation: &Relation) -> impl Iterator<Item = &QName> {
    relation.reads.iter().chain(relation.policies.values().flat_map(|policy| policy.reads.keys()))
}

/// These relations, and what they read, views followed down.
pub(in crate::plan) fn with_read(
    db: &TenantDb,
    names: impl IntoIterator<Item = QName>,
) -> BTreeMap<&QName, &Relation> {
    let mut todo: Vec<_> = names.into_iter().filter_map(|name| db.relations.get_key_value(&name)).collect();
    let mut all = BTreeMap::new();
    while let Some((name, relation)) = todo.pop() {
        if all.insert(name, relation).is_none() {
            todo.extend(relation.reads.iter().filter_map(|name| db.relations.get_key_value(name)));
        }
    }
    all
}
