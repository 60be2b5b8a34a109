//! What is admitted and what is refused: specs, and the words about each. `admit.rs` shows them to our own judge,
//! `tests/it/kubernetes/cluster/admission.rs` to an API server. Each reads this file.

mod relationships;
mod subscriptions;

use rowgate_crds::Kind;
use serde_json::{Value, json};

/// A spec, in place of another one or of none.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub(crate) kind: Kind,
    pub(crate) old: Option<String>,
    pub(crate) spec: String,
    /// What is wrong, a line each; empty: nothing.
    pub(crate) refusal: String,
}

pub(crate) fn all() -> Vec<Case> {
    [tenants(), entities(), keys(), relationships::cases(), subscriptions::cases(), changes(), texts()]
        .concat()
}

/// The object `shop` with this spec, in YAML.
pub(crate) fn object(kind: Kind, name: &str, spec: &str) -> Value {
    let spec: Value = serde_yaml::from_str(spec).unwrap_or_else(|error| panic!("{spec}: {error}"));
    json!({
        "apiVersion": "rowgate.dev/v1alpha1", "kind": kind.as_str(),
        "metadata": { "name": name, "namespace": "default" }, "spec": spec,
    })
}

fn table(kind: Kind, table: &[(&str, &str)]) -> Vec<Case> {
    let case = |&(spec, refusal): &(&str, &str)| Case {
        kind,
        old: None,
        spec: spec.to_owned(),
        refusal: refusal.to_owned(),
    };
    table.iter().map(case).collect()
}

/// Further fields of a Tenant's only entity, and what is wrong with it.
fn entity(cases: &[(&str, &str)]) -> Vec<Case> {
    let case = |&(fields, refusal): &(&str, &str)| {
        let spec = format!("{{entities: [{{name: orders, source: {{object: orders}}, {fields}}}]}}");
        let at = if refusal.is_empty() { "" } else { "spec.entities[0]" };
        table(Kind::Tenant, &[(&spec, &format!("{at}{refusal}"))])
    };
    cases.iter().flat_map(case).collect()
}

/// Before, after, and what is wrong with that.
fn change(kind: Kind, table: &[(&str, &str, &str)]) -> Vec<Case> {
    let case = |&(old, spec, refusal): &(&str, &str, &str)| Case {
        kind,
        old: Some(old.to_owned()),
        spec: spec.to_owned(),
        refusal: refusal.to_owned(),
    };
    table.iter().map(case).collect()
}

