//! The walk over the tree. Every struct is taken apart field by field and every enum by its allowed variants, so that a new field or
//! variant of sqlparser does not slip through.

use std::collections::{BTreeMap, BTreeSet};

use sqlparser::ast::{DataType, Expr, ForClause, Query};

use super::Rules;
use super::conditions::Conditions;
use super::names::Relation;
use super::refusal::{Checked, Refusal, TextPosition};

/// What becomes of a scalar sub-select with FOR JSON, of JSON_QUERY and of parameters: the part of the translation that has to happen
/// while the tree is walked.
pub(crate) struct ForJson<'a> {
    /// Of `$n` at n - 1.
    pub(crate) types: &'a [DataType],
    /// The keys of a SELECT, read before its names are folded.
    pub(crate) keys: fn(&Query, &ForClause) -> Checked<Vec<String>>,
    /// A sub-select that passed the checks becomes an expression.
    pub(crate) nested: fn(&Query, &[String], &ForClause, TextPosition) -> Checked<Expr>,
}

pub(crate) struct Walk<'a> {
    pub(super) rules: Rules,
    pub(super) for_json: Option<ForJson<'a>>,
    /// The names of common table expressions in sight, of each query around.
    pub(super) ctes: Vec<Vec<String>>,
    /// The last place that was known.
    pub(super) at: TextPosition,
    /// In the order in which they were first met.
    pub(super) relations: Vec<Relation>,
    pub(super) functions: BTreeSet<String>,
    pub(super) operators: BTreeSet<String>,
    pub(super) types: BTreeSet<String>,
    /// The parameters whose values may have no more than so many bytes.
    pub(super) short: BTreeMap<String, usize>,
    /// The parameters that are a `jsonpath`.
    pub(super) json_paths: BTreeSet<String>,
    /// The casts to `jsonpath` that stand nowhere known.
    pub(super) n_json_paths: usize,
    /// What a name stands for here may have been made by a sub-select in FROM, a common table expression or a function.
    pub(super) makes_values: bool,
    /// How many aggregates, window functions and functions that give rows were met in the query that is walked.
    pub(super) aggregates: usize,
    pub(super) conditions: Conditions,
}

impl<'a> Walk<'a> {
    pub(crate) fn new(rules: Rules, for_json: Option<ForJson<'a>>) -> Walk<'a> {
        Walk {
            rules,
            for_json,
            ctes: Vec::new(),
            at: TextPosition { line: 1, column: 1 },
            relations: Vec::new(),
            functions: BTreeSet::new(),
            operators: BTreeSet::new(),
            types: BTreeSet::new(),
            short: BTreeMap::new(),
            json_paths: BTreeSet::new(),
            n_json_paths: 0,
            makes_values: false,
            aggregates: 0,
            conditions: Conditions::default(),
        }
    }

    /// The whole statement, after which nothing more is met.
    pub(crate) fn statement(&mut self, query: &mut Query) -> Checked {
        self.query(query)?;
        let message = "a cast to jsonpath stands beside the document that the path is of, or is an argument of a function";
        self.need(self.n_json_paths == 0, "type", message)
    }

    /// A refusal at the last known place.
    pub(super) fn refuse<T>(&self, rule: &'static str, message: impl Into<String>) -> Checked<T> {
        Err(Refusal::new(rule, self.at, message))
    }

    /// Refuses with this rule and message unless `holds`.
    pub(super) fn need(&self, holds: bool, rule: &'static str, message: &'static str) -> Checked {
        if holds { Ok(()) } else { self.refuse(rule, message) }
    }
}
