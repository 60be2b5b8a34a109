//! Conditions on rows that relationships lead to: `customer/name eq 'x'`, `lines/any(...)`.

use std::sync::Arc;

use super::growth;
use super::refusal::{FilterRefusal, Subject};
use super::term::{self, Typed};
use crate::catalog::Relationship;
use crate::query::{Predicate, Referenced, Related, RelatedForm, Value};
use crate::request::{Expr, Literal, Term};
use crate::resolve::path::{self, PathRefusal, Paths};
use crate::resolve::visible::Visible;

/// Whose fields a comparison names.
pub(super) enum Rows<'e> {
    /// Those of the row itself, or none.
    Own,
    /// Those of the row that this path leads to, with which all names begin.
    Of(&'e str),
    Several,
}

pub(super) fn rows<'e>(visible: &Visible<'_>, expr: &'e Expr) -> Rows<'e> {
    let mut paths: Vec<Option<&str>> = Vec::new();
    let mut note = |name: &'e str| {
        let own = visible.find(name).is_some();
        paths.push(name.rsplit_once('/').map(|(path, _)| path).filter(|_| !own));
    };
    match expr {
        Expr::Compare { left, right, .. } => {
            [left, right].into_iter().for_each(|term| names(term, &mut note))
        }
        Expr::In { left, list } => {
            names(left, &mut note);
            list.iter().for_each(|term| names(term, &mut note));
        }
        Expr::Is(term) => names(term, &mut note),
        Expr::All(_) | Expr::Any(_) | Expr::Not(_) | Expr::Related { .. } => {}
    }
    match paths.first().copied() {
        Some(first) if paths.iter().any(|path| *path != first) => Rows::Several,
        Some(Some(path)) => Rows::Of(path),
        Some(None) | None => Rows::Own,
    }
}

fn names<'e>(term: &'e Term, each: &mut impl FnMut(&'e str)) {
    match term {
        Term::Name(name) => each(name),
        Term::Literal(_) => {}
        Term::Call { arguments, .. } => arguments.iter().for_each(|term| names(term, each)),
        Term::Chain { first, rest } => {
            names(first, each);
            rest.iter().for_each(|(_, term)| names(term, each));
        }
        Term::Negate(inner) => names(inner, each),
    }
}

/// A comparison whose names all begin with `path`, which leads to one row. Without that row it is neither true nor false, but `eq null`
/// is true.
pub(super) fn compared(visible: &Visible<'_>, path: &str, expr: &Expr) -> Result<Predicate, FilterRefusal> {
    let expr = stripped(expr, path);
    let is_null = match &expr {
        Expr::Compare { left, op: crate::request::Comparison::Eq, right } => {
            [left, right].iter().any(|term| matches!(term, Term::Literal(Literal::Null)))
        }
        _ => false,
    };
    let hops: Vec<&str> = path.split('/').collect();
    let mut predicate = through(visible, &hops, &|visible| match super::predicate(visible, &expr)? {
        Predicate::IsNull { value, negated: false } if is_null => {
            Ok(Predicate::IsNull { value, negated: true })
        }
        inner => Ok(inner),
    })?;
    if let (Predicate::Related(related), true) = (&mut predicate, is_null) {
        related.is_negated = true;
    }
    Ok(predicate)
}

/// `any` or `all` of the rows that the last part of `path` leads to.
pub(super) fn quantified(
    visible: &Visible<'_>,
    path: &str,
    is_all: bool,
    inner: Option<&Expr>,
) -> Result<Predicate, FilterRefusal> {
    let (before, last) = path.rsplit_once('/').map_or((None, path), |(before, last)| (Some(before), last));
    let hops: Vec<&str> = before.map(|before| before.split('/').collect()).unwrap_or_default();
    through(visible, &hops, &|visible| {
        let (relationship, inside) = follow(visible, last)?;
        let inner = inner.map(|inner| within(&inside, inner)).transpose()?;
        let inner = if is_all { inner.map(|inner| Predicate::NotTrue(Box::new(inner))) } else { inner };
        Ok(Predicate::Related(Box::new(Related {
            link: relationship.link.clone(),
            entity: Arc::clone(inside.entity),
            inner,
            form: RelatedForm::Any,
            is_negated: is_all,
        })))
    })
}