fn tenants() -> Vec<Case> {
    let slug = "spec.slug: slug consists of at most 40 lower-case letters, digits and hyphens, and neither starts nor ends with a hyphen";
    let database = "spec.database.name: database.name consists of lower-case letters, digits and underscores, does not start with a digit or pg_, and is not one of postgres, template0, template1, rowgate";
    let one_of = "spec.database.bootstrap: bootstrap takes exactly one of configMapRef and scripts";
    let too_many = format!("{{database: {{bootstrap: {{scripts: [{}]}}}}}}", "{name: a},".repeat(101));
    let adopted = "spec.database.adoptRetained: database.adoptRetained is the id of a tenant: 26 lower-case letters and digits, as in status.tenantId";
    let schema = "spec.entities[0].source: source.schema cannot be dl, information_schema or pg_...: those belong to \
                  Rowgate and to PostgreSQL";
    let origins = "spec.cors.origins: each of cors.origins is '*', or scheme://host or scheme://host:port in lower case, without a path, a slash at the end or the scheme's default port (:80, :443)";
    table(
        Kind::Tenant,
        &[
            ("{}", ""),
            ("{slug: a-1}", ""),
            (
                "{cors: {origins: ['https://a.example', 'http://localhost:3000', 'http://[::1]:8080', 'app://-', '*']}}",
                "",
            ),
            ("{cors: {origins: ['https://a', 'https://a/']}}", origins),
            ("{cors: {origins: ['https://A.example']}}", origins),
            ("{cors: {origins: ['a.example']}}", origins),
            ("{cors: {origins: ['https://a/b']}}", origins),
            ("{cors: {origins: ['https://*.example']}}", origins),
            ("{cors: {origins: ['https://user@a']}}", origins),
            ("{cors: {origins: ['https://a:443']}}", origins),
            ("{cors: {origins: ['http://a:80']}}", origins),
            ("{cors: {origins: ['https://a:080']}}", origins),
            ("{cors: {origins: ['null']}}", origins),
            ("{cors: {origins: ['https://a, https://b']}}", origins),
            ("{cors: {origins: [https://a, https://a]}}", "spec.cors.origins: holds \"https://a\" twice"),
            (
                "{slug: a, database: {name: a_1, bootstrap: {configMapRef: {name: b}}}, limits: {statementTimeout: 5s}}",
                "",
            ),
            ("{slug: A}", slug),
            ("{slug: -a}", slug),
            ("{slug: a-}", slug),
            ("{slug: ''}", slug),
            ("{slug: 5}", "spec.slug: must be text (put it in quotes), not 5"),
            ("{database: {name: Shop}}", database),
            ("{database: {name: pg_x}}", database),
            ("{database: {name: rowgate}}", database),
            ("{database: {adoptRetained: 01k9zv5n2m8q4r6t0w3y7b1d5f}}", ""),
            ("{database: {adoptRetained: 01K9ZV5N2M8Q4R6T0W3Y7B1D5F}}", adopted),
            ("{database: {adoptRetained: 81k9zv5n2m8q4r6t0w3y7b1d5f}}", adopted),
            (
                "{database: {deletionPolicy: retain}}",
                "spec.database.deletionPolicy: \"retain\" is not one of Retain, Delete (did you mean Retain?)",
            ),
            ("{database: {bootstrap: {scripts: [{name: a}, {name: a, key: two.sql}, {name: b}]}}}", ""),
            ("{database: {bootstrap: {}}}", one_of),
            ("{database: {bootstrap: {configMapRef: {name: a}, scripts: [{name: b}]}}}", one_of),
            (
                "{database: {bootstrap: {scripts: []}}}",
                "spec.database.bootstrap.scripts: must have at least 1 entries, not 0",
            ),
            (&too_many, "spec.database.bootstrap.scripts: must have at most 100 entries, not 101"),
            (
                "{database: {bootstrap: {scripts: [{key: a.sql}]}}}",
                "spec.database.bootstrap.scripts[0].name: is required",
            ),
            ("{databse: {}}", "spec.databse: unknown field; did you mean database?"),
            (
                "{limits: {colour: 1}}",
                "spec.limits.colour: unknown field; known fields: exports, exportsPerKey, graphqlCost, graphqlCostPerSecond, maxExportRows, maxOutboxBytes, maxPageSize, requestsPerSecond, statementTimeout, streams, subscriptions",
            ),
            ("{limits: {maxPageSize: 0}}", "spec.limits.maxPageSize: must be at least 1"),
            ("{limits: {maxPageSize: 1.5}}", "spec.limits.maxPageSize: must be a whole number, not 1.5"),
            ("{limits: {maxExportRows: 50000001}}", "spec.limits.maxExportRows: must be at most 50000000"),
            (
                "{limits: {statementTimeout: 30}}",
                "spec.limits.statementTimeout: must be text (put it in quotes), not 30",
            ),
            (
                "{limits: {statementTimeout: 0s}}",
                "spec.limits.statementTimeout: \"0s\" does not match ^([1-9][0-9]{0,5}ms|[1-9][0-9]{0,3}s|[1-9][0-9]?m)$",
            ),
            (
                "{entities: [{name: a, source: {object: a}}, {name: a, source: {object: b}}]}",
                "spec.entities: holds name \"a\" twice",
            ),
            ("{entities: [{name: a}]}", "spec.entities[0].source: is required"),
            ("{entities: {a: b}}", "spec.entities: must be a list, not a mapping"),
            ("{entities: [{name: a, source: {schema: dl, object: a}}]}", schema),
            ("{entities: [{name: a, source: {schema: pg_catalog, object: a}}]}", schema),
            ("{entities: [{name: a, source: {schema: information_schema, object: a}}]}", schema),
            (
                "{shared: {claims: {region: 5}}}",
                "spec.shared.claims.region: must be text (put it in quotes), not 5",
            ),
            (
                "{shared: {permissions: [{entity: a, actions: [reed]}]}}",
                "spec.shared.permissions[0].actions[0]: \"reed\" is not one of create, read, update, delete, execute (did you mean read?)",
            ),
            (
                "{shared: {permissions: [{entity: a, actions: [read, read]}]}}",
                "spec.shared.permissions[0].actions: holds \"read\" twice",
            ),
            (
                "{shared: {permissions: [{entity: a, actions: []}]}}",
                "spec.shared.permissions[0].actions: must have at least 1 entries, not 0",
            ),
            (
                "{shared: {permissions: [{entity: a, actions: [read, delete], fields: {include: [b]}}]}}",
                "spec.shared.permissions[0]: fields apply to read, create and update only; give delete and execute an entry of their own",
            ),
            ("{shared: {permissions: [{entity: a, actions: [execute]}]}}", ""),
            (
                "{shared: {permissions: [{entity: a, actions: [read, execute]}]}}",
                "spec.shared.permissions[0]: a Procedure takes execute and nothing else; a Table or View takes the other actions",
            ),
            (
                "{shared: {permissions: [{entity: a, actions: [read], fields: {include: ['*', b]}}]}}",
                "spec.shared.permissions[0].fields: fields.include is either ['*'] or names, not both",
            ),
            (
                "{shared: {permissions: [{entity: a, actions: [read, delete]}, {entity: a, actions: [update], fields: {exclude: [b]}}]}}",
                "",
            ),
        ],
    )
}

