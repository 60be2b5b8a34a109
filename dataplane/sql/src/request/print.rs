//! Writes a filter back in one canonical form: what a cursor is bound to.

use std::fmt;

use super::{Expr, Literal, Operand};

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
                for (i, literal) in list.iter().enumerate() {
                    write!(f, "{}{literal}", if i == 0 { "" } else { "," })?;
                }
                f.write_str(")")
            }
        }
    }
}

impl fmt::Display for Operand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Operand::Name(name) => f.write_str(name),
            Operand::Literal(literal) => literal.fmt(f),
        }
    }
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
            Literal::Text(text) => write!(f, "'{}'", text.replace('\'', "''")),
        }
    }
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
