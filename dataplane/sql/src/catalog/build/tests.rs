//! What is left out of a catalog, and what rights come to.

use super::*;
use crate::catalog::{
    GraphQlNames, Mode, Operators, Output, Param, Protection, Protocol, Returns, Routine, RoutineKind,
    TypeKind, Volatility,
};

fn name(text: &str) -> Ident {
    Ident::new(text).expect("a name")
}

fn entity_name(text: &str) -> EntityName {
    text.parse().expect("a name")
}

fn table(object: &str, columns: &[&str]) -> TableColumns {
    let column = |column: &&str| ColumnInfo {
        name: name(column),
        ty: FieldType {
            oid: 25,
            name: "text".into(),
            kind: TypeKind::Base,
            base_oid: 25,
            operators: Operators::BuiltIn,
            nested: None,
        },
        nullable: false,
        granted: !column.starts_with("new_"),
        filling: Filling::Caller,
        takes_null: true,
        rounds_to: None,
        labels: Vec::new(),
        made_of: Vec::new(),
    };
    TableColumns {
        schema: name("app"),
        object: name(object),
        columns: columns.iter().map(column).collect(),
        unique: Vec::new(),
        constraints: Vec::new(),
        write_support: WriteSupport::default(),
        hides: true,
        view: None,
        relations: Vec::new(),
    }
}

fn record(entity: &str, object: &str, key: &str, mappings: &[(&str, &str)]) -> EntityRecord {
    EntityRecord {
        name: entity_name(entity),
        kind: EntityKind::Table,
        schema: name("app"),
        object: name(object),
        key_columns: vec![name(key)],
        mappings: mappings.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect(),
        rest: true,
        graphql: GraphQlNames::default(),
        protection: None,
        hide_soft_deleted: None,
        shows_version: false,
        events: false,
        allow_definer: false,
    }
}

fn permission(entity: &str, action: Action, columns: &[&str]) -> PermissionRecord {
    PermissionRecord {
        entity: entity_name(entity),
        action,
        columns: columns.iter().map(|c| (*c).to_owned()).collect(),
    }
}

#[test]
fn what_does_not_fit_together_is_left_out_and_named() {
    let tables = [table("t", &["id", "a", "b"])];
    let records = vec![
        record("good", "t", "id", &[("a", "first")]),
        record("gone", "no_such", "id", &[]),
        record("no_key", "t", "no_such", &[]),
        record("ambiguous", "t", "id", &[("a", "b")]),
    ];
    let catalog = build(7, Limits::default(), records, &tables, &[], Vec::new());
    assert_eq!(catalog.missing, ["gone", "no_key", "ambiguous"]);
    assert_eq!(catalog.entities.len(), 1);
    let fields: Vec<_> =
        catalog.entities[&entity_name("good")].fields.iter().map(|f| f.name.as_str()).collect();
    assert_eq!(fields, ["id", "first", "b"]);
}

#[test]
fn without_its_column_nothing_is_protected_or_hidden_so_it_is_left_out() {
    let protected = |entity, object| EntityRecord {
        protection: Some(Protection { soft_delete: "gone".to_owned() }),
        ..record(entity, object, "id", &[])
    };
    let hiding = |entity, column: &str| EntityRecord {
        hide_soft_deleted: Some(column.to_owned()),
        ..record(entity, "t", "id", &[])
    };
    let mut t = table("t", &["id", EXPECTED_TS, "flag"]);
    t.columns[1].ty.base_oid = TIMESTAMPTZ;
    t.columns[2].ty.base_oid = BOOL;
    let tables = [t, table("text", &["id", EXPECTED_TS]), table("without", &["id"])];
    let records = vec![
        protected("good", "t"),
        protected("text", "text"),
        protected("without", "without"),
        hiding("hides", "flag"),
        hiding("no_flag", "no_such"),
        hiding("no_bool", "id"),
    ];
    let catalog = build(7, Limits::default(), records, &tables, &[], Vec::new());
    assert_eq!(catalog.missing, ["text", "without", "no_flag", "no_bool"]);
    let old =
        r#"{"name": "a", "kind": "Table", "schema": "s", "object": "o", "keyColumns": ["id"], "rest": true}"#;
    let old: EntityRecord = serde_json::from_str(old).expect("a record of an earlier version");
    assert_eq!((&old.protection, &old.hide_soft_deleted), (&None, &None));
    assert!(!serde_json::to_string(&old).expect("plain values").contains("protection"));
}

fn routine(param: &str, gives: &str) -> Routine {
    let ty = table("t", &["x"]).columns[0].ty.clone();
    let named = |text: &str| Param {
        name: text.into(),
        argument: name(text),
        ty: ty.clone(),
        mode: Mode::In,
        has_default: false,
    };
    Routine {
        kind: RoutineKind::Function,
        params: vec![named(param), named("other")],
        returns: Returns::Row(vec![Output { name: gives.into(), column: name(gives), ty: ty.clone() }]),
        strict: false,
        volatility: Volatility::Stable,
    }
}

