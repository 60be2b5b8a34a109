//! SQL text with its binds. What goes in is a literal of ours (`lit`, `statement`), a number (`number`), a quoted identifier
//! (`ident`), the name of a built-in type (`built_in`), a bound value (`bind`) or a caller's SELECT that was checked (`checked`),
//! and another statement that was made so (`begin_with`).
//! [`crate::ddl`] alone also writes quoted constants (`literal`) and SQL of the tenant's owner (`owners`). `tests/tidy/pipeline.rs` fails for any other way in.

use std::fmt;
use std::sync::Arc;

use crate::user_select::CheckedText;

/// A name that the database or a manifest told us. It is quoted wherever it is written, so a wrong one is a wrong
/// name and never an injection.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct Ident(String);

/// A built-in type with its modifier, such as `numeric(5,2)`, as `format_type` writes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuiltIn(String);

/// A value for `$n`.
#[derive(Clone, PartialEq, Eq)]
pub struct Bind {
    /// The parameter's type, an oid of `pg_type`.
    pub oid: u32,
    /// `None` is NULL.
    pub value: Option<Vec<u8>>,
    pub format: Format,
    /// Position in the entity's fields of the one that a caller's value is compared with, to be named where PostgreSQL
    /// does not take it.
    pub field: Option<u16>,
    /// Position in the list of rows that was sent of the one that it stands in.
    pub row: Option<u16>,
}

/// How PostgreSQL writes or reads one value on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    Text,
    Binary,
}

/// SQL text and its binds, in order. A clone shares both.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Sql(Arc<Parts>);

#[derive(Clone, Default, PartialEq, Eq)]
struct Parts {
    text: String,
    binds: Vec<Bind>,
    of_records: bool,
}

