//! Documents of catalogs that no database has, and which of them are made again.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use rowgate_core::name::{EntityName, TenantSlug, Ulid};
use rowgate_sql::catalog::{
    Action, Catalog, ColumnInfo, EntityKind, EntityRecord, FieldType, Filling, Limits, Operators,
    PermissionRecord, RelationshipRecord, Scope, TableColumns, TypeKind, WriteSupport, build,
};
use rowgate_sql::shape::{Attribute, Body, Encoding, Nested, Part, label};
use rowgate_sql::text::{Format, Ident};
use serde_json::{Value, json};

use crate::api::openapi::cache::DocumentCache;
use crate::api::openapi::document;
use crate::api::surface::Surfaces;
use crate::auth::key_cache::KeyCache;
use crate::tenants::freshness::Freshness;
use crate::tenants::long_lists::LongLists;
use crate::tenants::snapshot::{Snapshot, TypeCache};

fn ident(text: &str) -> Ident {
    Ident::new(text).expect("a name")
}

fn entity_name(text: &str) -> EntityName {
    text.parse().expect("a name")
}

fn base(oid: u32, name: &str) -> FieldType {
    let (kind, operators) = (TypeKind::Base, Operators::BuiltIn);
    FieldType { oid, name: name.to_owned(), kind, base_oid: oid, operators, nested: None }
}

fn composite() -> FieldType {
    let attribute = Attribute { label: label("the \"n\""), part: Part { oid: 23, encoding: Encoding::Int4 } };
    let nested = Nested { oid: 20_000, format: Format::Text, body: Body::Composite(vec![attribute]) };
    let (kind, operators) = (TypeKind::Composite, Operators::Nowhere);
    let (oid, name, nested) = (20_000, "app.pair".to_owned(), Some(Arc::new(nested)));
    FieldType { oid, name, kind, base_oid: oid, operators, nested }
}

fn column(name: &str, ty: FieldType, nullable: bool) -> ColumnInfo {
    ColumnInfo {
        name: ident(name),
        ty,
        nullable,
        takes_null: true,
        granted: true,
        filling: Filling::Caller,
        rounds_to: None,
        labels: Vec::new(),
        made_of: Vec::new(),
    }
}

/// Tables of four columns, `id`, `label`, `price` and `pair`, and the scope that these permissions make.
fn catalog(n_tables: usize, permissions: &[(Action, &[&str])]) -> (Catalog, Arc<Scope>) {
    let (mut records, mut tables, mut granted) = (Vec::new(), Vec::new(), Vec::new());
    for n in 0..n_tables {
        let name = format!("entity_{n}");
        records.push(EntityRecord {
            name: entity_name(&name),
            kind: EntityKind::Table,
            schema: ident("app"),
            object: ident(&name),
            key_columns: vec![ident("id")],
            mappings: std::iter::once(("label".to_owned(), "the label".to_owned())).collect(),
            rest: true,
            graphql: Default::default(),
            protection: None,
            hide_soft_deleted: None,
            shows_version: false,
            events: false,
            allow_definer: false,
        });
        tables.push(TableColumns {
            schema: ident("app"),
            object: ident(&name),
            columns: vec![
                column("id", base(20, "bigint"), false),
                column("label", base(1043, "character varying(9)"), false),
                column("price", base(1700, "numeric(10,2)"), true),
                column("pair", composite(), true),
            ],
            unique: vec![vec![ident("id")]],
            constraints: Vec::new(),
            write_support: WriteSupport::default(),
            hides: true,
            view: None,
            relations: Vec::new(),
        });
        let of_entity = permissions.iter().map(|(action, columns)| PermissionRecord {
            entity: entity_name(&name),
            action: *action,
            columns: columns.iter().map(|it| (*it).to_owned()).collect(),
        });
        granted.extend(of_entity);
    }
    let mut catalog = build(1, Limits::default(), records, &tables, &[], vec![("set".to_owned(), granted)]);
    let way = |name: &str, from: [&str; 2], to: [&str; 2], to_one: bool| RelationshipRecord {
        uid: "u".to_owned(),
        name: name.to_owned(),
        entity: entity_name(from[0]),
        to: entity_name(to[0]),
        columns: vec![ident(from[1])],
        to_columns: vec![ident(to[1])],
        through: None,
        to_one,
        takes_first: false,
    };
    let ways = [
        way("parent", ["entity_1", "price"], ["entity_0", "id"], true),
        way("children", ["entity_0", "id"], ["entity_1", "price"], false),
    ];
    catalog.relate(ways.into_iter().map(|way| (way, Vec::new())).collect());
    let scope = catalog.scopes["set"].clone();
    (catalog, scope)
}

