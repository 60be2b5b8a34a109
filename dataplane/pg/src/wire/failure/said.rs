//! What PostgreSQL said when it raised, and what a caller is told of it.

use std::fmt;

use super::{
    CallFailure, Cause, Failure, Malformed, Part, QueryFailure, QueryFault, Refused, Rule, WriteFailure,
    is_shortage,
};
use crate::connect::login_failure::LoginCause;
use crate::wire::connection::frames::Fields;
use crate::wire::exchange::fingerprint_check;

/// As much of a routine's error as a caller is told, in characters.
const RAISED: usize = 1_000;

/// The C functions that raise what is wrong with the text of a statement, whatever its names are.
const GRAMMAR: [&str; 3] = ["scanner_yyerror", "base_yyparse", "exec_parse_message"];

/// The C function that raises where a right is not granted.
const GRANTS: &str = "aclcheck_error";

/// An ErrorResponse.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::wire) struct ServerError {
    pub(in crate::wire) fatal: bool,
    pub(in crate::wire) sqlstate: String,
    message: String,
    /// The C function that raised: unlike the message it is never translated.
    routine: String,
    /// As Bind's own context names it: `unnamed portal parameter $2 = ...`, the words in any language.
    parameter: Option<usize>,
    column: Option<String>,
    position: Option<usize>,
    /// It has a context: while a statement runs, that of a function of the tenant's.
    is_inside: bool,
    /// Its context has several lines.
    is_deep: bool,
    rule: Option<Box<Rule>>,
}

impl ServerError {
    pub(in crate::wire) fn parse(body: &[u8]) -> Result<ServerError, Malformed> {
        let mut fields = Fields::new(body);
        let mut error = ServerError::default();
        loop {
            let [kind] = fields.bytes()?;
            if kind == 0 {
                return Ok(error);
            }
            let text = String::from_utf8_lossy(fields.text()?);
            match kind {
                b'V' => error.fatal = text != "ERROR",
                b'C' => error.sqlstate = text.into_owned(),
                b'M' => error.message = text.into_owned(),
                b'R' => error.routine = text.into_owned(),
                b'W' => {
                    error.is_inside = true;
                    // Bind's own is the last line, and of most types the only one; below a routine there are more.
                    error.is_deep = text.contains('\n');
                    error.parameter = text.lines().last().and_then(parameter);
                }
                b'P' => error.position = text.parse().ok(),
                b'c' => error.column = Some(text.into_owned()),
                b's' => error.rule.get_or_insert_default().schema = text.into_owned(),
                b't' => error.rule.get_or_insert_default().table = text.into_owned(),
                b'n' => error.rule.get_or_insert_default().constraint = text.into_owned(),
                _ => {}
            }
        }
    }

    /// Raised by code of the tenant's while the statement wrote, and about neither a right nor a shortage of the server.
    fn is_said_inside(&self, part: Part) -> bool {
        let is_ours = self.sqlstate == "42501" || ["53", "57", "XX"].contains(&class(&self.sqlstate));
        part == Part::Write && self.is_inside && !self.fatal && !is_ours
    }

    /// What a caller is told of it where a routine ran. Its own errors may have any SQLSTATE, that of another server that it
    /// asked too, so that hardly one says more than that it failed.
    pub(in crate::wire) fn call_failure(self) -> CallFailure {
        match self.sqlstate.as_str() {
            _ if self.fatal => Failure::Unavailable(self.to_string()).into(),
            "57014" => Failure::Timeout.into(),
            "40001" | "40P01" | "55P03" => CallFailure::Conflict(self.into()),
            state if class(state) == "RG" => CallFailure::Raised(cleaned(&self.message)),
            state if class(state) == "23" => CallFailure::Violation(self.into()),
            state if class(state) == "53" => Failure::Unavailable(self.to_string()).into(),
            state if ["58", "XX"].contains(&class(state)) => Failure::Internal(self.into()).into(),
            _ => CallFailure::Routine(self.into()),
        }
    }

