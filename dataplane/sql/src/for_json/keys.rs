//! The keys of a SELECT with FOR JSON, and the rules about them.

use std::collections::HashSet;

use sqlparser::ast::{
    Expr, ForClause, ForJson, Ident, Query, Select, SelectItem, SetExpr, Spanned as _, TableFactor,
    TableWithJoins,
};

use crate::user_select::{Checked, Refusal, TextPosition};

struct Key {
    name: String,
    at: TextPosition,
}

/// The key of each column, as T-SQL names it: an alias as it is written, a column's own name as PostgreSQL folds it. Runs before names are
/// folded.
pub(super) fn of(query: &Query, clause: &ForClause) -> Checked<Vec<String>> {
    let here = TextPosition::from(query.span());
    let ForClause::Json { for_json, root, include_null_values: _, without_array_wrapper } = clause else {
        return Err(Refusal::new(
            "for json",
            here,
            "only FOR JSON PATH and FOR JSON AUTO may end a payloadQuery",
        ));
    };
    if root.is_some() && *without_array_wrapper {
        return Err(Refusal::new("for json", here, "ROOT and WITHOUT_ARRAY_WRAPPER exclude each other"));
    }
    if *for_json == ForJson::Auto {
        check_auto(&query.body, here)?;
    }
    let select = first_select(&query.body).ok_or_else(|| {
        Refusal::new("for json", here, "FOR JSON needs named columns: write select ... instead of VALUES")
    })?;
    let keys = select.projection.iter().map(|item| key(item, here)).collect::<Checked<Vec<_>>>()?;
    match for_json {
        ForJson::Auto => check_flat(&keys)?,
        ForJson::Path => check_paths(&keys)?,
    }
    Ok(keys.into_iter().map(|key| key.name).collect())
}

/// The SELECT that names the columns of a set operation.
fn first_select(body: &SetExpr) -> Option<&Select> {
    match body {
        SetExpr::Select(select) => Some(select),
        SetExpr::Query(query) => first_select(&query.body),
        SetExpr::SetOperation { left, .. } => first_select(left),
        _ => None,
    }
}

fn check_auto(body: &SetExpr, here: TextPosition) -> Checked {
    let SetExpr::Select(select) = body else {
        return Err(Refusal::new(
            "auto",
            here,
            "FOR JSON AUTO does not take UNION or VALUES: write FOR JSON PATH",
        ));
    };
    match select.from.as_slice() {
        [] => Err(Refusal::new("auto", here, "FOR JSON AUTO needs FROM: write FOR JSON PATH")),
        [TableWithJoins { relation, joins }]
            if joins.is_empty() && !matches!(relation, TableFactor::NestedJoin { .. }) =>
        {
            Ok(())
        }
        _ => {
            let message =
                "FOR JSON AUTO reads one table: write FOR JSON PATH, with a sub-select for each nested array";
            Err(Refusal::new("auto", here, message))
        }
    }
}

fn key(item: &SelectItem, here: TextPosition) -> Checked<Key> {
    let folded = |ident: &Ident| match ident.quote_style {
        None => ident.value.to_ascii_lowercase(),
        Some(_) => ident.value.clone(),
    };
    let (name, at) = match item {
        SelectItem::ExprWithAlias { alias, .. } => (alias.value.clone(), alias.span),
        SelectItem::UnnamedExpr(Expr::Identifier(ident)) => (folded(ident), ident.span),
        SelectItem::UnnamedExpr(Expr::CompoundIdentifier(parts)) if !parts.is_empty() => {
            (parts.last().map(folded).unwrap_or_default(), item.span())
        }
        SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..) => {
            let at = TextPosition::from(item.span()).or(here);
            let message = "name the columns instead of *: a payload must not change when a table does";
            return Err(Refusal::new("columns", at, message));
        }
        _ => {
            let at = TextPosition::from(item.span()).or(here);
            return Err(Refusal::new("unnamed", at, "this column has no name: write as name after it"));
        }
    };
    Ok(Key { name, at: TextPosition::from(at).or(here) })
}

fn check_flat(keys: &[Key]) -> Checked {
    let mut seen = HashSet::new();
    for Key { name, at } in keys {
        if !seen.insert(name) {
            return Err(Refusal::new("duplicate", *at, format!("the key {name} stands twice")));
        }
    }
    Ok(())
}

/// Each segment has a name; columns of one object stand side by side; no key is both a value and an object.
fn check_paths(keys: &[Key]) -> Checked {
    // paths of objects that ended, of objects that are open, and of values
    let (mut closed, mut open, mut values) = (HashSet::new(), Vec::<String>::new(), HashSet::new());
    for Key { name, at } in keys {
        let segments: Vec<&str> = name.split('.').collect();
        if segments.iter().any(|segment| segment.is_empty()) {
            let message = format!("the key {name} begins or ends with a dot or has two in a row");
            return Err(Refusal::new("path", *at, message));
        }
        let objects: Vec<String> = (1..segments.len())
            .map(|n| segments.iter().take(n).copied().collect::<Vec<_>>().join("."))
            .collect();
        let n_shared = open.iter().zip(&objects).take_while(|(a, b)| a == b).count();
        closed.extend(open.drain(n_shared..));
        let conflict = objects.iter().find(|object| closed.contains(*object) || values.contains(*object));
        if let Some(object) = conflict {
            let message = format!(
                "the key {name} conflicts with an earlier column: the columns below {object} must stand side by side, and {object} itself may not be a column"
            );
            return Err(Refusal::new("conflict", *at, message));
        }
        open = objects;
        if closed.contains(name) || open.contains(name) {
            let message = format!("the key {name} conflicts with an earlier column below {name}");
            return Err(Refusal::new("conflict", *at, message));
        }
        if !values.insert(name.clone()) {
            return Err(Refusal::new("duplicate", *at, format!("the key {name} stands twice")));
        }
    }
    Ok(())
}
