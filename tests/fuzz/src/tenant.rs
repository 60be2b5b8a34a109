//! A tenant with a column of every kind that the compiler tells apart, and a question to it.

use rowgate_core::derive::{CursorKey, Root};
use rowgate_core::problem::Problem;
use rowgate_sql::catalog::{
    Action, Catalog, ColumnInfo, EntityKind, EntityRecord, FieldType, Filling, GraphQlNames, Limits,
    Operators, PermissionRecord, TableColumns, TypeKind, build,
};
use rowgate_sql::compile::{self, CompiledRead};
use rowgate_sql::request::ReadRequest;
use rowgate_sql::resolve::Cursors;
use rowgate_sql::rest;
use rowgate_sql::text::Ident;

/// Column, type, kind, oid below domains.
const COLUMNS: [(&str, &str, TypeKind, u32); 20] = [
    ("id", "integer", TypeKind::Base, 23),
    ("s", "text", TypeKind::Base, 25),
    ("n", "numeric(12,2)", TypeKind::Base, 1700),
    ("t", "timestamp with time zone", TypeKind::Base, 1184),
    ("big", "bigint", TypeKind::Base, 20),
    ("b", "boolean", TypeKind::Base, 16),
    ("u", "uuid", TypeKind::Base, 2950),
    ("mood", "app.mood", TypeKind::Enum, 20_001),
    ("tags", "text[]", TypeKind::Array, 1009),
    ("doc", "json", TypeKind::Base, 114),
    ("ip", "inet", TypeKind::Base, 869),
    ("f", "real", TypeKind::Base, 700),
    ("g", "double precision", TypeKind::Base, 701),
    ("raw", "bytea", TypeKind::Base, 17),
    ("day", "date", TypeKind::Base, 1082),
    ("at", "time without time zone", TypeKind::Base, 1083),
    ("local", "timestamp without time zone", TypeKind::Base, 1114),
    ("small", "smallint", TypeKind::Base, 21),
    ("span", "int4range", TypeKind::Range, 3904),
    ("odd\"name", "text", TypeKind::Base, 25),
];
const KEYS: [&str; 2] = ["id", "s"];
const SCHEMA: &str = "app";
const OBJECT: &str = "it\"ems";

/// The tenant, made once: a fuzzer asks it a million times.
pub(crate) struct Tenant {
    catalog: Catalog,
    pub(crate) cursor_key: CursorKey,
}

impl Tenant {
    pub(crate) fn new() -> Tenant {
        Tenant { catalog: catalog(), cursor_key: Root::new([7; 32]).cursor_key() }
    }

    /// The SQL that a collection read becomes.
    pub(crate) fn read(&self, request: &ReadRequest) -> Result<CompiledRead, Problem> {
        let cursors = Cursors { key: &self.cursor_key, caller: "key" };
        let items = "items".parse().expect("a name");
        let query = rest::collection(&self.catalog, &self.catalog.scopes["set_x"], &items, request, cursors)?;
        Ok(compile::read(&query))
    }
}

/// Whether SQL may hold this name in double quotes.
pub(crate) fn knows(name: &str) -> bool {
    [SCHEMA, OBJECT, "C"].contains(&name) || COLUMNS.iter().any(|column| column.0 == name)
}

fn name(text: &str) -> Ident {
    Ident::new(text).expect("a name")
}

fn catalog() -> Catalog {
    let column = |&(column, ty, kind, oid): &(&str, &str, TypeKind, u32)| ColumnInfo {
        name: name(column),
        ty: FieldType {
            oid,
            name: ty.into(),
            kind,
            base_oid: oid,
            operators: Operators::BuiltIn,
            nested: None,
        },
        nullable: !KEYS.contains(&column),
        granted: true,
        filling: Filling::Caller,
        takes_null: true,
        rounds_to: None,
        labels: Vec::new(),
        made_of: Vec::new(),
    };
    let table = TableColumns {
        relations: Vec::new(),
        schema: name(SCHEMA),
        object: name(OBJECT),
        columns: COLUMNS.iter().map(column).collect(),
        unique: Vec::new(),
        constraints: Vec::new(),
        write_support: rowgate_sql::catalog::WriteSupport::default(),
        hides: true,
        view: None,
    };
    let record = EntityRecord {
        name: "items".parse().expect("a name"),
        kind: EntityKind::Table,
        schema: name(SCHEMA),
        object: name(OBJECT),
        key_columns: KEYS.map(name).into(),
        mappings: [("big".to_owned(), "ID Number".to_owned()), ("day".to_owned(), "größe".to_owned())].into(),
        rest: true,
        graphql: GraphQlNames::default(),
        protection: None,
        hide_soft_deleted: None,
        shows_version: false,
        events: false,
        allow_definer: false,
    };
    let mut columns: Vec<String> = COLUMNS.iter().map(|column| column.0.to_owned()).collect();
    columns.sort();
    let read = PermissionRecord { entity: record.name.clone(), action: Action::Read, columns };
    let scopes = vec![("set_x".into(), vec![read])];
    build(1, Limits::default(), vec![record], &[table], &[], scopes)
}
