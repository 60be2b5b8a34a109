//! Subscriptions: the events of an entity, each as an answer of its own. Whatever carries them, they are those of
//! `/api/ddl/events`.

use std::collections::HashMap;
use std::sync::Arc;

use rowgate_core::problem::{Code, Problem};
use serde_json::value::RawValue;

use super::document::selection::{Selected, collect};
use super::document::value::{Value, json_text};
use super::error::{self, GraphQlError};
use super::lower::text_of;
use super::query::Prepared;
use super::wording;
use crate::api::events::follow::{Follower, Step};
use crate::api::events::request::{position, stored};
use crate::app::App;
use crate::auth::credential::Caller;
use crate::auth::key_context::KeyContext;

/// What was selected of each event.
pub(super) struct Subscription {
    /// In the answer.
    key: String,
    /// Members of its object, and of the event.
    members: Vec<(String, String)>,
}

/// What is sent of a step.
pub(super) enum Output {
    /// Answers in their order.
    Next(Vec<Vec<u8>>),
    Quiet,
    /// The reader connects again, to another replica.
    Draining,
    Failed(GraphQlError),
}

/// Begins to follow what an operation selects.
pub(super) async fn open(
    caller: Caller,
    app: Arc<App>,
    context: &KeyContext,
    prepared: &Prepared,
) -> Result<(Follower, Subscription), GraphQlError> {
    let roots = prepared.roots()?;
    let [root] = &roots[..] else { return Err(not_one()) };
    let Some(entity) = prepared.schema.subscription(root.name) else { return Err(not_one().at(root.pos)) };
    let place = |problem: Problem| {
        let problem = wording::of_graphql(problem);
        GraphQlError::from(problem).at(root.pos).within(&[root.key.to_owned()])
    };
    let (mut after, mut ops) = (None, None);
    for (name, value) in prepared.lowering(&app, context).arguments("Subscription", root)? {
        match (name.as_str(), value) {
            ("after", value) => after = Some(text_of(&value)),
            (_, Value::List(items)) => ops = Some(items.iter().map(text_of).collect::<Vec<_>>().join(",")),
            (_, value) => ops = Some(text_of(&value)),
        }
    }
    let after = position(after.as_deref()).map_err(place)?;
    let ops = stored(ops.as_deref()).map_err(place)?;
    let members = members(prepared, root)?;
    let opened = Follower::open(caller, app, context, Some(entity.to_string()), ops, after).await;
    let (follower, is_kept) = opened.map_err(place)?;
    if !is_kept {
        return Err(place(lost()));
    }
    Ok((follower, Subscription { key: root.key.to_owned(), members }))
}

fn members(prepared: &Prepared, root: &Selected<'_>) -> Result<Vec<(String, String)>, GraphQlError> {
    let selected = collect(&prepared.operation.document, &root.sets, &prepared.variables)?;
    Ok(selected.iter().map(|member| (member.key.to_owned(), member.name.to_owned())).collect())
}

fn not_one() -> GraphQlError {
    let what =
        "a subscription has one field, the events of one entity; send another operation for another entity";
    GraphQlError::new(Code::BadRequest, what)
}

fn lost() -> Problem {
    let what = "the events behind this cursor are no longer kept, or the database was replaced by a copy; read the rows again, \
                and subscribe without after or with after: \"start\"";
    Problem::new(Code::InvalidCursor, what)
}

impl Subscription {
    pub(super) fn output(&self, step: Step) -> Output {
        match step {
            Step::Events(events) => {
                Output::Next(events.each().map(|(cursor, event)| self.answer(&cursor, event)).collect())
            }
            Step::Quiet(_) => Output::Quiet,
            Step::Draining => Output::Draining,
            Step::Reset(_) => {
                Output::Failed(GraphQlError::from(lost()).within(std::slice::from_ref(&self.key)))
            }
            Step::Ended(problem) => {
                Output::Failed(GraphQlError::from(problem).within(std::slice::from_ref(&self.key)))
            }
        }
    }

    /// `{"data":{"orders":{...}}}`
    fn answer(&self, cursor: &str, event: &str) -> Vec<u8> {
        let values: HashMap<String, &RawValue> = serde_json::from_str(event).unwrap_or_default();
        let cursor = json_text(cursor);
        let mut data = format!("{{{}:{{", json_text(&self.key));
        for (n, (key, name)) in self.members.iter().enumerate() {
            let value = match name.as_str() {
                "cursor" => cursor.as_str(),
                "__typename" => "\"RowEvent\"",
                name => values.get(name).map_or("null", |value| value.get()),
            };
            data.push_str(if n == 0 { "" } else { "," });
            data.push_str(&format!("{}:{value}", json_text(key)));
        }
        data.push_str("}}");
        error::body(Some(data.as_bytes()), &[])
    }
}
