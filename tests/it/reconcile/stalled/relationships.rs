//! Relationships that cannot be followed.

use rowgate_crds::Reason;

use super::cases::{Case, Object, case, tenant};

pub(super) const SCRIPT: &str = "
    create table app.people (id bigint primary key, email text, boss bigint references app.people, deputy bigint references app.people);
    create table app.visits (id bigint primary key, person text, at timestamptz, extra json, rate float8, share numeric, code text collate \"C\", name text collate \"POSIX\");
    create table app.pairs (one bigint references app.people, other bigint references app.people);
    create view app.seen as select id from app.people;";

const ENTITIES: &[&str] = &[
    "{name: people, source: {schema: app, object: people}, rowLevelSecurity: {none: true}}",
    "{name: visits, source: {schema: app, object: visits}, rowLevelSecurity: {none: true}}",
];

fn of(name: &'static str, reason: Reason, why: &'static str, names: &'static str, spec: &str) -> Case {
    let manifest = format!(
        "{}apiVersion: rowgate.dev/v1alpha1\nkind: Relationship\nmetadata: {{name: {name}}}\n\
         spec: {{tenantRef: {{name: {name}}}, {spec}}}\n---\n",
        tenant(name, "", ENTITIES)
    );
    case(Object::Relationship, (name, reason), why, names, manifest)
}

pub(super) fn cases() -> Vec<Case> {
    vec![
        of(
            "no-entity",
            Reason::EntityNotFound,
            "a relationship to an entity that is not declared",
            "to.entity names persons",
            "name: visitor, from: {entity: visits}, to: {entity: persons}, cardinality: One",
        ),
        of(
            "no-end-field",
            Reason::FieldNotFound,
            "a relationship over a field that is not there",
            "from.fields names visitor, which is not a field of visits",
            "name: person_row, from: {entity: visits, fields: [visitor]}, to: {entity: people, fields: [id]}, cardinality: One",
        ),
        of(
            "no-foreign-key",
            Reason::ForeignKeyNotFound,
            "a relationship without fields, and no foreign key",
            "there is no foreign key between visits and people",
            "name: visitor, from: {entity: visits}, to: {entity: people}, cardinality: One",
        ),
        of(
            "two-foreign-keys",
            Reason::ForeignKeyNotFound,
            "a relationship without fields, and two foreign keys",
            "foreign keys join people and people",
            "name: chief, from: {entity: people}, to: {entity: people}, cardinality: One",
        ),
        of(
            "not-unique",
            Reason::NotUnique,
            "a relationship to one of several rows",
            "no unique index covers people (email)",
            "name: visitor, from: {entity: visits, fields: [person]}, to: {entity: people, fields: [email]}, cardinality: One",
        ),
        of(
            "two-types",
            Reason::InvalidSpec,
            "a relationship over columns that do not compare",
            "visits.person is text and people.id is bigint",
            "name: visitor, from: {entity: visits, fields: [person]}, to: {entity: people, fields: [id]}, cardinality: One",
        ),
        of(
            "name-of-a-field",
            Reason::Taken,
            "a relationship that is called as a field",
            "visits has a field person already",
            "name: person, from: {entity: visits, fields: [person]}, to: {entity: people, fields: [email]}, cardinality: Many",
        ),
        of(
            "no-link",
            Reason::SourceNotFound,
            "a relationship through a table that is not there",
            "through names app.links, which does not exist",
            "name: peers, from: {entity: people}, to: {entity: people}, through: {schema: app, object: links}, cardinality: Many",
        ),
        of(
            "view-between",
            Reason::SourceUnsupported,
            "a relationship through a view",
            "through names app.seen, which is not a table",
            "name: peers, from: {entity: people}, to: {entity: people}, through: {schema: app, object: seen}, cardinality: Many",
        ),
        of(
            "without-equality",
            Reason::InvalidSpec,
            "a relationship over columns of a type without =",
            "visits.extra is json and visits.extra is json, which PostgreSQL does not compare with =",
            "name: alike, from: {entity: visits, fields: [extra]}, to: {entity: visits, fields: [extra]}, cardinality: Many",
        ),
        of(
            "decimal-and-float",
            Reason::InvalidSpec,
            "a relationship over a decimal and a float",
            "visits.share is numeric and visits.rate is double precision, which PostgreSQL compares as double precision",
            "name: alike, from: {entity: visits, fields: [share]}, to: {entity: visits, fields: [rate]}, cardinality: Many",
        ),
        of(
            "two-collations",
            Reason::InvalidSpec,
            "a relationship over texts of two collations",
            "visits.code and visits.name have different collations",
            "name: alike, from: {entity: visits, fields: [code]}, to: {entity: visits, fields: [name]}, cardinality: Many",
        ),
        Case {
            spoil: "alter table app.pairs owner to rowgate_superuser",
            ..of(
                "theirs-between",
                Reason::NotOwned,
                "a relationship through a table of another owner",
                "through names app.pairs, which cannot be followed: app.pairs belongs to rowgate_superuser",
                "name: peers, from: {entity: people, fields: [id]}, to: {entity: people, fields: [id]}, \
                 through: {schema: app, object: pairs, fromFields: [one], toFields: [other]}, cardinality: Many",
            )
        },
    ]
}