const ALL: [&str; 4] = ["id", "label", "price", "pair"];

fn slug() -> TenantSlug {
    "acme".parse().expect("a slug")
}

fn made(n_tables: usize, permissions: &[(Action, &[&str])]) -> Value {
    let (catalog, scope) = catalog(n_tables, permissions);
    let text = format!(
        "{}{}",
        document::beginning("http://h"),
        document::rest_of(&slug(), &catalog, &scope, Surfaces::ALL)
    );
    serde_json::from_str(&text).expect("a document is JSON")
}

fn methods(document: &Value, path: &str) -> Vec<String> {
    let item = document["paths"][path].as_object();
    item.map(|item| item.keys().filter(|key| *key != "parameters").cloned().collect()).unwrap_or_default()
}

#[test]
fn an_address_has_the_methods_that_the_rights_allow() {
    use Action::{Create, Delete, Read, Update};
    for (permissions, collection, row) in [
        (&[(Read, &ALL[..])][..], &["get"][..], &["get"][..]),
        (&[(Read, &["label"])], &["get"], &["get"]),
        (&[(Create, &ALL)], &["post"], &["patch", "put"]),
        (&[(Create, &["label"])], &["post"], &[]),
        // updating and deleting read the key
        (&[(Update, &ALL)], &["get"], &["get", "patch", "put"]),
        (&[(Update, &["price"])], &["get"], &["get", "patch"]),
        (&[(Delete, &[])], &["get"], &["get", "delete"]),
        (
            &[(Read, &ALL), (Create, &ALL), (Update, &ALL), (Delete, &[])],
            &["get", "post"],
            &["get", "patch", "put", "delete"],
        ),
    ] {
        let document = made(1, permissions);
        assert_eq!(methods(&document, "/auth/acme/api/entity_0"), collection, "{permissions:?}");
        assert_eq!(methods(&document, "/auth/acme/api/entity_0/id/{id}"), row, "{permissions:?}");
    }
}

#[test]
fn bodies_and_rows_hold_the_fields_that_the_rights_name() {
    let document = made(
        1,
        &[(Action::Read, &["label"]), (Action::Create, &["id", "label"]), (Action::Update, &["price"])],
    );
    let schema = |part: &str| &document["components"]["schemas"][format!("entity_0{part}")];
    let names = |part: &str| -> Vec<&String> {
        schema(part)["properties"].as_object().expect("an object").keys().collect()
    };
    assert_eq!(names(""), ["id", "the label"]);
    assert_eq!(names(".create"), ["id", "the label"]);
    assert_eq!(names(".change"), ["price"]);
    assert_eq!(schema(".create")["properties"]["the label"]["maxLength"], 9);
    assert_eq!(schema("")["required"], Value::Null, "$select may leave any field out");
    assert!(!document.to_string().contains("pair"), "what is neither read nor written is not there");
    let select = &document["components"]["parameters"]["entity_0.select"]["schema"]["pattern"];
    assert_eq!(*select, json!("^(id|'the label'|\\*)(,(id|'the label'|\\*))*$"));
}

#[test]
fn a_relationship_is_an_option_and_a_member_for_a_key_that_reads_both_of_its_ends() {
    let document = made(2, &[(Action::Read, &ALL)]);
    let schema = |name: &str, member: &str| &document["components"]["schemas"][name]["properties"][member];
    assert_eq!(schema("entity_1", "parent")["anyOf"][0]["$ref"], "#/components/schemas/entity_0");
    assert_eq!(schema("entity_0", "children")["items"]["$ref"], "#/components/schemas/entity_1");
    assert_eq!(document["components"]["parameters"]["entity_1.expand"]["example"], "parent");
    let reference = json!({"$ref": "#/components/parameters/entity_0.expand"});
    for path in ["/auth/acme/api/entity_0", "/auth/acme/api/entity_0/id/{id}"] {
        let options = document["paths"][path]["get"]["parameters"].as_array().expect("a list");
        assert!(options.contains(&reference), "{path}");
    }
    for blind in [made(2, &[(Action::Read, &["id", "label"])]), made(1, &[(Action::Read, &ALL)])] {
        let text = blind.to_string();
        assert!(!text.contains("parent") && !text.contains("children") && !text.contains("expand"), "{text}");
    }
}

