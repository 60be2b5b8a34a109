//! Writes of a table that keeps the versions of its rows, from body and headers to SQL; and reads that hide rows.

use rowgate_core::entity_tag::Version;
use rowgate_core::problem::Code;

use super::*;
use crate::catalog::{EXPECTED_TS, Protection};
use crate::compile::CompiledWrite;
use crate::query::{Guard, NoRowReason};
use crate::resolve::{Precondition, UpsertMode};
use crate::rest::body;

/// `kept` is protected, `hiding` leaves flagged rows out besides, `plain` is neither. `set_x` may do everything; `set_new`
/// may create, and read.
fn catalog() -> Catalog {
    let column = |name: &str, ty: &str, oid, nullable, filling| ColumnInfo {
        name: super::name(name),
        ty: FieldType {
            oid,
            name: ty.into(),
            kind: TypeKind::Base,
            base_oid: oid,
            operators: Operators::BuiltIn,
            nested: None,
        },
        nullable,
        granted: true,
        filling,
        takes_null: true,
        rounds_to: None,
        labels: Vec::new(),
        made_of: Vec::new(),
    };
    let columns = vec![
        column("id", "integer", 23, false, Filling::Caller),
        column("title", "text", 25, true, Filling::Caller),
        column("gone", "boolean", 16, false, Filling::Default),
        column(EXPECTED_TS, "timestamp with time zone", 1184, false, Filling::Default),
    ];
    let names: Vec<String> = columns.iter().map(|it| it.name.as_str().to_owned()).collect();
    let protection = Protection { soft_delete: "gone".to_owned() };
    let record = |entity: &str, protection: Option<&Protection>, hides: bool| EntityRecord {
        name: entity_name(entity),
        kind: EntityKind::Table,
        schema: name("app"),
        object: name("kept"),
        key_columns: vec![name("id")],
        mappings: [("gone".to_owned(), "is gone".to_owned())].into(),
        rest: true,
        graphql: Default::default(),
        protection: protection.cloned(),
        hide_soft_deleted: hides.then(|| "gone".to_owned()),
        shows_version: false,
        events: false,
        allow_definer: false,
    };
    let table = TableColumns {
        schema: name("app"),
        object: name("kept"),
        columns,
        unique: vec![vec![name("id")]],
        constraints: vec![("kept_pkey".to_owned(), vec![name("id")]), ("odd".to_owned(), vec![name("none")])],
        write_support: crate::catalog::WriteSupport::default(),
        hides: true,
        view: None,
        relations: Vec::new(),
    };
    let entities = vec![
        record("kept", Some(&protection), false),
        record("hiding", Some(&protection), true),
        record("plain", None, false),
    ];
    let all = |actions: &[Action]| -> Vec<PermissionRecord> {
        let of = |action: &Action| {
            let (action, columns) = (*action, names.clone());
            ["kept", "hiding", "plain"].map(|entity| PermissionRecord {
                entity: entity_name(entity),
                action,
                columns: columns.clone(),
            })
        };
        actions.iter().flat_map(of).collect()
    };
    let sets = vec![
        ("set_x".to_owned(), all(&[Action::Read, Action::Create, Action::Update, Action::Delete])),
        ("set_new".to_owned(), all(&[Action::Read, Action::Create])),
    ];
    build(1, Limits::default(), entities, &[table], &[], sets)
}

fn change(
    set: &str,
    entity: &str,
    body: &str,
    mode: UpsertMode,
    precondition: &Precondition,
) -> Result<CompiledWrite, Problem> {
    let catalog = catalog();
    let key = [("id".to_owned(), "7".to_owned())];
    let body = body::parse(body.as_bytes());
    let scope = &catalog.scopes[set];
    rest::upsert(&catalog, scope, &entity_name(entity), &key, body, (mode, precondition, true))
        .map(|upsert| compile::upsert(&upsert))
}

const READ: &str = "2024-02-29T12:34:56.7Z";

fn tagged(versions: &[i64]) -> Precondition {
    Precondition::Tagged(versions.iter().map(|version| Version(*version)).collect())
}

