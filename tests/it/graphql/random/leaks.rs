//! What no answer to a key may hold: names that it may not use, and values of fields and rows that it does not see.

use std::collections::HashSet;

use rowgate_tests::client::Reply;

use super::oracle::rest::Row;
use super::world::drawn::Drawn;
use super::world::tables::{TABLES, Table};

/// No name of the tenant is longer.
const MAX_NAME: usize = 40;

/// What is hidden from one key.
pub(super) struct Hidden {
    /// In lower case.
    names: Vec<String>,
    /// Values that stand in one row of one table each.
    values: HashSet<String>,
}

impl Hidden {
    /// `names`: those that it may not use; `rows`: all that it sees, by table.
    pub(super) fn of(drawn: &Drawn, names: &[&str], rows: &[Vec<Row>]) -> Hidden {
        let mut values: HashSet<String> = HashSet::new();
        for (table, all) in TABLES.iter().zip(&drawn.rows) {
            let unique = |name: &str| name.ends_with("_note") || name.ends_with("_serial");
            let at = (0..table.fields.len()).filter(|at| unique(table.fields[*at].name));
            values.extend(at.flat_map(|at| all.iter().filter_map(move |row| row[at].clone())));
        }
        for row in rows.iter().flatten() {
            for value in row.values.values() {
                values.remove(value.as_str().unwrap_or_default());
                values.remove(&value.to_string());
            }
        }
        // names of the database are for no key
        let columns = |table: &'static Table| table.fields.iter().map(|field| table.column(field.name));
        let of_database = TABLES.iter().flat_map(|table| columns(table).chain([table.object()]));
        let of_database = of_database.filter(|name| name.starts_with("zz_"));
        let names = names.iter().map(|name| name.to_lowercase()).chain(of_database).collect();
        Hidden { names, values }
    }

    /// What stands in the answer and not in the request.
    pub(super) fn found(&self, request: &str, reply: &Reply) -> Vec<String> {
        let answer = format!("{:?}\n{}", reply.headers, reply.body).to_lowercase();
        let request = request.to_lowercase();
        // a cursor is Base64, in which any four letters may stand
        let is_cursor = |word: &&str| MAX_NAME < word.len();
        let words = answer.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-')));
        let readable = words.filter(|word| !is_cursor(word)).collect::<Vec<_>>().join(" ");
        let names = self
            .names
            .iter()
            .filter(|name| readable.contains(name.as_str()) && !request.contains(name.as_str()));
        let mut found: Vec<String> = names.cloned().collect();
        let words = answer.split(|c: char| !c.is_ascii_alphanumeric());
        let values = words.filter(|word| self.values.contains(*word) && !request.contains(word));
        found.extend(values.map(str::to_owned));
        found
    }
}
