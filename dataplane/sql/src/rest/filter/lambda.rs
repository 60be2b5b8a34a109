//! `lines/any(l: l/quantity gt 5)` and `lines/all(...)`: conditions on rows that a relationship leads to.

use rowgate_core::problem::Problem;

use super::lexer::Token;
use super::{Parser, invalid};
use crate::request::{self, Expr, MAX_DEPTH};

/// As many `any` and `all` as a filter may have.
const MAX_LAMBDAS: usize = 16;

/// The path before `/any` or `/all` of a word, and whether it is `all`.
pub(super) fn head(word: &str) -> Option<(&str, bool)> {
    let any = word.strip_suffix("/any").map(|path| (path, false));
    any.or_else(|| word.strip_suffix("/all").map(|path| (path, true))).filter(|(path, _)| !path.is_empty())
}

impl<'a> Parser<'a> {
    /// The token is the word with the path; a parenthesis follows it.
    pub(super) fn lambda(&mut self, (path, is_all): (&'a str, bool), depth: usize) -> Result<Expr, Problem> {
        let path = self.name(path)?;
        self.n_lambdas += 1;
        if MAX_LAMBDAS < self.n_lambdas {
            return Err(invalid(format!(
                "$filter has more than {MAX_LAMBDAS} any and all; split it into several requests"
            )));
        }
        if MAX_DEPTH <= depth {
            return Err(invalid(format!("$filter nests deeper than {MAX_DEPTH} levels")));
        }
        self.advance();
        let rest = self.rest.trim_start();
        if !is_all && rest.starts_with(')') {
            self.advance();
            self.advance();
            return Ok(Expr::Related { path, is_all, inner: None });
        }
        let variable = rest.split_once(':').map(|(variable, _)| variable.trim_end());
        let Some(variable) = variable.filter(|name| request::is_bare_name(name)) else {
            let word = if is_all { "all" } else { "any" };
            return Err(invalid(format!(
                "after {word}( a variable and a colon are expected: {path}/{word}(x: x/name eq 'a')"
            )));
        };
        self.variables.push(variable);
        self.rest = rest.split_once(':').map_or("", |(_, rest)| rest);
        self.advance();
        let inner = self.any(depth + 1)?.condition();
        self.variables.pop();
        self.eat(&Token::Close, "a closing parenthesis, and or or")?;
        Ok(Expr::Related { path, is_all, inner: Some(Box::new(inner)) })
    }

    /// A name, without the variable of the condition that it stands in.
    pub(super) fn name(&self, word: &str) -> Result<String, Problem> {
        let Some(variable) = self.variables.last() else { return Ok(word.to_owned()) };
        let inner = word.strip_prefix(variable).and_then(|rest| rest.strip_prefix('/'));
        inner.filter(|name| !name.is_empty()).map(str::to_owned).ok_or_else(|| {
            let name: String = word.chars().take(64).collect();
            invalid(format!("within any and all a field is written with the variable: {variable}/{name}"))
        })
    }
}
