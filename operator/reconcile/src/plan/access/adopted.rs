//! Tables of an application that was there before: what it and its other roles go on seeing, and how a table is given back as it was found.
//!
//! A table is ENABLEd and its owner, whom no policy holds, sees every row. PostgreSQL chooses policies by role before it plans, so the policy
//! [`OTHERS`] `TO` the other roles gives them every row and costs the queries of keys nothing.

use std::collections::{BTreeMap, BTreeSet};

use rowgate_crds::Reason;
use rowgate_pg::introspect::actual::{Acl, Cluster, QName, Relation, TenantDb};
use rowgate_sql::catalog::EntityKind;
use rowgate_sql::ddl::policies::{self, Command, Condition, PolicyDef, Rows};
use rowgate_sql::ddl::protection::Writers;
use rowgate_sql::ddl::records;
use rowgate_sql::text::Ident;
use serde::{Deserialize, Serialize};

use super::acl::ident;
use super::adoptable;
use crate::desired::{Desired, EntitySpec, Security};
use crate::plan::accept::qname;
use crate::plan::{Finding, Statement, differences};
use crate::source::Event;

/// The policy by which the other roles of an application see every row.
const OTHERS: &str = "rowgate_others";
/// Their members may read, or write, every table without a right on it.
const PREDEFINED: [&str; 2] = ["pg_read_all_data", "pg_write_all_data"];
/// In `dl.applied`: a table whose row-level security was off when it was adopted.
const KIND: &str = "adopted";

/// A table whose row-level security Rowgate enabled.
#[derive(Debug, Serialize, Deserialize)]
struct Recorded {
    oid: u32,
    schema: String,
    name: String,
}

fn key(name: &QName, relation: &Relation) -> String {
    format!("{}.{}#{}", name.0, name.1, relation.oid)
}

/// Whether Rowgate enabled the row-level security of this table.
fn is_recorded(db: &TenantDb, name: &QName, relation: &Relation) -> bool {
    db.applied.contains_key(&(KIND.to_owned(), key(name, relation)))
}

/// What is to be recorded when row-level security is enabled.
pub(super) fn record(db: &TenantDb, name: &QName, relation: &Relation) -> Option<Statement> {
    let recorded = Recorded { oid: relation.oid, schema: name.0.clone(), name: name.1.clone() };
    let text = serde_json::to_string(&recorded).expect("names are plain values");
    let is_there = is_recorded(db, name, relation);
    (!is_there).then(|| records::put_applied(KIND, &key(name, relation), "", &text).into())
}

/// Whether an entity can stand on something of the application; `Ok` in a database that Rowgate made.
pub(in crate::plan) fn fits(
    spec: &EntitySpec,
    desired: &Desired,
    relation: &Relation,
    db: &TenantDb,
) -> Result<(), Finding> {
    if !desired.is_adopted {
        return Ok(());
    }
    let name = qname(spec);
    let text = format!("{}.{}", name.0, name.1);
    let unsupported = |message: String| Err(Finding::new(Reason::SourceUnsupported, message));
    if spec.kind == EntityKind::View {
        return Err(adoptable::of_view(&text));
    }
    if spec.protection.is_some() && spec.writers == Writers::All {
        return unsupported(format!(
            "concurrencyProtection.writers: All would refuse the application's own writes to {text}, which name no version; set it to ApiOnly, or leave it out"
        ));
    }
    adoptable::stands_alone(&text, relation)?;
    if is_recorded(db, &name, relation) {
        return added(db, &name, relation).map_or(Ok(()), |policy| {
            Err(Finding::new(
                Reason::PolicyRefused,
                format!(
                    "policy {policy} on {text} stands beside those that Rowgate made; drop it, or declare it in rowLevelSecurity"
                ),
            ))
        });
    }
    adoptable::of_others(spec.security == Security::Existing, relation, &text)
}