    /// What a caller is told of it where SQL of a key was parsed or ran. Before it runs, only what the grammar itself says comes
    /// before PostgreSQL looks at a name: all else is one answer.
    pub(in crate::wire) fn query_failure(self, part: Part) -> QueryFailure {
        if part == Part::Key {
            return Failure::from(self.failure(part)).into();
        }
        let state = self.sqlstate.as_str();
        let is_grammar = GRAMMAR.contains(&self.routine.as_str());
        let why = match (state, part) {
            _ if self.fatal => return Failure::Unavailable(self.to_string()).into(),
            ("57014", _) => return Failure::Timeout.into(),
            ("40001" | "40P01" | "55P03", _) => return Failure::Unavailable(self.to_string()).into(),
            ("53200" | "53400", _) => QueryFault::Resources,
            (state, _) if class(state) == "54" => QueryFault::Resources,
            (state, _) if class(state) == "53" => return Failure::Unavailable(self.to_string()).into(),
            (state, _) if ["58", "XX"].contains(&class(state)) => {
                return Failure::Internal(self.into()).into();
            }
            // whatever it is that a value names and that is not there, or may not be used
            (_, Part::DataBind) if self.is_about_value() => QueryFault::Value,
            ("42601", Part::DataParse) if is_grammar => QueryFault::Syntax,
            (_, Part::DataParse) | ("42501", _) => QueryFault::Unfit,
            ("25006", _) => QueryFault::Writes,
            (state, _) if class(state) == "42" && !self.is_inside => QueryFault::Unfit,
            (state, _) if ["22", "21", "23"].contains(&class(state)) => QueryFault::Value,
            _ => QueryFault::Raised,
        };
        let position = self.position.filter(|_| why == QueryFault::Syntax);
        QueryFailure::Refused(Refused { why, position, cause: Box::new(self.into()) })
    }

    /// Whether it says that there is no such routine, or another one, where a call was parsed.
    pub(in crate::wire) fn is_about_routine(&self) -> bool {
        ["42725", "42809", "42P02", "42P13"].contains(&self.sqlstate.as_str())
    }

    /// Whether a statement that was parsed gives something else by now.
    pub(in crate::wire) fn is_other_plan(&self) -> bool {
        self.sqlstate == "0A000" && self.routine == "RevalidateCachedQuery"
    }

    /// Whether it is about a value that PostgreSQL could not read, before anything ran.
    pub(in crate::wire) fn is_about_value(&self) -> bool {
        self.parameter.is_some() && !self.is_deep
    }

    /// What it means before the greeting of a connection.
    pub(in crate::wire) fn login_cause(&self) -> Option<LoginCause> {
        LoginCause::of_server(&self.sqlstate, &self.routine, &self.message)
    }

    /// What a caller is told of it. What only a write gives comes of no other part of a batch but its Parse.
    pub(in crate::wire) fn failure(mut self, part: Part) -> WriteFailure {
        // A function's context may hold a `$` of its own.
        self.parameter = self.parameter.filter(|_| part == Part::DataBind);
        let state = self.sqlstate.as_str();
        match (state, part) {
            ("57014" | "25P04", _) => Failure::Timeout.into(),
            ("40001" | "40P01" | "55P03", Part::Write) => WriteFailure::Conflict(self.into()),
            // A trigger's own word, which may be that of another server that it asked.
            _ if self.is_said_inside(part) => WriteFailure::Violation(self.into()),
            (_, Part::Write) if ["21", "23", "27", "44", "54", "DL", "P0", "RG"].contains(&class(state)) => {
                WriteFailure::Violation(self.into())
            }
            ("55000" | "0A000" | "428C9", Part::DataParse) if !self.is_other_plan() => {
                WriteFailure::Unwritable(self.into())
            }
            _ => self.of_any(part).into(),
        }
    }

    fn of_any(self, part: Part) -> Failure {
        let state = self.sqlstate.as_str();
        match (state, part) {
            ("40001" | "40P01" | "55P03", _) => Failure::Unavailable(self.to_string()),
            (_, Part::DataParse | Part::DataBind | Part::Data) if is_shortage(state) => {
                Failure::Invalid(self.into())
            }
            _ if ["08", "53", "57"].contains(&class(state)) => Failure::Unavailable(self.to_string()),
            (fingerprint_check::OTHER_TABLES, Part::Watch) => Failure::Changed(self.into()),
            // The login lacks a right, or the session is not what it was.
            (_, Part::Key | Part::Watch) => Failure::Unavailable(self.to_string()),
            // A name in a value, such as one of regclass, may be unknown too.
            (_, Part::DataBind) if self.parameter.is_some() => Failure::Invalid(self.into()),
            ("42501", _) => Failure::Denied(self.into()),
            ("42P01" | "42703", _) => Failure::Changed(self.into()),
            // Bind analyses a statement anew whose tables have changed.
            ("42883" | "42804" | "42846" | "42704" | "3F000", Part::DataParse | Part::DataBind) => {
                Failure::Changed(self.into())
            }
            _ if self.is_other_plan() => Failure::Changed(self.into()),
            // Columns of two collations beside each other; and input functions that call a wrong value a syntax error:
            // only text of ours can be one where a statement is parsed.
            ("42P21" | "42P22", _) | ("42601", Part::DataBind | Part::Data | Part::Write) => {
                Failure::Invalid(self.into())
            }
            ("23514", _) => Failure::Invalid(self.into()),
            _ if class(state) == "22" => Failure::Invalid(self.into()),
            _ => Failure::Internal(self.into()),
        }
    }
}

