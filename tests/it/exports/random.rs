//! Rows whose values are drawn by PostgreSQL, the same ones for each seed.

/// Of each column of `kinds` but its key, what gives a value that no row is refused for.
const COLUMNS: [(&str, &str); 34] = [
    ("b", "random() < 0.5"),
    ("i2", "(random() * 65535 - 32768)::int::smallint"),
    ("i4", "(random() * 4294967294 - 2147483647)::int"),
    ("i8", "((random() - 0.5) * 1.8e19)::bigint"),
    ("f4", "((random() - 0.5) * 10 ^ ((random() * 70)::int - 35))::real"),
    ("f8", "(random() - 0.5) * 10 ^ ((random() * 500)::int - 250)"),
    ("n", "((random() - 0.5)::numeric * 10::numeric ^ (random() * 60)::int)"),
    ("n2", "((random() - 0.5) * 19999999999)::numeric(12,2)"),
    ("t", "@text"),
    ("v", "left(@text, 9)"),
    ("c", "left(@text, 5)"),
    ("u", "md5(random()::text)::uuid"),
    ("y", "decode(left(md5(random()::text), 2 * (random() * 16)::int), 'hex')"),
    ("d", "date '0001-01-01' + (random() * 3652058)::int"),
    ("ti", "time '00:00' + random() * interval '23 hours 59 minutes'"),
    (
        "tz",
        "(time '00:00' + random() * interval '23 hours')::time at time zone make_interval(hours => (random() * 24 - 12)::int)",
    ),
    ("ts", "timestamp '0001-01-01' + random() * 3652058 * interval '1 day'"),
    ("tstz", "timestamptz '0001-01-01 UTC' + random() * 3652058 * interval '1 day'"),
    (
        "iv",
        "make_interval((random() * 99)::int, (random() * 11)::int, 0, (random() * 60 - 30)::int, 0, 0, random() * 9999)",
    ),
    ("j", "json_build_object('a', random(), @text, array[@text, null])"),
    ("jb", "jsonb_build_array(random(), @text, null, true)"),
    ("m", "case when random() < 0.5 then 'good' else 'bad' end::depot.mood"),
    ("p", "(1 + random() * 9)::int"),
    ("pr", "row((random() * 9)::int, @text)::depot.pair"),
    ("ia", "array[(random() * 9)::int, null, -1]"),
    ("ta", "array[@text, null, '', 'NULL', @text]"),
    ("ma", "array['good', null]::depot.mood[]"),
    ("pa", "array[row(1, @text), null]::depot.pair[]"),
    ("r", "int4range((random() * 9)::int, 10 + (random() * 9)::int, '[]')"),
    ("ip", "('10.0.0.0'::inet + (random() * 16777215)::bigint)"),
    ("mo", "((random() - 0.5) * 1e9)::numeric::money"),
    ("bi", "((random() * 7)::int)::bit(3)"),
    ("o", "(random() * 2147483647)::int::oid"),
    ("na", "array[((random() - 0.5) * 1999)::numeric(6,3), null]"),
];

/// A text of up to 12 characters: what CSV and JSON quote, other scripts, and letters.
const TEXT: &str = "(select coalesce(string_agg(case when random() < 0.3 then substr(E'\"\\\\,;\\n\\r\\t''=@{}()', 1 + (random() * 13)::int, 1) \
    else chr(case when random() < 0.5 then 97 + (random() * 25)::int else 160 + (random() * 50000)::int end) end, ''), '') \
    from generate_series(1, (random() * 12)::int + 0 * g))";

/// Adds `n` rows to `kinds`, a tenth of whose values are NULL.
pub(super) fn script(seed: u64, n: usize) -> String {
    let names: String = COLUMNS.iter().map(|(name, _)| format!(", {name}")).collect();
    let value = |(_, value): &(&str, &str)| {
        format!(", case when random() < 0.1 then null else {} end", value.replace("@text", TEXT))
    };
    let values: String = COLUMNS.iter().map(value).collect();
    let seed = seed as f64 / 1e6;
    format!(
        "select setseed({seed}); insert into depot.kinds (id{names}) select 1000 + g{values} from generate_series(1, {n}) g"
    )
}
