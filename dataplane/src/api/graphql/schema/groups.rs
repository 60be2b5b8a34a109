//! The types of `groupBy`: rows with equal values become one, with what they come to.

use async_graphql::dynamic::{Enum, Field, InputObject, InputValue, Object, SchemaBuilder, TypeRef};
use rowgate_sql::catalog::{FieldType, TypeKind};
use rowgate_sql::graphql_names::is_name;

use super::build::{Types, field, input, output};
use super::names::Named;
use crate::api::openapi::access::Rows;

/// The field `groupBy` of a connection, with its types; `None`: nothing of the rows can be grouped.
pub(super) fn field_of(types: &mut Types, named: &Named<'_>, rows: &Rows<'_>) -> Option<Field> {
    let groupable: Vec<usize> =
        rows.groupable.iter().copied().filter(|at| is_value(&rows.field(*at).name)).collect();
    if groupable.is_empty() {
        return None;
    }
    let name = |at: &usize| rows.field(*at).name.as_str();
    types.enums.push(Enum::new(named.with("Field")).items(groupable.iter().map(name)));
    let numeric: Vec<usize> =
        groupable.iter().copied().filter(|at| is_numeric(&rows.field(*at).ty)).collect();
    let keys =
        Object::new(named.with("GroupFields")).description("The values that the rows of a group share.");
    let keys = groupable
        .iter()
        .fold(keys, |keys, at| keys.field(field(name(at), output(&rows.field(*at).ty, false))));
    let mut aggregations = Object::new(named.with("Aggregations"));
    let of = |ty: String, is_required| {
        InputValue::new("field", if is_required { TypeRef::named_nn(ty) } else { TypeRef::named(ty) })
    };
    let with = |aggregation: Field, having: &str| {
        aggregation
            .argument(input("distinct", TypeRef::BOOLEAN, false))
            .argument(input("having", having, false))
    };
    let count = field("count", TypeRef::named_nn("Long")).argument(of(named.with("Field"), false));
    aggregations = aggregations
        .field(with(count, "HavingInput").description("Rows, or those with a value in the field."));
    if !numeric.is_empty() {
        types.enums.push(Enum::new(named.with("NumericField")).items(numeric.iter().map(name)));
        for function in ["sum", "avg"] {
            let it =
                field(function, TypeRef::named("Decimal")).argument(of(named.with("NumericField"), true));
            aggregations = aggregations.field(with(it, "HavingInput"));
        }
    }
    for function in ["min", "max"] {
        let it = field(function, TypeRef::named("JSON")).argument(of(named.with("Field"), true));
        aggregations = aggregations.field(with(it, "HavingValueInput"));
    }
    let group = Object::new(named.with("Group"))
        .field(field("fields", TypeRef::named_nn(named.with("GroupFields"))))
        .field(field("aggregations", TypeRef::named_nn(named.with("Aggregations"))));
    types.objects.extend([keys, aggregations, group]);
    let group_by = field("groupBy", TypeRef::named_nn_list_nn(named.with("Group")));
    let fields = InputValue::new("fields", TypeRef::named_nn_list(named.with("Field")));
    let first = input("first", TypeRef::INT, false)
        .description("As many groups at most; 1000 when left out. More of them are an error.");
    let what = "The rows that filter finds, in groups of equal values; without fields all are one group.";
    Some(group_by.argument(fields).argument(first).description(what))
}

/// Conditions on what a group comes to.
pub(super) fn having(builder: SchemaBuilder) -> SchemaBuilder {
    [("HavingInput", "Decimal"), ("HavingValueInput", "JSON")].into_iter().fold(
        builder,
        |builder, (name, scalar)| {
            let having = InputObject::new(name).description("All that is given must hold.");
            let operators = ["eq", "neq", "gt", "gte", "lt", "lte"].into_iter();
            let having =
                operators.fold(having, |having, operator| having.field(input(operator, scalar, false)));
            let having = having.field(InputValue::new("in", TypeRef::named_list(scalar)));
            builder.register(having.field(input("isNull", TypeRef::BOOLEAN, false)))
        },
    )
}

/// Whether it can be a value of an enum.
fn is_value(name: &str) -> bool {
    is_name(name) && !matches!(name, "true" | "false" | "null")
}

fn is_numeric(ty: &FieldType) -> bool {
    ty.kind == TypeKind::Base && matches!(ty.base_oid, 20 | 21 | 23 | 700 | 701 | 1700)
}
