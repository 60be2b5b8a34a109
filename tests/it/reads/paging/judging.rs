//! A tree as SQL, written anew from what the contract says of each word: no line of the compiler is shared, and where
//! PostgreSQL has a second way to say a thing, it is said that way.

use super::grammar::{Term, Tree};
use super::question::constant as plain;

pub(super) fn condition(tree: &Tree) -> String {
    match tree {
        Tree::All(parts) => joined(parts, " and "),
        Tree::Any(parts) => joined(parts, " or "),
        Tree::Not(inner) => format!("(not {})", condition(inner)),
        Tree::Compare(left, (_, operator), right) => format!("({} {operator} {})", term(left), term(right)),
        Tree::In(left, list) => {
            let each = list.iter().map(|item| match item {
                Some(item) => format!("({} = {})", term(left), term(item)),
                None => format!("({} is null)", term(left)),
            });
            format!("({})", each.collect::<Vec<_>>().join(" or "))
        }
        Tree::Null(of, is_null, _) => {
            format!("({} is {}null)", term(of), if *is_null { "" } else { "not " })
        }
        Tree::Is(of) => format!("({} = true)", term(of)),
        Tree::Plain(column, (_, operator), value) => match value {
            Some(value) => format!("({} {operator} {})", column.name, plain(column, value)),
            None => format!("({} {operator} {0})", column.name),
        },
    }
}

fn joined(parts: &[Tree], word: &str) -> String {
    let parts: Vec<String> = parts.iter().map(condition).collect();
    format!("({})", parts.join(word))
}

pub(super) fn term(of: &Term) -> String {
    match of {
        Term::Column(name, _) => (*name).to_owned(),
        Term::Constant(value, ty) => format!("'{}'::{ty}", value.replace('\'', "''")),
        Term::Call(word, arguments, _) => call(word, arguments),
        Term::Arithmetic(left, (_, operator), right, _) => {
            format!("({} {operator} {})", term(left), term(right))
        }
        Term::Minus(inner, _) => format!("(- {})", term(inner)),
    }
}

fn call(word: &str, arguments: &[Term]) -> String {
    let x = argument(&arguments[0]);
    let y = arguments.get(1).map(argument).unwrap_or_default();
    let searched = format!("position({y} in ({x} collate \"C\"))");
    match word {
        "contains" => format!("({searched} > 0)"),
        "startswith" => format!("(left({x}, length({y})) collate \"C\" = {y})"),
        // Nothing is at the end of every text.
        "endswith" => {
            format!(
                "(case when {y} collate \"C\" = '' then {x} is not null or null else right({x}, length({y})) collate \"C\" = {y} end)"
            )
        }
        "indexof" => format!("({searched} - 1)"),
        "tolower" => format!("lower({x})"),
        "toupper" => format!("upper({x})"),
        "trim" => format!("trim(both E' \\t\\n\\x0b\\f\\r' from {x})"),
        "length" => format!("length({x})"),
        "concat" => format!("textcat({x}, {y})"),
        "substring" => match arguments.get(2) {
            Some(n) => format!("substring({x} from {y}::int4 + 1 for {}::int4)", argument(n)),
            None => format!("substring({x} from {y}::int4 + 1)"),
        },
        "year" | "month" | "day" => {
            format!("(case when isfinite({x}) then date_part('{word}', {x})::int4 end)")
        }
        "hour" | "minute" | "second" => format!("trunc(date_part('{word}', {x}))::int4"),
        "date" => format!("cast({x} as date)"),
        "time" => format!("cast({x} as time)"),
        _ => rounded(word, &x, arguments[0].ty()),
    }
}

fn rounded(word: &str, x: &str, ty: &str) -> String {
    match (word, ty) {
        (_, "int2" | "int4" | "int8") => x.to_owned(),
        ("floor", _) => format!("(- ceil(- ({x})))"),
        ("ceiling", _) => format!("(- floor(- ({x})))"),
        // Halves away from zero.
        (_, "numeric") => format!("trunc(({x}) + sign({x}) * 0.5)"),
        // Halves to the even neighbour.
        _ => format!(
            "(case when abs({x}::float8) >= 4503599627370496 then {x}::float8 when abs({x}::float8 - trunc({x}::float8)) = 0.5 then 2 * trunc({x}::float8 / 2 + sign({x}::float8) * 0.25) \
             else trunc({x}::float8 + sign({x}::float8) * 0.5) end)"
        ),
    }
}

/// Text without the blanks of `char(n)`; moments in UTC.
fn argument(of: &Term) -> String {
    let sql = term(of);
    match of.ty() {
        "varchar" | "bpchar" | "name" => format!("({sql})::text"),
        "timestamptz" | "timetz" => format!("({sql} at time zone 'UTC')"),
        _ => sql,
    }
}
