//! A `jsonpath` may compare two lists of one document, `$.a[*] == $.b[*]`, which PostgreSQL does for each pair without looking up.

use std::iter::Peekable;
use std::mem::replace;
use std::str::Chars;

use sqlparser::ast::{
    BinaryOperator as B, CastKind, DataType, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments,
    Value,
};

use super::given::{is_given, placeholders};
use super::search::written;
use super::{Columns, OF_SET, set_aside};
use crate::user_select::refusal::Checked;
use crate::user_select::walk::Walk;

/// The functions whose second argument is a `jsonpath`.
pub(super) fn takes_one(function: &str) -> bool {
    function.starts_with("jsonb_path_")
}

impl Walk<'_> {
    /// `document @? path`, `document @@ path` and the functions: where the path compares two paths, the size of the document is looked at first.
    pub(super) fn bounded_json_path(&mut self, expr: &mut Expr, has_aggregate: bool) -> Checked {
        let is_search = matches!(expr, Expr::BinaryOp { op: B::AtAt, .. });
        let Some((path, others)) = operands(expr) else { return Ok(()) };
        if !self.compares_paths(path, is_search)? {
            return Ok(());
        }
        let mut others = others;
        if let Some(document) = others.first_mut()
            && is_given(document)
        {
            let value = Box::new(replace(*document, Expr::value(Value::Null)));
            let cast =
                Expr::Cast { kind: CastKind::Cast, expr: value, data_type: DataType::JSONB, format: None };
            **document = cast;
        }
        let Columns { values, sizes } = set_aside(others, OF_SET, |i| i != 0);
        let sizes: Vec<String> = sizes.iter().map(|size| format!("coalesce({size}, 0)")).collect();
        // an element takes 4 bytes or more
        let elements = format!("(({}) / 4)", sizes.join(" + "));
        let columns = Columns { values, sizes: vec![elements.clone(), elements] };
        self.enclose(expr, Some(columns), has_aggregate)
    }

    /// Of a function that gives rows.
    pub(super) fn short_json_path(&mut self, function: &mut Function) -> Checked {
        let mut expr = Expr::Function(function.clone());
        let Some((path, _)) = operands(&mut expr) else { return Ok(()) };
        let compares_paths = self.compares_paths(path, false)?;
        let message = "a jsonpath that compares two paths gives no rows here: take the elements of jsonb_path_query_array";
        self.need(!compares_paths, "length", message)
    }

    fn compares_paths(&mut self, path: &mut Expr, is_search: bool) -> Checked<bool> {
        if let Some(text) = written(path) {
            let found = JsonPath::read(text);
            let message = "a jsonpath that compares two paths has no list of subscripts, no **, no keyvalue() and no backslash";
            self.need(!(found.compares_paths && found.repeats), "length", message)?;
            return Ok(found.compares_paths);
        }
        let (inner, is_typed) = without_type(path);
        self.n_json_paths = self.n_json_paths.saturating_sub(usize::from(is_typed));
        let mut names = Vec::new();
        placeholders(inner, &mut names);
        match (written(inner), names.pop()) {
            (Some(text), _) => {
                let message = "a jsonpath that compares two paths is written as a string, without a type";
                self.need(!JsonPath::read(text).compares_paths, "length", message)?;
            }
            (None, Some(name)) if matches!(inner, Expr::Value(_)) => drop(self.json_paths.insert(name)),
            // one of text search
            _ if is_search && !is_typed => {}
            _ => {
                return self.refuse("length", "a jsonpath is written in the query, or given for a parameter");
            }
        }
        Ok(false)
    }
}

/// The path, and what it is looked for in.
fn operands(expr: &mut Expr) -> Option<(&mut Expr, Vec<&mut Expr>)> {
    match expr {
        Expr::BinaryOp { left, right, .. } => Some((&mut **right, vec![&mut **left])),
        Expr::Function(Function { args: FunctionArguments::List(list), .. }) => {
            let named = |wanted: &str| {
                list.args.iter().position(|arg| match arg {
                    FunctionArg::Named { name, .. } => name.value == wanted,
                    FunctionArg::ExprNamed { name: Expr::Identifier(name), .. } => name.value == wanted,
                    _ => false,
                })
            };
            let target = named("target").unwrap_or(0);
            let at = named("path").unwrap_or(1);
            let (mut path, mut others) = (None, Vec::new());
            for (i, arg) in list.args.iter_mut().enumerate() {
                match arg {
                    FunctionArg::Unnamed(FunctionArgExpr::Expr(expr))
                    | FunctionArg::Named { arg: FunctionArgExpr::Expr(expr), .. }
                    | FunctionArg::ExprNamed { arg: FunctionArgExpr::Expr(expr), .. } => match i == at {
                        true => path = Some(expr),
                        false if i == target => others.insert(0, expr),
                        false => others.push(expr),
                    },
                    _ => {}
                }
            }
            path.map(|path| (path, others))
        }
        _ => None,
    }
}

