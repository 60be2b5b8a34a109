//! `$filter`: the grammar. Chains are loops and only `not` and parentheses recurse, counted, so that no text of a
//! stranger decides how deep the stack goes.

use rowgate_core::problem::{Code, Problem};

use super::lexer::{self, Token};
use super::{MAX_DEPTH, MAX_FILTER_LEN};
use crate::request::{Comparison, Expr, Literal, Operand};

const LATER_FUNCTIONS: [&str; 23] = [
    "contains",
    "startswith",
    "endswith",
    "tolower",
    "toupper",
    "trim",
    "length",
    "indexof",
    "substring",
    "concat",
    "year",
    "month",
    "day",
    "hour",
    "minute",
    "second",
    "date",
    "time",
    "round",
    "floor",
    "ceiling",
    "any",
    "all",
];
const LATER_OPERATORS: [&str; 5] = ["add", "sub", "mul", "div", "mod"];

/// Parses a decoded `$filter`.
pub(super) fn parse(text: &str) -> Result<Expr, Problem> {
    if MAX_FILTER_LEN < text.len() {
        return Err(invalid(format!(
            "$filter is longer than {MAX_FILTER_LEN} bytes; ask in several requests"
        )));
    }
    let mut parser = Parser { text, token: Token::End, start: 0, rest: text };
    parser.advance();
    let expr = parser.any(0)?;
    match parser.token {
        Token::End => Ok(expr),
        _ => Err(parser.expected("and, or, or the end")),
    }
}

struct Parser<'a> {
    text: &'a str,
    token: Token<'a>,
    /// Where `token` begins, in bytes.
    start: usize,
    rest: &'a str,
}

impl<'a> Parser<'a> {
    fn any(&mut self, depth: usize) -> Result<Expr, Problem> {
        let mut parts = vec![self.all(depth)?];
        while self.eat_word("or") {
            parts.push(self.all(depth)?);
        }
        Ok(flat(parts, Expr::Any, |part| match part {
            Expr::Any(inner) => Ok(inner),
            other => Err(other),
        }))
    }

    fn all(&mut self, depth: usize) -> Result<Expr, Problem> {
        let mut parts = vec![self.unary(depth)?];
        while self.eat_word("and") {
            parts.push(self.unary(depth)?);
        }
        Ok(flat(parts, Expr::All, |part| match part {
            Expr::All(inner) => Ok(inner),
            other => Err(other),
        }))
    }

    fn unary(&mut self, depth: usize) -> Result<Expr, Problem> {
        if MAX_DEPTH < depth {
            return Err(invalid(format!(
                "$filter nests deeper than {MAX_DEPTH} levels of not and parentheses"
            )));
        }
        if self.eat_word("not") {
            return Ok(Expr::Not(Box::new(self.unary(depth + 1)?)));
        }
        if self.token == Token::Open {
            self.advance();
            let inner = self.any(depth + 1)?;
            self.eat(&Token::Close, "a closing parenthesis, and or or")?;
            return Ok(inner);
        }
        self.comparison()
    }

    fn comparison(&mut self) -> Result<Expr, Problem> {
        let left = self.operand()?;
        let Token::Word(word) = self.token else { return Err(self.expected_operator()) };
        if word == "in" {
            self.advance();
            return Ok(Expr::In { left, list: self.list()? });
        }
        let op = match word {
            "eq" => Comparison::Eq,
            "ne" => Comparison::Ne,
            "gt" => Comparison::Gt,
            "ge" => Comparison::Ge,
            "lt" => Comparison::Lt,
            "le" => Comparison::Le,
            _ if LATER_OPERATORS.contains(&word) => {
                return Err(invalid(format!("the operator {word} is not served yet")));
            }
            _ => return Err(self.expected_operator()),
        };
        self.advance();
        Ok(Expr::Compare { left, op, right: self.operand()? })
    }

    fn operand(&mut self) -> Result<Operand, Problem> {
        let operand = match &mut self.token {
            Token::Quoted(text) => Operand::Literal(Literal::Text(std::mem::take(text))),
            Token::Word(word) => {
                let word = *word;
                if lexer::token(self.rest).0 == Token::Open {
                    return Err(function(word));
                }
                lexer::literal(word).map_or_else(|| Operand::Name(word.to_owned()), Operand::Literal)
            }
            _ => return Err(self.expected("a field or a value")),
        };
        self.advance();
        Ok(operand)
    }

    fn list(&mut self) -> Result<Vec<Literal>, Problem> {
        self.eat(&Token::Open, "a list such as (1,2) after in")?;
        let mut list = Vec::new();
        loop {
            match self.operand()? {
                Operand::Literal(literal) => list.push(literal),
                Operand::Name(name) => {
                    let name: String = name.chars().take(64).collect();
                    return Err(invalid(format!(
                        "{name:?} in a list is no value; put text in single quotes"
                    )));
                }
            }
            if self.token != Token::Comma {
                self.eat(&Token::Close, "a comma or a closing parenthesis")?;
                return Ok(list);
            }
            self.advance();
        }
    }

    fn advance(&mut self) {
        let rest = self.rest.trim_start_matches([' ', '\t', '\r', '\n']);
        self.start = self.text.len() - rest.len();
        (self.token, self.rest) = lexer::token(rest);
    }

    fn eat_word(&mut self, word: &str) -> bool {
        let found = self.token == Token::Word(word);
        if found {
            self.advance();
        }
        found
    }

    fn eat(&mut self, token: &Token<'_>, wanted: &str) -> Result<(), Problem> {
        if self.token != *token {
            return Err(self.expected(wanted));
        }
        self.advance();
        Ok(())
    }

    fn expected_operator(&self) -> Problem {
        self.expected("one of eq, ne, gt, ge, lt, le, in")
    }

    fn expected(&self, wanted: &str) -> Problem {
        let at = self.text[..self.start].chars().count() + 1;
        invalid(match self.token {
            Token::End => format!("$filter ends where {wanted} is expected"),
            Token::Unclosed => {
                format!(
                    "the quote at character {at} of $filter is not closed; a quote inside text is written ''"
                )
            }
            _ => format!("{wanted} is expected at character {at} of $filter"),
        })
    }
}

/// Parts of one kind side by side: parentheses around a chain of the same kind change nothing.
fn flat(
    mut parts: Vec<Expr>,
    join: fn(Vec<Expr>) -> Expr,
    open: fn(Expr) -> Result<Vec<Expr>, Expr>,
) -> Expr {
    if parts.len() == 1 {
        return parts.remove(0);
    }
    let mut all = Vec::with_capacity(parts.len());
    for part in parts {
        match open(part) {
            Ok(inner) => all.extend(inner),
            Err(other) => all.push(other),
        }
    }
    join(all)
}

fn function(word: &str) -> Problem {
    let name: String = word.rsplit('/').next().unwrap_or(word).chars().take(64).collect();
    if LATER_FUNCTIONS.contains(&name.as_str()) {
        return invalid(format!("the function {name} is not served yet"));
    }
    invalid(format!("there is no function {name:?}"))
}

fn invalid(message: impl Into<String>) -> Problem {
    Problem::new(Code::InvalidFilter, message)
}
