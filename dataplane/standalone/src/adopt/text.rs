//! The manifest as text: the values with comments between them that say what a person has to decide.

use rowgate_core::yaml::{comment, indented, lines, scalar};
use serde_json::{Value, json};

use super::manifest::{Manifest, quoted};
use super::secret_columns::secrets;
use super::tables::Table;

/// Sentences about what is left out.
const MAX_SENTENCES: usize = 1000;

/// `held`: roles that COPY FROM and dumps need BYPASSRLS for. `operator`: the login that the owner is lent to.
pub(super) fn of(manifest: &Manifest<'_>, held: &[String], operator: &str) -> String {
    let mut text = head(manifest, held, operator);
    text.extend(tenant(manifest));
    for resource in &manifest.others {
        text.push("---".to_owned());
        text.extend(lines(resource));
    }
    text.into_iter().map(|line| line + "\n").collect()
}

fn head(manifest: &Manifest<'_>, held: &[String], operator: &str) -> Vec<String> {
    let application = manifest.application;
    let (owner, operator) = (quoted(&application.owner), quoted(operator));
    let mut sentences = vec![
        format!(
            "A first manifest for database {}, as `rowgate-dataplane adopt` found it. Nothing was changed there.",
            application.database
        ),
        String::new(),
        "A DBA runs this once on the server:".to_owned(),
        format!("  grant {owner} to {operator} with admin true, inherit false, set false;"),
    ];
    if !held.is_empty() {
        sentences.extend([
            String::new(),
            "Warning: under row-level security PostgreSQL refuses COPY FROM and pg_dump to all roles but the owner, superusers and those".to_owned(),
            "with BYPASSRLS. These roles have rights on the tables below. For each that loads or dumps them, a DBA runs its line first:".to_owned(),
        ]);
        sentences.extend(held.iter().map(|role| format!("  alter role {} bypassrls;", quoted(role))));
    }
    if !manifest.left_out.is_empty() {
        sentences.extend([String::new(), "Left out:".to_owned()]);
        sentences.extend(manifest.left_out.iter().take(MAX_SENTENCES).map(|it| format!("- {it}")));
        let more = manifest.left_out.len().saturating_sub(MAX_SENTENCES);
        sentences.extend((0 < more).then(|| format!("- and {more} more")));
    }
    sentences.iter().map(|sentence| comment(sentence)).collect()
}

fn tenant(manifest: &Manifest<'_>) -> Vec<String> {
    let part = |name: &str| json!({name: manifest.tenant[name]});
    let spec = &manifest.tenant["spec"];
    let mut text: Vec<String> =
        ["apiVersion", "kind", "metadata"].iter().flat_map(|it| lines(&part(it))).collect();
    text.push("spec:".to_owned());
    text.extend(indented(lines(&json!({"database": spec["database"]}))));
    text.push("  entities:".to_owned());
    text.extend(items(&spec["entities"], &manifest.tables, rows, 1));
    text.extend(["  shared:".to_owned(), "    permissions:".to_owned()]);
    text.extend(items(&spec["shared"]["permissions"], &manifest.tables, fields, 2));
    text
}

/// The items of a list, one for each table, and what is to be said of each.
fn items(
    list: &Value,
    tables: &[Table<'_>],
    said: impl Fn(&Table<'_>) -> Vec<String>,
    n_levels: usize,
) -> Vec<String> {
    let of_table =
        |(item, table): (&Value, &Table<'_>)| [lines(&json!([item])), indented(said(table))].concat();
    let items: Vec<String> = list.as_array().into_iter().flatten().zip(tables).flat_map(of_table).collect();
    (0..n_levels).fold(items, |items, _| indented(items))
}

/// Of an entity: which rows keys see.
fn rows(table: &Table<'_>) -> Vec<String> {
    if table.is_filtered {
        return vec![comment("The application's own policies hold for keys, too.")];
    }
    let column = scalar(example(table));
    vec![
        comment(
            "No key sees a row until one of these is chosen: every row, or those that a claim of the key names.",
        ),
        comment("rowLevelSecurity: {none: true}"),
        comment(&format!(
            "rowLevelSecurity: {{policies: [{{name: own_rows, column: {column}, equals: {{claim: {column}}}}}]}}"
        )),
    ]
}

/// A column by which rows may be told apart: of a foreign key, else one that is neither key nor secret, else of the key.
fn example<'a>(table: &Table<'a>) -> &'a str {
    let relation = table.relation;
    let [others, keys] = secrets(relation);
    let is_fit = |name: &&str| {
        !relation.primary_key.iter().any(|key| key == name) && !others.contains(name) && !keys.contains(name)
    };
    let of_keys = relation.foreign_keys.iter().flat_map(|key| &key.columns).map(String::as_str);
    let all = relation.columns.iter().map(|column| column.name.as_str());
    let any = of_keys.chain(all).find(is_fit);
    any.or(relation.primary_key.first().map(String::as_str)).unwrap_or_default()
}

/// Of a permission: what was left out, or could not be.
fn fields(table: &Table<'_>) -> Vec<String> {
    let [others, keys] = secrets(table.relation);
    let others = (!others.is_empty()).then(|| {
        comment("These are left out because their names say that they hold secrets; take out of the list what keys may read.")
    });
    let keys = (!keys.is_empty()).then(|| {
        comment(&format!(
            "The key field {} may hold secrets, and a key field is always read; if it does, take the entity out.",
            keys.join(", ")
        ))
    });
    others.into_iter().chain(keys).collect()
}

#[cfg(test)]
mod tests;
