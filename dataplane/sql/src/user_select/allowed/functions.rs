//! The functions of `pg_catalog` that a caller's SELECT may call, by category. Whatever is absent is refused, a function of
//! PostgreSQL to come too.
//!
//! Absent on purpose: functions that run a text as SQL (`query_to_xml`, `cursor_to_xml`, `ts_stat`, `ts_rewrite`), that
//! change the session or its role (`set_config`, `setseed`), that read settings, files, catalogs or other sessions (`current_setting`,
//! `pg_*`, `has_*_privilege`, `format_type`, `to_reg*`), that act outside the transaction (`pg_notify`, `nextval`, `lo_*`, `dblink*`,
//! advisory locks, `pg_terminate_backend`, `pg_logical_emit_message`, `txid_*`), that wait (`pg_sleep*`), that differ between two
//! runs of the same text (`random*`, `gen_random_uuid`), and that make a large value from a short text (`array_fill`, `format`, whose
//! widths are data). `repeat`, `lpad` and `rpad` need a written length ([`BOUNDED`]).

/// Written without `pg_catalog`: PostgreSQL's grammar knows them, no function has the name.
pub(in crate::user_select) const GRAMMAR: &[&str] = &["coalesce", "nullif", "greatest", "least", "grouping"];

/// Written without brackets, or with a precision only.
pub(in crate::user_select) const NOW: &[&str] =
    &["current_date", "current_time", "current_timestamp", "localtime", "localtimestamp"];

/// The second argument is a length, which is a number in the text of at most [`MAX_LENGTH`].
pub(in crate::user_select) const BOUNDED: &[&str] = &["repeat", "lpad", "rpad"];
pub(in crate::user_select) const MAX_LENGTH: u64 = 1_000;

/// May stand in FROM. The deadline and the row limit bound what `generate_series` makes.
pub(in crate::user_select) const IN_FROM: &[&str] = &[
    "generate_series",
    "unnest",
    "json_array_elements",
    "json_array_elements_text",
    "json_each",
    "json_each_text",
    "json_object_keys",
    "json_to_record",
    "json_to_recordset",
    "jsonb_array_elements",
    "jsonb_array_elements_text",
    "jsonb_each",
    "jsonb_each_text",
    "jsonb_object_keys",
    "jsonb_path_query",
    "jsonb_to_record",
    "jsonb_to_recordset",
    "regexp_matches",
    "regexp_split_to_table",
    "string_to_table",
];

/// Values of text: immutable, no catalog.
const TEXT: &[&str] = &[
    "ascii",
    "bit_length",
    "btrim",
    "char_length",
    "character_length",
    "chr",
    "concat",
    "concat_ws",
    "decode",
    "encode",
    "initcap",
    "left",
    "length",
    "lower",
    "ltrim",
    "md5",
    "octet_length",
    "overlay",
    "position",
    "quote_literal",
    "quote_nullable",
    "regexp_count",
    "regexp_instr",
    "regexp_like",
    "regexp_match",
    "regexp_replace",
    "regexp_split_to_array",
    "regexp_substr",
    "replace",
    "reverse",
    "right",
    "rtrim",
    "sha224",
    "sha256",
    "sha384",
    "sha512",
    "split_part",
    "starts_with",
    "string_to_array",
    "strpos",
    "substr",
    "substring",
    "to_hex",
    "translate",
    "upper",
    "convert_from",
    "convert_to",
];

/// Numbers: immutable.
const NUMBERS: &[&str] = &[
    "abs",
    "acos",
    "asin",
    "atan",
    "atan2",
    "cbrt",
    "ceil",
    "ceiling",
    "cos",
    "cot",
    "degrees",
    "div",
    "exp",
    "factorial",
    "floor",
    "gcd",
    "lcm",
    "ln",
    "log",
    "log10",
    "min_scale",
    "mod",
    "numeric",
    "pi",
    "power",
    "radians",
    "round",
    "scale",
    "sign",
    "sin",
    "sqrt",
    "tan",
    "to_number",
    "trim_scale",
    "trunc",
    "width_bucket",
];

/// Dates and times, the transaction's time included, which is one value per statement.
const TIMES: &[&str] = &[
    "age",
    "date_bin",
    "date_part",
    "date_trunc",
    "extract",
    "isfinite",
    "justify_days",
    "justify_hours",
    "justify_interval",
    "make_date",
    "make_interval",
    "make_time",
    "make_timestamp",
    "make_timestamptz",
    "now",
    "statement_timestamp",
    "timezone",
    "to_char",
    "to_date",
    "to_timestamp",
    "transaction_timestamp",
];

/// JSON: values in, values out.
const JSON: &[&str] = &[
    "json_array_length",
    "json_build_array",
    "json_build_object",
    "json_extract_path",
    "json_extract_path_text",
    "json_object",
    "json_strip_nulls",
    "json_typeof",
    "jsonb_array_length",
    "jsonb_build_array",
    "jsonb_build_object",
    "jsonb_extract_path",
    "jsonb_extract_path_text",
    "jsonb_object",
    "jsonb_path_exists",
    "jsonb_path_match",
    "jsonb_path_query_array",
    "jsonb_path_query_first",
    "jsonb_pretty",
    "jsonb_set",
    "jsonb_strip_nulls",
    "jsonb_typeof",
    "row_to_json",
    "to_json",
    "to_jsonb",
    "array_to_json",
];

