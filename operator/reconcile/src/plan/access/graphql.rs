//! What GraphQL leaves out of a schema, because it cannot spell its name or something else has it.

use std::collections::BTreeMap;

use rowgate_core::name::EntityName;
use rowgate_sql::graphql_names::{Names, Taken, is_name};

use super::bounded;
use crate::plan::accept::{Accepted, exposed};

const MAX_FIELDS: usize = 5;

/// A sentence for each entity that a schema of all entities leaves out, whole or some fields of it.
pub(in crate::plan) fn sentences(accepted: &BTreeMap<EntityName, Accepted<'_>>) -> Vec<String> {
    let mut taken = Taken::default();
    let mut sentences = Vec::new();
    for (name, entity) in accepted {
        let spec = entity.spec;
        if !spec.graphql.enabled.unwrap_or(spec.rest) {
            continue;
        }
        let names = Names::new(name, &spec.graphql);
        if !taken.takes(&names, entity.relation().is_none()) {
            sentences.push(format!(
                "entities[{name}]: GraphQL leaves it out, because its type {} or a name that is made of it has another meaning there; set graphql.singular and graphql.plural",
                names.ty
            ));
            continue;
        }
        let columns = entity.relation().into_iter().flat_map(|relation| &relation.columns);
        let fields = columns.map(|column| exposed(&spec.mappings, &column.name));
        let unspelt: Vec<String> =
            fields.filter(|field| !is_name(field)).map(|field| format!("{field:?}")).collect();
        if !unspelt.is_empty() {
            let more = unspelt.len().saturating_sub(MAX_FIELDS);
            let more = if more == 0 { String::new() } else { format!(" and {more} more") };
            let shown = unspelt.iter().take(MAX_FIELDS).cloned().collect::<Vec<_>>().join(", ");
            sentences.push(format!(
                "entities[{name}]: GraphQL leaves out the fields {shown}{more}, whose names it cannot spell; give them other names in mappings"
            ));
        }
    }
    bounded(sentences, |more| format!("GraphQL leaves out something of {more} more entities"))
}