#[test]
fn a_composite_is_named_once_however_often_it_is_used() {
    let document = made(3, &[(Action::Read, &ALL), (Action::Create, &ALL)]);
    let text = document.to_string();
    assert_eq!(text.matches("\"rowgate.composite_1\":").count(), 1);
    assert!(!text.contains("rowgate.composite_2"));
    let composite = &document["components"]["schemas"]["rowgate.composite_1"]["properties"];
    assert_eq!(composite["the \"n\""]["type"], json!(["integer", "null"]));
}

/// What docs/decisions/openapi.md says of size and time comes of this, with `--nocapture`.
#[test]
fn a_document_of_ten_times_the_entities_is_ten_times_as_large() {
    let rights =
        [(Action::Read, &ALL[..]), (Action::Create, &ALL), (Action::Update, &ALL), (Action::Delete, &[])];
    let size = |n_tables: usize| {
        let (catalog, scope) = catalog(n_tables, &rights);
        let begun = Instant::now();
        let size = document::rest_of(&slug(), &catalog, &scope, Surfaces::ALL).len();
        println!("{n_tables} entities of 4 fields: {size} bytes in {:?}", begun.elapsed());
        size
    };
    let (few, many) = (size(50), size(500));
    assert!(many < 11 * few, "{few} {many}");
}

fn snapshot() -> (Arc<Snapshot>, Arc<Scope>) {
    let (catalog, scope) = catalog(1, &[(Action::Read, &ALL)]);
    let (watched, freshness, keys) = (Arc::default(), Freshness::new(Instant::now()), KeyCache::default());
    let (long_lists, types) = (LongLists::default(), TypeCache::default());
    (Arc::new(Snapshot { catalog, watched, freshness, keys, long_lists, types }), scope)
}

#[tokio::test]
async fn a_document_is_made_once_for_a_catalog_and_a_permission_set_and_the_oldest_goes_first() {
    let (tenant, slug) = (Ulid::from_parts(1, [0; 10]), slug());
    let ((snapshot, scope), (newer, _)) = (snapshot(), snapshot());
    let size = document::rest_of(&slug, &snapshot.catalog, &scope, Surfaces::ALL).len();
    // two fit
    let cache = DocumentCache::bounded(Surfaces::ALL, 2 * size + size / 2);
    let get = async |snapshot: &Arc<Snapshot>, set: &str| {
        cache.get((&tenant, &slug), snapshot, Some(&set.to_owned()), scope.clone()).await.expect("it is made")
    };
    let first = get(&snapshot, "a").await;
    assert!(Arc::ptr_eq(&first, &get(&snapshot, "a").await), "it is kept");
    assert!(!Arc::ptr_eq(&first, &get(&snapshot, "b").await), "another permission set");
    assert!(Arc::ptr_eq(&first, &get(&snapshot, "a").await), "it was used last");
    let third = get(&snapshot, "c").await;
    assert!(Arc::ptr_eq(&first, &get(&snapshot, "a").await), "b was the oldest");
    assert!(Arc::ptr_eq(&third, &get(&snapshot, "c").await));
    assert_eq!(cache.built.n_kept(), 2);
    assert!(!Arc::ptr_eq(&first, &get(&newer, "a").await), "another catalog");
    drop(snapshot);
    let _made = get(&newer, "d").await;
    assert_eq!(cache.built.n_kept(), 2, "those of the catalog that is gone went with it");
    let together: HashMap<_, _> =
        futures_util::future::join_all((0..8).map(|n| get(&newer, ["e", "f"][n % 2])))
            .await
            .into_iter()
            .map(|document| (Arc::as_ptr(&document), ()))
            .collect();
    assert_eq!(together.len(), 2, "who comes meanwhile waits for what is made");
}