/// A policy that no plan made.
fn added<'a>(db: &TenantDb, name: &QName, relation: &'a Relation) -> Option<&'a str> {
    let is_known = |policy: &&String| {
        let record = format!("{}.{}.{policy}", name.0, name.1);
        db.applied.contains_key(&("policy".to_owned(), record))
    };
    relation.policies.keys().find(|policy| !is_known(policy)).map(String::as_str)
}

/// The roles that had rights on the table besides its owner and Rowgate's, and those that need none.
fn others<'a>(cluster: &Cluster, relation: &'a Relation) -> BTreeSet<&'a str> {
    let acls = std::iter::once(&relation.acl).chain(relation.columns.iter().map(|column| &column.acl));
    let grantees = acls.flat_map(Acl::keys).map(String::as_str);
    let others = grantees.filter(|role| *role != "public" && !cluster.roles.contains_key(*role));
    others.chain(PREDEFINED).collect()
}

/// What gives them every row.
pub(super) fn policy(cluster: &Cluster, relation: &Relation) -> PolicyDef {
    let every = Condition { roles: None, permissive: true, rows: Rows::All };
    PolicyDef {
        name: ident(OTHERS),
        permissive: true,
        command: Command::All,
        to: others(cluster, relation).into_iter().map(ident).collect(),
        using: Some(every.clone()),
        check: Some(every),
    }
}

/// Says who is given every row although the table was adopted before.
pub(super) fn joined(cluster: &Cluster, name: &QName, relation: &Relation) -> Option<Event> {
    let there = &relation.policies.get(OTHERS)?.roles;
    let new: Vec<&str> =
        others(cluster, relation).into_iter().filter(|role| !there.contains(*role)).collect();
    (!new.is_empty()).then(|| Event {
        reason: "RoleJoined".to_owned(),
        note: format!(
            "{} got rights on {}.{} and sees every row of it from now on, as the application's other roles do",
            differences::list(new.iter().copied()),
            name.0,
            name.1
        ),
        warning: false,
    })
}

/// What gives tables back that no entity names any more, each in a transaction of its own: Rowgate's policies go, and row-level security is
/// off, as it was.
pub(in crate::plan) fn given_back(desired: &Desired, db: &TenantDb) -> Vec<(QName, Vec<Statement>)> {
    let mut tables: Vec<(QName, Vec<Statement>)> = Vec::new();
    for ((_, key), applied) in db.applied.iter().filter(|((kind, _), _)| kind == KIND) {
        let Ok(recorded) = serde_json::from_str::<Recorded>(&applied.recorded) else { continue };
        let found = db.relations.iter().find(|(_, relation)| relation.oid == recorded.oid);
        let was = (recorded.schema, recorded.name);
        let is_named = |spec: &EntitySpec| qname(spec) == was;
        if found.is_some_and(|(name, _)| *name == was) && desired.entities.iter().any(is_named) {
            continue;
        }
        let mut statements: Vec<Statement> = Vec::new();
        if let Some((name, relation)) = found {
            statements.extend(dropped(db, name, &was, relation));
            let (schema, object) = (ident(&name.0), ident(&name.1));
            statements.push(policies::disable(&schema, &object).into());
        }
        statements.push(records::drop_applied(KIND, key).into());
        tables.push((was, statements));
    }
    tables
}

/// Its policies; they are recorded under the name that the table had.
fn dropped(db: &TenantDb, name: &QName, was: &QName, relation: &Relation) -> Vec<Statement> {
    let (schema, object): (Ident, Ident) = (ident(&name.0), ident(&name.1));
    let record = |policy: &str| format!("{}.{}.{policy}", was.0, was.1);
    let known: BTreeMap<&str, String> = relation
        .policies
        .keys()
        .map(|policy| (policy.as_str(), record(policy)))
        .filter(|(_, record)| db.applied.contains_key(&("policy".to_owned(), record.clone())))
        .collect();
    let drop = |(policy, record): (&str, String)| {
        let drop = policies::drop(&schema, &object, policy).map(Statement::from);
        drop.into_iter().chain([records::drop_applied("policy", &record).into()]).collect::<Vec<_>>()
    };
    known.into_iter().flat_map(drop).collect()
}
