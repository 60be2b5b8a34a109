//! Whether PostgreSQL compares two columns, whatever stands in them.

use rowgate_pg::introspect::actual::Column;

/// A column beside another.
pub(super) struct Compared {
    /// As messages call it.
    pub(super) name: String,
    /// `None`: there is none of this name.
    pub(super) column: Option<Column>,
}

impl Compared {
    fn type_name(&self) -> &str {
        fn base(it: &Column) -> &str {
            it.domain_over.as_deref().unwrap_or(&it.type_name)
        }
        self.column.as_ref().map_or("unknown", base)
    }

    /// Why the two cannot be compared. An error for one row would tell of it, whoever may see it.
    pub(super) fn refusal(&self, other: &Compared) -> Option<String> {
        let (a, b) = (self.type_name(), other.type_name());
        let are = format!("{} is {a} and {} is {b}, which PostgreSQL", self.name, other.name);
        if family(a) != family(b) || INCOMPARABLE.contains(&family(a).trim_end_matches("[]")) {
            return Some(format!("{are} does not compare with =; name columns of one type that has ="));
        }
        let is_float = |it: &str| matches!(it, "real" | "double precision");
        // with a precision it is within the range, but for some that have 309 digits or more
        if is_float(a) != is_float(b) && [a, b].contains(&"numeric") {
            return Some(format!(
                "{are} compares as double precision, out of whose range a numeric may be; name columns of one type"
            ));
        }
        let collation = |it: &Compared| it.column.as_ref().and_then(|column| column.collation);
        match (collation(self), collation(other)) {
            (Some(one), Some(two)) if one != two => Some(format!(
                "{} and {} have different collations, which PostgreSQL does not compare with each other; name columns of one collation",
                self.name, other.name
            )),
            _ => None,
        }
    }
}

/// Types of PostgreSQL that have no `=`.
const INCOMPARABLE: [&str; 4] = ["json", "xml", "point", "polygon"];

/// Types with operators between them, by the name of `format_type`.
fn family(type_name: &str) -> &str {
    let bare = type_name.split_once('(').map_or(type_name, |(bare, _)| bare);
    match bare.trim() {
        "smallint" | "integer" | "bigint" | "numeric" | "real" | "double precision" => "number",
        "text" | "character varying" | "character" | "name" | "\"char\"" => "text",
        it if it.starts_with("timestamp") || it == "date" => "time",
        it => it,
    }
}
