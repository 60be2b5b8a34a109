//! Where a page begins and how many rows are asked for.

use super::{operator, ordered, position_encoding};
use crate::catalog::{Field, Operators};
use crate::query::{OrderTerm, Query};
use crate::text::{Bind, Sql};

/// Which rows stand after `position`, by the columns' own operators, so that every collation, NaN and NULL stands
/// where `order by` puts it: NULLs last where ascending, first where descending.
pub(super) fn after(sql: &mut Sql, query: &Query, position: &[Option<Vec<u8>>]) {
    let order = &query.order;
    let Some(first) = order.first() else {
        sql.lit("true");
        return;
    };
    let one_way = order.iter().zip(position).all(|(term, v)| {
        // One operator stands between both rows, so it has to be that of every column.
        let built_in = field(query, term).ty.operators == Operators::BuiltIn;
        term.descending == first.descending && !is_nullable(query, term) && v.is_some() && built_in
    });
    if one_way {
        // An index over the same columns serves this one as a single range.
        return row_comparison(sql, query, position, if first.descending { " < " } else { " > " });
    }
    sql.lit("(");
    chain(sql, query, order, position);
    sql.lit(")");
}

fn field<'q>(query: &'q Query, term: &OrderTerm) -> &'q Field {
    &query.ordered(term).fields[term.field]
}

/// The row of a reference may be absent.
fn is_nullable(query: &Query, term: &OrderTerm) -> bool {
    term.reference.is_some() || field(query, term).nullable
}

fn row_comparison(sql: &mut Sql, query: &Query, position: &[Option<Vec<u8>>], operator: &'static str) {
    let order = &query.order;
    let (open, close) = if order.len() == 1 { ("", "") } else { ("(", ")") };
    sql.lit(open);
    for (i, term) in order.iter().enumerate() {
        sql.lit(if i == 0 { "" } else { ", " });
        ordered(sql, query, term);
    }
    sql.lit(close).lit(operator).lit(open);
    for (i, (term, value)) in order.iter().zip(position).enumerate() {
        sql.lit(if i == 0 { "" } else { ", " }).bind(bind(query, term, value.as_deref()));
    }
    sql.lit(close);
}

/// `after(first) or (equal(first) and chain(rest))`, in the form that leaves the planner a range over the first column
/// where NULLs allow one. Recurses once per order term, of which there are few.
fn chain(sql: &mut Sql, query: &Query, order: &[OrderTerm], position: &[Option<Vec<u8>>]) {
    let ([term, order @ ..], [value, position @ ..]) = (order, position) else {
        sql.lit("false");
        return;
    };
    let column = |sql: &mut Sql| ordered(sql, query, term);
    let last = order.is_empty();
    let Some(value) = value else {
        // Nothing stands after a NULL that comes last, and everything else after one that comes first.
        if last && !term.descending {
            sql.lit("false");
            return;
        }
        column(sql);
        sql.lit(if term.descending { " is not null" } else { " is null" });
        if !last {
            sql.lit(if term.descending { " or (" } else { " and (" });
            chain(sql, query, order, position);
            sql.lit(")");
        }
        return;
    };
    let compare = |sql: &mut Sql, symbol: &'static str| {
        column(sql);
        operator(sql, Some(&field(query, term).ty), symbol);
        sql.bind(bind(query, term, Some(value)));
    };
    let nulls_after = is_nullable(query, term) && !term.descending;
    let beyond = if term.descending { "<" } else { ">" };
    if nulls_after {
        compare(sql, beyond);
        sql.lit(" or ");
        column(sql);
        sql.lit(" is null");
        if !last {
            sql.lit(" or (");
            compare(sql, "=");
            sql.lit(" and (");
            chain(sql, query, order, position);
            sql.lit("))");
        }
        return;
    }
    if last {
        return compare(sql, beyond);
    }
    compare(sql, if term.descending { "<=" } else { ">=" });
    sql.lit(" and (");
    compare(sql, beyond);
    sql.lit(" or (");
    chain(sql, query, order, position);
    sql.lit("))");
}

fn bind(query: &Query, term: &OrderTerm, value: Option<&[u8]>) -> Bind {
    Bind {
        oid: field(query, term).ty.base_oid,
        value: value.map(<[u8]>::to_vec),
        format: position_encoding(query.ordered(term), term.field).format(),
        field: None,
        row: None,
    }
}

/// The smallest of 2, 3, 6, 11, 26, 51, 101, 251, ... that leaves room for one row more than `take`, and no more than any page needs: few
/// texts, so that statements stay prepared, and literals, because a bound limit is planned again each time.
pub(super) fn limit(take: u64, max_take: u64) -> u64 {
    let mut power = 1;
    loop {
        let step = [power, power * 5 / 2, power * 5].into_iter().find(|step| take <= *step);
        if let Some(step) = step {
            return step.min(max_take.max(take)) + 1;
        }
        power *= 10;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_rounded_up_to_few_numbers() {
        for (take, max, wanted) in [
            (1, 100_000, 2),
            (2, 100_000, 3),
            (3, 100_000, 6),
            (10, 100_000, 11),
            (11, 100_000, 26),
            (50, 100_000, 51),
            (100, 100_000, 101),
            (101, 100_000, 251),
            (99_999, 100_000, 100_001),
            (100_000, 100_000, 100_001),
            (500, 700, 501),
            (501, 700, 701),
            (1, 1, 2),
        ] {
            assert_eq!(limit(take, max), wanted, "{take} of {max}");
        }
    }
}
