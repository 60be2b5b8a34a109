//! A drawn tenant as the manifests that a user would write, and the script that fills its database.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::policies::{Policy, Rows, written};
use super::world::{Body, Drawn, Entity, Key, Permission, Relation, Scope, Security, Shape};
use crate::reads::paging::columns::Column;

/// The documents. JSON is YAML.
pub(super) fn manifest(drawn: &Drawn) -> String {
    let script = format!("{}-script", drawn.slug);
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": script},
        "data": {"schema.sql": bootstrap(drawn)}});
    let database = json!({"bootstrap": {"configMapRef": {"name": script, "key": "schema.sql"}}});
    text([map].into_iter().chain(documents(drawn, &database)))
}

/// The Tenant, with this `database`, and then its ApiKeys.
pub(super) fn documents(drawn: &Drawn, database: &Value) -> Vec<Value> {
    let entities: Vec<Value> = drawn.entities.iter().map(|of| entity(drawn, of)).collect();
    let shared: Vec<Value> = drawn.shared.iter().map(|of| permission(drawn, of)).collect();
    let tenant = json!({"apiVersion": "rowgate.dev/v1alpha1", "kind": "Tenant", "metadata": {"name": drawn.slug},
    "spec": {
        "database": database,
        "shared": {"permissions": shared, "claims": drawn.shared_claims},
        "entities": entities,
    }});
    [tenant].into_iter().chain(drawn.keys.iter().map(|key| api_key(drawn, key))).collect()
}

/// Documents as one file.
pub(super) fn text(documents: impl IntoIterator<Item = Value>) -> String {
    documents.into_iter().map(|document| format!("---\n{document}\n")).collect()
}

/// The ApiKey's name.
pub(super) fn key_name(drawn: &Drawn, key: &str) -> String {
    format!("{}-{key}", drawn.slug)
}

fn api_key(drawn: &Drawn, key: &Key) -> Value {
    let mut spec = json!({"tenantRef": {"name": drawn.slug}});
    match &key.scope {
        Scope::Unscoped => {}
        Scope::SameAsShared => spec["scope"] = json!({"sameAs": "shared"}),
        Scope::Permissions(permissions) => {
            let permissions: Vec<Value> = permissions.iter().map(|of| permission(drawn, of)).collect();
            spec["scope"] = json!({"permissions": permissions});
        }
    }
    if !key.claims.is_empty() {
        spec["claims"] = json!(key.claims);
    }
    let name = key_name(drawn, &key.name);
    json!({"apiVersion": "rowgate.dev/v1alpha1", "kind": "ApiKey", "metadata": {"name": name}, "spec": spec})
}

fn permission(drawn: &Drawn, permission: &Permission) -> Value {
    let entity = &drawn.entities[permission.entity];
    let mut value = json!({"entity": entity.name, "actions": permission.actions});
    if permission.bare {
        return value;
    }
    let exposed = |names: &[&str]| -> Vec<String> {
        names.iter().map(|name| entity.exposed(name).to_owned()).collect()
    };
    value["fields"] = match &permission.include {
        None => json!({"include": ["*"]}),
        Some(names) => json!({"include": exposed(names)}),
    };
    if !permission.exclude.is_empty() {
        value["fields"]["exclude"] = json!(exposed(&permission.exclude));
    }
    value
}

fn entity(drawn: &Drawn, entity: &Entity) -> Value {
    let relation = drawn.relation(entity);
    let mut value = json!({"name": entity.name, "source": {"schema": "app", "object": relation.name},
        "mappings": entity.mappings, "rest": {"enabled": entity.rest}});
    if is_captured(drawn, entity) {
        value["events"] = json!(true);
    }
    match &relation.body {
        Body::View(_) => {
            value["kind"] = json!("View");
            let key: Vec<&str> = relation.key.iter().map(|name| entity.exposed(name)).collect();
            value["keyFields"] = json!(key);
        }
        Body::Table { security, .. } if entity.declares => match security {
            Security::LeftOut => {}
            Security::None => value["rowLevelSecurity"] = json!({"none": true}),
            Security::Existing(_) => value["rowLevelSecurity"] = json!({"existing": true}),
            Security::Policies(policies) => {
                let told = |of: &Policy| policy(drawn, entity, &relation.name, of);
                let policies: Vec<Value> = policies.iter().map(told).collect();
                value["rowLevelSecurity"] = json!({"policies": policies});
            }
        },
        Body::Table { .. } => {}
    }
    value
}

/// Of several entities over a table the one that says its security.
pub(super) fn is_captured(drawn: &Drawn, entity: &Entity) -> bool {
    let body = &drawn.relation(entity).body;
    let is_guarded = |security: &Security| !matches!(security, Security::LeftOut);
    drawn.captures && entity.declares && matches!(body, Body::Table { security, .. } if is_guarded(security))
}

