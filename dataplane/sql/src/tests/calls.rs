//! Calls: from a body to the statement.

use std::collections::HashMap;

use super::{entity_name, name};
use crate::catalog::{
    Catalog, Entity, EntityKind, FieldType, GraphQlNames, Mode, Operators, Output, Param, Returns, Rights,
    Routine, RoutineKind, Scope, TypeKind, Volatility, WriteSupport,
};
use crate::rest::body;
use crate::{compile, rest};

fn integer() -> FieldType {
    FieldType {
        oid: 23,
        name: "integer".to_owned(),
        kind: TypeKind::Base,
        base_oid: 23,
        operators: Operators::BuiltIn,
        nested: None,
    }
}

fn param(exposed: &str, argument: &str, mode: Mode, has_default: bool) -> Param {
    Param { name: exposed.to_owned(), argument: name(argument), ty: integer(), mode, has_default }
}

fn output(exposed: &str, column: &str) -> Output {
    Output { name: exposed.to_owned(), column: name(column), ty: integer() }
}

/// What the body becomes for a key that may call, or the refusal.
fn called(kind: RoutineKind, returns: Returns, may: bool, text: Option<&str>) -> String {
    let params = vec![
        param("first", "a\"b", Mode::In, false),
        param("second", "c", Mode::InOut, true),
        param("third", "d", Mode::Out, false),
    ];
    let params = if kind == RoutineKind::Function { params[..2].to_vec() } else { params };
    let routine = Routine { kind, params, returns, strict: false, volatility: Volatility::Volatile };
    let entity = Entity {
        name: entity_name("work"),
        kind: EntityKind::Procedure,
        schema: name("app"),
        object: name("do \"it\""),
        fields: Vec::new(),
        key: Vec::new(),
        key_is_unique: false,
        rest: true,
        graphql: GraphQlNames::default(),
        protection: None,
        hide_soft_deleted: None,
        constraints: Vec::new(),
        write_support: WriteSupport::default(),
        under: Vec::new(),
        relations: Vec::new(),
        hides: true,
        shows_version: false,
        events: false,
        flags: Vec::new(),
        keeps_rows: false,
        routine: Some(routine),
    };
    let mut catalog = Catalog::default();
    catalog.entities.insert(entity.name.clone(), entity.into());
    let rights = Rights { execute: may, ..Rights::default() };
    let scope = Scope { entities: HashMap::from([(entity_name("work"), rights)]).into(), ..Scope::default() };
    let body = text.map(|text| body::parse(text.as_bytes())).transpose();
    match rest::call(&catalog, &scope, &entity_name("work"), body, true) {
        Err(problem) => format!("{:?}: {}", problem.code, problem.message),
        Ok(call) => {
            let compiled = compile::call(&call);
            let binds = compiled.sql.binds().iter().map(|bind| match &bind.value {
                Some(value) => String::from_utf8_lossy(value).into_owned(),
                None => "null".to_owned(),
            });
            let labels = compiled.shape.columns.iter().filter_map(|column| column.label.as_deref());
            let (binds, labels) = (binds.collect::<Vec<_>>().join(" "), labels.collect::<String>());
            format!("{} <- {binds} -> {labels} {}", compiled.sql.as_str(), compiled.keeps_rows)
        }
    }
}

#[test]
fn values_go_by_name_and_nothing_of_a_body_is_sql() {
    let row = || Returns::Row(vec![output("second", "c"), output("third", "d")]);
    for (kind, returns, text, expected) in [
        (
            RoutineKind::Procedure,
            row(),
            "{\"first\": 1}",
            r#"call "app"."do ""it"""("a""b" => $1, "d" => null) <- 1 -> "second":"third": true"#,
        ),
        (
            RoutineKind::Procedure,
            row(),
            "{\"second\": null, \"first\": \"2\"}",
            r#"call "app"."do ""it"""("a""b" => $1, "c" => $2, "d" => null) <- 2 null -> "second":"third": true"#,
        ),
        (
            RoutineKind::Procedure,
            Returns::Nothing,
            "{\"first\": 1}",
            r#"call "app"."do ""it"""("a""b" => $1, "d" => null) <- 1 ->  false"#,
        ),
        (
            RoutineKind::Function,
            Returns::Rows(vec![output("value", "do \"it\"")]),
            "{\"first\": 1}",
            r#"select "do ""it"""."do ""it""" from "app"."do ""it"""("a""b" => $1) <- 1 -> "value": true"#,
        ),
        (
            RoutineKind::Function,
            Returns::Nothing,
            "{\"first\": 1}",
            r#"select from "app"."do ""it"""("a""b" => $1) <- 1 ->  false"#,
        ),
    ] {
        assert_eq!(called(kind, returns, true, Some(text)), expected, "{text}");
    }
}

#[test]
fn a_body_that_does_not_fit_names_what_is_wrong() {
    for (text, expected) in [
        (None, "InvalidValue: a call of work needs a value for \"first\"; null is allowed"),
        (Some("{}"), "InvalidValue: a call of work needs a value for \"first\"; null is allowed"),
        (Some("{\"first\": 1, \"a\\\"b\": 2}"), "UnknownField: work has no parameter \"a\\\"b\""),
        (Some("{\"first\": 1, \"third\": 2}"), "UnknownField: work has no parameter \"third\""),
        (
            Some("[{\"first\": 1}]"),
            "BadRequest: a call of work takes one object with its parameters, not an array",
        ),
    ] {
        assert_eq!(called(RoutineKind::Procedure, Returns::Nothing, true, text), expected, "{text:?}");
    }
    let refused = called(RoutineKind::Procedure, Returns::Nothing, false, Some("{}"));
    assert!(refused.starts_with("EntityNotFound"), "{refused}");
}
