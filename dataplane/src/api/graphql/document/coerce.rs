//! Values become what an input type of the schema takes, as the specification's input coercion says (section 3.12).

use async_graphql::registry::{MetaType, MetaTypeName, Registry};

use super::value::Value;
use crate::api::graphql::schema::scalars;

/// What does not fit, and where: a sentence without its end.
pub(crate) type CoercionError = String;

/// `value` as `ty` takes it, which is written as in the schema: `[Int!]!`. `path` names the value in messages.
pub(crate) fn coerce(
    registry: &Registry,
    ty: &str,
    value: Value,
    path: &dyn Fn() -> String,
) -> Result<Value, CoercionError> {
    match (MetaTypeName::create(ty), value) {
        (MetaTypeName::NonNull(_), Value::Null) => {
            Err(format!("{} is null, and its type {ty} takes no null", path()))
        }
        (MetaTypeName::NonNull(inner), value) => coerce(registry, inner, value, path),
        (_, Value::Null) => Ok(Value::Null),
        (MetaTypeName::List(inner), Value::List(items)) => {
            let each = |(i, item)| coerce(registry, inner, item, &|| format!("{}[{i}]", path()));
            items.into_iter().enumerate().map(each).collect::<Result<_, _>>().map(Value::List)
        }
        (MetaTypeName::List(inner), value) => Ok(Value::List(vec![coerce(registry, inner, value, path)?])),
        (MetaTypeName::Named(name), value) => named(registry, name, value, path),
    }
}

fn named(
    registry: &Registry,
    name: &str,
    value: Value,
    path: &dyn Fn() -> String,
) -> Result<Value, CoercionError> {
    match registry.types.get(name) {
        Some(MetaType::Enum { enum_values, .. }) => match value {
            // variables have no enum of their own
            Value::Enum(text) | Value::Text(text) if enum_values.contains_key(&text) => Ok(Value::Enum(text)),
            _ => Err(format!("{} is none of the values of {name}", path())),
        },
        Some(MetaType::InputObject { input_fields, .. }) => {
            let Value::Object(fields) = value else {
                return Err(format!("{} is no object, and its type is {name}", path()));
            };
            let mut coerced = Vec::with_capacity(fields.len());
            for (field, value) in fields {
                let Some(of) = input_fields.get(&field) else {
                    return Err(format!("{} has a field that {name} does not have", path()));
                };
                let within = || format!("{}.{field}", path());
                let value = coerce(registry, &of.ty, value, &within)?;
                coerced.push((field, value));
            }
            for of in input_fields.values() {
                let is_required = MetaTypeName::create(&of.ty).is_non_null() && of.default_value.is_none();
                if is_required && coerced.iter().all(|(field, _)| *field != of.name) {
                    return Err(format!("{} needs the field {} of type {}", path(), of.name, of.ty));
                }
            }
            Ok(Value::Object(coerced))
        }
        Some(MetaType::Scalar { .. }) => match scalars::takes(name, &value) {
            true => Ok(value),
            false => Err(format!("{} is no {name}; {name} is {}", path(), scalars::form(name))),
        },
        _ => Err(format!("{} has a type that takes no values", path())),
    }
}
