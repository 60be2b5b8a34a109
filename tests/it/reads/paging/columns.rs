//! A column of every type that has an order, with values that tie, and stand at every end of the type.

/// One column of the test's tables.
pub(crate) struct Column {
    pub(crate) name: &'static str,
    /// As `create table` takes it.
    pub(crate) declared: &'static str,
    /// What a constant is cast to.
    pub(crate) ty: &'static str,
    pub(crate) writing: Writing,
    /// Types that compare with each other have one letter; 0: with its own only.
    pub(crate) group: u8,
    /// In a form that both PostgreSQL and a filter read (base 64 aside).
    pub(crate) values: &'static [&'static str],
}

/// How a filter writes a constant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Writing {
    /// Bare or quoted, and INF for infinity.
    Number,
    /// Bare or quoted.
    Bare,
    Quoted,
    /// Base 64; the values are PostgreSQL's hex.
    Bytes,
}

use Writing::{Bare, Bytes, Number, Quoted};

const INT2: &[&str] = &["-32768", "-1", "0", "1", "32767"];
const INT4: &[&str] = &["-2147483648", "-1", "0", "2", "2147483647"];
const INT8: &[&str] =
    &["-9223372036854775808", "0", "9007199254740992", "9007199254740993", "9223372036854775807"];
const NUMERIC: &[&str] =
    &["NaN", "Infinity", "-Infinity", "0", "-0.5", "1.10", "1.1", "1e30", "0.000001", "9007199254740993"];
const FLOAT: &[&str] = &["NaN", "Infinity", "-Infinity", "0", "-0", "0.33", "-1.5", "1e-30", "16777217"];
const TEXT: &[&str] = &[
    "",
    " a\t",
    "a",
    "A",
    "b",
    "B",
    "\u{e4}",
    "\u{c4}",
    "ab",
    "a b",
    "a-b",
    "Z",
    "r\u{e9}sum\u{e9}",
    "resume",
];
const MORE_TEXT: &[&str] =
    &["it's", "50%25 & +1", "\u{65e5}\u{672c}", "a", "A", "\u{e4}", "a\u{308}", "null"];