fn entities() -> Vec<Case> {
    let choice = ".rowLevelSecurity: rowLevelSecurity takes exactly one of policies, existing: true and none: true; \
                  leave it out to show no row";
    let replace = ".rowLevelSecurity: replace can only be true, and not beside existing, which keeps the policies; leave it out otherwise";
    let policy =
        ".rowLevelSecurity.policies[0]: a policy takes either column together with equals, or expression";
    let equals = ".rowLevelSecurity.policies[0].equals: equals takes exactly one of claim and literal";
    let mut cases = entity(&[
        ("kind: Table", ""),
        ("kind: View, keyFields: [id]", ""),
        ("kind: View", ": a View needs keyFields: the fields that identify one row"),
        ("kind: Procedure", ""),
        ("kind: Procedure, allowDefiner: true, mappings: {a: b}", ""),
        ("kind: Procedure, keyFields: [id]", ": a Procedure has no keyFields"),
        (
            "kind: Procedure, rowLevelSecurity: {none: true}",
            ": rowLevelSecurity belongs to a Table; rows of a View are filtered by the policies of the tables under it",
        ),
        ("kind: Procedure, concurrencyProtection: {}", ": concurrencyProtection belongs to a Table"),
        (
            "kind: Procedure, events: true",
            ": a Procedure has no events; what it changes is captured at the tables",
        ),
        ("allowDefiner: true", ": allowDefiner belongs to a Procedure or a View"),
        ("allowDefiner: false", ""),
        (
            "kind: View, keyFields: [id], rowLevelSecurity: {none: true}",
            ": rowLevelSecurity belongs to a Table; rows of a View are filtered by the policies of the tables under it",
        ),
        (
            "kind: View, keyFields: [id], concurrencyProtection: {}",
            ": concurrencyProtection belongs to a Table",
        ),
        ("keyFields: [id, id]", ".keyFields: holds \"id\" twice"),
        ("rowLevelSecurity: {}", choice),
        ("rowLevelSecurity: {existing: true, none: true}", choice),
        ("rowLevelSecurity: {none: true, policies: [{name: a, expression: 'true'}]}", choice),
        (
            "rowLevelSecurity: {existing: false}",
            ".rowLevelSecurity: existing and none can only be true; leave them out otherwise",
        ),
        ("rowLevelSecurity: {existing: true}", ""),
        ("rowLevelSecurity: {none: true}", ""),
        ("rowLevelSecurity: {none: true, replace: true}", ""),
        ("rowLevelSecurity: {replace: true}", choice),
        ("rowLevelSecurity: {none: true, replace: false}", replace),
        ("rowLevelSecurity: {existing: true, replace: true}", replace),
        ("rowLevelSecurity: {policies: [{name: a, expression: 'true', restrictive: true, check: x}]}", ""),
        (
            "rowLevelSecurity: {policies: [{name: a, column: b, equals: {claim: c}, roles: [d], actions: [read]}]}",
            "",
        ),
        ("rowLevelSecurity: {policies: [{name: a}]}", policy),
        ("rowLevelSecurity: {policies: [{name: a, column: b}]}", policy),
        ("rowLevelSecurity: {policies: [{name: a, equals: {literal: x}}]}", policy),
        ("rowLevelSecurity: {policies: [{name: a, column: b, equals: {literal: x}, expression: y}]}", policy),
        ("rowLevelSecurity: {policies: [{name: a, column: b, equals: {}}]}", equals),
        ("rowLevelSecurity: {policies: [{name: a, column: b, equals: {claim: c, literal: d}}]}", equals),
        (
            "rowLevelSecurity: {policies: [{name: a b, expression: x}]}",
            ".rowLevelSecurity.policies[0].name: a policy's name consists of letters, digits, underscores and hyphens, and starts with a letter or underscore",
        ),
        (
            "rowLevelSecurity: {policies: [{name: a, expression: x}, {name: a, expression: y}]}",
            ".rowLevelSecurity.policies: holds name \"a\" twice",
        ),
        (
            "rowLevelSecurity: {policies: [{name: a, expression: x, actions: [execute]}]}",
            ".rowLevelSecurity.policies[0].actions[0]: \"execute\" is not one of create, read, update, delete",
        ),
        (
            "graphql: {singular: __a}",
            ".graphql.singular: \"__a\" does not match ^_?([A-Za-z][_0-9A-Za-z]*)?$",
        ),
    ]);
    let name = "spec.entities[0].name: an entity's name consists of letters, digits and underscores, and starts neither with a digit nor with two underscores";
    for bad in ["__a", "1a", "a-b", "a b"] {
        let spec = format!("{{entities: [{{name: '{bad}', source: {{object: a}}}}]}}");
        cases.extend(table(Kind::Tenant, &[(&spec, name)]));
    }
    cases
}

