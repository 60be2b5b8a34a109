//! What is asked of groups of rows.

use super::{Expr, OrderBy};

/// Rows with equal keys become one, understood but not yet looked up.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GroupRequest {
    /// Names of fields. Empty: all rows are one group.
    pub by: Vec<String>,
    pub aggregations: Vec<Aggregation>,
    /// Which rows are grouped.
    pub filter: Option<Expr>,
    /// Which groups are kept: a condition whose names are those of `by` and of `aggregations`.
    pub having: Option<Expr>,
    /// By the same names. The keys follow in any case.
    pub orderby: Vec<OrderBy>,
    /// Not yet held against the tenant's limits.
    pub first: Option<i64>,
    /// The cursor, not yet opened.
    pub after: Option<String>,
}

/// What each group comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Aggregation {
    /// What the member is called.
    pub name: String,
    pub function: AggregateFunction,
    /// `None`: rows are counted.
    pub field: Option<String>,
    /// Equal values count once.
    pub distinct: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AggregateFunction {
    Count,
    Sum,
    Avg,
    Min,
    Max,
}

impl AggregateFunction {
    pub const ALL: [AggregateFunction; 5] = [
        AggregateFunction::Sum,
        AggregateFunction::Avg,
        AggregateFunction::Min,
        AggregateFunction::Max,
        AggregateFunction::Count,
    ];

    /// As requests spell it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            AggregateFunction::Count => "count",
            AggregateFunction::Sum => "sum",
            AggregateFunction::Avg => "avg",
            AggregateFunction::Min => "min",
            AggregateFunction::Max => "max",
        }
    }
}