/// All of them, nullable in one table and NOT NULL in another.
pub(crate) const COLUMNS: &[Column] = &[
    column("i2", "int2", "int2", Number, b'n', INT2),
    column("i4", "int4", "int4", Number, b'n', INT4),
    column("i8", "int8", "int8", Number, b'n', INT8),
    column("num", "numeric", "numeric", Number, b'n', NUMERIC),
    column("money_like", "numeric(8,2)", "numeric", Number, b'n', &["NaN", "0", "1.10", "-1.1", "999999.99"]),
    column("f4", "float4", "float4", Number, b'n', FLOAT),
    column("f8", "float8", "float8", Number, b'n', FLOAT),
    column("flag", "bool", "bool", Bare, 0, &["true", "false"]),
    column("txt", "text", "text", Quoted, b't', TEXT),
    column("txt_c", "text collate \"C\"", "text", Quoted, b'C', TEXT),
    column("txt_icu", "text collate \"und-x-icu\"", "text", Quoted, b'I', TEXT),
    column("txt_blind", "text collate t.blind", "text", Quoted, b'B', TEXT),
    column("vc", "varchar(20)", "varchar", Quoted, b't', MORE_TEXT),
    column("vc_icu", "varchar(20) collate \"und-x-icu\"", "varchar", Quoted, b'I', MORE_TEXT),
    column("bp", "char(6)", "bpchar", Quoted, 0, &["", "a", "a  ", "A", "b", "\u{e4}"]),
    column("bp_blind", "char(6) collate t.blind", "bpchar", Quoted, 0, &["", "a", "A", "b", "\u{e4}"]),
    column("nm", "name", "name", Quoted, 0, &["", "a", "A", "b", "pg_class"]),
    column("folded", "t.folded", "text", Quoted, b'B', TEXT),
    column("positive", "t.positive", "int4", Number, b'n', &["1", "2", "3"]),
    column("mood", "t.mood", "t.mood", Quoted, 0, &["sad", "ok", "happy"]),
    column(
        "uid",
        "uuid",
        "uuid",
        Bare,
        0,
        &["00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff"],
    ),
    column(
        "day",
        "date",
        "date",
        Bare,
        b'd',
        &["infinity", "-infinity", "0044-03-15 BC", "2024-02-29", "12024-01-01"],
    ),
    column(
        "ts",
        "timestamp",
        "timestamp",
        Bare,
        b'd',
        &[
            "infinity",
            "-infinity",
            "0044-03-15T10:00:00 BC",
            "2024-02-29T00:00:00",
            "2024-02-29T23:59:59.999999",
        ],
    ),
    column(
        "tstz",
        "timestamptz",
        "timestamptz",
        Bare,
        b'd',
        &[
            "infinity",
            "-infinity",
            "0044-03-15T10:00:00Z BC",
            "2024-02-29T00:00:00Z",
            "2024-02-29T02:00:00+02:00",
        ],
    ),
    column(
        "tm",
        "time",
        "time",
        Bare,
        b'h',
        &["00:00:00", "10:00:00", "10:00:00.000001", "23:59:59.7", "24:00:00"],
    ),
    column(
        "tmtz",
        "timetz",
        "timetz",
        Bare,
        b'h',
        &["00:00:00Z", "10:00:00+02:00", "08:00:00Z", "24:00:00-12:00"],
    ),
    column("span", "interval", "interval", Quoted, 0, &["P1M", "P30D", "PT720H", "P-1D", "PT0.000001S"]),
    column("raw", "bytea", "bytea", Bytes, 0, &["\\x", "\\x00", "\\x00ff", "\\xff", "\\x3e3f"]),
    column("ip", "inet", "inet", Quoted, 0, &["10.0.0.1", "10.0.0.0/8", "::1", "10.0.0.1/24"]),
    column("rng", "int4range", "int4range", Quoted, 0, &["empty", "[1,3)", "[1,2]", "(,5)", "[7,)"]),
    column(
        "multi",
        "int4multirange",
        "int4multirange",
        Quoted,
        0,
        &["{}", "{[1,3)}", "{[1,2],[7,9)}", "{(,5)}"],
    ),
    column("ints", "int[]", "int[]", Quoted, 0, &["{}", "{1}", "{1,NULL}", "{1,2}", "{{1},{2}}"]),
    column("texts", "text[] collate \"C\"", "text[]", Quoted, 0, &["{}", "{a}", "{A,\"b c\"}", "{NULL}"]),
    column("blinds", "text[] collate t.blind", "text[]", Quoted, 0, &["{a}", "{A}", "{b}", "{a,NULL}"]),
    column("doc", "jsonb", "jsonb", Quoted, 0, &["null", "1", "1.0", "\"a\"", "[]", "{}", "{\"a\": 1}"]),
    column("cash", "money", "money", Quoted, 0, &["1.00", "-5.00", "1000", "92233720368547758.07"]),
    column("o", "oid", "oid", Number, 0, &["0", "1", "4294967295"]),
    column("bits", "varbit", "varbit", Quoted, 0, &["", "0", "01", "1"]),
];

pub(crate) const fn column(
    name: &'static str,
    declared: &'static str,
    ty: &'static str,
    writing: Writing,
    group: u8,
    values: &'static [&'static str],
) -> Column {
    Column { name, declared, ty, writing, group, values }
}

impl std::fmt::Debug for Column {
    /// Its name, which tells it from the others.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl Column {
    /// Whether PostgreSQL compares the two: texts only under one collation, or one and the database's own.
    pub(crate) fn compares_with(&self, other: &Column) -> bool {
        let text = |c: &Column| [b't', b'C', b'I', b'B'].contains(&c.group);
        self.name == other.name
            || (self.group != 0 && self.group == other.group)
            || (text(self) && text(other) && (self.group == b't' || other.group == b't'))
    }
}