fn keys() -> Vec<Case> {
    let include = "spec.scope.permissions: in a scope, read, create and update need fields.include: names, or ['*'] for \
                   every column present now";
    let overlap = "spec.rotation: overlap is longer than every, so more than two secrets would work at once; make overlap shorter or every longer";
    let one_of = "spec.scope: scope takes exactly one of permissions and sameAs";
    table(
        Kind::ApiKey,
        &[
            ("{tenantRef: {name: t}}", ""),
            ("{}", "spec.tenantRef: is required"),
            ("{tenantRef: {name: t}, scope: {sameAs: shared}, claims: {region: north}}", ""),
            (
                "{tenantRef: {name: t}, claims: {region: north}}",
                "spec: claims need a scope: all unscoped keys share one role; give scope: {sameAs: shared} to keep the shared rights",
            ),
            ("{tenantRef: {name: t}, scope: {}}", one_of),
            (
                "{tenantRef: {name: t}, scope: {sameAs: shared, permissions: [{entity: a, actions: [delete]}]}}",
                one_of,
            ),
            (
                "{tenantRef: {name: t}, scope: {sameAs: other}}",
                "spec.scope.sameAs: \"other\" is not one of shared",
            ),
            ("{tenantRef: {name: t}, scope: {permissions: [{entity: a, actions: [read]}]}}", include),
            (
                "{tenantRef: {name: t}, scope: {permissions: [{entity: a, actions: [create], fields: {exclude: [b]}}]}}",
                include,
            ),
            (
                "{tenantRef: {name: t}, scope: {permissions: [{entity: a, actions: [delete]}, {entity: p, actions: [execute]}]}}",
                "",
            ),
            (
                "{tenantRef: {name: t}, scope: {permissions: [{entity: a, actions: [execute, delete]}]}}",
                "spec.scope.permissions[0]: a Procedure takes execute and nothing else; a Table or View takes the other actions",
            ),
            (
                "{tenantRef: {name: t}, scope: {permissions: [{entity: a, actions: [read], fields: {include: ['*'], exclude: [b]}}]}}",
                "",
            ),
            (
                "{tenantRef: {name: t}, scope: {permissions: [{entity: a, actions: [read, delete], fields: {include: [b]}}]}}",
                "spec.scope.permissions[0]: fields apply to read, create and update only; give delete and execute an entry of their own",
            ),
            (
                "{tenantRef: {name: t}, scope: {permissions: [{entity: a, actions: [read], fields: {include: ['*', b]}}]}}",
                "spec.scope.permissions[0].fields: fields.include is either ['*'] or names, not both",
            ),
            ("{tenantRef: {name: t}, expiresAt: 2030-01-01T00:00:00Z}", ""),
            (
                "{tenantRef: {name: t}, expiresAt: tomorrow}",
                "spec.expiresAt: \"tomorrow\" is not a time; write it as 2030-01-31T12:00:00Z",
            ),
            (
                "{tenantRef: {name: t}, secretName: No}",
                "spec.secretName: secretName consists of lower-case letters, digits, hyphens and dots, and starts and ends with a letter or digit",
            ),
            ("{tenantRef: {name: t}, rotation: {every: 30d, overlap: 1d}}", ""),
            ("{tenantRef: {name: t}, rotation: {every: 30d}}", "spec.rotation.overlap: is required"),
            ("{tenantRef: {name: t}, rotation: {every: 24h, overlap: 1d}}", ""),
            ("{tenantRef: {name: t}, rotation: {every: 60m, overlap: 3601s}}", overlap),
            ("{tenantRef: {name: t}, rotation: {every: 23h, overlap: 1d}}", overlap),
            ("{tenantRef: {name: t}, rotation: {every: 9999999s, overlap: 9999999d}}", overlap),
            ("{tenantRef: {name: t}, revoked: 'yes'}", "spec.revoked: must be true or false, not text"),
        ],
    )
}

