//! The payload query of a subscription, translated once for each of its tables, and what it makes of events.

use std::collections::HashMap;
use std::sync::Arc;

use rowgate_pg::tenant::events::Change;
use rowgate_sql::catalog::Entity;
use rowgate_sql::for_json::{PayloadQuery, Variable, translate};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::{PayloadError, check, run};
use crate::api::events::request::op_name;
use crate::auth::key_context::KeyContext;
use crate::tenants::tenant::Tenant;

/// By the oids of the tables.
pub(crate) struct PayloadQueries(HashMap<u32, OfTable>);

struct OfTable {
    entity: Arc<Entity>,
    query: PayloadQuery,
}

/// What of an event stands at its end.
#[derive(Deserialize)]
struct EventParts<'a> {
    #[serde(borrow)]
    key: &'a RawValue,
    #[serde(borrow)]
    data: &'a RawValue,
}

impl PayloadQueries {
    /// Of a text that may be blank, which is none. A variable must be a column of the key of every table.
    pub(crate) fn new(
        context: &KeyContext,
        text: Option<&str>,
        tables: &[u32],
    ) -> Result<Option<PayloadQueries>, PayloadError> {
        let Some(text) = text.filter(|text| !text.trim().is_empty()) else { return Ok(None) };
        if !context.writes_sql() {
            let what = "PUBLIC may execute or read something in the tenant's database that no policy filters, so that no SQL of callers runs there; leave payloadQuery out";
            return Err(PayloadError::Query(what.to_owned()));
        }
        let mut queries = HashMap::with_capacity(tables.len());
        for table in tables {
            let entities = context.snapshot.catalog.entities.values();
            let mut of_table = entities.filter(|entity| entity.relations.first() == Some(table));
            let Some(entity) = of_table.next().cloned() else { continue };
            let mut variables = Variable::of_every_event();
            variables.extend(entity.key.iter().map(|field| {
                let field = &entity.fields[*field];
                Variable::new(field.column.as_str(), field.ty.name.as_str())
            }));
            let query = translate(text, &variables)
                .map_err(|refusal| PayloadError::Query(format!("{} ({})", refusal, entity.name)))?;
            queries.insert(*table, OfTable { entity, query });
        }
        Ok(Some(PayloadQueries(queries)))
    }

    /// Has PostgreSQL prepare it for each table, as the key.
    pub(crate) async fn check(&self, tenant: &Arc<Tenant>, context: &KeyContext) -> Result<(), PayloadError> {
        for of_table in self.0.values() {
            check(tenant, context, &of_table.query).await?;
        }
        Ok(())
    }

    /// The event with what the query makes of it in the place of its data; as it was where that is nothing.
    pub(crate) async fn applied(
        &self,
        tenant: &Arc<Tenant>,
        context: &KeyContext,
        change: &Change,
        event: &str,
    ) -> Result<String, PayloadError> {
        let of_table = self.0.get(&change.table).zip(serde_json::from_str::<EventParts<'_>>(event).ok());
        // a truncate has neither key nor data
        let Some((OfTable { entity, query }, ending)) = of_table else { return Ok(event.to_owned()) };
        let image: Value =
            change.image.as_deref().and_then(|image| serde_json::from_str(image).ok()).unwrap_or_default();
        let value = |name: &str| match name {
            "dl_op" => Some(op_name(&change.op).to_owned()),
            "dl_table" => Some(entity.object.as_str().to_owned()),
            "dl_schema" => Some(entity.schema.as_str().to_owned()),
            "dl_rowKeyJson" => Some(ending.key.get().to_owned()),
            column => match image.get(column)? {
                Value::Null => None,
                Value::String(text) => Some(text.clone()),
                other => Some(other.to_string()),
            },
        };
        let made = run(tenant, context, query, value).await?;
        Ok(made.map_or_else(|| event.to_owned(), |made| with_data(event, ending.data, &made)))
    }
}

/// Data is the last member of an event.
fn with_data(event: &str, data: &RawValue, made: &str) -> String {
    let begin = event.trim_end().len().saturating_sub(1 + data.get().len());
    format!("{}{made}}}", &event[..begin])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_query_made_stands_in_the_place_of_the_data() {
        let event = r#"{"EventId":"1.2.3","key":{"data":",\"data\":1}"},"data":{"data":[{}]}}"#;
        let ending: EventParts<'_> = serde_json::from_str(event).expect("an event");
        assert_eq!(
            with_data(event, ending.data, "[1, 2]"),
            r#"{"EventId":"1.2.3","key":{"data":",\"data\":1}"},"data":[1, 2]}"#
        );
        assert!(serde_json::from_str::<EventParts<'_>>(r#"{"EventId":"1.2.3"}"#).is_err());
    }
}
