//! A tree as the text of a filter.

use rand::RngExt as _;
use rand::rngs::StdRng;

use super::grammar::{Term, Tree};
use super::question::literal;

pub(super) fn filter(rng: &mut StdRng, tree: &Tree) -> String {
    match tree {
        Tree::All(parts) => joined(rng, parts, " and "),
        Tree::Any(parts) => joined(rng, parts, " or "),
        Tree::Not(inner) => format!("not ({})", filter(rng, inner)),
        // Quotes are what says that both are text.
        Tree::Compare(left @ Term::Constant(..), (word, _), right @ Term::Constant(..)) => {
            format!("{} {word} {}", term(left), term(right))
        }
        Tree::Compare(left, (word, _), right) => {
            format!("{} {word} {}", side(rng, left), side(rng, right))
        }
        Tree::In(left, list) => {
            let list: Vec<String> = list
                .iter()
                .map(|item| item.as_ref().map_or("null".to_owned(), |item| side(rng, item)))
                .collect();
            format!("{} in ({})", term(left), list.join(","))
        }
        Tree::Null(of, is_null, first) => {
            let word = if *is_null { "eq" } else { "ne" };
            match first {
                true => format!("null {word} {}", term(of)),
                false => format!("{} {word} null", term(of)),
            }
        }
        Tree::Is(of) => term(of),
        Tree::Plain(column, (word, _), value) => match value {
            Some(value) => format!("{} {word} {}", column.name, literal(rng, column, value)),
            None => format!("{} {word} {0}", column.name),
        },
    }
}

fn joined(rng: &mut StdRng, parts: &[Tree], word: &str) -> String {
    let parts: Vec<String> = parts.iter().map(|part| format!("({})", filter(rng, part))).collect();
    parts.join(word)
}

/// A side of a comparison. Beside something typed every constant may be quoted.
fn side(rng: &mut StdRng, of: &Term) -> String {
    match of {
        Term::Constant(value, _) if rng.random_bool(0.2) => quoted(value),
        _ => term(of),
    }
}

fn term(of: &Term) -> String {
    match of {
        Term::Column(name, _) => (*name).to_owned(),
        Term::Constant(value, ty) => constant(value, ty),
        Term::Call(word, arguments, _) => {
            let arguments: Vec<String> = arguments.iter().map(term).collect();
            format!("{word}({})", arguments.join(", "))
        }
        Term::Arithmetic(left, (word, _), right, _) => format!("({} {word} {})", term(left), term(right)),
        Term::Minus(inner, _) => format!("-({})", term(inner)),
    }
}

fn constant(value: &str, ty: &str) -> String {
    match (ty, value) {
        ("text" | "varchar" | "bpchar" | "name", _) => quoted(value),
        ("date" | "timestamp" | "timestamptz", "infinity" | "-infinity") => quoted(value),
        (_, "Infinity") => "INF".to_owned(),
        (_, "-Infinity") => "-INF".to_owned(),
        _ if value.contains(' ') => quoted(value),
        _ => value.to_owned(),
    }
}

fn quoted(value: &str) -> String {
    format!("'{}'", value.replace('\'', "''"))
}
