//! Every message that a user can read, taken from the sources: errors, statuses, Events, log lines, help and the
//! descriptions of the kinds. `make messages` prints them, and `tests/tidy/messages.rs` holds rules over them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use proc_macro2::{TokenStream, TokenTree};
use syn::parse::Parser as _;
use syn::visit::{self, Visit};
use syn::{Attribute, Expr, ExprMethodCall, ItemEnum, ItemFn, ItemMod, ItemStruct, Lit, LitStr, Macro, Meta};

/// Fewer words are a name, a key or a piece of a longer text.
const MIN_WORDS: usize = 3;
/// Types with one of these derives show their doc comments to users: in `--help`, or in `kubectl explain`.
const DOCUMENTED: [&str; 5] = ["Parser", "Args", "Subcommand", "ValueEnum", "JsonSchema"];
/// What these hold is for whoever reads a panic.
const PANICS: [&str; 11] = [
    "assert",
    "assert_eq",
    "assert_ne",
    "debug_assert",
    "debug_assert_eq",
    "panic",
    "unreachable",
    "todo",
    "unimplemented",
    "matches",
    "concat",
];
/// A literal that begins with one of these words is a statement of SQL, or a part of one.
const SQL: [&str; 30] = [
    "select", "insert", "update", "delete", "with", "create", "alter", "drop", "grant", "revoke", "begin",
    "set", "do", "lock", "comment", "from", "where", "and", "order", "on", "join", "left", "union", "case",
    "for", "reassign", "notify", "listen", "truncate", "cross",
];
/// Words that make a literal SQL where it begins with one of [`SQL`]; a sentence has none of them beside it.
const SQL_MARKS: [&str; 12] =
    [" from ", "pg_", " dl.", "control.", "$1", " role ", " table ", " database ", " = ", "::", " as ", "()"];

/// A string literal of the sources with at least three words, or a comment that `--help` prints.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// From the root of the repository.
    pub path: PathBuf,
    pub line: usize,
    /// As written, placeholders included, in one line.
    pub text: String,
}

/// All messages of the sources under `root`, tests apart, in the order of their places.
///
/// # Panics
/// Where git does not run, or a source is no Rust.
#[must_use]
pub fn messages(root: &Path) -> Vec<Message> {
    sources(root)
        .into_iter()
        .flat_map(|path| {
            let text = fs::read_to_string(root.join(&path)).expect("a source is text");
            of_source(&path, &text)
        })
        .collect()
}

fn sources(root: &Path) -> Vec<PathBuf> {
    let output = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard", "-z", "*.rs"])
        .current_dir(root)
        .output()
        .expect("git runs");
    let names = String::from_utf8(output.stdout).expect("our file names are UTF-8");
    let mut paths: Vec<PathBuf> = names
        .split_terminator('\0')
        .map(PathBuf::from)
        .filter(|path| root.join(path).exists())
        .filter(|path| !path.iter().any(|part| part == "tests" || part == "tests.rs"))
        .collect();
    paths.sort();
    paths
}

/// The messages of one file.
#[must_use]
pub fn of_source(path: &Path, text: &str) -> Vec<Message> {
    let file = syn::parse_file(text).expect("a source is Rust");
    let mut reader = Reader { path, found: Vec::new() };
    reader.visit_file(&file);
    let mut found = reader.found;
    found.sort_by_key(|message| message.line);
    found.dedup();
    found
}

struct Reader<'a> {
    path: &'a Path,
    found: Vec<Message>,
}

