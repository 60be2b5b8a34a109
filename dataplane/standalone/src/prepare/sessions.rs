//! Takes a file of SQL apart as psql does: into sessions, which `\connect DATABASE` begins, and their statements.

use std::mem;

/// What runs in one connection.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Session<'a> {
    /// `None`: before the first `\connect`.
    pub(super) database: Option<&'a str>,
    /// Where its first line begins, in bytes.
    pub(super) at: usize,
    pub(super) statements: Vec<Statement<'a>>,
}

/// Without the semicolon at its end.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Statement<'a> {
    /// Where it begins in the file, in bytes.
    pub(super) at: usize,
    pub(super) text: &'a str,
}

/// The rest of a line from a backslash on that begins no session: another command, or one within a statement.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct OtherCommand<'a> {
    pub(super) at: usize,
    pub(super) text: &'a str,
}

/// The sessions of a whole file. A quotation that does not end runs to the end of the file, and PostgreSQL says so.
pub(super) fn of(file: &str) -> Result<Vec<Session<'_>>, OtherCommand<'_>> {
    let mut sessions = Vec::new();
    let mut session = Session { database: None, at: 0, statements: Vec::new() };
    let mut begun: Option<Begun> = None;
    let mut at = 0;
    while at < file.len() {
        let (token, len) = next_token(&file[at..]);
        let text = &file[at..at + len];
        match token {
            Token::Blank => {}
            Token::Command => {
                let database = database(text).filter(|_| begun.is_none());
                let database = database.ok_or(OtherCommand { at, text: text.trim_end() })?;
                let next = Session { database: Some(database), at, statements: Vec::new() };
                sessions.push(mem::replace(&mut session, next));
            }
            Token::Semicolon if begun.as_ref().is_none_or(Begun::may_end) => {
                if let Some(Begun { at: from, .. }) = begun.take() {
                    session.statements.push(Statement { at: from, text: &file[from..at] });
                }
            }
            token => begun.get_or_insert_with(|| Begun::new(at)).take(token, text),
        }
        at += len;
    }
    if let Some(Begun { at: from, .. }) = begun {
        session.statements.push(Statement { at: from, text: file[from..].trim_end() });
    }
    sessions.push(session);
    Ok(sessions)
}

/// A statement whose end is not read yet.
struct Begun {
    at: usize,
    /// Its first words.
    words: Vec<String>,
    parentheses: usize,
    /// BEGIN ATOMIC and CASE within the body of a routine.
    blocks: usize,
}

impl Begun {
    fn new(at: usize) -> Begun {
        Begun { at, words: Vec::new(), parentheses: 0, blocks: 0 }
    }

    fn may_end(&self) -> bool {
        self.parentheses == 0 && self.blocks == 0
    }

    fn take(&mut self, token: Token, text: &str) {
        match token {
            Token::LeftParenthesis => self.parentheses += 1,
            Token::RightParenthesis => self.parentheses = self.parentheses.saturating_sub(1),
            Token::Word if self.parentheses == 0 => self.take_word(text.to_ascii_lowercase()),
            Token::Word | Token::Blank | Token::Command | Token::Semicolon | Token::Other => {}
        }
    }

    fn take_word(&mut self, word: String) {
        match word.as_str() {
            "begin" if self.makes_routine() => self.blocks += 1,
            "case" if 0 < self.blocks => self.blocks += 1,
            "end" => self.blocks = self.blocks.saturating_sub(1),
            _ => {}
        }
        if self.words.len() < 4 {
            self.words.push(word);
        }
    }

