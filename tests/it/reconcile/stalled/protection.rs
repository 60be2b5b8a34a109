//! What is declared so that a table cannot be protected.

use rowgate_crds::Reason;

use super::cases::{Case, NOTES, Object, case, tenant};

/// Behind the script that all Tenants have.
pub(super) const SCRIPT: &str = "
    create table app.parts (id integer primary key) partition by range (id);
    create table app.part partition of app.parts for values from (0) to (9);
    create table app.heir () inherits (app.bare);
    create table app.early (id integer primary key, dl_expected_ts timestamptz);
    create table app.texts (id integer primary key, is_deleted text);
    create function app.touch() returns trigger language plpgsql as 'begin return new; end';
    create table app.late (id integer primary key);
    create trigger \"~~touch\" before update on app.late for each row execute function app.touch();";

const FOREIGN: &str = "create foreign data wrapper nothing; create server far foreign data wrapper nothing;
    create foreign table app.far (id integer) server far; alter foreign table app.far owner to t{id}_owner";

/// Tables that cannot be protected as they are, each in a Tenant of its own.
pub(super) fn cases() -> Vec<Case> {
    let of = |name, reason, why, names, fields: &str| {
        let entity = format!(
            "{{name: it, source: {{schema: app, object: {fields}, rowLevelSecurity: {{none: true}}}}"
        );
        case(Object::Tenant, (name, reason), why, names, tenant(name, "", &[&entity]))
    };
    let protected = "}, concurrencyProtection: {}";
    let refused = Reason::SourceUnsupported;
    let twin = "{name: twin, source: {schema: app, object: notes}, concurrencyProtection: {}}";
    let excluded =
        "  shared: {permissions: [{entity: it, actions: [read], fields: {exclude: [dl_expected_ts]}}]}\n";
    let notes = "{name: it, source: {schema: app, object: notes}, concurrencyProtection: {}, rowLevelSecurity: {none: true}}";
    vec![
        of(
            "part",
            refused,
            "a partition to be protected",
            "app.part is a partition",
            &format!("part{protected}"),
        ),
        of(
            "heir",
            refused,
            "an heir to be protected",
            "INHERITS",
            &format!("heir{protected}, keyFields: [word]"),
        ),
        of(
            "bare",
            refused,
            "a table with heirs to be protected",
            "INHERITS",
            &format!("bare{protected}, keyFields: [word]"),
        ),
        of("early", refused, "a version that may be missing", "dl_expected_ts", &format!("early{protected}")),
        of("texts", refused, "a flag that is a text", "is_deleted is text", &format!("texts{protected}")),
        of(
            "late",
            refused,
            "a trigger behind those that protect",
            "the trigger ~~touch",
            &format!("late{protected}"),
        ),
        Case {
            manifest: tenant("far", "", &[NOTES]),
            spoil: FOREIGN,
            then: tenant(
                "far",
                "",
                &[
                    "{name: it, source: {schema: app, object: far}, keyFields: [id], concurrencyProtection: {}}",
                ],
            ),
            ..of("far", refused, "a foreign table to be protected", "is not a Table", "")
        },
        of(
            "ours",
            refused,
            "a flag that nobody could set",
            "softDeleteColumn dl_gone",
            "notes}, concurrencyProtection: {softDeleteColumn: dl_gone}",
        ),
        of(
            "hides",
            Reason::FieldNotFound,
            "rows hidden by no column",
            "hideSoftDeleted",
            "notes}, hideSoftDeleted: true",
        ),
        Case {
            manifest: tenant("twins", "", &[NOTES, twin]),
            ..of("twins", Reason::InvalidSpec, "two entities that do not agree", "concurrencyProtection", "")
        },
        Case {
            manifest: tenant("unsaid", excluded, &[notes]),
            ..of("unsaid", Reason::KeyFieldExcluded, "a version that nobody may read", "dl_expected_ts", "")
        },
    ]
}