impl Reader<'_> {
    fn take(&mut self, literal: &LitStr) {
        self.note(literal.span().start().line, &literal.value());
    }

    fn note(&mut self, line: usize, text: &str) {
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        if MIN_WORDS <= n_words(&text) && !is_sql(&text) {
            self.found.push(Message { path: self.path.to_owned(), line, text });
        }
    }

    /// Literals of a macro, which `syn` leaves as tokens. What an `expect` holds is no message.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut is_expect = false;
        for token in tokens {
            match token {
                TokenTree::Group(_) if is_expect => is_expect = false,
                TokenTree::Group(group) => self.tokens(group.stream()),
                TokenTree::Literal(literal) => {
                    if let Lit::Str(text) = Lit::new(literal) {
                        self.take(&text);
                    }
                }
                TokenTree::Ident(name) => {
                    is_expect = name == "expect" || PANICS.iter().any(|panic| name == panic)
                }
                TokenTree::Punct(mark) => is_expect = is_expect && mark.as_char() == '!',
            }
        }
    }

    /// The doc comment among `attributes`, as one text.
    fn doc(&mut self, attributes: &[Attribute]) {
        let lines: Vec<LitStr> = attributes.iter().filter_map(doc_line).collect();
        if let Some(first) = lines.first() {
            let text: Vec<String> = lines.iter().map(LitStr::value).collect();
            self.note(first.span().start().line, &text.join(" "));
        }
    }
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        if !is_test(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_fn(&mut self, item: &'ast ItemFn) {
        if !is_test(&item.attrs) {
            visit::visit_item_fn(self, item);
        }
    }

    fn visit_item_struct(&mut self, item: &'ast ItemStruct) {
        if is_documented(&item.attrs) {
            self.doc(&item.attrs);
            item.fields.iter().for_each(|field| self.doc(&field.attrs));
        }
        visit::visit_item_struct(self, item);
    }

    fn visit_item_enum(&mut self, item: &'ast ItemEnum) {
        if is_documented(&item.attrs) {
            self.doc(&item.attrs);
            for variant in &item.variants {
                self.doc(&variant.attrs);
                variant.fields.iter().for_each(|field| self.doc(&field.attrs));
            }
        }
        visit::visit_item_enum(self, item);
    }

    fn visit_expr_method_call(&mut self, call: &'ast ExprMethodCall) {
        if call.method == "expect" || call.method == "expect_err" {
            self.visit_expr(&call.receiver);
        } else {
            visit::visit_expr_method_call(self, call);
        }
    }

    fn visit_macro(&mut self, found: &'ast Macro) {
        let name = found.path.segments.last().map(|segment| segment.ident.to_string()).unwrap_or_default();
        if !PANICS.contains(&name.as_str()) {
            self.tokens(found.tokens.clone());
        }
    }

    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        let is_text =
            ["error", "arg", "command", "clap", "x_kube"].iter().any(|name| attribute.path().is_ident(name));
        if let (true, Meta::List(list)) = (is_text, &attribute.meta) {
            self.tokens(list.tokens.clone());
        }
    }

    fn visit_lit_str(&mut self, literal: &'ast LitStr) {
        self.take(literal);
    }
}

fn doc_line(attribute: &Attribute) -> Option<LitStr> {
    let Meta::NameValue(pair) = &attribute.meta else { return None };
    match &pair.value {
        Expr::Lit(value) if pair.path.is_ident("doc") => match &value.lit {
            Lit::Str(text) => Some(text.clone()),
            _ => None,
        },
        _ => None,
    }
}

fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::List(list) => {
            list.path.is_ident("cfg") && list.tokens.to_string().split_whitespace().any(|word| word == "test")
        }
        meta => meta.path().is_ident("test"),
    })
}

fn is_documented(attributes: &[Attribute]) -> bool {
    let names = syn::punctuated::Punctuated::<syn::Path, syn::Token![,]>::parse_terminated;
    attributes.iter().filter(|attribute| attribute.path().is_ident("derive")).any(|attribute| {
        let Meta::List(list) = &attribute.meta else { return false };
        let derived = names.parse2(list.tokens.clone()).unwrap_or_default();
        derived.iter().any(|path| {
            path.segments.last().is_some_and(|last| DOCUMENTED.iter().any(|derive| last.ident == derive))
        })
    })
}

/// Placeholders are no words.
fn n_words(text: &str) -> usize {
    let mut depth = 0_usize;
    let plain: String = text
        .chars()
        .filter(|c| {
            match c {
                '{' => depth += 1,
                '}' => depth = depth.saturating_sub(1),
                _ => return depth == 0,
            }
            false
        })
        .collect();
    plain.split_whitespace().filter(|word| word.chars().any(char::is_alphabetic)).count()
}

fn is_sql(text: &str) -> bool {
    let first = text.trim_start_matches(['(', ' ']).split(' ').next().unwrap_or_default();
    SQL.contains(&first) && SQL_MARKS.iter().any(|mark| text.contains(mark))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(source: &str, expected: &[&str]) {
        let found = of_source(Path::new("a.rs"), source);
        let texts: Vec<&str> = found.iter().map(|message| message.text.as_str()).collect();
        assert_eq!(texts, expected, "{source}");
    }

    #[test]
    fn literals_of_three_words_are_messages_wherever_they_stand() {
        check("fn f() { g(\"the key is dead\") }", &["the key is dead"]);
        check("fn f() { format!(\"the key {} is dead\", k) }", &["the key {} is dead"]);
        check("#[derive(Error)] enum E { #[error(\"the key {0} died\")] Dead(u8) }", &["the key {0} died"]);
        check("fn f() { g(\"two words\"); g(\"{} {} {} one\") }", &[]);
    }

    #[test]
    fn help_is_a_message_and_other_comments_are_not() {
        check(
            "#[derive(clap::Args)] struct A { /// Ends a key\n/// for good\n a: u8 }",
            &["Ends a key for good"],
        );
        check("/// Ends a key for good\nstruct A;", &[]);
    }

    #[test]
    fn panics_tests_and_statements_are_no_messages() {
        check("fn f() { x.expect(\"the lock is whole\"); panic!(\"the end of it\") }", &[]);
        check("fn f() { g!(x.expect(\"the lock is whole\")) }", &[]);
        check("#[cfg(test)] mod tests { fn f() { g(\"the key is dead\") } }", &[]);
        check("fn f() { g(\"select id from control.tenants\") }", &[]);
        check("fn f() { g(\"set the size to 3\") }", &["set the size to 3"]);
    }
}
