//! The whole plan for the inside of one tenant's database and the key roles around it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

use rowgate_core::name::{EntityName, Ulid};
use rowgate_core::role::{SHARED_ROLE, set_role};
use rowgate_crds::Reason;
use rowgate_pg::introspect::actual::{Cluster, TenantDb};
use rowgate_sql::catalog::PermissionRecord;
use rowgate_sql::ddl::{records, roles};
use serde::Deserialize as _;

use super::accept::{Accepted, Away, accept};
use super::access::adopted::KeptUp;
use super::access::readers::Readers;
use super::access::rights::{self, Resolved};
use super::access::views::Reached;
use super::access::{acl, adopted, definers, foreign, graphql, scans, security};
use super::keys::Keys;
use super::relationships::{self, Judged, Relationships};
use super::roles_and_database::ident;
use super::{As, Closed, Finding, Of, Op, Statement, capture, protection, rows};
use crate::desired::{Desired, KeySpec, Permission, Scope};
use crate::source::Event;

/// More distinct permission sets than this make PostgreSQL's ACLs too large for a row (architecture, section 3).
const MAX_SETS: usize = 1_500;

/// What the operation is about that follows a revocation.
pub const CLOSE_KEYS: &str = "close the roles of revoked keys";

/// What to run, and what to report.
#[derive(Debug, Default)]
pub struct Outcome {
    pub ops: Vec<Op>,
    /// Why the Tenant is not wholly what its manifest says; each sentence says what to change.
    pub problems: Vec<Finding>,
    /// Worth knowing, nothing wrong.
    pub notes: Vec<String>,
    /// The same as `problems`, by the id of the key.
    pub key_problems: BTreeMap<Ulid, Vec<Finding>>,
    /// Names of the entities that are served.
    pub entities: Vec<EntityName>,
    /// What became of each Relationship, by uid.
    pub relationships: BTreeMap<String, Judged>,
    /// To be published once, when `ops` have run.
    pub events: Vec<Event>,
}