impl Ident {
    /// A name of at most 63 bytes without NUL, which is all that PostgreSQL can hold; `None` for any other text.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Option<Ident> {
        let name = name.into();
        (!name.is_empty() && name.len() <= 63 && !name.contains('\0')).then_some(Ident(name))
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl BuiltIn {
    /// `None` for what could be anything else in a statement.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Option<BuiltIn> {
        let name = name.into();
        let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || " (),[]-".contains(c);
        (name.chars().all(is_plain) && !name.contains("--")).then_some(BuiltIn(name))
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Bind {
    /// A value in PostgreSQL's text form.
    #[must_use]
    pub fn text(oid: u32, value: impl Into<String>) -> Bind {
        Bind { oid, value: Some(value.into().into_bytes()), format: Format::Text, field: None, row: None }
    }
}

impl Sql {
    #[must_use]
    pub fn new() -> Sql {
        Sql::default()
    }

    /// Makes room for so many binds more.
    pub(crate) fn reserve(&mut self, n_binds: usize) -> &mut Sql {
        self.parts().binds.reserve_exact(n_binds);
        self
    }

    /// The text without these words at its end, where it has them.
    pub(crate) fn without_end(&self, end: &'static str) -> Option<Sql> {
        let text = self.0.text.strip_suffix(end)?.to_owned();
        Some(Sql(Arc::new(Parts { text, binds: self.0.binds.clone(), of_records: self.0.of_records })))
    }

    /// Keywords and punctuation. A `String` does not fit here.
    pub fn lit(&mut self, text: &'static str) -> &mut Sql {
        self.parts().text.push_str(text);
        self
    }

    /// A quoted identifier.
    pub fn ident(&mut self, name: &Ident) -> &mut Sql {
        let text = &mut self.parts().text;
        text.push('"');
        text.push_str(&name.0.replace('"', "\"\""));
        text.push('"');
        self
    }

    /// A caller's value, as the next `$n`.
    pub fn bind(&mut self, bind: Bind) -> &mut Sql {
        let Parts { text, binds, .. } = self.parts();
        binds.push(bind);
        text.push('$');
        text.push_str(&binds.len().to_string());
        self
    }

    /// The values behind the first `n` stand beside no field of the entity.
    pub(crate) fn beside_no_field(&mut self, n: usize) {
        self.parts().binds.iter_mut().skip(n).for_each(|bind| bind.field = None);
    }

    /// The name of a type.
    pub fn built_in(&mut self, ty: &BuiltIn) -> &mut Sql {
        self.parts().text.push_str(&ty.0);
        self
    }

    /// A number of ours, such as a limit or the position of a column.
    pub fn number(&mut self, number: u64) -> &mut Sql {
        self.parts().text.push_str(&number.to_string());
        self
    }

    /// A whole statement of ours that names its parameters `$1` to `$n` itself.
    pub(crate) fn statement(&mut self, text: &'static str, binds: impl Iterator<Item = Bind>) -> &mut Sql {
        let parts = self.parts();
        parts.text.push_str(text);
        parts.binds.extend(binds);
        self
    }

    /// A whole statement, before all values of others, so that its parameters keep their numbers.
    pub(crate) fn begin_with(&mut self, statement: &Sql) -> &mut Sql {
        let parts = self.parts();
        assert!(parts.binds.is_empty(), "its parameters would be those of another statement");
        parts.text.push_str(&statement.0.text);
        parts.binds.clone_from(&statement.0.binds);
        self
    }

    /// A quoted string constant, for utility statements, which take no binds. Only [`crate::ddl`] writes those.
    pub(crate) fn literal(&mut self, text: &str) -> &mut Sql {
        // E'' reads the same whatever standard_conforming_strings says
        let into = &mut self.parts().text;
        into.push_str("E'");
        into.push_str(&text.replace('\\', "\\\\").replace('\'', "''"));
        into.push('\'');
        self
    }

    /// SQL of the tenant's owner (a policy expression), or a signature that PostgreSQL itself printed. It runs logged
    /// in as that owner and nowhere else. Only [`crate::ddl`] writes it.
    pub(crate) fn owners(&mut self, text: &str) -> &mut Sql {
        self.parts().text.push_str(text);
        self
    }

    /// A SELECT of an API caller, written from the tree that [`crate::user_select`] checked. It runs in a query session and
    /// nowhere else.
    pub(crate) fn checked(&mut self, text: &CheckedText) -> &mut Sql {
        self.parts().text.push_str(text.as_str());
        self
    }

    /// Marks a statement that changes schema `dl`, and so belongs to its owner.
    pub(crate) fn of_records(&mut self) -> &mut Sql {
        self.parts().of_records = true;
        self
    }

    /// Whether it changes schema `dl`: it runs as `t<id>_dl`, or by `dl.publish` in a transaction of the tenant's owner.
    #[must_use]
    pub fn is_of_records(&self) -> bool {
        self.0.of_records
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0.text
    }

    #[must_use]
    pub fn binds(&self) -> &[Bind] {
        &self.0.binds
    }

    #[must_use]
    pub fn into_parts(self) -> (String, Vec<Bind>) {
        let Parts { text, binds, .. } = Arc::unwrap_or_clone(self.0);
        (text, binds)
    }

    /// How much memory text and binds take, however many share them.
    #[must_use]
    pub fn n_bytes(&self) -> usize {
        let values = self.binds().iter().filter_map(|bind| bind.value.as_ref());
        // of an allocator
        let rounded = |value: &Vec<u8>| value.capacity().next_multiple_of(16);
        let values: usize = values.map(rounded).sum();
        self.0.text.capacity() + self.0.binds.capacity() * size_of::<Bind>() + values
    }

    fn parts(&mut self) -> &mut Parts {
        Arc::make_mut(&mut self.0)
    }
}

/// A part of an array or a composite, in double quotes; within them `escape` stands before a quote and a backslash before a backslash.
pub(crate) fn quoted(text: &str, escape: char, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push(escape),
            '\\' => out.push('\\'),
            _ => {}
        }
        out.push(c);
    }
    out.push('"');
}

impl fmt::Debug for Ident {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

impl fmt::Debug for Bind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Bind({}, hidden)", self.oid)
    }
}

impl fmt::Debug for Sql {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sql({:?}, {} binds)", self.as_str(), self.binds().len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_quoted_whatever_they_hold() {
        let mut sql = Sql::new();
        sql.lit("select ").ident(&Ident::new("a\"; drop table x; --").expect("a name"));
        assert_eq!(sql.as_str(), "select \"a\"\"; drop table x; --\"");
        assert!(
            Ident::new("").is_none() && Ident::new("a\0b").is_none() && Ident::new("x".repeat(64)).is_none()
        );
    }
}