    /// `create [or replace] function` or `procedure`.
    fn makes_routine(&self) -> bool {
        let words = self.words.iter().map(String::as_str).filter(|word| !matches!(*word, "or" | "replace"));
        let words: Vec<&str> = words.take(2).collect();
        matches!(words[..], ["create", "function" | "procedure"])
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token {
    /// White space or a comment.
    Blank,
    /// A backslash and the rest of its line.
    Command,
    Semicolon,
    LeftParenthesis,
    RightParenthesis,
    Word,
    /// Quoted texts and names, and every other character.
    Other,
}

/// The first token of a text that is not empty, and its length in bytes.
fn next_token(rest: &str) -> (Token, usize) {
    let mut chars = rest.chars();
    let (first, second) = (chars.next().unwrap_or_default(), chars.next());
    let to_line_end = rest.find('\n').unwrap_or(rest.len());
    match (first, second) {
        ('-', Some('-')) => (Token::Blank, to_line_end),
        ('/', Some('*')) => (Token::Blank, comment(rest)),
        ('\\', _) => (Token::Command, to_line_end),
        ('\'', _) => (Token::Other, quotation(rest, false)),
        ('e' | 'E', Some('\'')) => (Token::Other, 1 + quotation(&rest[1..], true)),
        ('"', _) => (Token::Other, rest[1..].find('"').map_or(rest.len(), |end| end + 2)),
        ('$', _) => (Token::Other, dollar_quotation(rest).unwrap_or(1)),
        (';', _) => (Token::Semicolon, 1),
        ('(', _) => (Token::LeftParenthesis, 1),
        (')', _) => (Token::RightParenthesis, 1),
        _ if first.is_ascii_whitespace() => (Token::Blank, 1),
        _ if is_of_word(first) => {
            let end = rest.find(|c: char| !is_of_word(c) && c != '$');
            (Token::Word, end.unwrap_or(rest.len()))
        }
        _ => (Token::Other, first.len_utf8()),
    }
}

fn is_of_word(c: char) -> bool {
    !c.is_ascii() || c.is_ascii_alphanumeric() || c == '_'
}

/// The length of a comment, which may hold others.
fn comment(rest: &str) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while let Some(pair) = rest.as_bytes().get(at..at + 2) {
        match pair {
            b"/*" => depth += 1,
            b"*/" => depth -= 1,
            _ => {
                at += 1;
                continue;
            }
        }
        at += 2;
        if depth == 0 {
            return at;
        }
    }
    rest.len()
}

/// The length of a text in single quotes, in which two stand for one; `escapes`: a backslash quotes what follows it.
fn quotation(rest: &str, escapes: bool) -> usize {
    let bytes = rest.as_bytes();
    let mut at = 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\\' if escapes => at += 2,
            b'\'' if bytes.get(at + 1) == Some(&b'\'') => at += 2,
            b'\'' => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

/// The length of a text between two `$name$`; `None`: no such text begins here.
fn dollar_quotation(rest: &str) -> Option<usize> {
    let name = &rest[1..1 + rest[1..].find('$')?];
    if name.starts_with(|c: char| c.is_ascii_digit()) || !name.chars().all(is_of_word) {
        return None;
    }
    let len = name.len() + 2;
    let end = rest[len..].find(&rest[..len]);
    Some(end.map_or(rest.len(), |end| end + 2 * len))
}

/// The database that a command connects to; `None`: it is another command.
fn database(command: &str) -> Option<&str> {
    let words: Vec<&str> = command.split_ascii_whitespace().collect();
    match words[..] {
        ["\\connect" | "\\c", name] => Some(name.trim_matches('"')),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The statements of a file that is one session.
    fn check(file: &str, expected: &[&str]) {
        let sessions = of(file).expect("no other command");
        assert_eq!(sessions.len(), 1, "{file}");
        for statement in &sessions[0].statements {
            assert!(file[statement.at..].starts_with(statement.text), "{file}");
        }
        let texts: Vec<&str> = sessions[0].statements.iter().map(|it| it.text).collect();
        assert_eq!(texts, expected, "{file}");
    }

    #[test]
    fn a_semicolon_ends_a_statement_outside_of_what_is_quoted() {
        check("", &[]);
        check(" ; ;\n-- nothing; at all", &[]);
        check("select 1; select 2", &["select 1", "select 2"]);
        check("-- a; b\nselect 1 /* ; /* ; */ ; */ + 1;\n", &["select 1 /* ; /* ; */ ; */ + 1"]);
        check("select 'a;''b;', \"c;\"\"d\";select '\\';", &["select 'a;''b;', \"c;\"\"d\"", "select '\\'"]);
        check("select e'it\\'s;', E'a''\\';';x", &["select e'it\\'s;', E'a''\\';'", "x"]);
        check("do $$ a; $b$ ; $$; do $b$ $$; $b$;", &["do $$ a; $b$ ; $$", "do $b$ $$; $b$"]);
        check("select $1, a$b; select 1$b", &["select $1, a$b", "select 1$b"]);
        check(
            "create rule a as on insert to b do (c; d); e",
            &["create rule a as on insert to b do (c; d)", "e"],
        );
        check(
            "begin; select case when a then b end; end; c",
            &["begin", "select case when a then b end", "end", "c"],
        );
        check("select 'ä;ö'; select ä;", &["select 'ä;ö'", "select ä"]);
        for open in ["select 'a; b", "select \"a; b", "select $$a; b", "select /* a; b", "select e'a\\"] {
            check(open, &[open]);
        }
    }

    #[test]
    fn the_body_of_a_routine_is_one_statement() {
        let function =
            "create function a() returns int begin atomic select case when b then 1 end; select 2; end";
        check(&format!("{function}; c"), &[function, "c"]);
        let procedure = "Create Or Replace Procedure a() Begin Atomic insert into b values (1); End";
        check(&format!("{procedure};c;"), &[procedure, "c"]);
    }

    #[test]
    fn connect_begins_a_session() {
        let file = "a;\n\\connect store\nb; c;\n  \\c \"other\"  \r\n\\connect store\nd";
        let found = of(file).expect("no other command");
        let databases: Vec<_> = found.iter().map(|it| (it.database, it.at, it.statements.len())).collect();
        assert_eq!(
            databases,
            [(None, 0, 1), (Some("store"), 3, 2), (Some("other"), 26, 0), (Some("store"), 40, 1)]
        );
    }

    #[test]
    fn other_commands_are_refused() {
        for (file, at, text) in [
            ("a;\n\\copy b from 'c'\nd", 3, "\\copy b from 'c'"),
            ("a \\connect b\n", 2, "\\connect b"),
            ("\\connect", 0, "\\connect"),
            ("\\connect a b \n", 0, "\\connect a b"),
            ("\\.", 0, "\\."),
        ] {
            assert_eq!(of(file), Err(OtherCommand { at, text }), "{file}");
        }
    }
}