/// The plan for what stands inside. `closed`: what PostgreSQL refused a statement of in this pass, with the reason.
/// `operator` is the login that makes the tenant's roles; `new_id` makes identifiers for permission sets that no role
/// holds yet.
pub fn contents(
    desired: &Desired,
    cluster: &Cluster,
    db: &TenantDb,
    closed: &Closed,
    operator: &str,
    new_id: &mut dyn FnMut() -> Ulid,
) -> Outcome {
    let desired = &*relationships::with_links(desired, db);
    let owner = &*desired.owner;
    // data planes of version 0.2 close tables that are not FORCEd, and views of another owner
    let forces = cluster.has_older_replicas && !desired.is_adopted;
    let protection = protection::changes(desired, db, owner, &closed.entities);
    // the rights on a column that is about to be made stand in the same plan
    let db = protection.ahead.as_ref().unwrap_or(db);
    let mut entities = closed.entities.clone();
    entities.extend(protection.problems);
    let (accepted, refused, security) = loop {
        let (accepted, refused) = accept(desired, db, owner, &entities, &protection.leaving);
        let security = security::changes(desired, cluster, forces, db, &accepted);
        if security.problems.is_empty() {
            break (accepted, refused, security);
        }
        entities.extend(security.problems);
    };
    let mut outcome = Outcome {
        problems: refused.problems,
        notes: security.notes.clone(),
        entities: accepted.keys().filter(|name| !relationships::is_link(name)).cloned().collect(),
        events: protection.events.into_iter().chain(security.events.iter().cloned()).collect(),
        ..Outcome::default()
    };

    let foreign = foreign::sentences(desired, cluster, db, operator);
    outcome.problems.extend(foreign.into_iter().map(|sentence| Finding::new(Reason::NotOwned, sentence)));

    let recorded = db.applied.get(&("resolved".to_owned(), "shared".to_owned()));
    let recorded = recorded.and_then(|applied| serde_json::from_str(&applied.recorded).ok());
    let (shared, unknown) =
        rights::resolve(&desired.shared, desired.generation, recorded, &accepted, &refused.away);
    outcome.problems.extend(unknown.into_iter().map(|finding| {
        let message = format!("shared: {}", finding.message);
        Finding { message, ..finding }
    }));

    let live = Keys::live(desired, db);
    let scopes = Scopes::new(&live, db, (&accepted, &refused.away), &shared);
    outcome.key_problems.extend(scopes.problems());
    let (sets, subjects) = sets(&live, &scopes, &shared, cluster, db, closed, new_id, &mut outcome);
    let scoped = subjects.iter().filter(|(role, _)| *role != SHARED_ROLE);
    let hashes = scoped.map(|(role, records)| (role.clone(), rights::hash(records))).collect();
    let retiring: BTreeSet<String> = cluster
        .roles
        .keys()
        .chain(db.permission_sets.keys())
        .filter(|role| role.starts_with("set_") && !subjects.contains_key(*role))
        .cloned()
        .collect();

    let relationships = Relationships::new(desired, db, &accepted, (&refused.links, &refused.away));
    let granted = relationships.grants(&subjects);
    let keys = Keys { desired, cluster, db, live, sets, hashes, closed };
    outcome.problems.extend(keys.undying().map(|id| {
        let finding = &closed.keys[id];
        Finding::new(finding.reason, format!("key {id} could not be revoked: {}", finding.message))
    }));
    let readers = Readers { accepted: &accepted, permissions: &granted, live: &keys.live, sets: &keys.sets };
    for (finding, ids) in readers.blind() {
        for id in ids {
            outcome.key_problems.entry(id).or_default().push(finding.clone());
        }
        outcome.problems.push(finding);
    }
    outcome.notes.extend(definers::sentences(&accepted, db));
    outcome.notes.extend(definers::without_sql(desired, db));
    outcome.notes.extend(graphql::sentences(&accepted));
    outcome.notes.extend(scans::sentences(&accepted, &subjects));
    let reached = Reached::new(desired, forces, db, &accepted, &granted);
    let grants = acl::Subjects {
        desired,
        cluster,
        db,
        accepted: &accepted,
        permissions: &granted,
        reached: &reached,
        retiring: &retiring,
        shift: rows::shift(desired, db, &accepted),
        is_apart: closed.sets_are_apart,
    };
    let claims = rows::claims(desired, db, &keys.live, closed);
    let rows_change = !security.statements.is_empty() || !claims.is_empty();
    let apart = security.apart;

    let kept_up = adopted::not_refused(security.kept_up, closed);
    outcome.events.extend(kept_up.iter().filter_map(|it| it.joined.clone()));
    let mut push = |about: &str, login: As, statements: Vec<Statement>| {
        if !statements.is_empty() {
            outcome.ops.push(Op::new(about, login, statements));
        }
    };
    let changes = acl::changes(&grants);
    let (denied, emptied) = keys.denials();
    push("revoke keys", As::Owner, keys.revocations());
    push("deny keys that PostgreSQL refuses", As::Owner, denied);
    push("remove them from every role", As::Keys, emptied);
    push("allow the tenant's own logins to connect", As::Owner, changes.logins);
    push(CLOSE_KEYS, As::Keys, keys.closures());
    let protect = protection.before.into_iter().map(|op| (op.about, op.login, op.statements));
    protect.for_each(|(about, login, statements)| push(&about, login, statements));
    if rows_change {
        let (rows, memberships) = keys.pauses();
        push("pause keys that change their permission set", As::Owner, rows);
        push("remove them from the old one", As::Keys, memberships);
    }
    push("create roles for keys and permission sets", As::Keys, keys.creations());
    for (name, statements) in apart {
        push(&format!("row-level security of {}.{}", name.0, name.1), As::Owner, statements);
    }

    let mut statements: Vec<Statement> = changes.revokes;
    statements.extend(security.statements);
    statements.extend(claims);
    statements.extend(changes.grants);
    statements.extend(reached.given(db));
    statements.extend(rows::entities(desired, db, &accepted, &refused.away));
    statements.extend(relationships.rows(desired, db));
    statements.extend(rows::permission_sets(db, &subjects));
    statements.extend(rows::limits(desired, db));
    statements.extend(shared_record(db, &shared));
    statements.extend(keys.rows(|id| scopes.to_record(id)));
    if !statements.is_empty() {
        statements.push(records::bump().into());
        statements.extend(rows::stand_routines(&accepted).map(Statement::from));
        statements.extend(rows::stand(db, &accepted, &reached).map(Statement::from));
    }
    // views that the owner has are filtered by FORCE alone
    let (before, after) = match forces {
        true => (security.forces, Vec::new()),
        false => (Vec::new(), security.forces),
    };
    before
        .into_iter()
        .for_each(|statement| push("force row-level security on the owner", As::Owner, vec![statement]));
    push("grants, policies, claims and served entities", As::Owner, statements);
    after.into_iter().for_each(|statement| push("let the owner see its rows", As::Owner, vec![statement]));

    // before rows say that they are captured
    let capture = capture::changes(desired, db, owner, &accepted).into_iter();
    capture.for_each(|op| push(&op.about, op.login, op.statements));

    let (memberships, rows) = keys.assignments(rows_change);
    push("add keys to their permission sets", As::Keys, memberships);
    push("notify the data planes", As::Owner, rows);
    push("let new keys in", As::Owner, keys.secrets());

    let mut forgotten: Vec<Statement> = acl::retired(&grants);
    let rows = db.permission_sets.keys().filter(|role| !subjects.contains_key(*role));
    forgotten.extend(rows.map(|role| {
        let differs = stray_set(role, cluster, db);
        Statement::from(records::drop_permission_set(role)).undoing(differs)
    }));
    push("empty unused permission sets", As::Owner, forgotten);
    let mut returned = reached.returned(db);
    returned.extend(changes.of_views);
    push("give back views that no key reaches, and the rights for them", As::Owner, returned);
    for KeptUp { table, statements, .. } in kept_up {
        push(&format!("what roles of the application see of {table}"), As::Owner, statements);
    }
    for (name, statements) in adopted::given_back(desired, db) {
        push(&format!("give back {}.{}", name.0, name.1), As::Owner, statements);
    }
    // after everything that names a column which goes
    let unprotect = protection.after.into_iter().map(|op| (op.about, op.login, op.statements));
    unprotect.for_each(|(about, login, statements)| push(&about, login, statements));
    let dropped = retiring.iter().filter(|role| cluster.roles.contains_key(*role)).cloned();
    // PostgreSQL keeps a role that still holds something; what only a DBA can take back must not stop the pass
    let held = foreign::grantees(desired, db);
    let kept = |role: &String| cluster.roles.get(role).is_some_and(|present| present.held);
    let stays = |role: &String| held.contains(role.as_str()) || kept(role) || closed.roles.contains(role);
    let drops = dropped.chain(keys.gone()).filter(|role| !stays(role)).map(|role| {
        let is_unknown = role.starts_with("set_") && !db.permission_sets.contains_key(&role);
        let differs = is_unknown.then(|| format!("the row of {role} in dl.permission_sets is missing"));
        Of::Role(role.clone()).says(roles::drop(&ident(&role))).undoing(differs)
    });
    let drops: Vec<Statement> = drops.collect();
    if !drops.is_empty() {
        let about = "drop roles of no key or permission set";
        outcome.ops.push(Op::new(about, As::Keys, drops).one_by_one());
    }
    outcome.relationships = relationships.judged;
    outcome
}

