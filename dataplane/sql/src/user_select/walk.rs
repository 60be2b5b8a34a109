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
    /// What is looked for and counts as short, beside what is stored and beside what the statement makes, in hundredths of what one may have.
    pub(super) shares: [usize; 2],
    /// How many functions, operators and comparisons there are that take as long as a value is long.
    pub(super) long_calls: usize,
    /// How many products and the like there are, which take longer than decimals are long.
    pub(super) products: usize,
    /// How many columns the SELECTs that were met have.
    pub(super) columns_met: usize,
    /// A value may be longer than all that are stored.
    pub(super) has_made: bool,
    /// How many aggregates, window functions and functions that give rows were met in the query that is walked.
    pub(super) aggregates: usize,
    pub(super) conditions: Conditions,
}

/// PostgreSQL looks up between rows, and not between the values of one.
const MAX_LONG_CALLS: usize = 300;
/// Of two decimals of 131,000 digits a remainder takes PostgreSQL a tenth of a second.
const MAX_PRODUCTS: usize = 200;

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
            shares: [0; 2],
            long_calls: 0,
            products: 0,
            columns_met: 0,
            has_made: false,
            aggregates: 0,
            conditions: Conditions::default(),
        }
    }

    /// The whole statement, after which nothing more is met.
    pub(crate) fn statement(&mut self, query: &mut Query) -> Checked {
        self.query(query)?;
        let message = "a cast to jsonpath stands beside the document that the path is of, or is an argument of a function";
        self.need(self.n_json_paths == 0, "type", message)?;
        let message = "a query has at most 200 products, quotients, remainders and powers: cast one side to float8 or integer where that is enough";
        self.need(self.products <= MAX_PRODUCTS, "length", message)?;
        let message = "a query that makes values of rows or reads from sub-selects has at most 300 casts, comparisons, operators and functions of texts, JSON and arrays";
        self.need(!self.has_made || self.long_calls <= MAX_LONG_CALLS, "length", message)
    }

    /// From here on a name may stand for what the statement makes.
    pub(super) fn make_values(&mut self) {
        (self.makes_values, self.has_made) = (true, true);
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
