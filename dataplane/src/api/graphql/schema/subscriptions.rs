//! The subscriptions: one for each entity whose events the key may read.

use async_graphql::dynamic::{
    Enum, FieldValue, InputValue, Object, ResolverContext, Subscription, SubscriptionField,
    SubscriptionFieldFuture, TypeRef,
};
use futures_util::stream;
use rowgate_sql::catalog::{Catalog, Scope};

use super::build::{Types, field, input};
use super::names::Named;
use crate::api::events::request::{OPS, readable};

/// The type of an event, and that of what happened. No entity has these names.
const EVENT: &str = "RowEvent";
const OP: &str = "Op";

/// Whether the entity has a subscription, which has the name of the list of its rows.
pub(super) fn has(catalog: &Catalog, scope: &Scope, named: &Named<'_>) -> bool {
    named.rows().is_some() && readable(catalog, scope, named.entity).is_some()
}

/// `None`: the key may read no events.
pub(super) fn subscription<'a>(
    types: &mut Types,
    named: impl Iterator<Item = &'a Named<'a>>,
) -> Option<Subscription> {
    let mut named = named.peekable();
    named.peek()?;
    let ops = OPS.iter().fold(Enum::new(OP), |ops, (name, _)| ops.item(*name));
    types.enums.push(ops.description("What happened to a row; truncate: to all rows of the table."));
    types.objects.push(event());
    let what = "Events, from now on or behind a cursor. They are sent over WebSocket (graphql-transport-ws) or as server-sent events.";
    Some(
        named
            .fold(Subscription::new("Subscription").description(what), |all, named| all.field(events(named))),
    )
}

/// async-graphql validates a subscription, and never executes one.
fn nothing(_: ResolverContext<'_>) -> SubscriptionFieldFuture<'_> {
    SubscriptionFieldFuture::new(async { Ok(stream::empty::<async_graphql::Result<FieldValue<'_>>>()) })
}

fn events(named: &Named<'_>) -> SubscriptionField {
    SubscriptionField::new(named.root.clone(), TypeRef::named_nn(EVENT), nothing)
        .description(format!("Changes of rows of {}.", named.entity.name))
        .argument(input("after", TypeRef::STRING, false).description(
            "The cursor of the last event, or start for all that is kept; left out: from now on.",
        ))
        .argument(InputValue::new("ops", TypeRef::named_nn_list(OP)).description("Left out: all."))
}

/// Its fields are members of the event as it stands in a page, and its cursor.
fn event() -> Object {
    let text = || TypeRef::named_nn(TypeRef::STRING);
    Object::new(EVENT)
        .field(field("EventId", text()).description("The same wherever and how often the event is given."))
        .field(field("cursor", text()).description("For after."))
        .field(field("op", TypeRef::named_nn(OP)))
        .field(field("type", text()).description("entity.op"))
        .field(field("schema", text()))
        .field(field("table", text()))
        .field(field("entity", text()))
        .field(field("occurredAt", TypeRef::named_nn("DateTime")))
        .field(
            field("cause", TypeRef::named(TypeRef::STRING))
                .description("The same in the delete and the insert that a change of the key is."),
        )
        .field(field("key", TypeRef::named("JSON")).description("Null of a truncate."))
        .field(
            field("data", TypeRef::named("JSON"))
                .description("The row after the change, of a delete before it. Null of a truncate."),
        )
}