/// What each live scoped key's scope comes to.
struct Scopes<'a>(BTreeMap<&'a Ulid, Rc<Rights>>);

/// What a scope comes to. Keys that say the same, and of which the same is recorded, share it: a tenant may have many keys
/// and few scopes.
struct Rights {
    records: Vec<PermissionRecord>,
    hash: String,
    /// For `dl.keys.resolved`, where something else stands there.
    to_record: Option<serde_json::Value>,
    problems: Vec<Finding>,
}

impl Rights {
    fn of_shared(shared: &Resolved) -> Rights {
        let records = shared.records();
        Rights { hash: rights::hash(&records), records, to_record: None, problems: Vec::new() }
    }

    fn of(
        permissions: &[Permission],
        generation: i64,
        recorded: Option<&serde_json::Value>,
        (accepted, away): (&BTreeMap<EntityName, Accepted<'_>>, &Away),
    ) -> Rights {
        let before = recorded.and_then(|value| Resolved::deserialize(value).ok());
        let (resolved, problems) = rights::resolve(permissions, generation, before, accepted, away);
        let records = resolved.records();
        let value = serde_json::to_value(&resolved).expect("permissions are plain values");
        let to_record = (recorded != Some(&value)).then_some(value);
        Rights { hash: rights::hash(&records), records, to_record, problems }
    }
}

/// What rights follow from: what the key says, at which generation, and what is recorded of it.
type Said<'a> = (&'a [Permission], i64, Option<&'a serde_json::Value>);

impl<'a> Scopes<'a> {
    fn new(
        live: &[&'a KeySpec],
        db: &TenantDb,
        entities: (&BTreeMap<EntityName, Accepted<'_>>, &Away),
        shared: &Resolved,
    ) -> Scopes<'a> {
        let mut of_shared = None;
        let mut same: HashMap<Said<'_>, Rc<Rights>> = HashMap::new();
        let rights = live.iter().filter_map(|key| {
            let rights = match &key.scope {
                Scope::Unscoped => return None,
                Scope::SameAsShared => {
                    of_shared.get_or_insert_with(|| Rc::new(Rights::of_shared(shared))).clone()
                }
                Scope::Permissions(permissions) => {
                    let recorded = db.keys.get(&key.id).map(|row| &row.resolved);
                    let of = || Rc::new(Rights::of(permissions, key.generation, recorded, entities));
                    same.entry((permissions, key.generation, recorded)).or_insert_with(of).clone()
                }
            };
            Some((&key.id, rights))
        });
        Scopes(rights.collect())
    }

    fn problems(&self) -> impl Iterator<Item = (Ulid, Vec<Finding>)> {
        let wrong = self.0.iter().filter(|(_, rights)| !rights.problems.is_empty());
        wrong.map(|(id, rights)| ((*id).clone(), rights.problems.clone()))
    }

    fn to_record(&self, id: &Ulid) -> Option<&serde_json::Value> {
        self.0.get(id)?.to_record.as_ref()
    }
}

/// The role that holds each key's grants, and the permissions of every such role. Equal permissions share one. A key
/// without a role holds nothing; the set of a closed key stands all the same, so that a second pass has nothing to make.
#[expect(clippy::too_many_arguments, reason = "one caller, which has just made each of them")]
fn sets(
    live: &[&KeySpec],
    scopes: &Scopes<'_>,
    shared: &Resolved,
    cluster: &Cluster,
    db: &TenantDb,
    closed: &Closed,
    new_id: &mut dyn FnMut() -> Ulid,
    outcome: &mut Outcome,
) -> (BTreeMap<Ulid, String>, BTreeMap<String, Vec<PermissionRecord>>) {
    let mut by_hash: BTreeMap<String, String> = db
        .permission_sets
        .iter()
        .filter(|(role, _)| role.starts_with("set_") && cluster.roles.contains_key(*role))
        .map(|(role, set)| (set.hash.clone(), role.clone()))
        .collect();
    let mut sets = BTreeMap::new();
    let mut subjects = BTreeMap::from([(SHARED_ROLE.to_owned(), shared.records())]);
    for key in live {
        let closed_key = closed.keys.get(&key.id);
        if let Some(finding) = closed_key {
            outcome.key_problems.entry(key.id.clone()).or_default().push(finding.clone());
        }
        let Some(rights) = scopes.0.get(&key.id) else {
            if closed_key.is_none() {
                sets.insert(key.id.clone(), SHARED_ROLE.to_owned());
            }
            continue;
        };
        if let Some(finding) = closed.sets.get(&rights.hash) {
            outcome.key_problems.entry(key.id.clone()).or_default().push(finding.clone());
            continue;
        }
        let role = match by_hash.get(&rights.hash) {
            Some(role) => role.clone(),
            None => by_hash.entry(rights.hash.clone()).or_insert_with(|| set_role(&new_id())).clone(),
        };
        if !subjects.contains_key(&role) && MAX_SETS < subjects.len() {
            let problem = format!(
                "the tenant has {MAX_SETS} distinct permission sets, which is the maximum that PostgreSQL's ACLs hold; let keys share scopes"
            );
            outcome
                .key_problems
                .entry(key.id.clone())
                .or_default()
                .push(Finding::new(Reason::TooManyPermissionSets, problem));
            continue;
        }
        subjects.entry(role.clone()).or_insert_with(|| rights.records.clone());
        if closed_key.is_none() {
            sets.insert(key.id.clone(), role);
        }
    }
    (sets, subjects)
}

/// What is wrong with a row of `dl.permission_sets` that goes; `None`: no key has the rights in it any more.
fn stray_set(role: &str, cluster: &Cluster, db: &TenantDb) -> Option<String> {
    if !role.starts_with("set_") {
        return Some(format!("the row of {role} was added to dl.permission_sets"));
    }
    if !cluster.roles.contains_key(role) {
        return Some(format!("role {role} is missing"));
    }
    let set = db.permission_sets.get(role)?;
    let is_other = set.hash != rights::hash(&set.permissions);
    is_other.then(|| format!("the row of {role} in dl.permission_sets was changed"))
}

/// What `['*']` of the shared permissions meant for this generation.
fn shared_record(db: &TenantDb, shared: &Resolved) -> Option<Statement> {
    let text = serde_json::to_string(shared).expect("permissions are plain values");
    let there = db.applied.get(&("resolved".to_owned(), "shared".to_owned()));
    let same = there.is_some_and(|applied| applied.recorded == text);
    let put = || records::put_applied("resolved", "shared", &shared.generation.to_string(), &text);
    let differs = "the columns of the shared permissions differ from those in dl.applied";
    (!same).then(|| Statement::from(put()).undoing([differs.to_owned()]))
}