/// The expression, without `jsonpath` as its type; whether it had that type.
fn without_type(expr: &Expr) -> (&Expr, bool) {
    match expr {
        Expr::Nested(inner) => without_type(inner),
        Expr::Cast { expr, data_type, .. } if is_json_path(data_type) => (expr, true),
        _ => (expr, false),
    }
}

pub(in crate::user_select) fn is_json_path(ty: &DataType) -> bool {
    ty.to_string().to_ascii_lowercase().contains("jsonpath")
}

/// What a path does that takes longer than its document is long.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct JsonPath {
    /// A path stands on both sides of a comparison.
    pub(crate) compares_paths: bool,
    /// A list of subscripts, `**` or `.keyvalue()`, by which a path has more items than the document.
    pub(crate) repeats: bool,
}

impl JsonPath {
    /// Of any text: one that is no `jsonpath` is PostgreSQL's to refuse.
    pub(crate) fn read(text: &str) -> JsonPath {
        // a name may be written by escapes
        let mut found =
            JsonPath { repeats: text.contains("keyvalue") || text.contains('\\'), ..JsonPath::default() };
        let mut rest = text.chars().peekable();
        // what closes nothing ends the text no sooner
        while rest.peek().is_some() {
            found.operands(&mut rest);
        }
        found
    }

    /// Up to what closes this bracket; whether a path stands in it.
    fn operands(&mut self, rest: &mut Peekable<Chars<'_>>) -> bool {
        let (mut any, mut left, mut here) = (false, None, false);
        while let Some(c) = rest.next() {
            match c {
                '$' | '@' => here = true,
                // of a name, in which a quote begins no string
                '\\' => drop(rest.next()),
                '"' => skip_string(rest),
                '/' if rest.peek() == Some(&'*') => skip_comment(rest),
                '(' | '[' | '{' => here |= self.operands(rest),
                ')' | ']' | '}' => break,
                ',' => self.repeats = true,
                '*' if rest.peek() == Some(&'*') => self.repeats = true,
                '=' | '<' | '>' | '!' => {
                    let is_comparison = rest.next_if(|it| matches!(it, '=' | '>')).is_some() || c != '!';
                    if is_comparison {
                        self.compares_paths |= left == Some(true) && here;
                        left = Some(here || left == Some(true));
                        any |= here;
                        here = false;
                    }
                }
                '&' | '|' => {
                    self.compares_paths |= left == Some(true) && here;
                    any |= here;
                    (left, here) = (None, false);
                }
                _ => {}
            }
        }
        self.compares_paths |= left == Some(true) && here;
        any || here || left == Some(true)
    }
}

/// After its first quote.
fn skip_string(rest: &mut Peekable<Chars<'_>>) {
    while let Some(c) = rest.next() {
        match c {
            '\\' => drop(rest.next()),
            '"' => return,
            _ => {}
        }
    }
}

/// After its first slash.
fn skip_comment(rest: &mut Peekable<Chars<'_>>) {
    let mut before = ' ';
    rest.next();
    for c in rest.by_ref() {
        if (before, c) == ('*', '/') {
            return;
        }
        before = c;
    }
}

#[cfg(test)]
mod tests {
    use super::JsonPath;

    #[test]
    fn a_path_on_both_sides_of_a_comparison_is_found() {
        for text in [
            "$.a[*] == $.b[*]",
            "$ ? (@.a == $.b)",
            "$.a ? (@ > 1) <> $.b",
            "$.a < ($.b)",
            "($.a) >= -$.b",
            "$[*] ? (@.x == 1 && @.y != @.z)",
            "$x[*] <= $\"y\"",
            "1 < 2 || $.a == /* \" */ $.b",
            "$.\"a\\\"\" == $.b",
            "!($.a == $.b)",
            "$.a[0 to $.b] == $.c",
            "exists($.a ? (@ == 1)) || $.b == $.c",
            r#"$.a\" == $.b"#,
            ") $.a == $.b",
        ] {
            assert!(JsonPath::read(text).compares_paths, "{text}");
        }
        for text in [
            "$.a == 1",
            "$.a[*] ? (@.x == 1).b",
            "$.a ? (@ == \"$.b\") ",
            "$.a == \"@\" && $.b == 2",
            "1 < $.a || 2 < $.b",
            "$.a /* == $.b */",
            "$.\"a == $\".b",
            "$[*] ? (exists(@.a ? (@ > 3)) && !(@.b < 4))",
            "$.a like_regex \"^x\" flag \"i\"",
            "$.a starts with $x",
        ] {
            assert!(!JsonPath::read(text).compares_paths, "{text}");
        }
        assert!(JsonPath::read("$.a[0, 1] == $.b").repeats && JsonPath::read("$.** == $.b").repeats);
        assert!(
            JsonPath::read("$.keyvalue().id == $.b").repeats
                && JsonPath::read(r"$.\u006beyvalue() == $.b").repeats
        );
        assert!(!JsonPath::read("$.a[*].size() == $.b * 2").repeats);
    }
}
