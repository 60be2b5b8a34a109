//! Lists of scripts that are not what ran, and one that does not run.

use rowgate_crds::Reason;

use super::cases::{Case, NOTES, Object, case, tenant};

/// What those name beside `script`, in ConfigMaps of their own.
fn texts(name: &str, second: &str) -> String {
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}-script}}\ndata: {{second.sql: {second}}}\n---\n"
    )
}

/// A Tenant that lists `script` and then one of its own, or the other way round.
fn lists(name: &str, scripts: &str) -> String {
    tenant(name, "", &[NOTES]).replace("configMapRef: {name: script}", &format!("scripts: [{scripts}]"))
}

pub(super) fn cases() -> Vec<Case> {
    let of = |name, reason, why, names, manifest| case(Object::Tenant, (name, reason), why, names, manifest);
    let two =
        |name: &str| lists(name, &format!("{{name: script}}, {{name: {name}-script, key: second.sql}}"));
    let other_order = lists("moved", "{name: moved-script, key: second.sql}, {name: script}");
    let missing = "{name: script}, {name: nowhere, key: second.sql}";
    let changed = Reason::ScriptChanged;
    vec![
        Case {
            spoil: "select 1",
            then: texts("edited", "select 2") + &two("edited"),
            ..of(
                "edited",
                changed,
                "a script that was changed after it ran",
                "script 2 of",
                texts("edited", "select 1") + &two("edited"),
            )
        },
        Case {
            spoil: "select 1",
            then: texts("moved", "select 1") + &other_order,
            ..of(
                "moved",
                changed,
                "scripts in another order than they ran",
                "script 1 of",
                texts("moved", "select 1") + &two("moved"),
            )
        },
        Case {
            spoil: "select 1",
            then: texts("shorter", "select 1") + &lists("shorter", "{name: script}"),
            ..of(
                "shorter",
                changed,
                "a script that ran and is not listed any more",
                "script 2 of",
                texts("shorter", "select 1") + &two("shorter"),
            )
        },
        of(
            "no-second",
            Reason::ConfigMapNotFound,
            "a script of a list that is not there",
            "script 2 of",
            lists("no-second", missing),
        ),
        of(
            "bad-second",
            Reason::BootstrapFailed,
            "a script of a list that cannot run in a transaction",
            "script 2 of",
            texts("bad-second", "create index concurrently on app.notes (body)") + &two("bad-second"),
        ),
    ]
}
