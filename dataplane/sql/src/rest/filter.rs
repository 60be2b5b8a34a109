//! `$filter`: the grammar. Chains are loops and only `not` and parentheses recurse, counted, so that no text of a
//! stranger decides how deep the stack goes.

mod advice;
mod conditions;
mod lambda;
mod lexer;

use rowgate_core::nearest::nearest;
use rowgate_core::problem::{Code, Problem};

use crate::request::{self, Arithmetic, Comparison, Expr, Function, Literal, MAX_DEPTH, Term};
pub(crate) use advice::on_name as advice_on_name;
pub(crate) use conditions::Spelt;
use lexer::Token;

/// The longest `$filter`, in bytes after percent-decoding.
pub const MAX_FILTER_LEN: usize = 8 * 1024;

/// Parses a decoded `$filter`.
pub(crate) fn parse(text: &str) -> Result<Expr, Problem> {
    if MAX_FILTER_LEN < text.len() {
        return Err(invalid(format!(
            "$filter is longer than {MAX_FILTER_LEN} bytes; split it into several requests"
        )));
    }
    let mut parser = Parser {
        text,
        token: Token::End,
        before: 0,
        start: 0,
        rest: text,
        variables: Vec::new(),
        n_lambdas: 0,
    };
    parser.advance();
    let parsed = parser.any(0)?;
    match parser.token {
        Token::End => Ok(parsed.condition()),
        _ if matches!(parsed, Parsed::Term(_)) => Err(parser.expected_operator()),
        _ => Err(parser.expected("and, or, or the end")),
    }
}

/// What parentheses may hold: a condition, or a term of a larger one.
enum Parsed {
    Expr(Expr),
    Term(Term),
}

impl Parsed {
    fn condition(self) -> Expr {
        match self {
            Parsed::Expr(expr) => expr,
            Parsed::Term(term) => Expr::Is(term),
        }
    }
}

struct Parser<'a> {
    text: &'a str,
    token: Token<'a>,
    /// Where the token before it begins, in bytes.
    before: usize,
    /// Where `token` begins.
    start: usize,
    rest: &'a str,
    /// Of `any` and `all`, the innermost last.
    variables: Vec<&'a str>,
    n_lambdas: usize,
}

impl<'a> Parser<'a> {
    fn any(&mut self, depth: usize) -> Result<Parsed, Problem> {
        let first = self.all(depth)?;
        if self.token != Token::Word("or") {
            return Ok(first);
        }
        let mut parts = vec![first.condition()];
        while self.eat_word("or") {
            parts.push(self.all(depth)?.condition());
        }
        Ok(Parsed::Expr(flat(parts, Expr::Any, |part| match part {
            Expr::Any(inner) => Ok(inner),
            other => Err(other),
        })))
    }

    fn all(&mut self, depth: usize) -> Result<Parsed, Problem> {
        let first = self.unary(depth)?;
        if self.token != Token::Word("and") {
            return Ok(first);
        }
        let mut parts = vec![first.condition()];
        while self.eat_word("and") {
            parts.push(self.unary(depth)?.condition());
        }
        Ok(Parsed::Expr(flat(parts, Expr::All, |part| match part {
            Expr::All(inner) => Ok(inner),
            other => Err(other),
        })))
    }

    fn unary(&mut self, depth: usize) -> Result<Parsed, Problem> {
        shallow(depth)?;
        if self.eat_word("not") {
            let inner = self.unary(depth + 1)?.condition();
            return Ok(Parsed::Expr(Expr::Not(Box::new(inner))));
        }
        self.comparison(depth)
    }

