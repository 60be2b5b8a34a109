//! Relationships of the foreign keys of a tenant's database.

use std::collections::{BTreeMap, BTreeSet};
use std::iter;
use std::path::Path;

use rowgate_core::role::TenantLogin;
use rowgate_crds::{Cardinality, End, Entity, Relationship, Tenant};
use rowgate_pg::connect::session;
use rowgate_pg::introspect::actual::{QName, Relation, TenantDb};
use rowgate_pg::introspect::tenant_db;
use serde_json::{Value, json};

use super::SetRelationshipError;
use super::draft::{Draft, name_of};
use crate::psql;

/// One for each foreign key between tables of two entities that none of `others` joins.
pub(super) fn drafts(
    state: &Path,
    tenant: &Tenant,
    others: &[&Relationship],
) -> Result<Vec<Draft>, SetRelationshipError> {
    Ok(made(&read(state, tenant.slug())?.relations, &tenant.spec.entities, others))
}

/// The manifests of one for each foreign key between tables of two entities of a Tenant that has none yet, or why a foreign key cannot have one.
pub(crate) fn manifests(
    relations: &BTreeMap<QName, Relation>,
    tenant: &Tenant,
) -> Vec<Result<Value, String>> {
    let name = tenant.metadata.name.as_deref().unwrap_or_default();
    let mut objects = BTreeSet::new();
    let manifest = |draft: Draft| -> Result<Value, String> {
        let mut manifest = draft.manifest(name, Some(tenant), &[]).map_err(|error| {
            let fields = draft.from.1.join(", ");
            format!("the foreign key ({fields}) of {} has no Relationship: {error}", draft.from.0)
        })?;
        // entities a and a_b with relationships b_c and c are both a-b-c
        let name = draft.object_name();
        let numbered = (2..).map(|n| format!("{name}-{n}"));
        let free = iter::once(name.clone()).chain(numbered).find(|it| objects.insert(it.clone()));
        manifest["metadata"]["name"] = json!(free);
        Ok(manifest)
    };
    made(relations, &tenant.spec.entities, &[]).into_iter().map(manifest).collect()
}

#[tokio::main(flavor = "current_thread")]
async fn read(state: &Path, slug: &str) -> Result<TenantDb, SetRelationshipError> {
    let login = psql::login(state, slug, TenantLogin::Records).await?;
    let mut conn = session::connect(&login).await.map_err(SetRelationshipError::ForeignKeys)?;
    tenant_db(&mut conn).await.map_err(SetRelationshipError::ForeignKeys)
}

fn made(relations: &BTreeMap<QName, Relation>, entities: &[Entity], others: &[&Relationship]) -> Vec<Draft> {
    let mut names = Names::of(relations, entities, others);
    let mut drafts = Vec::new();
    for entity in entities {
        let Some(relation) = relations.get(&table(entity)) else { continue };
        for key in &relation.foreign_keys {
            let Some(to) = entities.iter().find(|to| table(to) == key.table) else { continue };
            let from = (entity.name.clone(), fields(entity, &key.columns));
            let to = (to.name.clone(), fields(to, &key.table_columns));
            if !others.iter().any(|other| joins(other, &from, &to)) {
                let of_field = name_of(&from.1).unwrap_or_else(|| to.0.clone());
                let name = names.free(&from.0, [of_field, to.0.clone()]);
                let by = format!("{}_by_{name}", from.0);
                let inverse = Some(names.free(&to.0, [from.0.clone(), by]));
                let cardinality = Cardinality::One;
                drafts.push(Draft {
                    name,
                    from,
                    to,
                    through: None,
                    cardinality,
                    assume_unique: false,
                    inverse,
                });
            }
        }
    }
    drafts
}

fn table(entity: &Entity) -> (String, String) {
    (entity.source.schema.clone(), entity.source.object.clone())
}

/// The names by which callers see columns.
fn fields(entity: &Entity, columns: &[String]) -> Vec<String> {
    columns.iter().map(|column| entity.mappings.get(column).unwrap_or(column).clone()).collect()
}

/// Whether a Relationship compares these fields, in either direction; without fields it takes the only foreign key.
fn joins(other: &Relationship, from: &(String, Vec<String>), to: &(String, Vec<String>)) -> bool {
    let same = |end: &End, (entity, fields): &(String, Vec<String>)| {
        end.entity == *entity && (end.fields.is_empty() || end.fields == *fields)
    };
    let spec = &other.spec;
    let is_there = same(&spec.from, from) && same(&spec.to, to);
    spec.through.is_none() && (is_there || same(&spec.from, to) && same(&spec.to, from))
}

/// What the members of each entity's rows are called already.
struct Names(BTreeSet<(String, String)>);

impl Names {
    fn of(relations: &BTreeMap<QName, Relation>, entities: &[Entity], others: &[&Relationship]) -> Names {
        let mut names = BTreeSet::new();
        for entity in entities {
            let Some(relation) = relations.get(&table(entity)) else { continue };
            let columns: Vec<String> = relation.columns.iter().map(|column| column.name.clone()).collect();
            names.extend(fields(entity, &columns).into_iter().map(|field| (entity.name.clone(), field)));
        }
        for other in others {
            names.insert((other.spec.from.entity.clone(), other.spec.name.clone()));
            let inverse = other.spec.inverse.clone();
            names.extend(inverse.map(|inverse| (other.spec.to.entity.clone(), inverse)));
        }
        Names(names)
    }

    /// The first of the wishes that is free, else the last one with a number; taken from now on.
    fn free(&mut self, entity: &str, wishes: [String; 2]) -> String {
        let numbered = (2..).map(|n| format!("{}_{n}", wishes[1]));
        let is_free = |name: &String| !self.0.contains(&(entity.to_owned(), name.clone()));
        let name = wishes.iter().cloned().chain(numbered).find(is_free).expect("there are numbers enough");
        self.0.insert((entity.to_owned(), name.clone()));
        name
    }
}
