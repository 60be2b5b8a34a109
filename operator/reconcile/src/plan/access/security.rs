//! Row-level security: ENABLE and exactly the policies that the manifest says.

use std::collections::{BTreeMap, BTreeSet};

use rowgate_core::name::EntityName;
use rowgate_core::role::SHARED_ROLE;
use rowgate_crds::Reason;
use rowgate_pg::introspect::actual::{Cluster, QName, Relation, TenantDb};
use rowgate_sql::catalog::{Action, EntityKind};
use rowgate_sql::ddl::policies::{self, Command, Condition, PolicyDef, Rows};
use rowgate_sql::ddl::records;
use rowgate_sql::text::{Ident, Sql};
use sha2::{Digest as _, Sha256};

use super::adopted::{self, KeptUp, replaced};
use crate::desired::{Desired, PolicySpec, RowsSpec, Scope, Security};
use crate::plan::accept::{Accepted, qname};
use crate::plan::keys::Keys;
use crate::plan::relationships::is_link;
use crate::plan::{Finding, Of, Statement, differences};
use crate::source::Event;

/// The statements, whether one of them changes which rows a role sees, and the sentences for status.
#[derive(Debug, Default)]
pub(in crate::plan) struct Changes {
    pub(in crate::plan) statements: Vec<Statement>,
    /// Of tables that nothing is served of yet, in a database with other writers: what each comes to in a transaction of its own, which locks no
    /// other table.
    pub(in crate::plan) apart: Vec<(QName, Vec<Statement>)>,
    /// Of tables whose entities cannot be served now: the same for the application's policies alone.
    pub(in crate::plan) kept_up: Vec<KeptUp>,
    /// FORCE or NO FORCE of a table each, in a transaction of its own: readers of several tables would lock some of them the other way round.
    pub(in crate::plan) forces: Vec<Statement>,
    pub(in crate::plan) notes: Vec<String>,
    /// Of roles that were given rights on tables of an application.
    pub(in crate::plan) events: Vec<Event>,
    /// By entity: why its policies cannot be made.
    pub(in crate::plan) problems: BTreeMap<String, Finding>,
}

/// `forces`: the owner of a table is filtered, too.
pub(in crate::plan) fn changes(
    desired: &Desired,
    cluster: &Cluster,
    forces: bool,
    db: &TenantDb,
    accepted: &BTreeMap<EntityName, Accepted<'_>>,
) -> Changes {
    let mut changes = Changes::default();
    let mut done: BTreeSet<QName> = BTreeSet::new();
    let tables = accepted.values().filter(|entity| entity.spec.kind == EntityKind::Table);
    // the entity that declares the table's security speaks for all entities over it
    let mut tables: Vec<_> = tables.collect();
    tables.sort_by_key(|it| (it.spec.security == Security::LeftOut, is_link(&it.spec.name)));
    for entity in tables {
        let Some(relation) = entity.relation().filter(|_| done.insert(qname(entity.spec))) else { continue };
        if entity.spec.security == Security::LeftOut {
            changes.notes.push(format!(
                "entities[{}]: rowLevelSecurity is not set, so no key sees any row; add policies, or set none",
                entity.spec.name
            ));
        }
        changes.notes.extend(nobodies(desired, entity));
        match definitions(desired, db, entity, relation) {
            Ok(mut wanted) => {
                let adopted = desired.is_adopted.then_some(cluster);
                if let (Some(cluster), Some(wanted)) = (adopted, &mut wanted) {
                    let name = qname(entity.spec);
                    let names = wanted.iter().map(|it| it.name.as_str()).collect();
                    if let Err(finding) = replaced::collides(db, &name, relation, &names) {
                        changes.problems.insert(entity.spec.name.to_string(), finding);
                        continue;
                    }
                    match replaced::has_own(db, &name, relation) {
                        true => changes.events.extend(replaced::joined(cluster, db, &name, relation)),
                        false => {
                            wanted.push(adopted::policy(cluster, relation));
                            changes.events.extend(adopted::joined(cluster, &name, relation));
                        }
                    }
                }
                let statements = table((forces, adopted), db, entity, relation, &wanted);
                match desired.is_adopted && !is_served(db, &qname(entity.spec)) {
                    true if statements.is_empty() => {}
                    true => changes.apart.push((qname(entity.spec), statements)),
                    false => changes.statements.extend(statements),
                }
                if !desired.is_adopted {
                    changes.forces.extend(force(forces, entity, relation));
                }
            }
            Err(finding) => {
                changes.problems.insert(entity.spec.name.to_string(), finding);
            }
        }
    }
    if desired.is_adopted {
        changes.kept_up = adopted::kept_up(desired, cluster, db, &done);
    }
    changes
}

