//! What is declared, and what is done to it, so that an object is `Stalled`.

use rowgate_crds::Reason;

use super::{databases, protection, relationships, routines, scripts, subscriptions};

/// Whose status is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Object {
    Tenant,
    ApiKey,
    Relationship,
    WebhookSubscription,
}

pub(super) struct Case {
    pub(super) why: &'static str,
    pub(super) reason: Reason,
    pub(super) object: Object,
    /// Of the object, and of its Tenant's database if there is a `spoil`.
    pub(super) name: &'static str,
    /// What the message names.
    pub(super) names: &'static str,
    pub(super) manifest: String,
    /// Run by a superuser in the Tenant's database when it is done; `{id}` is the tenant's.
    pub(super) spoil: &'static str,
    /// The manifest after that, if it is another one.
    pub(super) then: String,
}

pub(super) const NOTES: &str =
    "{name: notes, source: {schema: app, object: notes}, rowLevelSecurity: {none: true}}";
const SCRIPT: &str = "create schema app;
    create table app.notes (id bigint primary key, region text not null, body text);
    create table app.hidden (id integer primary key, word text);
    create table app.bare (word text);
    create table app.listed (id integer primary key);
    create policy monitors on app.listed to pg_monitor using (true);
    create view app.leak as select id, word from app.hidden;
    create view app.listing as select id from app.listed;
    create materialized view app.frozen as select id from app.hidden;
    create view app.thaw as select id from app.frozen;
    create function app.twice(a int) returns int language sql return a; create function app.twice(a text) returns text language sql return a;
    create function app.definer() returns int language sql security definer return 1;";

/// What all the others need: the script, one that does not run, a Tenant that is in order, and a key of it.
pub(super) fn common() -> String {
    let script = |name: &str, text: &str| {
        format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata:\n  schema.sql: |\n    {text}\n---\n"
        )
    };
    let good = tenant("first", "", &[NOTES]) + &key("first", "first", "");
    script("script", &[SCRIPT, protection::SCRIPT, relationships::SCRIPT].concat())
        + &script("broken", "create table half (")
        + &good
}

/// `top` is further lines of the spec, indented by two.
pub(super) fn tenant(name: &str, top: &str, entities: &[&str]) -> String {
    let entities: String = entities.iter().map(|entity| format!("    - {entity}\n")).collect();
    let database = name.replace('-', "_");
    format!(
        "apiVersion: rowgate.dev/v1alpha1\nkind: Tenant\nmetadata: {{name: {name}}}\nspec:\n  \
         database: {{name: {database}, bootstrap: {{configMapRef: {{name: script}}}}}}\n{top}  entities:\n{entities}---\n"
    )
}

/// `spec` follows in braces of YAML.
pub(super) fn key(name: &str, tenant: &str, spec: &str) -> String {
    format!(
        "apiVersion: rowgate.dev/v1alpha1\nkind: ApiKey\nmetadata: {{name: {name}}}\n\
         spec: {{tenantRef: {{name: {tenant}}}{spec}}}\n---\n"
    )
}

pub(super) fn scope(fields: &str) -> String {
    format!(", scope: {{permissions: [{{entity: notes, actions: [read], fields: {fields}}}]}}")
}

/// Another database, or slug.
fn bare(name: &str, spec: &str) -> String {
    format!(
        "apiVersion: rowgate.dev/v1alpha1\nkind: Tenant\nmetadata: {{name: {name}}}\nspec: {{{spec}}}\n---\n"
    )
}

pub(super) fn cases() -> Vec<Case> {
    let of_resources = [of_tenants(), of_entities(), protection::cases(), relationships::cases(), of_keys()];
    of_resources
        .into_iter()
        .chain([scripts::cases(), routines::cases(), subscriptions::cases(), databases::cases()])
        .flatten()
        .collect()
}