/// The condition of `last` on the row that `hops` lead to, one by one.
fn through(
    visible: &Visible<'_>,
    hops: &[&str],
    last: &dyn Fn(&Visible<'_>) -> Result<Predicate, FilterRefusal>,
) -> Result<Predicate, FilterRefusal> {
    let Some((hop, hops)) = hops.split_first() else { return last(visible) };
    let (relationship, inside) = follow(visible, hop)?;
    if !relationship.to_one || relationship.takes_first {
        return Err(FilterRefusal::ManyRows(relationship.name.clone()));
    }
    let inner = through(&inside, hops, last).and_then(|inner| growth::bounded(inside.entity, inner));
    let inner = inner.map_err(|refusal| of_other(&inside, refusal))?;
    Ok(Predicate::Related(Box::new(Related {
        link: relationship.link.clone(),
        entity: Arc::clone(inside.entity),
        inner: Some(inner),
        form: RelatedForm::One,
        is_negated: false,
    })))
}

fn within(inside: &Visible<'_>, inner: &Expr) -> Result<Predicate, FilterRefusal> {
    let inner = super::predicate(inside, inner).and_then(|inner| growth::bounded(inside.entity, inner));
    inner.map_err(|refusal| of_other(inside, refusal))
}

/// A refusal about fields of another entity says so.
fn of_other(inside: &Visible<'_>, refusal: FilterRefusal) -> FilterRefusal {
    match refusal {
        FilterRefusal::Related { .. } => refusal,
        refusal => FilterRefusal::Related { entity: inside.entity.name.clone(), refusal: Box::new(refusal) },
    }
}

/// A field of the row itself, or of one that a path leads to.
pub(super) fn field(visible: &Visible<'_>, name: &str) -> Result<Typed, FilterRefusal> {
    let (path, last) = match (visible.find(name), name.rsplit_once('/')) {
        (None, Some(parts)) => parts,
        _ => return term::field(visible, name, false),
    };
    let mut paths = Paths::default();
    let (_, field) = paths.field(visible, path, last).map_err(|refusal| match refusal {
        PathRefusal::NoRelationship { entity, unknown } => {
            let refusal = Box::new(FilterRefusal::NoRelationship(unknown));
            FilterRefusal::Related { entity, refusal }
        }
        refusal => of_path(refusal),
    })?;
    let references = paths.into_references();
    let of = &references.last().ok_or(FilterRefusal::SeveralEntities)?.entity.fields[field];
    let (ty, subject) = (Box::new(of.ty.clone()), Subject::Field(name.to_owned()));
    Ok(Typed { value: Value::Referenced(Box::new(Referenced { references, field })), ty, subject })
}

/// `follow`, with a refusal about the entity that it starts from.
fn follow<'a>(visible: &Visible<'a>, name: &str) -> Result<(&'a Relationship, Visible<'a>), FilterRefusal> {
    path::follow(visible, name).map_err(of_path)
}

fn of_path(refusal: PathRefusal) -> FilterRefusal {
    match refusal {
        PathRefusal::NoRelationship { unknown, .. } => FilterRefusal::NoRelationship(unknown),
        PathRefusal::Closed(closure) => FilterRefusal::Closed(closure),
        PathRefusal::ManyRows(name) => FilterRefusal::ManyRows(name),
        PathRefusal::TooMany { max } => FilterRefusal::TooManyPaths { max },
        PathRefusal::NoField { entity, unknown } => {
            let refusal = Box::new(FilterRefusal::NoField { unknown, may_be_text: false });
            FilterRefusal::Related { entity, refusal }
        }
    }
}

/// The comparison with its names as the entity calls them where `path` leads.
fn stripped(expr: &Expr, path: &str) -> Expr {
    let term = |it: &Term| strip(it, path);
    match expr {
        Expr::Compare { left, op, right } => Expr::Compare { left: term(left), op: *op, right: term(right) },
        Expr::In { left, list } => Expr::In { left: term(left), list: list.iter().map(term).collect() },
        Expr::Is(it) => Expr::Is(term(it)),
        other => other.clone(),
    }
}

fn strip(term: &Term, path: &str) -> Term {
    match term {
        Term::Name(name) => {
            let inner = name.strip_prefix(path).and_then(|rest| rest.strip_prefix('/'));
            Term::Name(inner.unwrap_or(name).to_owned())
        }
        Term::Literal(literal) => Term::Literal(literal.clone()),
        Term::Call { function, arguments } => {
            let arguments = arguments.iter().map(|it| strip(it, path)).collect();
            Term::Call { function: *function, arguments }
        }
        Term::Chain { first, rest } => {
            let rest = rest.iter().map(|(op, it)| (*op, strip(it, path))).collect();
            Term::Chain { first: Box::new(strip(first, path)), rest }
        }
        Term::Negate(inner) => Term::Negate(Box::new(strip(inner, path))),
    }
}