/// Whether an entity over the table is served, to which keys have rights.
fn is_served(db: &TenantDb, name: &QName) -> bool {
    db.entities.values().any(|record| (record.schema.as_str(), record.object.as_str()) == (&name.0, &name.1))
}

/// The policies a table should have; `None`: those it has.
fn definitions(
    desired: &Desired,
    db: &TenantDb,
    entity: &Accepted<'_>,
    relation: &Relation,
) -> Result<Option<Vec<PolicyDef>>, Finding> {
    match &entity.spec.security {
        Security::Existing => Ok(None),
        Security::LeftOut => Ok(Some(Vec::new())),
        Security::Open => {
            let rows = Condition { roles: None, permissive: true, rows: Rows::All };
            // the application's roles come under its own policies
            let for_keys = desired.is_adopted && replaced::has_own(db, &qname(entity.spec), relation);
            let to = if for_keys { every_key(desired, db) } else { Vec::new() };
            Ok(Some(vec![PolicyDef {
                name: ident("all_rows"),
                permissive: true,
                command: Command::All,
                to: to.iter().map(|role| ident(role)).collect(),
                using: Some(rows),
                check: None,
            }]))
        }
        Security::Policies(specs) => {
            let each = specs.iter().map(|spec| one(desired, db, entity, spec));
            Ok(Some(each.collect::<Result<Vec<_>, _>>()?.concat()))
        }
    }
}

/// A policy of the manifest is one of PostgreSQL for all four actions, or one for each action it names.
fn one(
    desired: &Desired,
    db: &TenantDb,
    entity: &Accepted<'_>,
    spec: &PolicySpec,
) -> Result<Vec<PolicyDef>, Finding> {
    let mut roles = match &spec.roles {
        None => None,
        Some(names) => Some(roles(desired, spec, names)?),
    };
    // on an application's table it is for keys alone: others may read nothing of what it reads. No view there is an entity, so that `TO` holds
    let mut to: Vec<Ident> = Vec::new();
    if desired.is_adopted {
        to = roles.take().unwrap_or_else(|| every_key(desired, db)).iter().map(|role| ident(role)).collect();
        if to.is_empty() {
            return Ok(Vec::new());
        }
    }
    let condition = |rows: Rows| Condition { roles: roles.clone(), permissive: !spec.restrictive, rows };
    let using = condition(rows(entity, spec)?);
    let check = spec.check.as_ref().map(|text| condition(Rows::Expression(text.clone())));
    let every = [Action::Read, Action::Create, Action::Update, Action::Delete];
    let commands: Vec<Command> = match every.iter().all(|action| spec.actions.contains(action)) {
        true => vec![Command::All],
        false => every
            .iter()
            .filter(|action| spec.actions.contains(action))
            .filter_map(|action| command(*action))
            .collect(),
    };
    let one_only = commands.len() == 1;
    let named = |command: Command| -> Result<Ident, Finding> {
        let name = match one_only {
            true => spec.name.as_str().to_owned(),
            false => format!("{}:{}", spec.name.as_str(), command.as_str().to_ascii_lowercase()),
        };
        Ident::new(name).ok_or_else(|| {
            Finding::new(
                Reason::PolicyRefused,
                format!("the policy name {:?} is too long; shorten it", spec.name),
            )
        })
    };
    let definition = |command: Command| -> Result<PolicyDef, Finding> {
        let (using, check) = match command {
            Command::Insert => (None, Some(check.clone().unwrap_or_else(|| using.clone()))),
            Command::Select | Command::Delete => (Some(using.clone()), None),
            Command::All | Command::Update => (Some(using.clone()), check.clone()),
        };
        let (name, to) = (named(command)?, to.clone());
        Ok(PolicyDef { name, permissive: !spec.restrictive, command, to, using, check })
    };
    commands.into_iter().map(definition).collect()
}

