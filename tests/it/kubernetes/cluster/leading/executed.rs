//! What PostgreSQL has executed, by whom, as its log tells it. A table that triggers fill would miss roles, which belong to
//! no database.

use std::collections::BTreeMap;

use crate::reconcile::scenarios::quiet::reads_only;

/// For a server of [`rowgate_tests::servers::postgres::Server::with_two_ways`]: who comes by the socket is `[local]`, who comes by TCP
/// its address.
pub(super) const SETTINGS: [&str; 3] =
    ["log_statement=all", "log_parameter_max_length=-1", "log_line_prefix=%p|%h|%d|"];

/// A transaction that was committed and changed something.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Work {
    pub(super) by: String,
    pub(super) database: String,
    /// Those that change something, lower-case, with their values.
    pub(super) statements: Vec<String>,
}

impl Work {
    /// Takes a fence over, which everybody does who begins.
    fn takes_over(&self) -> bool {
        self.statements.iter().all(|statement| statement.contains("set epoch = epoch + 1"))
    }
}

/// One session of the log.
#[derive(Default)]
struct Session<'a> {
    by: &'a str,
    database: &'a str,
    /// Within a transaction.
    is_open: bool,
    failed: bool,
    /// The last statement that was read is the last of `statements`.
    is_noted: bool,
    statements: Vec<String>,
}

impl Session<'_> {
    /// Takes in a statement; `works` is what was done so far.
    fn says(&mut self, text: String, works: &mut Vec<Work>) {
        if !self.is_open {
            // of a statement by itself it is known only now that it did not fail
            self.ends(works);
        }
        self.is_noted = false;
        if text.starts_with("begin") {
            self.is_open = true;
        } else if text.starts_with("commit") || text.starts_with("rollback") {
            self.is_open = false;
            self.failed |= text.starts_with("rollback");
            self.ends(works);
        } else if !text.starts_with("select dl.fence(") && !reads_only(&text) {
            self.is_noted = true;
            self.statements.push(text);
        }
    }

    fn ends(&mut self, works: &mut Vec<Work>) {
        let statements = std::mem::take(&mut self.statements);
        let failed = std::mem::take(&mut self.failed);
        if !failed && !statements.is_empty() {
            works.push(Work { by: self.by.to_owned(), database: self.database.to_owned(), statements });
        }
    }
}

/// Everything that was executed and stands, in the order in which it was committed.
pub(super) fn works(log: &str) -> Vec<Work> {
    let mut works = Vec::new();
    let mut sessions: BTreeMap<&str, Session<'_>> = BTreeMap::new();
    for (pid, by, database, said) in entries(log) {
        let session = sessions.entry(pid).or_default();
        (session.by, session.database) = (by, database);
        let values = said.strip_prefix("DETAIL:  ").map(str::to_lowercase);
        if said.starts_with("ERROR:") || said.starts_with("FATAL:") {
            session.failed = true;
        } else if let Some(text) = statement(&said) {
            session.says(text, &mut works);
        } else if let Some(values) = values.filter(|it| session.is_noted && it.starts_with("parameters:")) {
            let last = session.statements.last_mut().expect("it was noted");
            last.push_str(&format!("\n{values}"));
        }
    }
    for session in sessions.values_mut().filter(|session| !session.is_open) {
        session.ends(&mut works);
    }
    works
}

/// What both have done: the same statements with the same values.
pub(super) fn by_both<'a>(works: &'a [Work], one: &str, other: &str) -> Vec<&'a Work> {
    let twin = |work: &Work| Work { by: other.to_owned(), ..work.clone() };
    works.iter().filter(|it| it.by == one && !it.takes_over() && works.contains(&twin(it))).collect()
}

/// The lines of sessions: process, address, database, and what is said with its further lines.
fn entries(log: &str) -> Vec<(&str, &str, &str, String)> {
    let mut entries: Vec<(&str, &str, &str, String)> = Vec::new();
    for line in log.lines() {
        let mut parts = line.splitn(4, '|');
        match (parts.next(), parts.next(), parts.next(), parts.next()) {
            (Some(pid), Some(by), Some(database), Some(said)) if pid.parse::<u32>().is_ok() => {
                entries.push((pid, by, database, said.to_owned()));
            }
            _ => {
                if let Some(last) = entries.last_mut() {
                    last.3.push('\n');
                    last.3.push_str(line);
                }
            }
        }
    }
    entries
}

/// The text of a statement, lower-case.
fn statement(said: &str) -> Option<String> {
    let text = said.strip_prefix("LOG:  statement: ").or_else(|| {
        // a name before the text
        said.strip_prefix("LOG:  execute ").and_then(|text| Some(text.split_once(": ")?.1))
    });
    text.map(str::to_lowercase)
}

#[test]
fn what_failed_or_was_rolled_back_was_not_executed() {
    let log = "1|[local]|a|LOG:  statement: begin
1|[local]|a|LOG:  execute s_1: insert into t values ($1)
1|[local]|a|DETAIL:  Parameters: $1 = '1'
2|127.0.0.1|a|LOG:  execute s_1: insert into t values ($1)
2|127.0.0.1|a|DETAIL:  Parameters: $1 = '1'
3|127.0.0.1|a|LOG:  statement: create role
\tx
3|127.0.0.1|a|ERROR:  no
1|[local]|a|LOG:  statement: COMMIT
4|127.0.0.1|a|LOG:  statement: begin
4|127.0.0.1|a|LOG:  statement: create role y
4|127.0.0.1|a|ERROR:  no
4|127.0.0.1|a|LOG:  statement: COMMIT
3|127.0.0.1|a|LOG:  statement: create role
\tz
";
    let works = works(log);
    let told: Vec<(&str, &str)> =
        works.iter().map(|work| (work.by.as_str(), work.statements[0].as_str())).collect();
    let insert = "insert into t values ($1)\nparameters: $1 = '1'";
    assert_eq!(told, [("[local]", insert), ("127.0.0.1", insert), ("127.0.0.1", "create role\n\tz")],);
    assert_eq!(by_both(&works, "[local]", "127.0.0.1").len(), 1);
}
