//! WebhookSubscriptions: what is wrong with each, and the statements that make its row what its manifest says. `state` is
//! a fact: nothing here changes it.

use std::collections::BTreeSet;

use rowgate_core::name::{EntityName, Ulid};
use rowgate_core::webhook::destination::{Destination, Policy};
use rowgate_crds::Reason;
use rowgate_pg::introspect::actual::TenantDb;
use rowgate_pg::tenant::declared::Declared;
use rowgate_sql::catalog::EntityKind;
use rowgate_sql::ddl::subscriptions::{self, Settings};
use rowgate_sql::for_json::{Variable, translate};

use super::{As, Finding, Op, Statement};
use crate::desired::{Desired, SubscriptionSpec};

/// What the row is to hold. `served`: the entities that are served.
///
/// # Errors
///
/// Everything that a person has to change first.
pub fn judge(
    spec: &SubscriptionSpec,
    desired: &Desired,
    served: &[EntityName],
    db: &TenantDb,
    policy: &Policy,
) -> Result<Settings, Vec<Finding>> {
    let mut findings = Vec::new();
    let owner = desired.keys.iter().find(|key| key.name == spec.owner && db.keys.contains_key(&key.id));
    if owner.is_none() {
        let message = format!(
            "spec.ownerRef: there is no ApiKey {} of this Tenant with an id; apply it, or name another one",
            spec.owner
        );
        findings.push(Finding::new(Reason::OwnerNotFound, message));
    }
    if let Err(refusal) = Destination::parse(&spec.settings.url, policy) {
        findings.push(Finding::new(Reason::InvalidSpec, format!("spec.url: {refusal}; change spec.url")));
    }
    if let Some(text) = spec.settings.payload_query.as_deref().filter(|text| !text.trim().is_empty())
        && let Err(refusal) = translate(text, &variables(text))
    {
        findings.push(Finding::new(
            Reason::InvalidSpec,
            format!("spec.payloadQuery: {refusal}; change it there"),
        ));
    }
    let tables = spec.settings.tables.iter().flatten();
    findings.extend(tables.filter_map(|table| table_problem(table, desired, served)));
    match owner {
        Some(owner) if findings.is_empty() => {
            Ok(Settings { owner_key: owner.id.to_string(), ..spec.settings.clone() })
        }
        _ => Err(findings),
    }
}

/// What a payload query names with `@`. Which of them are key columns, and of which types, the data plane knows, which has it
/// prepared before a delivery.
fn variables(text: &str) -> Vec<Variable> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let names = text.split('@').skip(1).map(|rest| rest.split(|c| !is_part(c)).next().unwrap_or_default());
    let own = Variable::of_every_event();
    let names = names.filter(|name| !name.is_empty() && !name.starts_with("dl_")).collect::<BTreeSet<_>>();
    own.into_iter().chain(names.into_iter().map(|name| Variable::new(name, "text"))).collect()
}

/// Why no events of this table can be sent.
fn table_problem(table: &str, desired: &Desired, served: &[EntityName]) -> Option<Finding> {
    let is_it = |schema: &str, object: &str| table.split_once('.') == Some((schema, object));
    let found = desired
        .entities
        .iter()
        .find(|it| it.name.as_str() == table || is_it(it.schema.as_str(), it.object.as_str()));
    let at = "spec.filter.tables";
    let Some(entity) = found else {
        let message =
            format!("{at}: there is no entity {table:?}; add it to the Tenant, or take it out of the filter");
        return Some(Finding::new(Reason::EntityNotFound, message));
    };
    if entity.kind != EntityKind::Table {
        let message = format!(
            "{at}: {table} is not an entity of kind Table, and only tables have events; name the tables under it"
        );
        return Some(Finding::new(Reason::SourceUnsupported, message));
    }
    if !entity.events {
        let message = format!("{at}: the entity {table} has no events; set events: true on it in the Tenant");
        return Some(Finding::new(Reason::InvalidSpec, message));
    }
    (!served.contains(&entity.name)).then(|| {
        let message = format!("{at}: the entity {table} is not served; the Tenant's status says why");
        Finding::new(Reason::EntityNotFound, message)
    })
}

/// The operation that makes or changes one row, and its secret: `sealed` is one that replaces those that sign now. `None`:
/// all is as it should be.
pub fn write(
    spec: &SubscriptionSpec,
    id: &Ulid,
    settings: &Settings,
    row: Option<&Declared>,
    sealed: Option<(&Ulid, &[u8])>,
) -> Option<Op> {
    let mut statements: Vec<Statement> = Vec::new();
    match row {
        None => statements.push(subscriptions::insert(id.as_str(), &spec.uid, settings).into()),
        Some(row) if row.settings != *settings => {
            statements.push(subscriptions::update(id.as_str(), settings).into());
        }
        Some(_) => {}
    }
    if let Some((secret, sealed)) = sealed {
        let hex: String = sealed.iter().map(|byte| format!("{byte:02x}")).collect();
        statements.push(subscriptions::retire_secrets(id.as_str()).into());
        statements.push(subscriptions::insert_secret(secret.as_str(), id.as_str(), &hex).into());
    }
    let about = format!("write the webhook subscription {}", spec.object);
    (!statements.is_empty()).then(|| Op::new(&about, As::Records, statements))
}

/// The operation that removes the rows that no object declares any more. `wanted`: uids of those that do, read or not.
pub fn removals(rows: &[Declared], wanted: &BTreeSet<&str>) -> Option<Op> {
    let gone = rows.iter().filter(|row| !wanted.contains(row.uid.as_str()));
    let statements: Vec<Statement> = gone.map(|row| subscriptions::delete(row.id.as_str()).into()).collect();
    (!statements.is_empty()).then(|| Op::new("remove webhook subscriptions", As::Records, statements))
}
