//! Random filters as trees, typed as the contract types them. What a tree is as a filter and as SQL stands elsewhere.

use std::borrow::Cow;

use rand::RngExt as _;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;

use super::columns::{COLUMNS, Column};

#[derive(Debug, Clone)]
pub(super) enum Tree {
    All(Vec<Tree>),
    Any(Vec<Tree>),
    Not(Box<Tree>),
    Compare(Term, Comparison, Term),
    /// `None` is null.
    In(Term, Vec<Option<Term>>),
    /// Whether it is null, or is not; and whether null is written first.
    Null(Term, bool, bool),
    /// A boolean as a condition.
    Is(Term),
    /// A column of any type with a value of it, or with itself.
    Plain(&'static Column, Comparison, Option<&'static str>),
}

/// Word of a filter, operator of SQL.
pub(super) type Comparison = (&'static str, &'static str);

/// What a term is in PostgreSQL, by the name of the type.
pub(super) type Ty = &'static str;

#[derive(Debug, Clone)]
pub(super) enum Term {
    Column(&'static str, Ty),
    /// In a form that PostgreSQL reads.
    Constant(Cow<'static, str>, Ty),
    Call(&'static str, Vec<Term>, Ty),
    Arithmetic(Box<Term>, Comparison, Box<Term>, Ty),
    Minus(Box<Term>, Ty),
}

pub(super) const COMPARISONS: [Comparison; 6] =
    [("eq", "="), ("ne", "<>"), ("gt", ">"), ("ge", ">="), ("lt", "<"), ("le", "<=")];
const ARITHMETIC: [Comparison; 5] = [("add", "+"), ("sub", "-"), ("mul", "*"), ("div", "/"), ("mod", "%")];

const NUMBERS: &[(&str, Ty)] = &[
    ("n", "int4"),
    ("n", "int4"),
    ("i2", "int2"),
    ("i4", "int4"),
    ("i8", "int8"),
    ("positive", "int4"),
    ("positive", "int4"),
    ("num", "numeric"),
    ("money_like", "numeric"),
    ("f4", "float4"),
    ("f8", "float8"),
];
const TEXTS: &[(&str, Ty)] = &[
    ("txt", "text"),
    ("txt", "text"),
    ("vc", "varchar"),
    ("vc", "varchar"),
    ("txt_c", "text"),
    ("txt_icu", "text"),
    ("vc_icu", "varchar"),
    ("txt_blind", "text"),
    ("folded", "text"),
    ("bp", "bpchar"),
    ("nm", "name"),
];
const DAYS: &[(&str, Ty)] = &[("day", "date"), ("ts", "timestamp"), ("tstz", "timestamptz")];
const CLOCKS: &[(&str, Ty)] =
    &[("tm", "time"), ("tmtz", "timetz"), ("ts", "timestamp"), ("tstz", "timestamptz")];

/// Constants of a type that stand beside a term.
fn values(ty: Ty) -> &'static [&'static str] {
    match ty {
        "int2" => &["0", "1", "-1", "32767"],
        "int4" => &["0", "1", "2", "5", "-3", "100", "2147483647"],
        "int8" => &["0", "7", "-1", "9007199254740993"],
        "numeric" => &["0", "1.10", "-0.5", "2", "NaN", "Infinity", "9007199254740993"],
        "float4" => &["0.33", "-1.5", "0", "NaN", "Infinity"],
        "float8" => &["0.33", "-1.5", "2", "NaN", "-Infinity", "16777217"],
        "bool" => &["true", "false"],
        "date" => &["2024-02-29", "12024-01-01", "infinity", "0044-03-15 BC"],
        "timestamp" => &["2024-02-29T00:00:00", "2024-02-29T23:59:59.999999", "-infinity"],
        "timestamptz" => &["2024-02-29T00:00:00Z", "2024-02-29T02:00:00+02:00", "infinity"],
        "time" => &["00:00:00", "10:00:00", "23:59:59.999999", "24:00:00"],
        "timetz" => &["10:00:00+02:00", "08:00:00Z"],
        _ => &["", "a", "A", "b", "a b", "\u{e4}", "\u{c4}", "it's", "50%25", "_", "sum", "\\", "ab"],
    }
}

/// A tree of at most so many levels of conditions.
pub(super) fn tree(rng: &mut StdRng, depth: usize) -> Tree {
    match rng.random_range(0..if depth == 0 { 6 } else { 9 }) {
        6 => Tree::Not(Box::new(tree(rng, depth - 1))),
        7 => Tree::All((0..rng.random_range(2..4)).map(|_| tree(rng, depth - 1)).collect()),
        8 => Tree::Any((0..rng.random_range(2..4)).map(|_| tree(rng, depth - 1)).collect()),
        0 => {
            let column = COLUMNS.choose(rng).expect("some");
            let value = rng.random_bool(0.85).then(|| *column.values.choose(rng).expect("some"));
            Tree::Plain(column, comparison(rng), value)
        }
        _ => leaf(rng),
    }
}

fn leaf(rng: &mut StdRng) -> Tree {
    if rng.random_bool(0.05) {
        return constants(rng);
    }
    let family = rng.random_range(0..11);
    let draw = |rng: &mut StdRng| match family {
        0..4 => number(rng, 2),
        4..7 => text(rng, 2),
        7 => day(rng, 1),
        8 => clock(rng, 1),
        9 => truth(rng),
        _ => part(rng),
    };
    let first = draw(rng);
    match rng.random_range(0..12) {
        0 => Tree::Null(first, rng.random(), rng.random()),
        1..3 => {
            let item = |rng: &mut StdRng| match rng.random_range(0..5) {
                0 => None,
                1 => Some(draw(rng)),
                _ => Some(constant(rng, first.ty())),
            };
            let list = (0..rng.random_range(1..4)).map(|_| item(rng)).collect();
            Tree::In(first, list)
        }
        _ if family == 9 && rng.random_bool(0.5) => Tree::Is(first),
        3..6 => {
            let second = draw(rng);
            Tree::Compare(first, comparison(rng), second)
        }
        6..8 => Tree::Compare(constant(rng, first.ty()), comparison(rng), first),
        _ => {
            let second = constant(rng, first.ty());
            Tree::Compare(first, comparison(rng), second)
        }
    }
}

/// Nothing but constants, which are of the type that they look like.
fn constants(rng: &mut StdRng) -> Tree {
    let ty = *["int4", "numeric", "text", "bool", "time"].choose(rng).expect("five");
    let first = constant(rng, ty);
    match rng.random_range(0..4) {
        0 => Tree::Null(first, rng.random(), rng.random()),
        _ => {
            let second = constant(rng, ty);
            Tree::Compare(first, comparison(rng), second)
        }
    }
}

fn comparison(rng: &mut StdRng) -> Comparison {
    *COMPARISONS.choose(rng).expect("six")
}

fn constant(rng: &mut StdRng, ty: Ty) -> Term {
    Term::Constant((*values(ty).choose(rng).expect("some")).into(), ty)
}

fn column(rng: &mut StdRng, among: &[(&'static str, Ty)]) -> Term {
    let (name, ty) = *among.choose(rng).expect("some");
    Term::Column(name, ty)
}

fn number(rng: &mut StdRng, depth: usize) -> Term {
    match rng.random_range(0..if depth == 0 { 1 } else { 9 }) {
        0 => column(rng, NUMBERS),
        1..5 => arithmetic(rng, depth),
        5 => {
            let inner = number(rng, depth - 1);
            let ty = inner.ty();
            Term::Minus(Box::new(inner), ty)
        }
        6 => match rng.random() {
            true => Term::Call("length", vec![text(rng, depth - 1)], "int4"),
            false => Term::Call("indexof", vec![text(rng, depth - 1), piece(rng)], "int4"),
        },
        7 => {
            let inner = number(rng, depth - 1);
            let ty = if inner.ty() == "float4" { "float8" } else { inner.ty() };
            Term::Call(["round", "floor", "ceiling"].choose(rng).expect("three"), vec![inner], ty)
        }
        _ => part(rng),
    }
}

/// A part of a moment.
fn part(rng: &mut StdRng) -> Term {
    match rng.random() {
        true => Term::Call(["year", "month", "day"].choose(rng).expect("three"), vec![day(rng, 1)], "int4"),
        false => {
            let words = ["hour", "minute", "second"];
            let of = if rng.random() { column(rng, CLOCKS) } else { clock(rng, 1) };
            Term::Call(words.choose(rng).expect("three"), vec![of], "int4")
        }
    }
}

fn arithmetic(rng: &mut StdRng, depth: usize) -> Term {
    let left = number(rng, depth - 1);
    let right = match rng.random_range(0..3) {
        0 => number(rng, depth - 1),
        _ => beside(rng, left.ty()),
    };
    let (left, right) = if rng.random_bool(0.3) { (right, left) } else { (left, right) };
    let ty = together(left.ty(), right.ty());
    let n = if ty.starts_with("float") { 4 } else { 5 };
    let op = *ARITHMETIC[..n].choose(rng).expect("some");
    Term::Arithmetic(Box::new(left), op, Box::new(right), ty)
}

/// A constant beside whole numbers is what it looks like, beside others it is of their type.
fn beside(rng: &mut StdRng, ty: Ty) -> Term {
    let (value, ty) = match ty {
        "int2" | "int4" | "int8" => *[
            ("0", "int4"),
            ("1", "int4"),
            ("2", "int4"),
            ("7", "int4"),
            ("-3", "int4"),
            ("2147483648", "int8"),
            ("0.5", "numeric"),
            ("2.50", "numeric"),
        ]
        .choose(rng)
        .expect("some"),
        other => (*values(other).choose(rng).expect("some"), other),
    };
    Term::Constant(value.into(), ty)
}

fn together(left: Ty, right: Ty) -> Ty {
    const RANKS: [Ty; 6] = ["int2", "int4", "int8", "numeric", "float4", "float8"];
    let rank = |ty| RANKS.iter().position(|rank| *rank == ty).expect("a number's type");
    match (left, right) {
        ("float4", "float4") => "float4",
        _ if rank(left).max(rank(right)) == 4 => "float8",
        _ => RANKS[rank(left).max(rank(right))],
    }
}

fn text(rng: &mut StdRng, depth: usize) -> Term {
    match rng.random_range(0..if depth == 0 { 1 } else { 6 }) {
        0 => column(rng, TEXTS),
        1 => Term::Call("tolower", vec![text(rng, depth - 1)], "text"),
        2 => Term::Call("toupper", vec![text(rng, depth - 1)], "text"),
        3 => Term::Call("trim", vec![text(rng, depth - 1)], "text"),
        4 => {
            let (a, b) = (text(rng, depth - 1), piece(rng));
            Term::Call("concat", if rng.random_bool(0.3) { vec![b, a] } else { vec![a, b] }, "text")
        }
        _ => {
            let mut arguments = vec![text(rng, depth - 1), whole(rng)];
            if rng.random() {
                arguments.push(whole(rng));
            }
            Term::Call("substring", arguments, "text")
        }
    }
}

/// What is searched for or put behind: mostly a constant.
fn piece(rng: &mut StdRng) -> Term {
    match rng.random_range(0..5) {
        0 => column(rng, TEXTS),
        1 => Term::Constant(" a ".into(), "text"),
        _ => constant(rng, "text"),
    }
}

/// A position or a length.
fn whole(rng: &mut StdRng) -> Term {
    match rng.random_range(0..6) {
        0 => column(
            rng,
            &[("positive", "int4"), ("positive", "int4"), ("i2", "int2"), ("i8", "int8"), ("i4", "int4")],
        ),
        1 => Term::Call("length", vec![column(rng, TEXTS)], "int4"),
        _ => Term::Constant((*["0", "1", "2", "3"].choose(rng).expect("four")).into(), "int4"),
    }
}

fn day(rng: &mut StdRng, depth: usize) -> Term {
    match rng.random_range(0..if depth == 0 { 3 } else { 5 }) {
        0..3 => column(rng, DAYS),
        _ => Term::Call("date", vec![day(rng, depth - 1)], "date"),
    }
}

fn clock(rng: &mut StdRng, depth: usize) -> Term {
    match rng.random_range(0..if depth == 0 { 3 } else { 5 }) {
        // Of those with a date only their time.
        0..3 if depth == 0 => column(rng, CLOCKS),
        0..3 => column(rng, &CLOCKS[..2]),
        _ => Term::Call("time", vec![clock(rng, depth - 1)], "time"),
    }
}

fn truth(rng: &mut StdRng) -> Term {
    match rng.random_range(0..5) {
        0 => Term::Column("flag", "bool"),
        _ => {
            let word = ["contains", "startswith", "endswith"].choose(rng).expect("three");
            let (a, b) = (text(rng, 1), piece(rng));
            Term::Call(word, if rng.random_bool(0.1) { vec![b, a] } else { vec![a, b] }, "bool")
        }
    }
}

impl Term {
    pub(super) fn ty(&self) -> Ty {
        match self {
            Term::Column(_, ty)
            | Term::Constant(_, ty)
            | Term::Call(_, _, ty)
            | Term::Arithmetic(_, _, _, ty)
            | Term::Minus(_, ty) => ty,
        }
    }
}

impl Tree {
    /// The conditions that stand in it, one by one.
    pub(super) fn leaves(&self) -> Vec<&Tree> {
        match self {
            Tree::All(parts) | Tree::Any(parts) => parts.iter().flat_map(Tree::leaves).collect(),
            Tree::Not(inner) => inner.leaves(),
            leaf => vec![leaf],
        }
    }

    /// Each constant that stands beside a term, with the term.
    pub(super) fn constants(&mut self) -> Vec<(&Term, &mut Cow<'static, str>)> {
        match self {
            Tree::All(parts) | Tree::Any(parts) => parts.iter_mut().flat_map(Tree::constants).collect(),
            Tree::Not(inner) => inner.constants(),
            Tree::Compare(Term::Constant(value, _), _, term)
            | Tree::Compare(term, _, Term::Constant(value, _)) => {
                vec![(term, value)]
            }
            _ => Vec::new(),
        }
    }
}
