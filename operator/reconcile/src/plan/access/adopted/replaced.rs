//! `rowLevelSecurity.replace`: policies that the application has on a table hold for its own roles alone while the table is adopted.
//!
//! Keys come under those that are for PUBLIC and no others. Each is given `TO` the roles that it held for, and back to PUBLIC with the table;
//! its expression stays, and is not parsed again.

use std::collections::BTreeSet;

use rowgate_crds::Reason;
use rowgate_pg::introspect::actual::{Cluster, Policy, QName, Relation, TenantDb};
use rowgate_sql::ddl::policies;
use rowgate_sql::text::{Ident, Sql};

use super::{PREDEFINED, Recorded, is_ours, others, recorded};
use crate::plan::access::acl::ident;
use crate::plan::{Finding, differences};
use crate::source::Event;

const PUBLIC: &str = "public";

/// Whether the application's roles come under policies of its own, and none gives them every row: its row-level security was on.
pub(in crate::plan::access) fn has_own(db: &TenantDb, name: &QName, relation: &Relation) -> bool {
    recorded(db, name, relation).map_or(relation.rls_enabled, |it| it.was_enabled)
}

/// Whether a policy that the manifest does not have stays: the application's, for roles of its own.
pub(in crate::plan::access) fn stays(
    cluster: &Cluster,
    db: &TenantDb,
    name: &QName,
    relation: &Relation,
    policy: &str,
) -> bool {
    let names_others = |it: &Policy| it.roles.iter().any(|role| !cluster.roles.contains_key(role));
    has_own(db, name, relation)
        && !is_ours(db, name, relation, policy)
        && relation.policies.get(policy).is_some_and(names_others)
}

/// Whom a policy for PUBLIC holds for, besides keys: the owner, whom it filters where row-level security is forced, and all who may read or write.
fn readers<'a>(cluster: &Cluster, relation: &'a Relation) -> BTreeSet<&'a str> {
    others(cluster, relation).into_iter().chain([&*relation.owner]).collect()
}

/// Whether a policy has the roles that it was given here, whichever of them were renamed or dropped since: an application names roles of its
/// own.
fn is_narrowed(record: &Recorded, name: &str, policy: &Policy) -> bool {
    record.narrowed.contains_key(name) && PREDEFINED.iter().all(|role| policy.roles.contains(*role))
}

/// Gives policies for PUBLIC to the application's roles, and notes which ones they are. One that the application has given to other roles
/// meanwhile is as it wants it.
pub(super) fn narrow(
    cluster: &Cluster,
    db: &TenantDb,
    name: &QName,
    relation: &Relation,
    record: &mut Recorded,
) -> Vec<Sql> {
    let to: BTreeSet<String> = readers(cluster, relation).into_iter().map(str::to_owned).collect();
    let mut statements = Vec::new();
    let mut narrowed = std::collections::BTreeMap::new();
    let theirs = relation.policies.iter().filter(|(policy, _)| !is_ours(db, name, relation, policy));
    for (policy, there) in theirs {
        if there.roles.contains(PUBLIC) || is_narrowed(record, policy, there) {
            statements.extend((there.roles != to).then(|| give(name, policy, &to)).flatten());
            narrowed.insert(policy.clone(), to.clone());
            continue;
        }
        // one for keys as well as for roles of the application
        let kept = there.roles.iter().filter(|role| !cluster.roles.contains_key(*role)).cloned();
        let kept: BTreeSet<String> = kept.collect();
        if kept != there.roles && !kept.is_empty() {
            statements.extend(give(name, policy, &kept));
        }
    }
    record.narrowed = narrowed;
    statements
}

/// Gives them back to PUBLIC.
pub(super) fn widened(name: &QName, relation: &Relation, record: &Recorded) -> Vec<Sql> {
    let public = BTreeSet::from([PUBLIC.to_owned()]);
    let narrowed = relation.policies.iter().filter(|(policy, there)| is_narrowed(record, policy, there));
    narrowed.filter_map(|(policy, _)| give(name, policy, &public)).collect()
}

fn give(name: &QName, policy: &str, to: &BTreeSet<String>) -> Option<Sql> {
    let to: Vec<&str> = to.iter().map(String::as_str).collect();
    Some(policies::give_to(&ident(&name.0), &ident(&name.1), &Ident::new(policy)?, &to))
}

/// Says which roles policies of the application hold for from now on, although the table was adopted before.
pub(in crate::plan::access) fn joined(
    cluster: &Cluster,
    db: &TenantDb,
    name: &QName,
    relation: &Relation,
) -> Option<Event> {
    let record = recorded(db, name, relation)?;
    let known: BTreeSet<&str> = record.narrowed.values().flatten().map(String::as_str).collect();
    let new: Vec<&str> =
        readers(cluster, relation).into_iter().filter(|role| !known.contains(role)).collect();
    (!known.is_empty() && !new.is_empty()).then(|| Event {
        reason: "RoleJoined".to_owned(),
        note: format!(
            "{} got rights on {}.{}, and the application's policies hold for it from now on, as for its other roles",
            differences::list(new.iter().copied()),
            name.0,
            name.1
        ),
        warning: false,
    })
}

/// A policy for PUBLIC that came when the table was adopted already: keys come under it until it is given to others.
pub(super) fn opened<'a>(db: &TenantDb, name: &QName, relation: &'a Relation) -> Option<&'a str> {
    let mut all = relation.policies.iter().filter(|(_, it)| it.roles.contains(PUBLIC));
    all.find(|(policy, _)| !is_ours(db, name, relation, policy)).map(|(policy, _)| policy.as_str())
}

/// A policy of the manifest cannot have the name of one that stays.
pub(in crate::plan::access) fn collides(
    db: &TenantDb,
    name: &QName,
    relation: &Relation,
    wanted: &BTreeSet<&str>,
) -> Result<(), Finding> {
    if !has_own(db, name, relation) {
        return Ok(());
    }
    let is_theirs =
        |policy: &&String| wanted.contains(policy.as_str()) && !is_ours(db, name, relation, policy);
    relation.policies.keys().find(is_theirs).map_or(Ok(()), |policy| {
        let message = format!(
            "policy {policy} of the application stands on {}.{}; give the policy here another name",
            name.0, name.1
        );
        Err(Finding::new(Reason::PolicyRefused, message))
    })
}