    fn comparison(&mut self, depth: usize) -> Result<Parsed, Problem> {
        let left = match self.chain(depth, false)? {
            Parsed::Term(term) => term,
            condition @ Parsed::Expr(_) => return Ok(condition),
        };
        let Token::Word(word) = self.token else { return Ok(Parsed::Term(left)) };
        if word == "in" {
            self.advance();
            self.eat(&Token::Open, "a list such as (1,2) after in")?;
            return Ok(Parsed::Expr(Expr::In { left, list: self.terms(depth + 1)? }));
        }
        let op = match word {
            "eq" => Comparison::Eq,
            "ne" => Comparison::Ne,
            "gt" => Comparison::Gt,
            "ge" => Comparison::Ge,
            "lt" => Comparison::Lt,
            "le" => Comparison::Le,
            _ => return Ok(Parsed::Term(left)),
        };
        self.advance();
        let right = self.term(depth)?;
        Ok(Parsed::Expr(Expr::Compare { left, op, right }))
    }

    fn term(&mut self, depth: usize) -> Result<Term, Problem> {
        let start = self.start;
        match self.chain(depth, false)? {
            Parsed::Term(term) => Ok(term),
            Parsed::Expr(_) => Err(self.no_value(start)),
        }
    }

    /// Terms up to a closing parenthesis, at least one.
    fn terms(&mut self, depth: usize) -> Result<Vec<Term>, Problem> {
        let mut terms = vec![self.term(depth)?];
        while self.token == Token::Comma {
            self.advance();
            terms.push(self.term(depth)?);
        }
        self.eat(&Token::Close, "a comma or a closing parenthesis")?;
        Ok(terms)
    }

    /// A chain of `mul div mod` where `products`, of `add sub` otherwise.
    fn chain(&mut self, depth: usize, products: bool) -> Result<Parsed, Problem> {
        let mut start = self.start;
        let mut parsed = self.link(depth, products)?;
        let mut links = Vec::new();
        while let Token::Word(word) = self.token {
            let op = match word {
                "add" => Arithmetic::Add,
                "sub" => Arithmetic::Sub,
                "mul" => Arithmetic::Mul,
                "div" => Arithmetic::Div,
                "mod" => Arithmetic::Mod,
                _ => break,
            };
            if op.binds_tighter() != products {
                break;
            }
            let Parsed::Term(_) = parsed else { return Err(self.no_value(start)) };
            self.advance();
            start = self.start;
            match self.link(depth, products)? {
                Parsed::Term(term) => links.push((op, term)),
                condition @ Parsed::Expr(_) => parsed = condition,
            }
            if let Parsed::Expr(_) = parsed {
                return Err(self.no_value(start));
            }
        }
        Ok(match parsed {
            Parsed::Term(first) if !links.is_empty() => Parsed::Term(chained(first, links, products)),
            parsed => parsed,
        })
    }

    fn link(&mut self, depth: usize, products: bool) -> Result<Parsed, Problem> {
        if products { self.primary(depth) } else { self.chain(depth, true) }
    }

    fn primary(&mut self, depth: usize) -> Result<Parsed, Problem> {
        shallow(depth)?;
        let term = match &mut self.token {
            Token::Open => {
                self.advance();
                let inner = self.any(depth + 1)?;
                self.eat(&Token::Close, "a closing parenthesis, and or or")?;
                return Ok(inner);
            }
            Token::Quoted(text) => Term::Literal(Literal::Text(std::mem::take(text))),
            Token::Word(word) => {
                let word = *word;
                if word.starts_with(char::is_alphabetic) && self.rest.starts_with('\'') {
                    return self.prefixed(word);
                }
                match request::literal(word) {
                    Some(literal) => Term::Literal(literal),
                    None if word.starts_with('-') => return self.negation(depth),
                    None if word.starts_with(request::FOREIGN_QUOTES)
                        || word.starts_with(request::BRACKETS) =>
                    {
                        return Err(invalid(advice::foreign(&self.text[self.start..])));
                    }
                    None if lexer::token(self.rest).0 == Token::Open => {
                        return match lambda::head(word) {
                            Some(head) => self.lambda(head, depth).map(Parsed::Expr),
                            None => self.call(word, depth),
                        };
                    }
                    None => Term::Name(self.name(word)?),
                }
            }
            _ => return Err(self.expected("a field or a value")),
        };
        self.advance();
        Ok(Parsed::Term(term))
    }