/// `None`: rows have nothing to do with it.
fn command(action: Action) -> Option<Command> {
    match action {
        Action::Read => Some(Command::Select),
        Action::Create => Some(Command::Insert),
        Action::Update => Some(Command::Update),
        Action::Delete => Some(Command::Delete),
        Action::Execute => None,
    }
}

/// Names in `roles` that are not an ApiKey: a restrictive policy with a misspelt name restricts no key.
fn nobodies(desired: &Desired, entity: &Accepted<'_>) -> Vec<String> {
    let Security::Policies(specs) = &entity.spec.security else { return Vec::new() };
    let unknown = |name: &&String| *name != SHARED_ROLE && !desired.keys.iter().any(|key| key.name == **name);
    let of = |spec: &PolicySpec| {
        let names: Vec<String> = spec.roles.iter().flatten().filter(unknown).cloned().collect();
        let sentence = |name: String| {
            format!(
                "entities[{}]: policy {:?} names {name}, which is not an ApiKey of this tenant, so the policy applies to no key; correct roles",
                entity.spec.name, spec.name
            )
        };
        names.into_iter().map(sentence).collect::<Vec<_>>()
    };
    specs.iter().flat_map(of).collect()
}

/// The database roles of all keys that live.
fn every_key(desired: &Desired, db: &TenantDb) -> Vec<String> {
    let live = Keys::live(desired, db).into_iter().map(|key| key.role().to_string());
    live.chain([SHARED_ROLE.to_owned()]).collect::<BTreeSet<String>>().into_iter().collect()
}

/// Database roles for names of ApiKeys. An unknown name stands for no role.
fn roles(desired: &Desired, spec: &PolicySpec, names: &[String]) -> Result<Vec<String>, Finding> {
    let mut roles = Vec::new();
    for name in names {
        if name == SHARED_ROLE {
            roles.push(SHARED_ROLE.to_owned());
            continue;
        }
        match desired.keys.iter().find(|key| key.name == *name) {
            Some(key) if key.scope == Scope::Unscoped => {
                let message = format!(
                    "policy {:?} names the unscoped key {name}, which is datalake_user in the database, as every unscoped key is; use datalake_user in roles",
                    spec.name
                );
                return Err(Finding::new(Reason::PolicyRefused, message));
            }
            Some(key) => roles.push(key.role().to_string()),
            None => {}
        }
    }
    Ok(roles)
}

fn rows(entity: &Accepted<'_>, spec: &PolicySpec) -> Result<Rows, Finding> {
    let typed = |field: &str| -> Result<(Ident, String), Finding> {
        let column = entity
            .column(field)
            .and_then(|name| entity.relation()?.columns.iter().find(|column| column.name == name))
            .ok_or_else(|| {
                let message = format!(
                    "policy {:?} names the field {field}, which it does not have; correct column",
                    spec.name
                );
                Finding::new(Reason::FieldNotFound, message)
            })?;
        Ok((ident(&column.name), column.type_name.clone()))
    };
    Ok(match &spec.rows {
        RowsSpec::Expression(text) if text.trim() == "true" => Rows::All,
        RowsSpec::Expression(text) => Rows::Expression(text.clone()),
        RowsSpec::Claim { field, claim } => {
            let (column, type_name) = typed(field)?;
            Rows::Claim { column, type_name, claim: claim.clone() }
        }
        RowsSpec::Literal { field, value } => {
            let (column, type_name) = typed(field)?;
            Rows::Literal { column, type_name, value: value.clone() }
        }
    })
}

