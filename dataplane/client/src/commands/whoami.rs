//! `rowgate whoami`: which server and tenant are used, and what the key may do there.

use serde_json::Value;

use super::{print_rows, take_rows};
use crate::context::Context;
use crate::failure::Failure;
use crate::http::address;
use crate::http::client::Api;
use crate::http::request::Request;
use crate::output::rows::Row;
use crate::output::{Format, escape};

/// Examples of the command, for its help.
pub(crate) const EXAMPLES: &str =
    "Prints the server, the tenant and the entities that the key reaches; one JSON object where
standard output is no terminal. The key itself is never printed.

Examples:
  rowgate whoami
  rowgate whoami --profile shop | jq '.entities[].name'";

pub(crate) async fn run(context: &mut Context) -> Result<(), Failure> {
    let connection = context.connection()?;
    let (api, tenant) = (Api::new(&connection)?, connection.tenant()?);
    let mut answer = api.json(&Request::get(address::path(&["auth", tenant, "api"]))).await?.value;
    let entities = take_rows(&mut answer, "value")?;
    let output = &mut context.output;
    if !output.is_terminal {
        let all = serde_json::json!({"url": api.base().to_string(), "tenant": tenant, "entities": entities});
        return output.line(&escape::pretty(&all));
    }
    output.write(&format!("server  {}\ntenant  {}\n\n", api.base(), escape::line(tenant)))?;
    let entities: Vec<Row> = entities.into_iter().map(listed).collect();
    print_rows(output, Format::Table, Some(&["name", "kind", "keyFields", "fields"]), &entities)
}

/// Lists of names as people read them.
fn listed(mut entity: Row) -> Row {
    for value in entity.values_mut() {
        if let Value::Array(names) = value {
            let names: Vec<&str> = names.iter().filter_map(Value::as_str).collect();
            *value = Value::String(names.join(", "));
        }
    }
    for name in ["keyFields", "fields"] {
        entity.entry(name).or_insert_with(|| Value::String(String::new()));
    }
    entity
}
