//! Rights as statements: those on one object together, since PostgreSQL writes the whole access list of an object, or of a column,
//! for each statement that changes it.

use std::collections::BTreeMap;

use rowgate_sql::ddl::grants::Target;
use rowgate_sql::text::{Ident, Sql};

use crate::plan::{Of, Statement};

/// What a role is given, or loses.
#[derive(Debug)]
pub(super) struct Right {
    /// Columns: all of which the role is given it, or loses it.
    pub(super) target: Target,
    pub(super) privilege: String,
    pub(super) role: String,
    pub(super) of: Of,
    /// The differences that this undoes, in words.
    pub(super) undoes: Vec<String>,
}

/// [`rowgate_sql::ddl::grants::grant`], or `revoke`.
type Write = fn(&str, &Target, &[&str]) -> Option<Sql>;

/// As few statements as these rights take. `is_apart`: no statement is of several permission sets.
pub(super) fn statements(rights: Vec<Right>, is_apart: bool, write: Write) -> Vec<Statement> {
    let mut groups: Vec<Vec<Right>> = Vec::new();
    let mut places = BTreeMap::new();
    for right in rights {
        let target = match &right.target {
            Target::Columns(schema, relation, _) => {
                Target::Columns(schema.clone(), relation.clone(), Vec::new())
            }
            whole => whole.clone(),
        };
        let of = match &right.of {
            Of::Set(_) if !is_apart => None,
            of => Some(of.clone()),
        };
        let place = *places.entry((target, right.privilege.clone(), of)).or_insert(groups.len());
        match groups.get_mut(place) {
            Some(group) => group.push(right),
            None => groups.push(vec![right]),
        }
    }
    groups.into_iter().flat_map(|group| together(group, write)).collect()
}

/// Rights of one privilege on one object.
fn together(mut rights: Vec<Right>, write: Write) -> Vec<Statement> {
    let holders = match rights.first().map(|right| right.target.clone()) {
        Some(Target::Columns(schema, relation, _)) => by_columns(&rights)
            .into_iter()
            .map(|(columns, holders)| (Target::Columns(schema.clone(), relation.clone(), columns), holders))
            .collect(),
        Some(target) => vec![(target, (0..rights.len()).collect())],
        None => Vec::new(),
    };
    let statement = |(target, holders): (Target, Vec<usize>)| {
        let roles: Vec<&str> = holders.iter().map(|i| rights[*i].role.as_str()).collect();
        let sql = write(&rights[holders[0]].privilege, &target, &roles)?;
        let of = common(holders.iter().map(|i| &rights[*i].of));
        let undoes = holders.iter().flat_map(|i| std::mem::take(&mut rights[*i].undoes)).collect();
        Some(Statement { sql, of, undoes })
    };
    holders.into_iter().filter_map(statement).collect()
}

/// Columns that the same rights are on, by their indexes, in the order of the columns.
fn by_columns(rights: &[Right]) -> Vec<(Vec<Ident>, Vec<usize>)> {
    let mut holders: BTreeMap<&Ident, Vec<usize>> = BTreeMap::new();
    let mut order: Vec<&Ident> = Vec::new();
    for (i, right) in rights.iter().enumerate() {
        let Target::Columns(_, _, columns) = &right.target else { continue };
        for column in columns {
            holders
                .entry(column)
                .or_insert_with(|| {
                    order.push(column);
                    Vec::new()
                })
                .push(i);
        }
    }
    let mut groups: Vec<(Vec<Ident>, Vec<usize>)> = Vec::new();
    let mut places: BTreeMap<Vec<usize>, usize> = BTreeMap::new();
    for column in order {
        let holders = holders.remove(column).unwrap_or_default();
        let place = *places.entry(holders.clone()).or_insert(groups.len());
        match groups.get_mut(place) {
            Some((columns, _)) => columns.push(column.clone()),
            None => groups.push((vec![column.clone()], holders)),
        }
    }
    groups
}

/// What is closed when a statement of all these is refused.
fn common<'a>(mut all: impl Iterator<Item = &'a Of>) -> Of {
    let Some(first) = all.next() else { return Of::Tenant };
    match all.all(|of| of == first) {
        true => first.clone(),
        false => Of::Sets,
    }
}

#[cfg(test)]
mod tests {
    use rowgate_sql::ddl::grants;

    use super::*;

    fn ident(name: &str) -> Ident {
        Ident::new(name).expect("a name")
    }

    /// A set's right to read columns of one table, or to use the schema.
    fn right(set: &str, columns: &[&str]) -> Right {
        let target = match columns {
            [] => Target::Schema(ident("s")),
            all => Target::Columns(ident("s"), ident("t"), all.iter().map(|it| ident(it)).collect()),
        };
        let privilege = if columns.is_empty() { "USAGE" } else { "SELECT" }.to_owned();
        let undoes = vec![format!("{set} {columns:?}")];
        Right { target, privilege, role: format!("set_{set}"), of: Of::Set(set.to_owned()), undoes }
    }

    fn written(rights: Vec<Right>, is_apart: bool) -> Vec<(String, Of, usize)> {
        let all = statements(rights, is_apart, grants::grant).into_iter();
        all.map(|it| (it.sql.as_str().replace('"', ""), it.of, it.undoes.len())).collect()
    }

    fn rights() -> Vec<Right> {
        vec![
            right("a", &[]),
            right("a", &["x", "y", "z"]),
            right("b", &[]),
            right("b", &["x", "z"]),
            Right { of: Of::Tenant, role: "t1_dl".to_owned(), ..right("c", &[]) },
        ]
    }

    #[test]
    fn an_access_list_is_written_once_for_all_sets() {
        let expected = [
            ("grant USAGE on schema s to set_a, set_b", Of::Sets, 2),
            ("grant SELECT (x, z) on s.t to set_a, set_b", Of::Sets, 2),
            ("grant SELECT (y) on s.t to set_a", Of::Set("a".to_owned()), 0),
            ("grant USAGE on schema s to t1_dl", Of::Tenant, 1),
        ];
        assert_eq!(written(rights(), false), expected.map(|(sql, of, n)| (sql.to_owned(), of, n)));
    }

    #[test]
    fn after_a_refusal_each_set_has_statements_of_its_own() {
        let of = |set: &str| Of::Set(set.to_owned());
        let expected = [
            ("grant USAGE on schema s to set_a", of("a"), 1),
            ("grant SELECT (x, y, z) on s.t to set_a", of("a"), 1),
            ("grant USAGE on schema s to set_b", of("b"), 1),
            ("grant SELECT (x, z) on s.t to set_b", of("b"), 1),
            ("grant USAGE on schema s to t1_dl", Of::Tenant, 1),
        ];
        assert_eq!(written(rights(), true), expected.map(|(sql, of, n)| (sql.to_owned(), of, n)));
    }
}
