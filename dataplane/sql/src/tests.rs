//! A request's whole way, from query string to SQL. The catalog that all of these tests ask is here.

mod calls;
mod closed;
mod groups;
mod limits;
mod nested;
mod properties;
mod reads;
mod refusals;
mod related;
mod spellings;
mod writes;

use std::sync::Arc;

use rowgate_core::cursor;
use rowgate_core::derive::{CursorKey, Root};
use rowgate_core::name::EntityName;
use rowgate_core::problem::Problem;

use crate::catalog::{
    Action, Catalog, ColumnInfo, EntityKind, EntityRecord, FieldType, Filling, GraphQlNames, Limits,
    Operators, PermissionRecord, RelationshipRecord, TableColumns, TypeKind, build,
};
use crate::compile;
use crate::query::Query;
use crate::resolve::Cursors;
use crate::rest::{self, filter, query_string};
use crate::shape::{Body, Encoding, Nested, Part};
use crate::text::{Format, Ident, Sql};

fn name(text: &str) -> Ident {
    Ident::new(text).expect("a name")
}

fn entity_name(text: &str) -> EntityName {
    text.parse().expect("a name")
}

/// Column, type, kind, oid below domains, nullable.
type ColumnRow = (&'static str, &'static str, TypeKind, u32, bool);

/// `orders`: mappings `placed_at: placed`, `id_number: 'ID Number'`.
const ORDERS: &[ColumnRow] = &[
    ("id", "integer", TypeKind::Base, 23, false),
    ("status", "text", TypeKind::Base, 25, true),
    ("total", "numeric(12,2)", TypeKind::Base, 1700, true),
    ("placed_at", "timestamp with time zone", TypeKind::Base, 1184, false),
    ("id_number", "bigint", TypeKind::Base, 20, true),
    ("paid", "boolean", TypeKind::Base, 16, true),
    ("ref", "uuid", TypeKind::Base, 2950, true),
    ("mood", "app.mood", TypeKind::Enum, 20_001, true),
    ("tags", "text[]", TypeKind::Array, 1009, true),
    ("doc", "json", TypeKind::Base, 114, true),
    ("place", "point", TypeKind::Base, 600, true),
    ("address", "app.address", TypeKind::Composite, 20_002, true),
    ("ip", "inet", TypeKind::Base, 869, true),
    ("ratio", "real", TypeKind::Base, 700, true),
    ("score", "double precision", TypeKind::Base, 701, true),
    ("photo", "bytea", TypeKind::Base, 17, true),
    ("day", "date", TypeKind::Base, 1082, true),
    ("at", "time without time zone", TypeKind::Base, 1083, true),
    ("local", "timestamp without time zone", TypeKind::Base, 1114, true),
    ("small", "app.positive", TypeKind::Base, 21, true),
    ("email", "public.citext", TypeKind::Base, 20_004, true),
    ("secret", "text", TypeKind::Base, 25, false),
];

/// `lines`: keyed by two columns. `hidden`: not over REST. `other`: without a permission.
const LINES: &[ColumnRow] = &[
    ("order_id", "integer", TypeKind::Base, 23, false),
    ("line", "smallint", TypeKind::Base, 21, false),
    ("qty", "integer", TypeKind::Base, 23, false),
    ("email", "public.citext", TypeKind::Base, 20_004, false),
];

/// How `text[]` is read.
fn tags() -> Arc<Nested> {
    let element = Part { oid: 25, encoding: Encoding::Text };
    Arc::new(Nested { oid: 1009, format: Format::Binary, body: Body::Array { element, delimiter: b',' } })
}

