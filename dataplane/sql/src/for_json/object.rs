//! The SQL around a checked SELECT: each row becomes the text of an object, the rows become an array.

use sqlparser::ast::{DataType, Expr, ForClause, ForJson, Query, SelectItem, SetExpr};

use crate::user_select::{Checked, Refusal, TextPosition};

/// Members per `concat_ws`: PostgreSQL's functions take 100 arguments.
const MEMBERS: usize = 50;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Level {
    /// Several objects without an array are an error (21000).
    Outside,
    /// Several objects without an array are a text with commas.
    Nested,
}

/// One column of the SELECT, below the objects that its key names.
struct Column<'a> {
    /// What is left of the key at this depth.
    path: Vec<&'a str>,
    /// From 1.
    n: usize,
    may_be_bytea: bool,
}

impl<'a> Column<'a> {
    fn below(&self) -> Column<'a> {
        Column {
            path: self.path.iter().skip(1).copied().collect(),
            n: self.n,
            may_be_bytea: self.may_be_bytea,
        }
    }
}

/// An expression: json, or text for a nested FOR JSON without its array.
pub(super) fn value(query: &Query, keys: &[String], clause: &ForClause, level: Level) -> Checked<String> {
    let ForClause::Json { for_json, root, include_null_values, without_array_wrapper } = clause else {
        return Err(Refusal::new("for json", TextPosition::default(), "only FOR JSON is translated"));
    };
    let items = items(&query.body);
    let columns = keys.iter().enumerate().map(|(at, key)| Column {
        path: match for_json {
            ForJson::Path => key.split('.').collect(),
            ForJson::Auto => vec![key.as_str()],
        },
        n: at + 1,
        may_be_bytea: items.and_then(|items| items.get(at)).is_none_or(may_be_bytea),
    });
    let columns: Vec<Column<'_>> = columns.collect();
    let object = format!("'{{' || {} || '}}'", members(&columns, *include_null_values));
    let names: Vec<String> = columns.iter().map(|it| name(it.n)).collect();
    let from = format!("FROM ({query}) AS \"dl_row\" ({})", names.join(", "));
    let objects = format!("pg_catalog.string_agg({object}, ',')");
    Ok(match (root, without_array_wrapper, level) {
        (None, true, Level::Nested) => format!("(SELECT {objects} {from})"),
        (_, true, _) => format!("CAST((SELECT {object} {from}) AS JSON)"),
        (None, false, _) => format!("CAST((SELECT '[' || {objects} || ']' {from}) AS JSON)"),
        (Some(root), false, _) => {
            let open = literal(&format!("{{{}:[", json_string(root)));
            format!("CAST((SELECT {open} || {objects} || ']}}' {from}) AS JSON)")
        }
    })
}

fn name(n: usize) -> String {
    format!("\"c{n}\"")
}

/// The columns of the SELECT where it is one.
fn items(body: &SetExpr) -> Option<&[SelectItem]> {
    match body {
        SetExpr::Select(select) => Some(&select.projection),
        _ => None,
    }
}

fn may_be_bytea(item: &SelectItem) -> bool {
    let (SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) = item else { return true };
    match expr {
        Expr::Cast { data_type, .. } => *data_type == DataType::Bytea,
        Expr::Value(_) | Expr::Interval(_) => false,
        _ => true,
    }
}

/// The members of one object with commas between them, as an expression of type text; empty where there are none.
fn members(columns: &[Column<'_>], nulls: bool) -> String {
    let mut rest = columns;
    let mut members = Vec::new();
    while let Some(Column { path, .. }) = rest.first() {
        let Some((first, below)) = path.split_first() else { break };
        let n_alike = rest.iter().take_while(|it| it.path.first() == Some(first)).count();
        let (group, after) = rest.split_at(n_alike);
        rest = after;
        let key = json_string(first);
        if below.is_empty() {
            members.extend(group.iter().map(|column| member(&key, column, nulls)));
            continue;
        }
        let inside: Vec<Column<'_>> = group.iter().map(Column::below).collect();
        let inside = self::members(&inside, nulls);
        let inside = if nulls { inside } else { format!("nullif({inside}, '')") };
        members.push(format!("{} || {inside} || '}}'", literal(&format!("{key}:{{"))));
    }
    joined(&members)
}

fn joined(members: &[String]) -> String {
    if members.len() <= MEMBERS {
        return format!("pg_catalog.concat_ws(',', {})", members.join(", "));
    }
    let parts: Vec<String> =
        members.chunks(MEMBERS).map(|part| format!("nullif({}, '')", joined(part))).collect();
    joined(&parts)
}

/// `"key":value`, or NULL for a value that is left out.
fn member(key: &str, column: &Column<'_>, nulls: bool) -> String {
    let c = name(column.n);
    let json = format!("pg_catalog.to_json({c})::TEXT");
    let value = if column.may_be_bytea {
        // to_json writes "\\x6162"; nothing here is constant for the planner, which would decode a text
        let hex = format!("pg_catalog.substr(pg_catalog.rtrim({json}, '\"'), 5)");
        let bytes = format!("pg_catalog.encode(pg_catalog.decode({hex}, 'hex'), 'base64')");
        let base64 = format!("'\"' || pg_catalog.replace({bytes}, pg_catalog.chr(10), '') || '\"'");
        format!("CASE WHEN pg_catalog.pg_typeof({c})::OID = 17 THEN {base64} ELSE {json} END")
    } else {
        json
    };
    let value = if nulls { format!("coalesce({value}, 'null')") } else { value };
    format!("{} || {value}", literal(&format!("{key}:")))
}

fn json_string(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// A constant that reads the same whatever standard_conforming_strings says.
fn literal(text: &str) -> String {
    if text.contains(['\'', '\\']) {
        format!("E'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
    } else {
        format!("'{text}'")
    }
}