fn policy(drawn: &Drawn, entity: &Entity, table: &str, policy: &Policy) -> Value {
    let mut value = json!({"name": policy.name, "restrictive": policy.restrictive});
    if !policy.actions.is_empty() {
        value["actions"] = json!(policy.actions);
    }
    if let Some(roles) = &policy.roles {
        let name = |role: &String| match role.as_str() {
            "datalake_user" => role.clone(),
            key => key_name(drawn, key),
        };
        value["roles"] = roles.iter().map(name).collect();
    }
    match &policy.rows {
        Rows::Claim(column, claim) => {
            value["column"] = json!(entity.exposed(column));
            value["equals"] = json!({"claim": claim});
        }
        Rows::Literal(column, literal) => {
            value["column"] = json!(entity.exposed(column));
            value["equals"] = json!({"literal": literal});
        }
        Rows::Expression(text) => value["expression"] = json!(written(text, table)),
    }
    value
}

/// What makes the tables and their rows. Values are picked by a hash of table, row and column.
pub(super) fn bootstrap(drawn: &Drawn) -> String {
    let mut script = "create schema t; create schema app;\n\
         create collation t.blind (provider = icu, locale = 'und-u-ks-level1', deterministic = false);\n\
         create type t.mood as enum ('sad', 'ok', 'happy');\n\
         create domain t.positive as int check (value > 0);\n\
         create domain t.folded as text collate t.blind;\n"
        .to_owned();
    for relation in &drawn.relations {
        let name = &relation.name;
        match &relation.body {
            Body::Table { n_rows, security, handmade } => {
                table(&mut script, relation, *n_rows);
                if let Security::Existing(policies) = security {
                    policies.iter().for_each(|policy| existing(&mut script, name, policy));
                }
                handmade.iter().for_each(|line| script.push_str(&format!("{line};\n")));
            }
            Body::View(shape) => {
                let select = view(drawn, shape, |of| format!("app.{}", drawn.relations[of].name));
                writeln!(script, "create view app.{name} as {select};").expect("writing to a string");
            }
        }
    }
    script
}

fn table(script: &mut String, relation: &Relation, n_rows: usize) {
    let Relation { name, columns, key, .. } = relation;
    let declared: Vec<String> = columns.iter().map(|c| format!("{} {}", c.name, c.declared)).collect();
    let value = |c: &&Column| match c.name {
        "n" => "i".to_owned(),
        "id" => "i * 7 % 101".to_owned(),
        "code" => "(array['c', 'c/', '\u{e4} &', '%2F'])[1 + i % 4] || i".to_owned(),
        "part" => "i % 3".to_owned(),
        "uid2" => format!("md5(i || '{name}')::uuid"),
        _ => {
            let nulls = if c.declared.contains("not null") { 0 } else { 1 };
            let values: Vec<String> =
                c.values.iter().map(|v| format!("'{}'", v.replace('\'', "''"))).collect();
            format!(
                "((array[{}]::text[])[1 + (hashtextextended(i || '{name}.{}', 0) & 1048575) % {}])::{}",
                values.join(","),
                c.name,
                values.len() + nulls,
                c.ty
            )
        }
    };
    let values: Vec<String> = columns.iter().map(value).collect();
    writeln!(
        script,
        "create table app.{name} ({}, primary key ({}));\ninsert into app.{name} select {} from \
         generate_series(1, {n_rows}) i;",
        declared.join(", "),
        key.join(", "),
        values.join(", ")
    )
    .expect("writing to a string");
}

fn existing(script: &mut String, table: &str, policy: &Policy) {
    let Rows::Expression(text) = policy.rows else { unreachable!("the script's policies are expressions") };
    let kind = if policy.restrictive { "restrictive" } else { "permissive" };
    let commands: &[&str] = match policy.actions.as_slice() {
        [] => &["all"],
        ["read"] => &["select"],
        ["read", "update"] => &["select", "update"],
        _ => &["delete"],
    };
    for command in commands {
        writeln!(
            script,
            "create policy {}_{command} on app.{table} as {kind} for {command} using ({text}\n);",
            policy.name
        )
        .expect("writing to a string");
    }
}

/// A view's query over whatever stands for its relations.
pub(super) fn view(drawn: &Drawn, shape: &Shape, from: impl Fn(usize) -> String) -> String {
    let named = |of: usize, alias: &str| -> String {
        let columns = drawn.relations[of].columns.iter().map(|c| format!("{alias}.{}", c.name));
        columns.collect::<Vec<_>>().join(", ")
    };
    match shape {
        Shape::Part { of, keep } => {
            format!("select {} from {} a where {keep}", named(*of, "a"), from(*of))
        }
        Shape::Join { left, right } => format!(
            "select {}, b.owner as other_owner, b.grade as other_grade from {} a left join {} b on b.n = a.n",
            named(*left, "a"),
            from(*left),
            from(*right)
        ),
        Shape::Groups { of } => format!(
            "select a.region, count(*) as amount, sum(a.grade) as total from {} a group by a.region",
            from(*of)
        ),
    }
}
