//! Writes a filter back in one canonical form: what a cursor is bound to.

use std::fmt;

use super::{Expr, Literal, Term};

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Expr::All(parts) => chain(f, parts, " and ", |part| matches!(part, Expr::Any(_))),
            Expr::Any(parts) => chain(f, parts, " or ", |_| false),
            Expr::Not(inner) => {
                f.write_str("not ")?;
                grouped(f, inner, matches!(**inner, Expr::All(_) | Expr::Any(_)))
            }
            Expr::Compare { left, op, right } => write!(f, "{left} {} {right}", op.word()),
            Expr::In { left, list } => {
                write!(f, "{left} in (")?;
                terms(f, list)
            }
            Expr::Is(term) => term.fmt(f),
            // names within are printed without their variable
            Expr::Related { path, is_all, inner } => {
                write!(f, "{path}/{}(", if *is_all { "all" } else { "any" })?;
                if let Some(inner) = inner {
                    write!(f, ":{inner}")?;
                }
                f.write_str(")")
            }
        }
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Term::Name(name) => f.write_str(name),
            Term::Literal(literal) => literal.fmt(f),
            Term::Call { function, arguments } => {
                write!(f, "{}(", function.word())?;
                terms(f, arguments)
            }
            Term::Chain { first, rest } => {
                let products = self.chain_of_products();
                // A chain to the left of its own level would be one chain with this; to the right it is not.
                operand(f, first, products == Some(true) && first.chain_of_products() == Some(false))?;
                for (op, term) in rest {
                    write!(f, " {} ", op.word())?;
                    let inner = term.chain_of_products();
                    operand(f, term, inner.is_some() && (products == Some(true) || inner == Some(false)))?;
                }
                Ok(())
            }
            Term::Negate(inner) => {
                f.write_str("- ")?;
                operand(f, inner, inner.chain_of_products().is_some())
            }
        }
    }
}

fn operand(f: &mut fmt::Formatter<'_>, term: &Term, group: bool) -> fmt::Result {
    if group { write!(f, "({term})") } else { write!(f, "{term}") }
}

/// With the parenthesis that ends them.
fn terms(f: &mut fmt::Formatter<'_>, terms: &[Term]) -> fmt::Result {
    for (i, term) in terms.iter().enumerate() {
        write!(f, "{}{term}", if i == 0 { "" } else { "," })?;
    }
    f.write_str(")")
}

impl fmt::Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Literal::Null => f.write_str("null"),
            Literal::Bool(value) => value.fmt(f),
            Literal::Infinity { negative } => f.write_str(if *negative { "-INF" } else { "INF" }),
            Literal::NaN => f.write_str("NaN"),
            Literal::Number(text)
            | Literal::Date(text)
            | Literal::Timestamp(text)
            | Literal::Time(text)
            | Literal::Guid(text) => f.write_str(text),
            Literal::Text(text) => f.write_str(&quoted(text)),
            Literal::Duration(text) => write!(f, "duration{}", quoted(text)),
            Literal::Binary(text) => write!(f, "binary{}", quoted(text)),
            Literal::Enum { ty, label } => write!(f, "{ty}{}", quoted(label)),
        }
    }
}

/// A text as a constant of a filter.
pub(crate) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

fn chain(f: &mut fmt::Formatter<'_>, parts: &[Expr], word: &str, group: fn(&Expr) -> bool) -> fmt::Result {
    for (i, part) in parts.iter().enumerate() {
        if i != 0 {
            f.write_str(word)?;
        }
        grouped(f, part, group(part))?;
    }
    Ok(())
}

fn grouped(f: &mut fmt::Formatter<'_>, expr: &Expr, group: bool) -> fmt::Result {
    if group { write!(f, "({expr})") } else { write!(f, "{expr}") }
}