/// One line of readable characters, cut where it is long.
fn cleaned(message: &str) -> String {
    let shown = message.chars().map(|c| if c.is_control() { ' ' } else { c });
    let mut text: String = shown.take(RAISED).collect();
    if RAISED < message.chars().count() {
        text.push('…');
    }
    text
}

/// The number behind the first `$`.
fn parameter(context: &str) -> Option<usize> {
    let (_, rest) = context.split_once('$')?;
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest[..end].parse().ok()
}

fn class(sqlstate: &str) -> &str {
    sqlstate.get(..2).unwrap_or_default()
}

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PostgreSQL said {}: {}", self.sqlstate, self.message)
    }
}

impl From<ServerError> for Cause {
    fn from(error: ServerError) -> Cause {
        Cause {
            is_of_grants: error.sqlstate == "42501" && error.routine == GRANTS,
            sqlstate: Some(error.sqlstate),
            message: error.message,
            parameter: error.parameter,
            column: error.column,
            is_inside: error.is_inside,
            // A domain's constraint has no table.
            rule: error.rule.filter(|rule| !rule.table.is_empty()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(sqlstate: &str, routine: &str, part: Part) -> String {
        let body = format!("VERROR\0C{sqlstate}\0Mno\0R{routine}\0\0");
        let error = ServerError::parse(body.as_bytes()).expect("well-formed");
        variant(&format!("{:?}", error.failure(part)))
    }

    fn variant(text: &str) -> String {
        let text = text.strip_prefix("Any(").unwrap_or(text);
        text[..text.find(['(', ')', ' ']).unwrap_or(text.len())].to_owned()
    }

    #[test]
    fn an_error_becomes_what_the_caller_is_told() {
        use Part::{Data, DataBind, DataParse, Key, Watch, Write};
        for (sqlstate, part, expected) in [
            ("42501", Data, "Denied"),
            ("42501", DataParse, "Denied"),
            ("42501", Key, "Unavailable"),
            ("26000", Key, "Unavailable"),
            ("22P02", Data, "Invalid"),
            ("22P02", Key, "Unavailable"),
            ("23514", Data, "Invalid"),
            ("42P22", DataParse, "Invalid"),
            ("42P22", Data, "Invalid"),
            ("42601", Data, "Invalid"),
            ("42601", DataBind, "Invalid"),
            ("22P02", DataBind, "Invalid"),
            ("42601", DataParse, "Internal"),
            ("42P01", DataParse, "Changed"),
            ("42703", DataParse, "Changed"),
            ("42883", DataParse, "Changed"),
            ("42883", Data, "Internal"),
            ("0A000", Data, "Internal"),
            ("57014", Data, "Timeout"),
            ("57014", Key, "Timeout"),
            ("57P01", Data, "Unavailable"),
            ("08006", Data, "Unavailable"),
            ("53300", Data, "Unavailable"),
            ("53200", Data, "Invalid"),
            ("53400", Data, "Invalid"),
            ("53200", Key, "Unavailable"),
            ("53200", Write, "Unavailable"),
            ("54000", Data, "Invalid"),
            ("XX000", Data, "Internal"),
            ("DL409", Write, "Violation"),
            ("DL428", Write, "Violation"),
            ("DL405", Data, "Internal"),
            ("DL409", Watch, "Unavailable"),
            ("23505", Write, "Violation"),
            ("23505", Data, "Internal"),
            ("", Data, "Internal"),
        ] {
            assert_eq!(said(sqlstate, "any", part), expected, "{sqlstate} {part:?}");
        }
        assert_eq!(said("0A000", "RevalidateCachedQuery", Data), "Changed");
    }

    #[test]
    fn what_a_violation_is_about_is_kept() {
        let body = b"VERROR\0C23505\0sd\0tnotes\0nnotes_title_key\0ctitle\0\0";
        let cause = Cause::from(ServerError::parse(body).expect("well-formed"));
        let rule = Rule { schema: "d".into(), table: "notes".into(), constraint: "notes_title_key".into() };
        assert_eq!(cause.rule, Some(Box::new(rule)));
        assert_eq!(cause.column.as_deref(), Some("title"));
    }

    #[test]
    fn a_missing_grant_is_told_from_a_policy_and_from_the_word_of_a_routine() {
        for (sqlstate, routine, context, expected) in [
            ("42501", "aclcheck_error", "", (true, false)),
            ("42501", "aclcheck_error", "WSQL function \"f\"\0", (true, true)),
            ("42501", "ExecWithCheckOptions", "", (false, false)),
            ("42501", "exec_stmt_raise", "WPL/pgSQL function f()\0", (false, true)),
            ("P0001", "aclcheck_error", "", (false, false)),
        ] {
            let body = format!("VERROR\0C{sqlstate}\0Mno\0R{routine}\0{context}\0");
            let cause = Cause::from(ServerError::parse(body.as_bytes()).expect("well-formed"));
            assert_eq!((cause.is_of_grants, cause.is_inside), expected, "{sqlstate} {routine} {context}");
        }
    }

    #[test]
    fn an_error_of_a_routine_is_told_by_its_class_alone() {
        for (sqlstate, expected) in [
            ("57014", "Timeout"),
            ("40001", "Conflict"),
            ("55P03", "Conflict"),
            ("23505", "Violation"),
            ("22012", "Routine"),
            ("P0001", "Routine"),
            ("42501", "Routine"),
            ("42P01", "Routine"),
            ("22023", "Routine"),
            ("RG001", "Raised"),
            ("53200", "Unavailable"),
            ("08006", "Routine"),
            ("XX000", "Internal"),
        ] {
            let error = ServerError { sqlstate: sqlstate.to_owned(), ..ServerError::default() };
            assert_eq!(variant(&format!("{:?}", error.call_failure())), expected, "{sqlstate}");
        }
        let told = cleaned("no\nsuch\u{1b}[31m order");
        assert_eq!(told, "no such [31m order");
        assert_eq!(cleaned(&"x".repeat(5_000)).chars().count(), RAISED + 1);
    }

    #[test]
    fn an_error_of_a_query_tells_of_no_name() {
        use Part::{Data, DataBind, DataParse};
        for (sqlstate, routine, part, expected) in [
            ("42601", "scanner_yyerror", DataParse, "Syntax Some(3)"),
            ("42601", "transformSetOperationTree", DataParse, "Unfit None"),
            ("42P01", "parserOpenTable", DataParse, "Unfit None"),
            ("42703", "errorMissingColumn", DataParse, "Unfit None"),
            ("22P02", "pg_strtoint32_safe", DataParse, "Unfit None"),
            ("42501", "aclcheck_error", DataBind, "Unfit None"),
            ("42501", "aclcheck_error", Data, "Unfit None"),
            ("25006", "PreventCommandIfReadOnly", Data, "Writes None"),
            ("22012", "int4div", DataBind, "Value None"),
            ("53400", "FileWrite", Data, "Resources None"),
            ("54001", "check_stack_depth", DataParse, "Resources None"),
            ("P0001", "exec_stmt_raise", Data, "Raised None"),
            ("57014", "ProcessInterrupts", Data, "Timeout"),
            ("40001", "any", Data, "Unavailable"),
            ("53300", "any", Data, "Unavailable"),
            ("XX000", "any", Data, "Internal"),
        ] {
            let body = format!("VERROR\0C{sqlstate}\0Mno\0R{routine}\0P3\0\0");
            let error = ServerError::parse(body.as_bytes()).expect("well-formed");
            let shown = match error.query_failure(part) {
                QueryFailure::Refused(Refused { why, position, .. }) => format!("{why:?} {position:?}"),
                failure => variant(&format!("{failure:?}")),
            };
            assert_eq!(shown, expected, "{sqlstate} {routine} {part:?}");
        }
    }

    #[test]
    fn a_broken_error_is_malformed_and_what_it_said_is_not_displayed() {
        for body in [&b""[..], b"C", b"C22P02", b"C22P02\0"] {
            assert!(ServerError::parse(body).is_err(), "{body:?}");
        }
        let bad = ServerError::parse(b"VERROR\0C22P02\0Wunnamed portal parameter $12 = '$3'\0\0")
            .expect("well-formed");
        assert_eq!(bad.parameter, Some(12));
        let error = ServerError::parse(b"VFATAL\0C22P02\0Msecret\0\0").expect("well-formed");
        assert!(error.fatal);
        assert!(!error.failure(Part::Data).to_string().contains("secret"));
    }
}
