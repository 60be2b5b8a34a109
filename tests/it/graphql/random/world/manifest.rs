//! The drawn tenant as the manifests that a user would write, and the script that fills its database.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::drawn::{Drawn, Permission, Policy};
use super::tables::{FOREMAN, KNOTS, MASTERIES, RELATIONSHIPS, SAILORS, TABLES, Table, Type};

/// The documents. JSON is YAML.
pub(crate) fn manifest(drawn: &Drawn) -> String {
    let slug = drawn.slug();
    let script = format!("{slug}-script");
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": script},
        "data": {"schema.sql": bootstrap(drawn)}});
    let entities: Vec<Value> = (0..TABLES.len()).map(|at| entity(drawn, at)).collect();
    let tenant = json!({"apiVersion": "rowgate.dev/v1alpha1", "kind": "Tenant", "metadata": {"name": slug},
    "spec": {
        "database": {"bootstrap": {"configMapRef": {"name": script, "key": "schema.sql"}}},
        "limits": {"maxPageSize": MAX_PAGE},
        "shared": {"permissions": written(&drawn.shared), "claims": drawn.shared_claims},
        "entities": entities,
    }});
    let keys = drawn.keys.iter().flat_map(|key| {
        let mut spec = json!({"tenantRef": {"name": slug}});
        if !key.is_unscoped {
            spec["scope"] = match &key.permissions {
                Some(permissions) => json!({"permissions": written(permissions)}),
                None => json!({"sameAs": "shared"}),
            };
            spec["claims"] = json!(key.claims);
        }
        // what links rows is asked by a key of its own, of the same claims
        let between = Permission { table: MASTERIES, actions: vec!["read"], fields: Some(BETWEEN.to_vec()) };
        let beside = json!({"tenantRef": {"name": slug}, "claims": drawn.claims(key),
            "scope": {"permissions": written(&[between])}});
        [(format!("{slug}-{}", key.name), spec), (format!("{slug}-{}-between", key.name), beside)]
    });
    let keys = keys.map(|(name, spec)| object("ApiKey", &name, &spec));
    let relationships = relationships(&slug);
    let documents = [map, tenant].into_iter().chain(keys).chain(relationships);
    documents.map(|document| format!("---\n{document}\n")).collect()
}

/// Rows of one page at most.
pub(crate) const MAX_PAGE: i64 = 150;
/// What links sailors and knots.
pub(crate) const BETWEEN: [&str; 2] = ["mastery_of", "mastery_knot"];

fn object(kind: &str, name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "rowgate.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec})
}

fn written(permissions: &[Permission]) -> Vec<Value> {
    let one = |permission: &Permission| {
        let all = vec!["*"];
        let include = permission.fields.as_ref().unwrap_or(&all);
        let entity = TABLES[permission.table].entity;
        match permission.actions[..] {
            ["delete"] => json!({"entity": entity, "actions": ["delete"]}),
            _ => json!({"entity": entity, "actions": permission.actions, "fields": {"include": include}}),
        }
    };
    permissions.iter().map(one).collect()
}

fn entity(drawn: &Drawn, at: usize) -> Value {
    let table = &TABLES[at];
    let renamed = table.fields.iter().map(|field| (table.column(field.name), field.name));
    let mappings: serde_json::Map<String, Value> =
        renamed.filter(|(column, name)| column != name).map(|(column, name)| (column, json!(name))).collect();
    let policies: Vec<Value> =
        drawn.policies[at].iter().enumerate().map(|(i, of)| policy(table, i, *of)).collect();
    let graphql = match table.renamed {
        _ if !table.in_graphql => json!({"enabled": false}),
        Some((singular, plural)) => json!({"singular": singular, "plural": plural}),
        None => json!({}),
    };
    json!({"name": table.entity, "source": {"schema": "app", "object": table.object()},
        "mappings": mappings, "graphql": graphql, "rowLevelSecurity": {"policies": policies}})
}

