//! Which tables become entities, and why the others do not.

use std::collections::BTreeSet;

use rowgate_core::nearest::nearest;
use rowgate_pg::introspect::Application;
use rowgate_pg::introspect::actual::{Relation, RelationKind};
use rowgate_reconcile::plan::adoptable;

use super::AdoptError;
use super::entity_names::EntityNames;

/// Entities of a Tenant.
const MAX_ENTITIES: usize = 500;

/// A table with its entity's name.
#[derive(Debug, Clone)]
pub(super) struct Table<'a> {
    pub(super) entity: String,
    pub(super) schema: &'a str,
    pub(super) name: &'a str,
    pub(super) relation: &'a Relation,
    /// The application has row-level security on it.
    pub(super) is_filtered: bool,
}

/// The tables in the order of the schemas, then of their names, and a sentence for each that is left out.
#[derive(Debug, Clone, Default)]
pub(super) struct Chosen<'a> {
    pub(super) tables: Vec<Table<'a>>,
    pub(super) left_out: Vec<String>,
}

/// At least one table.
pub(super) fn choose<'a>(application: &'a Application, schemas: &[String]) -> Result<Chosen<'a>, AdoptError> {
    let unknown = |schema: &String| no_schema(application, schema);
    let mistakes: Vec<String> = schemas.iter().filter_map(unknown).collect();
    if !mistakes.is_empty() {
        return Err(AdoptError::Mistakes(mistakes.join("\n")));
    }
    let mut chosen = Chosen::default();
    let (mut names, mut seen) = (EntityNames::default(), BTreeSet::new());
    for schema in schemas.iter().filter(|schema| seen.insert(*schema)) {
        for (name, relation) in &application.relations {
            if name.0 != *schema || relation.kind == RelationKind::Sequence {
                continue;
            }
            let (schema, table) = (name.0.as_str(), name.1.as_str());
            match adoptable(name, relation, &application.owner) {
                Err(finding) => chosen.left_out.push(finding.message),
                Ok(_) if chosen.tables.len() == MAX_ENTITIES => chosen.left_out.push(format!(
                    "{schema}.{table} is beyond the {MAX_ENTITIES} entities that a Tenant has at most; take another entity out to add it"
                )),
                Ok(is_filtered) => {
                    let entity = names.free(schema, table);
                    chosen.tables.push(Table { entity, schema, name: table, relation, is_filtered });
                }
            }
        }
    }
    if !chosen.tables.is_empty() {
        return Ok(chosen);
    }
    let schemas = format!("{} of database {}", schemas.join(", "), application.database);
    Err(AdoptError::Mistakes(match chosen.left_out.is_empty() {
        true => format!(
            "no table is in schema {schemas}; name the schema of the application's tables with --schema"
        ),
        false => format!("no table in schema {schemas} can be adopted:\n{}", chosen.left_out.join("\n")),
    }))
}

fn no_schema(application: &Application, schema: &str) -> Option<String> {
    if application.schemas.contains(schema) {
        return None;
    }
    let known = || application.schemas.iter().map(String::as_str);
    let hint = match nearest(schema, known()) {
        Some(near) => format!("did you mean {near}?"),
        None => format!("it has {}", known().collect::<Vec<_>>().join(", ")),
    };
    Some(format!("--schema: there is no schema {schema} in database {}; {hint}", application.database))
}