    /// A constant with its type before the quote.
    fn prefixed(&mut self, word: &str) -> Result<Parsed, Problem> {
        self.advance();
        let Token::Quoted(text) = &mut self.token else { return Err(self.expected("a value")) };
        let literal = lexer::prefixed(word, std::mem::take(text)).map_err(invalid)?;
        self.advance();
        Ok(Parsed::Term(Term::Literal(literal)))
    }

    fn negation(&mut self, depth: usize) -> Result<Parsed, Problem> {
        let sign = self.start;
        self.rest = &self.text[sign + 1..];
        self.advance();
        match self.primary(depth + 1)? {
            Parsed::Term(inner) => Ok(Parsed::Term(negated(inner))),
            Parsed::Expr(_) => Err(self.no_value(sign + 1)),
        }
    }

    fn call(&mut self, word: &str, depth: usize) -> Result<Parsed, Problem> {
        let function = function(word)?;
        self.advance();
        self.advance();
        if self.token == Token::Close {
            self.advance();
            return Ok(Parsed::Term(Term::Call { function, arguments: Vec::new() }));
        }
        let arguments = self.terms(depth + 1)?;
        Ok(Parsed::Term(Term::Call { function, arguments }))
    }

    fn advance(&mut self) {
        let rest = self.rest.trim_start_matches([' ', '\t', '\r', '\n']);
        (self.before, self.start) = (self.start, self.text.len() - rest.len());
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
        self.expected("one of eq, ne, gt, ge, lt, le, in, add, sub, mul, div, mod, and, or, or the end")
    }

    fn no_value(&self, start: usize) -> Problem {
        let at = self.text[..start].chars().count() + 1;
        invalid(format!("a value is expected at character {at} of $filter, not a condition"))
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
            _ => match advice::instead(self.text, self.before, self.start) {
                Some(advice) => format!("{advice} (at character {at} of $filter)"),
                None => format!("{wanted} is expected at character {at} of $filter"),
            },
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

/// A chain that begins with a chain of its own level is one chain.
fn chained(first: Term, links: Vec<(Arithmetic, Term)>, products: bool) -> Term {
    match first {
        Term::Chain { first, mut rest } if rest[0].0.binds_tighter() == products => {
            rest.extend(links);
            Term::Chain { first, rest }
        }
        first => Term::Chain { first: Box::new(first), rest: links },
    }
}

/// The sign of a number belongs to the number.
fn negated(term: Term) -> Term {
    match term {
        Term::Literal(Literal::Number(text)) => {
            Term::Literal(Literal::Number(match text.strip_prefix('-') {
                Some(positive) => positive.to_owned(),
                None => format!("-{}", text.strip_prefix('+').unwrap_or(&text)),
            }))
        }
        Term::Literal(Literal::Infinity { negative }) => {
            Term::Literal(Literal::Infinity { negative: !negative })
        }
        term => Term::Negate(Box::new(term)),
    }
}

fn shallow(depth: usize) -> Result<(), Problem> {
    match depth <= MAX_DEPTH {
        true => Ok(()),
        false => Err(invalid(format!(
            "$filter nests deeper than {MAX_DEPTH} levels of not, minus, functions and parentheses"
        ))),
    }
}

fn function(word: &str) -> Result<Function, Problem> {
    let name: String = word.rsplit('/').next().unwrap_or(word).chars().take(64).collect();
    if let Some(function) = Function::from_word(word) {
        return Ok(function);
    }
    if let Some(advice) = advice::on_function(&name) {
        return Err(invalid(advice));
    }
    let problem = invalid(format!("there is no function {name:?}"));
    Err(match nearest(&name, Function::ALL.map(Function::word)) {
        Some(near) => problem.detail(format!("did you mean {near}?")),
        None => problem,
    })
}

fn invalid(message: impl Into<String>) -> Problem {
    Problem::new(Code::InvalidFilter, message)
}
