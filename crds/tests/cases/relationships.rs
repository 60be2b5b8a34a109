//! Relationships.

use rowgate_crds::Kind;

use super::{Case, change, table};

/// `more` follows the Tenant and the name.
fn spec(more: &str) -> String {
    format!("{{tenantRef: {{name: t}}, name: customer, {more}}}")
}

pub(super) fn cases() -> Vec<Case> {
    let both =
        "spec: give from.fields and to.fields both, or leave both out to take the columns of the foreign key";
    let equally = "spec: from.fields and to.fields hold equally many fields: the first of one equals the first of the other";
    let many = "spec: a relationship through a table leads to many rows: cardinality is Many";
    let ends = "from: {entity: orders}, to: {entity: customers}";
    let of = |(more, refusal): (String, &str)| table(Kind::Relationship, &[(&spec(&more), refusal)]);
    let all = [
        (format!("{ends}, cardinality: One"), ""),
        (format!("{ends}, cardinality: One, inverse: orders, assumeUnique: true"), ""),
        (ends.to_owned(), "spec.cardinality: is required"),
        (format!("{ends}, cardinality: Two"), "spec.cardinality: \"Two\" is not one of One, Many"),
        (
            "from: {entity: orders, fields: [a]}, to: {entity: customers, fields: [b]}, cardinality: Many"
                .to_owned(),
            "",
        ),
        ("from: {entity: orders, fields: [a]}, to: {entity: customers}, cardinality: One".to_owned(), both),
        (
            "from: {entity: orders, fields: [a, b]}, to: {entity: customers, fields: [c]}, cardinality: One"
                .to_owned(),
            equally,
        ),
        (format!("{ends}, cardinality: Many, through: {{object: links}}"), ""),
        (format!("{ends}, cardinality: One, through: {{object: links}}"), many),
        (
            format!("{ends}, cardinality: Many, through: {{schema: dl, object: keys}}"),
            "spec.through: through.schema cannot be dl, information_schema or pg_...: those belong to Rowgate and to PostgreSQL",
        ),
        (
            format!("{ends}, cardinality: Many, assumeUnique: true"),
            "spec: assumeUnique belongs to cardinality One",
        ),
        (
            "from: {entity: people}, to: {entity: people}, cardinality: One, inverse: customer".to_owned(),
            "spec: name and inverse are fields of the same entity here: give them different names",
        ),
        (
            format!("{ends}, cardinality: One, inverse: __x"),
            "spec.inverse: a relationship's name holds letters, digits and underscores, does not start with a digit and not with two underscores",
        ),
    ];
    let moved = change(
        Kind::Relationship,
        &[(
            &spec(&format!("{ends}, cardinality: One")),
            &spec(&format!("{ends}, cardinality: One")).replace("{name: t}", "{name: u}"),
            "spec.tenantRef: tenantRef cannot be changed; create a new Relationship",
        )],
    );
    all.into_iter().flat_map(of).chain(moved).collect()
}
