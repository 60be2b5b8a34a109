//! Databases in which something stands that a Tenant cannot be served with.

use rowgate_crds::Reason;

use super::cases::{Case, NOTES, Object, case, key, scope, tenant};

/// What stands in the database.
pub(super) fn cases() -> Vec<Case> {
    let of = |name, reason, why, names, spoil| Case {
        spoil,
        ..case(Object::Tenant, (name, reason), why, names, tenant(name, "", &[NOTES]))
    };
    let claims = |region: &str| format!("  shared: {{claims: {{region: {region}}}}}\n");
    let scoped = |region: &str| {
        let spec = format!(", claims: {{region: {region}}}{}", scope("{include: ['*']}"));
        tenant("martian", "", &[NOTES]) + &key("martian", "martian", &spec)
    };
    let refuse = "alter table dl.claims add constraint ours check (value <> 'mars')";
    vec![
        of(
            "owned",
            Reason::NotOwned,
            "a table that belongs to another role",
            "app.notes belongs to rowgate_superuser",
            "alter table app.notes owner to rowgate_superuser",
        ),
        of(
            "bypass",
            Reason::NotOwned,
            "a login role with more rights than the operator has",
            "has BYPASSRLS",
            "alter role t{id}_sql bypassrls",
        ),
        of(
            "extension",
            Reason::ExtensionRefused,
            "an extension that shows what others ask",
            "pg_stat_statements",
            "create extension pg_stat_statements schema public version '1.10'",
        ),
        Case {
            manifest: tenant("mars", &claims("earth"), &[NOTES]),
            then: tenant("mars", &claims("mars"), &[NOTES]),
            ..of("mars", Reason::StatementRefused, "a statement that the whole Tenant needs", "23514", refuse)
        },
        Case {
            object: Object::ApiKey,
            manifest: scoped("earth"),
            then: scoped("mars"),
            ..of("martian", Reason::StatementRefused, "a statement that one key needs", "23514", refuse)
        },
    ]
}