/// Arrays and ranges.
const ARRAYS: &[&str] = &[
    "array_append",
    "array_cat",
    "array_dims",
    "array_length",
    "array_lower",
    "array_ndims",
    "array_position",
    "array_positions",
    "array_prepend",
    "array_remove",
    "array_replace",
    "array_to_string",
    "array_upper",
    "cardinality",
    "trim_array",
    "daterange",
    "int4range",
    "int8range",
    "numrange",
    "tsrange",
    "tstzrange",
    "isempty",
    "lower_inc",
    "lower_inf",
    "upper_inc",
    "upper_inf",
    "num_nonnulls",
    "num_nulls",
];

/// Aggregates, ordered-set ones included. They hold what they collect in memory, which the server's limits bound.
const AGGREGATES: &[&str] = &[
    "any_value",
    "array_agg",
    "avg",
    "bit_and",
    "bit_or",
    "bit_xor",
    "bool_and",
    "bool_or",
    "corr",
    "count",
    "covar_pop",
    "covar_samp",
    "every",
    "json_agg",
    "json_object_agg",
    "jsonb_agg",
    "jsonb_object_agg",
    "max",
    "min",
    "mode",
    "percentile_cont",
    "percentile_disc",
    "regr_avgx",
    "regr_avgy",
    "regr_count",
    "regr_intercept",
    "regr_r2",
    "regr_slope",
    "regr_sxx",
    "regr_sxy",
    "regr_syy",
    "stddev",
    "stddev_pop",
    "stddev_samp",
    "string_agg",
    "sum",
    "var_pop",
    "var_samp",
    "variance",
];

/// Window functions.
const WINDOWS: &[&str] = &[
    "cume_dist",
    "dense_rank",
    "first_value",
    "lag",
    "last_value",
    "lead",
    "nth_value",
    "ntile",
    "percent_rank",
    "rank",
    "row_number",
];

/// Text search over values; its configuration is the database's.
const TEXT_SEARCH: &[&str] = &[
    "phraseto_tsquery",
    "plainto_tsquery",
    "to_tsquery",
    "to_tsvector",
    "ts_headline",
    "ts_rank",
    "ts_rank_cd",
    "websearch_to_tsquery",
];

/// Addresses and bits.
const OTHER: &[&str] = &[
    "broadcast",
    "family",
    "host",
    "masklen",
    "netmask",
    "network",
    "set_masklen",
    "text",
    "get_bit",
    "get_byte",
];

const LISTS: [&[&str]; 11] =
    [TEXT, NUMBERS, TIMES, JSON, ARRAYS, AGGREGATES, WINDOWS, TEXT_SEARCH, OTHER, BOUNDED, IN_FROM];

pub(in crate::user_select) fn is_aggregate(name: &str) -> bool {
    AGGREGATES.contains(&name)
}

/// Its time grows with the length of a value.
pub(in crate::user_select) fn is_long(name: &str) -> bool {
    [TEXT, JSON, ARRAYS, TEXT_SEARCH].iter().any(|list| list.contains(&name))
}

/// It multiplies or divides decimals without looking up.
pub(in crate::user_select) fn multiplies(name: &str) -> bool {
    const MULTIPLY: &[&str] = &[
        "div",
        "gcd",
        "lcm",
        "mod",
        "stddev",
        "stddev_pop",
        "stddev_samp",
        "var_pop",
        "var_samp",
        "variance",
    ];
    MULTIPLY.contains(&name)
}

/// It makes one value of those of all rows.
pub(in crate::user_select) fn makes_long(name: &str) -> bool {
    is_aggregate(name) && name.ends_with("_agg")
}

pub(in crate::user_select) fn is_allowed(name: &str) -> bool {
    LISTS.iter().any(|list| list.contains(&name))
}

/// What PostgreSQL has in place of a function of T-SQL.
pub(in crate::user_select) fn postgres_way(name: &str) -> Option<&'static str> {
    Some(match name {
        "isnull" => "coalesce(a, b)",
        "getdate" | "sysdatetime" | "sysdatetimeoffset" => "now()",
        "getutcdate" | "sysutcdatetime" => "now() at time zone 'UTC'",
        "len" => "length(a)",
        "datalength" => "octet_length(a)",
        "charindex" => "position(a in b)",
        "patindex" => "regexp_instr(a, b)",
        "replicate" => "repeat(a, 10)",
        "iif" => "case when a then b else c end",
        "choose" => "case a when 1 then b end",
        "convert" | "try_convert" | "try_cast" | "parse" | "try_parse" => "cast(a as type)",
        "dateadd" => "a + interval '1 day'",
        "datediff" => "a subtraction of two dates",
        "datepart" | "year" | "month" | "day" => "extract(year from a)",
        "datename" | "format" | "str" => "to_char(a, 'format')",
        "eomonth" => "date_trunc('month', a) + interval '1 month - 1 day'",
        "datefromparts" => "make_date(y, m, d)",
        "json_value" => "a ->> 'name'",
        "json_query" => "a -> 'name'",
        "json_modify" => "jsonb_set(a, path, value)",
        "isjson" => "a column of type json",
        "openjson" => "json_to_recordset(a) as x(id int)",
        "stuff" => "overlay(a placing b from 1 for 2)",
        "string_split" => "string_to_table(a, ',')",
        "square" => "a * a",
        "count_big" => "count(*)",
        "stdev" => "stddev(a)",
        "var" => "variance(a)",
        "unicode" => "ascii(a)",
        "nchar" => "chr(a)",
        _ => return None,
    })
}
