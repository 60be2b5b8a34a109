//! Functions and procedures that cannot be called. `plan/routines.rs` has a case for each obstacle.

use rowgate_crds::Reason;

use super::cases::{Case, NOTES, Object, case, key, tenant};

fn of(
    name: &'static str,
    reason: Reason,
    why: &'static str,
    names: &'static str,
    (object, fields): (&str, &str),
) -> Case {
    let entity =
        format!("{{name: {object}, kind: Procedure, source: {{schema: app, object: {object}}}{fields}}}");
    case(Object::Tenant, (name, reason), why, names, tenant(name, "", &[NOTES, &entity]))
}

pub(super) fn cases() -> Vec<Case> {
    let execute = |entity: &str, action: &str| {
        format!(", scope: {{permissions: [{{entity: {entity}, actions: [{action}]}}]}}")
    };
    vec![
        of(
            "no-routine",
            Reason::SourceNotFound,
            "a function that is not there",
            "function or procedure app.nothing does not exist",
            ("nothing", ""),
        ),
        of("overloaded", Reason::SourceUnsupported, "two functions of one name", "app.twice", ("twice", "")),
        of(
            "definer",
            Reason::SourceUnsupported,
            "a function with the rights of its owner",
            "app.definer() is SECURITY DEFINER",
            ("definer", ""),
        ),
        of(
            "no-parameter",
            Reason::FieldNotFound,
            "a mapping of no parameter",
            "mappings names word",
            ("definer", ", allowDefiner: true, mappings: {word: other}"),
        ),
        case(
            Object::ApiKey,
            ("executes", Reason::InvalidSpec),
            "a table that is to be called",
            "permissions on notes name execute",
            tenant("executes", "", &[NOTES]) + &key("executes", "executes", &execute("notes", "execute")),
        ),
    ]
}