fn changes() -> Vec<Case> {
    let slug = "slug cannot be changed: it is part of every key and address; create a new Tenant instead";
    let name = "spec: database.name cannot be changed, added or removed; create a new Tenant instead";
    let server =
        "spec: database.serverSecretRef cannot be changed, added or removed; create a new Tenant instead";
    let tenants = [
        ("{slug: a}", "{slug: a}", ""),
        ("{slug: a}", "{slug: b}", slug),
        ("{slug: a}", "{}", slug),
        ("{}", "{slug: b}", slug),
        ("{}", "{slug: shop}", ""),
        ("{}", "{database: {name: a}}", name),
        ("{database: {name: a}}", "{database: {name: b}}", name),
        ("{database: {name: a}}", "{}", name),
        ("{database: {name: a}}", "{database: {name: a, deletionPolicy: Delete}}", ""),
        ("{}", "{database: {serverSecretRef: {name: a}}}", server),
        ("{database: {serverSecretRef: {name: a}}}", "{database: {serverSecretRef: {name: b}}}", server),
        ("{database: {serverSecretRef: {name: a}}}", "{database: {}}", server),
    ];
    let revoked = "spec: revoked cannot be taken back; create a new ApiKey";
    let keys = [
        ("{tenantRef: {name: t}}", "{tenantRef: {name: t}, revoked: true}", ""),
        ("{tenantRef: {name: t}, revoked: true}", "{tenantRef: {name: t}, revoked: true}", ""),
        ("{tenantRef: {name: t}, revoked: true}", "{tenantRef: {name: t}, revoked: false}", revoked),
        ("{tenantRef: {name: t}, revoked: true}", "{tenantRef: {name: t}}", revoked),
        (
            "{tenantRef: {name: t}}",
            "{tenantRef: {name: u}}",
            "spec.tenantRef: tenantRef cannot be changed: the key belongs to that tenant's database; create a new ApiKey",
        ),
    ];
    [change(Kind::Tenant, &tenants), change(Kind::ApiKey, &keys)].concat()
}

/// PostgreSQL cannot store a NUL.
fn texts() -> Vec<Case> {
    let nul = "holds a NUL character, which PostgreSQL cannot store; remove it";
    let claims =
        |claims: &str| format!("{{tenantRef: {{name: a}}, scope: {{sameAs: shared}}, claims: {{{claims}}}}}");
    let keys = table(
        Kind::ApiKey,
        &[
            (&claims(r#"region: "a""#), ""),
            (&claims(r#"region: "a\0b""#), &format!("spec.claims.region: {nul}")),
            (&claims(r#""re\0gion": a"#), &format!("spec.claims: {nul}")),
        ],
    );
    let tenants = table(
        Kind::Tenant,
        &[(r#"{shared: {claims: {"re\0gion": a}}}"#, &format!("spec.shared.claims: {nul}"))],
    );
    let entities = entity(&[
        (
            r#"rowLevelSecurity: {policies: [{name: p, expression: "true\0"}]}"#,
            &format!(".rowLevelSecurity.policies[0].expression: {nul}"),
        ),
        (r#"mappings: {"co\0lumn": a}"#, &format!(".mappings: {nul}")),
    ]);
    [keys, tenants, entities].concat()
}