fn policy(table: &Table, number: usize, policy: Policy) -> Value {
    let mut value = json!({"name": format!("p{number}"), "restrictive": policy.restrictive});
    match policy.expression {
        Some(text) => {
            let serial = table.fields.iter().find(|field| field.name.ends_with("serial"));
            let serial = table.column(serial.expect("in each table").name);
            let text = text.replace("{zone}", &table.column(table.zone())).replace("{serial}", &serial);
            value["expression"] = json!(text);
        }
        None => {
            value["column"] = json!(table.zone());
            value["equals"] = json!({"claim": "zone"});
        }
    }
    value
}

fn relationships(slug: &str) -> Vec<Value> {
    let end = |table: usize, fields: Vec<&str>| json!({"entity": TABLES[table].entity, "fields": fields});
    let mut found = Vec::new();
    let mut at = 0;
    while at < RELATIONSHIPS.len() {
        let it = &RELATIONSHIPS[at];
        let mut spec = json!({"tenantRef": {"name": slug}, "name": it.name,
            "from": end(it.from, it.pairs.iter().map(|(from, _)| *from).collect()),
            "to": end(it.to, it.pairs.iter().map(|(_, to)| *to).collect()),
            "cardinality": if it.to_one { "One" } else { "Many" }});
        if it.name == FOREMAN {
            spec["assumeUnique"] = json!(true);
        } else {
            spec["inverse"] = json!(RELATIONSHIPS[at + 1].name);
            at += 1;
        }
        if let Some((from, to)) = it.through {
            let between = &TABLES[MASTERIES];
            let columns = |names: &[&str]| names.iter().map(|name| between.column(name)).collect::<Vec<_>>();
            assert_eq!((it.from, it.to), (SAILORS, KNOTS), "the only one through a table");
            spec["through"] = json!({"schema": "app", "object": between.object(),
                "fromFields": columns(from), "toFields": columns(to)});
        }
        found.push(object("Relationship", &format!("{slug}-{}", it.name.to_lowercase()), &spec));
        at += 1;
    }
    found
}

fn bootstrap(drawn: &Drawn) -> String {
    let mut script =
        "create schema app; create type app.mood as enum ('angry', 'calm', 'glad');\n".to_owned();
    for (table, rows) in TABLES.iter().zip(&drawn.rows) {
        let columns: Vec<String> = table.fields.iter().map(|field| table.column(field.name)).collect();
        let declared = table.fields.iter().zip(&columns).map(|(field, column)| {
            let null = if field.is_null_at_times { "" } else { " not null" };
            let unique = if field.name == "lantern_owner" { " unique" } else { "" };
            format!("{column} {}{null}{unique}", declared(field.ty))
        });
        let declared: Vec<String> = declared.collect();
        let key: Vec<String> = table.key.iter().map(|name| table.column(name)).collect();
        let name = table.object();
        let quoted = |value: &Option<String>| match value {
            Some(text) => format!("'{}'", text.replace('\'', "''")),
            None => "null".to_owned(),
        };
        let row = |row: &Vec<Option<String>>| {
            format!("({})", row.iter().map(quoted).collect::<Vec<_>>().join(", "))
        };
        let rows: Vec<String> = rows.iter().map(row).collect();
        writeln!(
            script,
            "create table app.{name} ({}, primary key ({}));\ninsert into app.{name} values {};",
            declared.join(", "),
            key.join(", "),
            rows.join(",\n")
        )
        .expect("writing to a string");
    }
    script
}

fn declared(ty: Type) -> &'static str {
    match ty {
        Type::Int => "int",
        Type::Long => "bigint",
        Type::Decimal => "numeric(10,2)",
        Type::Bool => "bool",
        Type::Text => "text",
        Type::Mood => "app.mood",
        Type::Uuid => "uuid",
        Type::Instant => "timestamptz",
        Type::Date => "date",
        Type::Json => "jsonb",
        Type::Texts => "text[]",
    }
}
