//! Names: each is quoted as PostgreSQL would fold it, so that the database reads the very name that was checked.

use std::fmt;

use sqlparser::ast::{Ident, ObjectName, ObjectNamePart};

use super::Rules;
use super::refusal::{Checked, Refusal, TextPosition};

/// A table or view, as named in the text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Relation {
    /// `None`: in `public`, or in the first schema of entities that has it.
    pub schema: Option<String>,
    pub name: String,
}

impl fmt::Display for Relation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.schema {
            Some(schema) => write!(f, "{schema}.{}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

/// Views that show a role only columns that it holds a privilege on; for the SQL endpoint. Names of constraints often tell those of others.
const CATALOG_VIEWS: &[&str] = &["columns", "key_column_usage", "tables"];

pub(super) fn quote(ident: &mut Ident) -> Checked<String> {
    let at = TextPosition::from(ident.span);
    match ident.quote_style {
        None => ident.value.make_ascii_lowercase(),
        Some('"') => {}
        Some(_) => {
            return Err(Refusal::new(
                "name",
                at,
                "names stand in double quotes in PostgreSQL: write \"name\"",
            ));
        }
    }
    let value = &ident.value;
    if value.is_empty() || 63 < value.len() || value.contains(['"', '\0']) {
        let message = "a name has 1 to 63 bytes and no double quote";
        return Err(Refusal::new("name", at, message));
    }
    ident.quote_style = Some('"');
    Ok(ident.value.clone())
}

/// The parts of a name, each quoted.
pub(super) fn parts(name: &mut ObjectName, at: TextPosition) -> Checked<Vec<String>> {
    let ident = |part: &mut ObjectNamePart| match part {
        ObjectNamePart::Identifier(ident) => quote(ident),
        ObjectNamePart::Function(_) => {
            Err(Refusal::new("name", at, "a name made by a function is not allowed"))
        }
    };
    name.0.iter_mut().map(ident).collect()
}

pub(super) fn place(name: &ObjectName, or: TextPosition) -> TextPosition {
    match name.0.first() {
        Some(ObjectNamePart::Identifier(ident)) => TextPosition::from(ident.span).or(or),
        _ => or,
    }
}

/// Refuses catalogs and our own schema. PostgreSQL looks into `pg_catalog` before the search path, so a bare name with `pg_`
/// counts as one of its own.
pub(super) fn relation(parts: &[String], rules: Rules, at: TextPosition) -> Checked<Relation> {
    let (schema, name) = match parts {
        [name] => (None, name),
        [schema, name] => (Some(schema), name),
        _ => return Err(Refusal::new("table", at, "a table's name has at most a schema before it")),
    };
    if let Some(schema) = schema {
        schema_allowed(schema, name, rules, at)?;
    }
    if name.starts_with("pg_") {
        return Err(Refusal::new(
            "catalog",
            at,
            format!("{name} belongs to PostgreSQL's catalogs, which are closed here"),
        ));
    }
    Ok(Relation { schema: schema.cloned(), name: name.clone() })
}

fn schema_allowed(schema: &str, name: &str, rules: Rules, at: TextPosition) -> Checked {
    if schema == "dl" {
        return Err(Refusal::new("schema", at, "the schema dl is closed here"));
    }
    let is_catalog = schema == "information_schema" || schema.starts_with("pg_");
    let is_listed = schema == "information_schema" && CATALOG_VIEWS.contains(&name);
    match (is_catalog, rules) {
        (false, _) => Ok(()),
        (true, Rules::SqlEndpoint) if is_listed => Ok(()),
        (true, Rules::SqlEndpoint) => {
            let views = CATALOG_VIEWS.join(", ");
            let message = format!(
                "{schema}.{name} is closed here; of the catalogs only information_schema's {views} may be read"
            );
            Err(Refusal::new("catalog", at, message))
        }
        (true, Rules::PayloadQuery) => Err(Refusal::new(
            "catalog",
            at,
            format!("{schema}.{name} is closed here; a payloadQuery reads tables only"),
        )),
    }
}

/// A column, qualified or not. PostgreSQL reads `x.f` as a call of `f(x)` where x has no such column; [`super::from`] takes scalars out of
/// its reach, the session's search path has no schema but `pg_catalog`, and its functions that take a whole row show it, hash it or compare
/// it. A schema before the table is left out: what stands for the table has none.
pub(super) fn column(parts: &mut Vec<Ident>, rules: Rules) -> Checked {
    let at = parts.first().map(|it| TextPosition::from(it.span)).unwrap_or_default();
    let names = parts.iter_mut().map(quote).collect::<Checked<Vec<_>>>()?;
    match names.as_slice() {
        [_] => Ok(()),
        [before @ .., column] if before.len() < 3 => {
            if column.starts_with("pg_") {
                let message = format!(
                    "a column may not be named {column} after a dot, since PostgreSQL could read it as a function"
                );
                return Err(Refusal::new("column", at, message));
            }
            if let [schema, table] = before {
                relation(&[schema.clone(), table.clone()], rules, at)?;
                parts.remove(0);
            }
            Ok(())
        }
        _ => Err(Refusal::new("column", at, "a column's name has at most a schema and a table before it")),
    }
}
