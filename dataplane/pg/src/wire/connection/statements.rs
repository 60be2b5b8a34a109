//! Which statements a connection has prepared: at most 128, by role and text.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use rowgate_sql::text::Sql;

use crate::wire::pool::StatementHash;
use crate::wire::request_pool::Sessions;

/// Plans over row-level security belong to one role: shared, PostgreSQL plans again at every change of role.
const CAPACITY: usize = 128;

/// A text in bytes beyond which a statement is not kept: it is one of many rows, or made of a long list, and hardly ever
/// asked again.
const LONG: usize = 8 << 10;

/// The name of a prepared statement is `s` and this number; none is used twice on a connection. 0 has the empty name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Number(u64);

/// What has its ParseComplete, and what waits for its CloseComplete.
#[derive(Debug)]
pub(crate) struct Statements {
    sessions: Sessions,
    entries: HashMap<StatementHash, Entry>,
    closing: Vec<Number>,
    last_number: u64,
    clock: u64,
}

#[derive(Debug)]
struct Entry {
    role: String,
    text: String,
    types: Vec<u32>,
    number: Number,
    used: u64,
}

/// It is parsed in each batch: what has a name belongs to a session.
const UNNAMED: Number = Number(0);

impl Number {
    pub(crate) fn name(self) -> String {
        if self == UNNAMED { String::new() } else { format!("s{}", self.0) }
    }
}

impl Statements {
    pub(crate) fn new(sessions: Sessions) -> Statements {
        Statements { sessions, entries: HashMap::new(), closing: Vec::new(), last_number: 0, clock: 0 }
    }

    /// Whether a statement with this hash is prepared.
    pub(crate) fn knows(&self, hash: StatementHash) -> bool {
        self.entries.contains_key(&hash)
    }

    /// The statement with this [`hash`], if it is prepared.
    pub(crate) fn find(&mut self, hash: StatementHash, role: &str, sql: &Sql) -> Option<Number> {
        self.clock += 1;
        let entry = self.entries.get_mut(&hash).filter(|entry| {
            let is_same_text = entry.role == role && entry.text == sql.as_str();
            is_same_text && entry.types.iter().copied().eq(types(sql))
        })?;
        entry.used = self.clock;
        Some(entry.number)
    }

    /// A number for a statement that will be parsed. When there is no room for it the least recently used one is
    /// forgotten and must be closed.
    pub(crate) fn reserve(&mut self, sql: &Sql) -> Number {
        if self.sessions == Sessions::Pooled || LONG < sql.as_str().len() {
            return UNNAMED;
        }
        if CAPACITY <= self.entries.len() {
            let oldest = self.entries.iter().min_by_key(|(_, entry)| entry.used).map(|(hash, _)| *hash);
            let oldest = oldest.and_then(|hash| self.entries.remove(&hash));
            self.closing.extend(oldest.map(|entry| entry.number));
        }
        self.last_number += 1;
        Number(self.last_number)
    }

    /// PostgreSQL has parsed it.
    pub(crate) fn parsed(&mut self, number: Number, hash: StatementHash, role: &str, sql: &Sql) {
        if number == UNNAMED {
            return;
        }
        let entry = Entry {
            role: role.to_owned(),
            text: sql.as_str().to_owned(),
            types: types(sql).collect(),
            number,
            used: self.clock,
        };
        // two statements with one hash take turns
        let other = self.entries.insert(hash, entry);
        self.closing.extend(other.map(|entry| entry.number));
    }

    /// It does not fit the tables any more: the next batch closes it.
    pub(crate) fn forget(&mut self, number: Number) {
        let hash = self.entries.iter().find(|(_, entry)| entry.number == number).map(|(hash, _)| *hash);
        if let Some(entry) = hash.and_then(|hash| self.entries.remove(&hash)) {
            self.closing.push(entry.number);
        }
    }

    /// What the next batch must close.
    pub(crate) fn closing(&self) -> &[Number] {
        &self.closing
    }

    /// The first of `closing` has its CloseComplete.
    pub(crate) fn closed(&mut self) {
        self.closing.remove(0);
    }
}

/// What tells a statement as a role from others, but for one collision in 2^64.
pub(crate) fn hash(role: &str, sql: &Sql) -> StatementHash {
    let mut hasher = DefaultHasher::new();
    (role, sql.as_str()).hash(&mut hasher);
    types(sql).for_each(|oid| oid.hash(&mut hasher));
    hasher.finish()
}

fn types(sql: &Sql) -> impl Iterator<Item = u32> {
    sql.binds().iter().map(|bind| bind.oid)
}

#[cfg(test)]
mod tests {
    use rowgate_sql::text::Bind;

    use super::*;

    struct Ask(String, Sql);

    fn ask(role: &str, number: u64, oid: u32) -> Ask {
        let mut sql = Sql::new();
        sql.lit("select ").number(number).lit(", ").bind(Bind::text(oid, "1"));
        Ask(role.to_owned(), sql)
    }

    impl Statements {
        fn has(&mut self, ask: &Ask) -> Option<Number> {
            self.find(hash(&ask.0, &ask.1), &ask.0, &ask.1)
        }

        fn note(&mut self, number: Number, ask: &Ask) {
            self.parsed(number, hash(&ask.0, &ask.1), &ask.0, &ask.1);
        }
    }

    #[test]
    fn role_text_and_types_tell_statements_apart_and_the_least_used_goes() {
        let mut statements = Statements::new(Sessions::Own);
        for i in 0..CAPACITY as u64 {
            assert_eq!(statements.has(&ask("a", i, 23)), None);
            let number = statements.reserve(&ask("a", 0, 23).1);
            statements.note(number, &ask("a", i, 23));
        }
        assert_eq!(statements.has(&ask("a", 0, 23)), Some(Number(1)));
        assert_eq!(statements.has(&ask("b", 0, 23)), None);
        assert_eq!(statements.has(&ask("a", 0, 20)), None);
        assert!(statements.closing().is_empty());

        let number = statements.reserve(&ask("a", 0, 23).1);
        assert_eq!(statements.closing(), [Number(2)], "1 was used again");
        // Until it has its ParseComplete it is not there, and nothing more is evicted for it.
        assert_eq!(statements.has(&ask("b", 0, 23)), None);
        statements.reserve(&ask("a", 0, 23).1);
        assert_eq!(statements.closing(), [Number(2)]);
        statements.note(number, &ask("b", 0, 23));
        statements.forget(number);
        statements.forget(number);
        assert_eq!(statements.closing(), [Number(2), number]);
        statements.closed();
        assert_eq!(statements.closing(), [number]);
        assert_eq!(statements.has(&ask("b", 0, 23)), None);
    }

    #[test]
    fn behind_a_pooler_nothing_has_a_name_and_nothing_is_kept() {
        let mut statements = Statements::new(Sessions::Pooled);
        for _ in 0..2 * CAPACITY {
            assert_eq!(statements.has(&ask("a", 0, 23)), None);
            let number = statements.reserve(&ask("a", 0, 23).1);
            assert_eq!(number.name(), "");
            statements.note(number, &ask("a", 0, 23));
            statements.forget(number);
            assert!(statements.closing().is_empty());
        }
    }
}