pub(super) fn case(
    object: Object,
    (name, reason): (&'static str, Reason),
    why: &'static str,
    names: &'static str,
    manifest: String,
) -> Case {
    Case { why, reason, object, name, names, manifest, spoil: "", then: String::new() }
}

fn of_tenants() -> Vec<Case> {
    let of = |name, reason, why, names, manifest| case(Object::Tenant, (name, reason), why, names, manifest);
    let annotated = tenant("observed", "", &[NOTES])
        .replace("{name: observed}", "{name: observed, annotations: {rowgate.dev/mode: Look}}");
    let nobody = "  shared: {permissions: [{entity: nobody, actions: [read]}]}\n";
    vec![
        of(
            "observed",
            Reason::InvalidSpec,
            "an annotation that says what is no mode",
            "rowgate.dev/mode",
            annotated,
        ),
        of(
            "slug-taken",
            Reason::SlugTaken,
            "the slug of another Tenant",
            "spec.slug",
            bare("slug-taken", "slug: first, database: {name: other}"),
        ),
        of(
            "name-taken",
            Reason::Taken,
            "the database of another Tenant",
            "spec.database.name",
            bare("name-taken", "database: {name: first}"),
        ),
        of(
            "adopter",
            Reason::NotRetained,
            "a retained database that is not there for it",
            "01k9zv5n2m8q4r6t0w3y7b1d5f",
            bare("adopter", "database: {adoptRetained: 01k9zv5n2m8q4r6t0w3y7b1d5f}"),
        ),
        of(
            "by-hand",
            Reason::Taken,
            "a database that somebody made by hand",
            "spec.database.name",
            bare("by-hand", "database: {name: byhand}"),
        ),
        of(
            "no-script",
            Reason::ConfigMapNotFound,
            "a script that is not there",
            "ConfigMap nowhere key schema.sql",
            bare("no-script", "database: {bootstrap: {configMapRef: {name: nowhere}}}"),
        ),
        of(
            "broken",
            Reason::BootstrapFailed,
            "a script that does not run",
            "bootstrap script",
            bare("broken", "database: {bootstrap: {configMapRef: {name: broken}}}"),
        ),
        of(
            "nobody",
            Reason::EntityNotFound,
            "shared permissions on no entity",
            "entity nobody",
            tenant("nobody", nobody, &[NOTES]),
        ),
    ]
}

/// Each in a Tenant of its own: the entities, and the name of the one that cannot be served.
fn of_entities() -> Vec<Case> {
    let of = |name, reason, why, names, entities: &[&str]| {
        case(Object::Tenant, (name, reason), why, names, tenant(name, "", entities))
    };
    let listed = "{name: listed, source: {schema: app, object: listed}, rowLevelSecurity: {existing: true}}";
    let judged = "{name: notes, source: {schema: app, object: notes}, rowLevelSecurity: {policies: [{name: p, expression: 'no_such_column = 1'}]}}";
    vec![
        of(
            "gone",
            Reason::SourceNotFound,
            "a source that is not there",
            "entities[gone]: app.gone does not exist",
            &["{name: gone, source: {schema: app, object: gone}}"],
        ),
        of(
            "frozen",
            Reason::SourceUnsupported,
            "a materialized view",
            "entities[frozen]: app.frozen",
            &["{name: frozen, kind: View, source: {schema: app, object: frozen}, keyFields: [id]}"],
        ),
        of(
            "no-view",
            Reason::SourceUnsupported,
            "a table that is called a view",
            "kind",
            &["{name: hidden, kind: View, source: {schema: app, object: hidden}, keyFields: [id]}"],
        ),
        of(
            "twice",
            Reason::InvalidSpec,
            "two declarations of one table's policies",
            "rowLevelSecurity for app.notes",
            &[NOTES, "{name: again, source: {schema: app, object: notes}, rowLevelSecurity: {none: true}}"],
        ),
        of(
            "same-name",
            Reason::InvalidSpec,
            "two columns under one name",
            "mappings",
            &["{name: notes, source: {schema: app, object: notes}, mappings: {body: region}}"],
        ),
        of(
            "mapped",
            Reason::FieldNotFound,
            "a mapping of no column",
            "mappings names the column nothing",
            &["{name: notes, source: {schema: app, object: notes}, mappings: {nothing: other}}"],
        ),
        of(
            "no-key",
            Reason::FieldNotFound,
            "a table without a primary key",
            "keyFields",
            &["{name: bare, source: {schema: app, object: bare}}"],
        ),
        of(
            "other-key",
            Reason::FieldNotFound,
            "a key of no field",
            "keyFields names nothing",
            &["{name: notes, source: {schema: app, object: notes}, keyFields: [nothing]}"],
        ),
        of(
            "claim",
            Reason::FieldNotFound,
            "a policy over no field",
            "policy \"p\" names the field nothing",
            &[
                "{name: notes, source: {schema: app, object: notes}, rowLevelSecurity: {policies: [{name: p, column: nothing, equals: {claim: c}}]}}",
            ],
        ),
        of(
            "leak",
            Reason::ViewUnsafe,
            "a view over a table that is no entity",
            "entities[leak]: it reads app.hidden",
            &["{name: leak, kind: View, source: {schema: app, object: leak}, keyFields: [id]}"],
        ),
        of(
            "thaw",
            Reason::ViewUnsafe,
            "a view over a materialized view",
            "entities[thaw]: it reads app.frozen",
            &["{name: thaw, kind: View, source: {schema: app, object: thaw}, keyFields: [id]}"],
        ),
        of(
            "listing",
            Reason::ViewUnsafe,
            "a view over a table whose policy is for one role",
            "policy monitors of app.listed",
            &[listed, "{name: listing, kind: View, source: {schema: app, object: listing}, keyFields: [id]}"],
        ),
        of(
            "judged",
            Reason::PolicyRefused,
            "a policy that PostgreSQL does not take, and an entity that counts on it",
            "no_such_column",
            &[judged, "{name: again, source: {schema: app, object: notes}}"],
        ),
        Case {
            manifest: tenant(
                "unscoped",
                "",
                &[
                    "{name: notes, source: {schema: app, object: notes}, rowLevelSecurity: {policies: [{name: p, roles: [unscoped], expression: 'true'}]}}",
                ],
            ) + &key("unscoped", "unscoped", ""),
            ..of(
                "unscoped",
                Reason::PolicyRefused,
                "a policy for an unscoped key",
                "policy \"p\" names the unscoped key",
                &[],
            )
        },
        Case {
            manifest: tenant(
                "blind",
                "  shared: {permissions: [{entity: notes, actions: [read]}]}\n",
                &[
                    "{name: notes, source: {schema: app, object: notes}, rowLevelSecurity: {policies: [{name: p, expression: 'exists (select from app.hidden where id = 1)'}]}}",
                    "{name: hidden, source: {schema: app, object: hidden}, rowLevelSecurity: {none: true}}",
                ],
            ),
            ..of(
                "blind",
                Reason::PolicyUnreadable,
                "a policy that reads what its readers may not",
                "policy p reads app.hidden",
                &[],
            )
        },
    ]
}

fn of_keys() -> Vec<Case> {
    let of = |name, reason, why, names, spec: &str| {
        case(Object::ApiKey, (name, reason), why, names, key(name, "first", spec))
    };
    let paused = key("paused", "first", "")
        .replace("{name: paused}", "{name: paused, annotations: {rowgate.dev/paused: 'true'}}");
    let nodes = scope("{include: [id]}").replace("entity: notes", "entity: nodes");
    vec![
        Case {
            manifest: key("orphan", "nowhere", ""),
            ..of("orphan", Reason::TenantNotFound, "a key of no Tenant", "Tenant nowhere", "")
        },
        Case {
            manifest: paused,
            ..of(
                "paused",
                Reason::NotServedYet,
                "an annotation that keys do not have",
                "rowgate.dev/paused",
                "",
            )
        },
        of("nodes", Reason::EntityNotFound, "a scope over no entity", "entity nodes", &nodes),
        of(
            "no-field",
            Reason::FieldNotFound,
            "a scope over no field",
            "field nothing",
            &scope("{include: [nothing]}"),
        ),
        of(
            "excluded",
            Reason::KeyFieldExcluded,
            "a scope without the key",
            "key field id",
            &scope("{include: ['*'], exclude: [id]}"),
        ),
        of("second", Reason::Taken, "the Secret of another key", "ApiKey first", ", secretName: first"),
        of("theirs", Reason::SecretInvalid, "a Secret that holds something else", "Secret theirs", ""),
    ]
}