#[test]
fn a_routine_is_called_only_as_what_it_was_accepted_for() {
    let info = |definer, routine| RoutineInfo { schema: name("app"), object: name("f"), routine, definer };
    let good = || Some(routine("a", "f"));
    let record = |mappings: &[(&str, &str)], allow_definer| EntityRecord {
        kind: EntityKind::Procedure,
        key_columns: Vec::new(),
        allow_definer,
        ..record("f", "f", "none", mappings)
    };
    let is = |record: EntityRecord, found: &[RoutineInfo]| {
        let permissions = vec![permission("f", Action::Execute, &[]), permission("f", Action::Read, &["a"])];
        let sets = vec![("set_x".to_owned(), permissions)];
        let catalog = build(1, Limits::default(), vec![record], &[], found, sets);
        let Some(entity) = catalog.entities.get(&entity_name("f")) else { return "missing" };
        let rights = &catalog.scopes["set_x"].entities[&entity.name];
        assert_eq!((rights.execute, rights.delete, rights.read.len()), (true, false, 0));
        if catalog.unguarded.contains(&entity.name) { "closed" } else { "open" }
    };
    assert_eq!(is(record(&[("a", "b")], false), &[info(false, good())]), "open");
    assert_eq!(is(record(&[], false), &[info(true, good())]), "closed");
    assert_eq!(is(record(&[], true), &[info(true, good())]), "open");
    assert_eq!(is(record(&[], true), &[info(false, good()), info(false, None)]), "closed");
    assert_eq!(is(record(&[], true), &[info(false, None), info(false, good())]), "closed");
    assert_eq!(is(record(&[], false), &[info(false, None)]), "missing");
    assert_eq!(is(record(&[], false), &[]), "missing");
    assert_eq!(is(record(&[("a", "other")], false), &[info(false, good())]), "missing", "two of one name");
    assert_eq!(is(record(&[("f", "a")], false), &[info(false, good())]), "open", "one is taken, one given");
}

#[test]
fn rights_add_up_and_bring_the_key() {
    let tables = [table("t", &["id", "a", "b", "new_c"])];
    let records = vec![record("t", "t", "id", &[("a", "first")])];
    let read = |permissions: Vec<PermissionRecord>| {
        let sets = vec![("set_x".to_owned(), permissions)];
        let catalog = build(1, Limits::default(), records.clone(), &tables, &[], sets);
        catalog.scopes["set_x"].entities.get(&entity_name("t")).cloned()
    };
    let rights = |permissions| read(permissions).expect("rights").read;
    assert_eq!(rights(vec![permission("t", Action::Read, &["a"])]), [true, true, false, false]);
    assert_eq!(
        rights(vec![permission("t", Action::Read, &["a"]), permission("t", Action::Read, &["b", "later"]),]),
        [true, true, true, false]
    );
    assert_eq!(rights(vec![permission("t", Action::Delete, &[])]), [true, false, false, false]);
    assert_eq!(rights(vec![permission("t", Action::Update, &["b"])]), [true, false, false, false]);
    assert_eq!(rights(vec![permission("t", Action::Create, &["b"])]), [false, false, false, false]);
    assert_eq!(rights(vec![permission("t", Action::Read, &["a", "new_c"])]), [true, true, false, false]);
    assert_eq!(read(vec![permission("absent", Action::Read, &["b"])]), None);
}

#[test]
fn what_is_missing_or_not_granted_is_closed_for_who_has_a_permission_on_it() {
    let tables = [table("t", &["id", "a"]), table("fresh", &["new_id", "new_a"])];
    let graphql = GraphQlNames { enabled: Some(true), ..GraphQlNames::default() };
    let records = vec![
        record("t", "t", "id", &[]),
        record("gone", "no_such", "id", &[]),
        record("fresh", "fresh", "new_id", &[]),
        EntityRecord { rest: false, ..record("hidden", "no_such", "id", &[]) },
        EntityRecord { rest: false, graphql, ..record("graph", "no_such", "id", &[]) },
    ];
    let names = ["t", "gone", "fresh", "hidden", "graph", "absent"];
    let read = |entity: &str| permission(entity, Action::Read, &["id", "new_id"]);
    let sets = vec![
        ("set_all".to_owned(), names.into_iter().map(read).collect()),
        ("set_t".to_owned(), vec![read("t"), permission("fresh", Action::Create, &[])]),
    ];
    let catalog = build(1, Limits::default(), records, &tables, &[], sets);
    let closed = |set: &str, protocol| -> Vec<&str> {
        let scope = catalog.scopes[set].on(protocol);
        names.into_iter().filter(|name| scope.is_closed(&entity_name(name))).collect()
    };
    assert_eq!(closed("set_all", Protocol::Rest), ["gone", "fresh"]);
    assert_eq!(closed("set_all", Protocol::GraphQl), ["gone", "fresh", "graph"]);
    assert_eq!(closed("set_t", Protocol::Rest), ["fresh"]);
}