#[test]
fn a_version_that_is_named_must_be_the_rows_and_no_row_is_made() {
    let body = format!(r#"{{"title": "x", "{EXPECTED_TS}": "{READ}"}}"#);
    let of_body = r#"with u as (update "app"."kept" t set "title" = $1, "dl_expected_ts" = t."dl_expected_ts" where t."id" = $2 and t."dl_expected_ts" = any ($3)"#;
    let told = r#" returning t."id", t."title", t."gone", t."dl_expected_ts", 0::pg_catalog.int8, t."dl_expected_ts""#;
    for (mode, precondition, body, binds, no_row, mark) in [
        (
            UpsertMode::Merge,
            Precondition::Either,
            &*body,
            format!(r#"1185:"{{\"{READ}\"}}""#),
            NoRowReason::Stale,
            told,
        ),
        (
            UpsertMode::Merge,
            Precondition::Present,
            &body,
            format!(r#"1185:"{{\"{READ}\"}}""#),
            NoRowReason::Stale,
            told,
        ),
        (
            UpsertMode::Merge,
            tagged(&[1, 762_525_296_700_000]),
            &body,
            format!(r#"1185:"{{\"{READ}\"}}""#),
            NoRowReason::Unmatched,
            told,
        ),
        (
            UpsertMode::Merge,
            tagged(&[1]),
            r#"{"title": "x"}"#,
            format!(
                "1185:{:02x?}",
                [
                    0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 4, 160, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 8, 0, 0, 0, 0, 0,
                    0, 0, 1_u8
                ]
            ),
            NoRowReason::Unmatched,
            told,
        ),
        (
            UpsertMode::Merge,
            tagged(&[]),
            r#"{"title": "x"}"#,
            format!("1185:{:02x?}", [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 160_u8]),
            NoRowReason::Unmatched,
            told,
        ),
    ] {
        let compiled = change("set_x", "kept", body, mode, &precondition)
            .unwrap_or_else(|it| panic!("{precondition:?}: {it:?}"));
        assert_eq!(
            show(&compiled.sql),
            format!(r#"{of_body}{mark}) select * from u <- 25:"x" 23:"7" {binds}"#)
        );
        assert_eq!((compiled.no_row, compiled.is_tagged), (no_row, true), "{precondition:?}");
        assert_eq!((compiled.shape.count, &*compiled.shape.position), (Some(4), &[5][..]));
    }
    let put = change(
        "set_x",
        "kept",
        &body.replace("title", "is gone").replace("\"x\"", "true"),
        UpsertMode::Replace,
        &Precondition::Either,
    );
    let put = put.expect("a PUT");
    assert!(
        !put.is_tagged
            && put.sql.as_str().contains(r#"set "gone" = $1, "title" = default, "dl_expected_ts" = t."#),
        "{}",
        put.sql.as_str()
    );
}

#[test]
fn a_put_names_what_has_no_default_and_leaves_the_flag() {
    let put = change("set_x", "plain", r#"{}"#, UpsertMode::Replace, &Precondition::Present).expect("a PUT");
    let text = put.sql.as_str();
    assert!(text.contains(r#"set "title" = default, "gone" = default where"#), "{text}");
    let put = change("set_x", "kept", r#"{}"#, UpsertMode::Replace, &Precondition::Present).expect("a PUT");
    assert!(put.sql.as_str().contains(r#"set "title" = default where"#), "{}", put.sql.as_str());
}

/// Only who could read the row, version and flag included, is told that it is kept.
#[test]
fn a_row_that_policies_keep_is_looked_for_as_reads_show_it() {
    let catalog = catalog();
    let key = [("id".to_owned(), "7".to_owned())];
    let made = |entity: &str, set: &str, precondition: &Precondition, body: &str| {
        let (scope, wish) = (&catalog.scopes[set], (UpsertMode::Merge, precondition, false));
        rest::upsert(&catalog, scope, &entity_name(entity), &key, body::parse(body.as_bytes()), wish)
            .expect("a PATCH")
    };
    let body = format!(r#"{{"title": "x", "{EXPECTED_TS}": "{READ}"}}"#);
    let apart = compile::upsert(&made("hiding", "set_x", &Precondition::Either, &body).told_apart());
    let look = r#"with p as (select from "app"."kept" t where t."id" = $1 and t."gone" is not true and t."dl_expected_ts" = any ($2)), u as (update "#;
    assert!(apart.sql.as_str().starts_with(look), "{}", apart.sql.as_str());
    assert_eq!(apart.guard, Guard::Seen);
    let title = r#"{"title": "x"}"#;
    for (set, precondition, guard) in [
        ("set_x", Precondition::Either, Guard::Unseen),
        ("set_x", Precondition::Present, Guard::Unseen),
        ("set_x", Precondition::Absent, Guard::None),
        ("set_new", Precondition::Either, Guard::None),
    ] {
        let upsert = made("plain", set, &precondition, title);
        assert_eq!(compile::upsert(&upsert).guard, guard, "{set} {precondition:?}");
        assert_eq!(upsert.told_apart().looks, guard == Guard::Unseen, "{set} {precondition:?}");
    }
}

#[test]
fn without_a_version_a_row_is_made_and_the_table_refuses_to_change_one() {
    let title = r#"{"title": "x"}"#;
    for (set, precondition, no_row, updates, inserts) in [
        ("set_x", Precondition::Either, NoRowReason::Again, true, true),
        ("set_x", Precondition::Present, NoRowReason::NotFound, true, false),
        ("set_x", Precondition::Absent, NoRowReason::Taken, false, true),
        ("set_new", Precondition::Either, NoRowReason::PassedOver, false, true),
    ] {
        let compiled = change(set, "kept", title, UpsertMode::Merge, &precondition).expect("a PATCH");
        let text = compiled.sql.as_str();
        assert_eq!(compiled.no_row, no_row, "{set} {precondition:?}");
        assert_eq!((text.contains("update"), text.contains("insert")), (updates, inserts), "{text}");
        assert!(!text.contains(r#"set "dl_expected_ts""#) && !text.contains("any ("), "{text}");
    }
}

#[test]
fn what_says_nothing_or_two_things_about_the_version_is_refused() {
    let with = |value: &str| format!(r#"{{"title": "x", "{EXPECTED_TS}": {value}}}"#);
    let read = with(&format!("\"{READ}\""));
    for (set, entity, body, precondition, code, words) in [
        ("set_x", "kept", &*with("null"), Precondition::Either, Code::InvalidValue, "as it was read"),
        ("set_x", "kept", &with("7"), Precondition::Either, Code::InvalidValue, "as it was read"),
        ("set_x", "kept", &with("\"now\""), Precondition::Either, Code::InvalidValue, "as it was read"),
        ("set_x", "kept", &with("[]"), Precondition::Either, Code::InvalidValue, "as it was read"),
        ("set_x", "kept", &read, Precondition::Absent, Code::BadRequest, "send one of them"),
        ("set_x", "kept", &read, tagged(&[1]), Code::BadRequest, "different versions"),
        ("set_x", "kept", &read, tagged(&[]), Code::BadRequest, "different versions"),
        ("set_x", "kept", &with("\"infinity\""), tagged(&[i64::MIN]), Code::BadRequest, "different versions"),
        (
            "set_x",
            "kept",
            &read.replace(r#""title": "x", "#, ""),
            Precondition::Either,
            Code::BadRequest,
            "no field to change",
        ),
        ("set_new", "kept", &read, Precondition::Either, Code::Forbidden, "may not change"),
        ("set_new", "kept", r#"{"title": "x"}"#, tagged(&[1]), Code::Forbidden, "may not change"),
        ("set_x", "plain", &read, Precondition::Either, Code::ReadOnlyColumn, "set by the database"),
        ("set_x", "plain", r#"{"title": "x"}"#, tagged(&[1]), Code::BadRequest, "no versions"),
    ] {
        let problem = change(set, entity, body, UpsertMode::Merge, &precondition).expect_err(body);
        assert_eq!(problem.code, code, "{body} {precondition:?}: {problem:?}");
        assert!(problem.message.contains(words), "{body} {precondition:?}: {problem:?}");
    }
    let catalog = catalog();
    let body = body::parse(read.as_bytes());
    let made = rest::insert(&catalog, &catalog.scopes["set_x"], &entity_name("kept"), body, true);
    assert_eq!(made.expect_err("a POST").code, Code::ReadOnlyColumn);
}

#[test]
fn rows_of_a_protected_table_are_not_deleted() {
    let catalog = catalog();
    let key = [("id".to_owned(), "7".to_owned())];
    for (set, entity, code) in [
        ("set_x", "kept", Some(Code::DirectDeleteBlocked)),
        ("set_new", "hiding", Some(Code::DirectDeleteBlocked)),
        ("set_x", "plain", None),
        ("set_new", "plain", Some(Code::Forbidden)),
        ("set_x", "absent", Some(Code::EntityNotFound)),
    ] {
        let (scope, name) = (&catalog.scopes[set], entity_name(entity));
        let refused = rest::delete(&catalog, scope, &name, &key).err();
        assert_eq!(refused.as_ref().map(|problem| problem.code), code, "{set} {entity}");
        let is_blocked = code == Some(Code::DirectDeleteBlocked);
        let allowed = rest::allowed(&catalog, scope, &name, true);
        assert_eq!(allowed, is_blocked.then_some(Problem::KEPT));
        if is_blocked {
            let problem = refused.expect("it is refused");
            assert!(
                problem.message.contains("\"is gone\"") && problem.allow == Some(Problem::KEPT),
                "{problem:?}"
            );
        }
    }
}

#[test]
fn flagged_rows_are_in_no_read_of_an_entity_that_hides_them() {
    let catalog = catalog();
    let read = |entity: &str, query: &str| {
        let request = query_string::parse(query).expect("a query");
        let cursors = Cursors { key: &key(), caller: "k1" };
        rest::collection(&catalog, &catalog.scopes["set_x"], &entity_name(entity), &request, cursors)
            .expect(query)
    };
    let hidden = r#" from "app"."kept" t where t."gone" is not true"#;
    for (query, rest) in [
        ("$select=id", " order by"),
        ("$select=id&$filter=id eq 1 or id eq 2", r#" and (t."id" = $1 or t."id" = $2) order by"#),
        ("$select=id&$count=true", r#") from "app"."kept" t where t."gone" is not true order by"#),
        (
            "$select=id&$count=true&$filter=id eq 1",
            r#" and t."id" = $1) from "app"."kept" t where t."gone" is not true and t."id" = $2"#,
        ),
    ] {
        let query = query.replace(' ', "%20");
        let text = compile::read(&read("hiding", &query)).sql.as_str().to_owned();
        assert!(text.contains(&format!("{hidden}{rest}")), "{text}");
        let count = compile::count(&read("hiding", &query)).sql.as_str().to_owned();
        assert!(count.contains(hidden), "{count}");
        let all = compile::read(&read("kept", &query)).sql.as_str().to_owned();
        assert!(!all.contains("is not true"), "{all}");
    }
    let row = |entity: &str, query: &str| {
        let request = query_string::parse(query).expect("a query");
        let path = [("id".to_owned(), "7".to_owned())];
        let found = rest::row(&catalog, &catalog.scopes["set_x"], &entity_name(entity), &path, &request);
        compile::read(&found.expect(query))
    };
    let one = row("hiding", "$select=id");
    assert_eq!(
        show(&one.sql),
        format!(r#"select t."id", t."dl_expected_ts"{hidden} and t."id" = $1 limit 1 <- 23:"7""#)
    );
    assert_eq!((one.is_tagged, &*one.shape.position), (true, &[1][..]));
    assert!(row("kept", "").is_tagged && !row("plain", "").is_tagged);
    // what is written is given back, and whether reads show it
    let patch = change(
        "set_x",
        "hiding",
        &format!(r#"{{"is gone": true, "{EXPECTED_TS}": "{READ}"}}"#),
        UpsertMode::Merge,
        &Precondition::Either,
    );
    let patch = patch.expect("a PATCH");
    assert!(
        patch.sql.as_str().contains(r#"where t."id" = $2 and t."dl_expected_ts" = any ($3) returning"#),
        "{}",
        patch.sql.as_str()
    );
    assert_eq!(&*patch.shape.position, &[5, 6]);
    let constraints: Vec<_> =
        catalog.entities[&entity_name("kept")].constraints.iter().map(|it| &*it.name).collect();
    assert_eq!(constraints, ["kept_pkey"], "one about a column that is not there is not known");
}