fn catalog() -> Catalog {
    let columns = |rows: &[ColumnRow]| -> Vec<ColumnInfo> {
        let column = |&(column, ty, kind, oid, nullable): &ColumnRow| ColumnInfo {
            name: name(column),
            ty: FieldType {
                oid: if ty == "app.positive" { 20_003 } else { oid },
                name: ty.into(),
                kind,
                base_oid: oid,
                operators: match ty {
                    "public.citext" => Operators::Nowhere,
                    _ => Operators::BuiltIn,
                },
                nested: (ty == "text[]").then(tags),
            },
            nullable,
            granted: true,
            filling: Filling::Caller,
            takes_null: true,
            rounds_to: None,
            labels: Vec::new(),
            made_of: Vec::new(),
        };
        rows.iter().map(column).collect()
    };
    let tables = [
        TableColumns {
            schema: name("app"),
            object: name("orders"),
            columns: columns(ORDERS),
            unique: Vec::new(),
            constraints: Vec::new(),
            write_support: crate::catalog::WriteSupport::default(),
            hides: true,
            view: None,
            relations: Vec::new(),
        },
        TableColumns {
            schema: name("app"),
            object: name("order\"lines"),
            columns: columns(LINES),
            unique: Vec::new(),
            constraints: Vec::new(),
            write_support: crate::catalog::WriteSupport::default(),
            hides: true,
            view: None,
            relations: Vec::new(),
        },
    ];
    let record = |entity: &str, object: &str, key: &[&str], mappings: &[(&str, &str)], rest| EntityRecord {
        name: entity_name(entity),
        kind: EntityKind::Table,
        schema: name("app"),
        object: name(object),
        key_columns: key.iter().map(|k| name(k)).collect(),
        mappings: mappings.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect(),
        rest,
        graphql: GraphQlNames::default(),
        protection: None,
        hide_soft_deleted: None,
        shows_version: false,
        events: false,
        allow_definer: false,
    };
    let mappings = [("placed_at", "placed"), ("id_number", "ID Number")];
    let read = |entity: &str, rows: &[ColumnRow]| PermissionRecord {
        entity: entity_name(entity),
        action: Action::Read,
        columns: rows.iter().map(|row| row.0.to_owned()).filter(|column| column != "secret").collect(),
    };
    let create = PermissionRecord { action: Action::Create, ..read("other", LINES) };
    let mut catalog = build(
        1,
        Limits::default(),
        vec![
            record("orders", "orders", &["id"], &mappings, true),
            record("lines", "order\"lines", &["order_id", "line"], &[], true),
            record("hidden", "orders", &["id"], &mappings, false),
            record("people", "order\"lines", &["email"], &[], true),
            record("other", "order\"lines", &["line"], &[], true),
        ],
        &tables,
        &[],
        vec![(
            "set_x".into(),
            vec![
                read("orders", ORDERS),
                read("lines", &LINES[..3]),
                read("people", LINES),
                read("hidden", ORDERS),
                create,
            ],
        )],
    );
    let way = |name: &str, (from, column): (&str, &str), (to, to_column): (&str, &str), to_one| {
        let record = RelationshipRecord {
            uid: String::new(),
            name: name.to_owned(),
            entity: entity_name(from),
            to: entity_name(to),
            columns: vec![self::name(column)],
            to_columns: vec![self::name(to_column)],
            through: None,
            to_one,
            takes_first: name == "first",
        };
        (record, Vec::new())
    };
    catalog.relate(vec![
        way("lines", ("orders", "id"), ("lines", "order_id"), false),
        way("first", ("orders", "id"), ("lines", "order_id"), true),
        way("order", ("lines", "order_id"), ("orders", "id"), true),
        way("closed", ("orders", "id"), ("hidden", "id"), true),
        way("ungranted", ("orders", "id"), ("other", "order_id"), false),
        way("secretive", ("orders", "secret"), ("lines", "order_id"), false),
        way("status", ("orders", "id"), ("lines", "order_id"), false),
        way("parcels", ("orders", "id"), ("gone", "order_id"), false),
    ]);
    catalog
}

fn key() -> CursorKey {
    Root::new([7; 32]).cursor_key()
}

fn collection(entity: &str, query: &str) -> Result<Query, Problem> {
    let catalog = catalog();
    let request = query_string::parse(query)?;
    let cursors = Cursors { key: &key(), caller: "k1" };
    rest::collection(&catalog, &catalog.scopes["set_x"], &entity_name(entity), &request, cursors)
}

fn row(entity: &str, path: &[(&str, &str)], query: &str) -> Result<Query, Problem> {
    let catalog = catalog();
    let request = query_string::parse(query)?;
    let path: Vec<_> = path.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
    rest::row(&catalog, &catalog.scopes["set_x"], &entity_name(entity), &path, &request)
}

/// The SQL of a collection read, from ` where ` on when the select list is not what the test is about, and its binds.
fn sql(entity: &str, query: &str) -> String {
    let query = collection(entity, query).unwrap_or_else(|problem| panic!("{query}: {problem:?}"));
    show(&compile::read(&query).sql)
}

fn show(sql: &Sql) -> String {
    let binds: Vec<String> = sql
        .binds()
        .iter()
        .map(|bind| {
            let value = bind.value.as_deref().map(|bytes| match bind.format {
                Format::Text => format!("{:?}", String::from_utf8_lossy(bytes)),
                Format::Binary => format!("{bytes:02x?}"),
            });
            format!("{}:{}", bind.oid, value.as_deref().unwrap_or("null"))
        })
        .collect();
    format!("{} <- {}", sql.as_str(), binds.join(" "))
}

/// The page after a row with these values.
fn after(entity: &str, query: &str, position: &[Option<&[u8]>]) -> String {
    let first = compile::read(&collection(entity, query).expect("a question"));
    let position: Vec<_> = position.iter().map(|value| value.map(<[u8]>::to_vec)).collect();
    let token = cursor::encode(&key(), first.binding.expect("a page can follow"), &position);
    let kept: Vec<_> = query_string::without_cursor(query).collect();
    sql(entity, &format!("{}&$after={token}", kept.join("&")))
}