/// What makes the owner filtered or not, where policies hold already.
fn force(forces: bool, entity: &Accepted<'_>, relation: &Relation) -> Option<Statement> {
    if !relation.rls_enabled || relation.rls_forced == forces {
        return None;
    }
    let not = if forces { "not " } else { "" };
    let differs = format!("row-level security of {} is {not}forced on its owner", differences::table(entity));
    let enable = policies::enable(&entity.spec.schema, &entity.spec.object, forces);
    Some(Of::Policies(entity.spec.name.to_string()).says(enable).undoing([differs]))
}

fn table(
    (forces, adopted): (bool, Option<&Cluster>),
    db: &TenantDb,
    entity: &Accepted<'_>,
    relation: &Relation,
    wanted: &Option<Vec<PolicyDef>>,
) -> Vec<Statement> {
    let (schema, object) = (&entity.spec.schema, &entity.spec.object);
    let (of, table) = (Of::Policies(entity.spec.name.to_string()), differences::table(entity));
    let says = |sql: Sql| of.clone().says(sql);
    let mut statements = Vec::new();
    if !relation.rls_enabled {
        let off = format!("row-level security of {table} is off");
        let enable = match adopted.is_some() {
            true => policies::enable_only(schema, object),
            false => policies::enable(schema, object, forces),
        };
        statements.push(says(enable).undoing([off]));
    }
    let Some(wanted) = wanted else { return statements };
    let name = qname(entity.spec);
    let taken = adopted.into_iter().flat_map(|cluster| adopted::taken(cluster, db, &name, relation));
    statements.extend(taken.map(&says));
    let is_theirs =
        |policy: &str| adopted.is_some_and(|cluster| replaced::stays(cluster, db, &name, relation, policy));
    let record = |policy: &str| adopted::policy_record(&name, policy);
    let stands = |definition: &PolicyDef| -> bool {
        let name = definition.name.as_str();
        let applied = db.applied.get(&("policy".to_owned(), record(name)));
        let recorded = relation.policies.get(name).map(|policy| {
            let roles: Vec<&str> = policy.roles.iter().map(String::as_str).collect();
            let (using, check) = (policy.using.as_deref(), policy.check.as_deref());
            records::recorded_policy(policy.permissive, policy.command, &roles, using, check)
        });
        applied.is_some_and(|applied| {
            applied.hash == hash(schema, object, definition) && Some(&applied.recorded) == recorded.as_ref()
        })
    };
    let keep: BTreeSet<&str> = wanted.iter().filter(|def| stands(def)).map(|def| def.name.as_str()).collect();
    let others = relation.policies.keys().filter(|name| !keep.contains(name.as_str()) && !is_theirs(name));
    for name in others {
        let is_wanted = wanted.iter().any(|definition| definition.name.as_str() == name);
        let added = (!is_wanted).then(|| format!("policy {name} on {table} was added"));
        statements.extend(policies::drop(schema, object, name).map(|sql| says(sql).undoing(added)));
        if !is_wanted {
            statements.push(says(records::drop_applied("policy", &record(name))));
        }
    }
    for definition in wanted.iter().filter(|def| !keep.contains(def.name.as_str())) {
        let name = definition.name.as_str();
        let (record, hash) = (record(name), hash(schema, object, definition));
        let applied = db.applied.get(&("policy".to_owned(), record.clone()));
        let differs = match (relation.policies.contains_key(name), applied) {
            (false, _) => Some("is missing"),
            (true, None) => Some("is not recorded in dl.applied"),
            // its manifest, or a role that it names, is another one
            (true, Some(applied)) if applied.hash != hash => None,
            (true, Some(_)) => Some("was changed"),
        };
        let differs = differs.map(|differs| format!("policy {name} on {table} {differs}"));
        statements.push(says(policies::create(schema, object, definition)).undoing(differs));
        let row = records::record_policy(&record, &hash, schema.as_str(), object.as_str(), name);
        statements.push(says(row));
    }
    statements
}

/// Of a policy of the plan, as it is recorded in `dl.applied`.
pub(super) fn hash(schema: &Ident, object: &Ident, definition: &PolicyDef) -> String {
    let text = policies::create(schema, object, definition);
    Sha256::digest(text.as_str()).iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

fn ident(name: &str) -> Ident {
    Ident::new(name).expect("a name that PostgreSQL reported, or ours")
}
