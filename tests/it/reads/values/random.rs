//! Random values of every type: alone, in arrays of one and two dimensions, in composites, and in those which only
//! text can show, beside an expectation put together from PostgreSQL's own JSON of each value alone.

use std::fmt::Write as _;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::Value;

use super::fixture::Fixture;

/// Values of each type.
const POOL: usize = 40;
pub(super) const ROWS: usize = 60;

struct Kind {
    name: &'static str,
    declared: &'static str,
    /// SQL over `x`: the JSON of one value. `to_json` where nothing else is said.
    expected: &'static str,
    /// What a value is cast from.
    value: fn(&mut StdRng) -> String,
}

const fn kind(name: &'static str, declared: &'static str, value: fn(&mut StdRng) -> String) -> Kind {
    Kind { name, declared, expected: "to_json(x)", value }
}

/// The known differences: `Z` for the zone of UTC; base 64; oid is a number; json as it was written.
const KINDS: &[Kind] = &[
    kind("i2", "int2", |rng| rng.random::<i16>().to_string()),
    kind("i4", "int4", |rng| rng.random::<i32>().to_string()),
    kind("i8", "int8", |rng| rng.random::<i64>().to_string()),
    Kind { expected: "x::text", ..kind("o", "oid", |rng| rng.random::<u32>().to_string()) },
    kind("f4", "float4", |rng| special(rng, |rng| float(f64::from(f32::from_bits(rng.random()))))),
    kind("f8", "float8", |rng| special(rng, |rng| float(f64::from_bits(rng.random())))),
    kind("num", "numeric", |rng| {
        special(rng, |rng| {
            format!("{}.{:05}e{}", rng.random::<i32>(), rng.random_range(0..9999), rng.random_range(-9..9))
        })
    }),
    kind("yes", "bool", |rng| rng.random::<bool>().to_string()),
    kind("txt", "text", text),
    kind("vc", "varchar", text),
    kind("bp", "char(12)", |rng| text(rng).chars().take(12).collect()),
    kind("nm", "name", |rng| text(rng).chars().take(12).collect()),
    kind("uid", "uuid", |rng| format!("{:032x}", rng.random::<u128>())),
    Kind {
        expected: "to_json(translate(encode(x, 'base64'), E'\\n', ''))",
        ..kind("raw", "bytea", |rng| {
            let mut hex = "\\x".to_owned();
            (0..rng.random_range(0..9))
                .for_each(|_| write!(hex, "{:02x}", rng.random::<u8>()).expect("a string"));
            hex
        })
    },
    kind("day", "date", |rng| infinite(rng, |rng| format!("{}{}", day(rng), era(rng)))),
    kind("tm", "time", clock),
    kind("tmtz", "timetz", |rng| format!("{}{}", clock(rng), zone(rng))),
    kind("ts", "timestamp", |rng| infinite(rng, |rng| format!("{} {}{}", day(rng), clock(rng), era(rng)))),
    Kind {
        expected: "to_json(replace(to_json(x) #>> '{}', '+00:00', 'Z'))",
        ..kind("tstz", "timestamptz", |rng| {
            infinite(rng, |rng| format!("{} {}{}{}", day(rng), clock(rng), zone(rng), era(rng)))
        })
    },
    kind("span", "interval", |rng| {
        let mut part = |bound: i64| rng.random_range(-bound..bound);
        format!("{} months {} days {} microseconds", part(99), part(99), part(1 << 50))
    }),
    Kind {
        expected: "x::text",
        ..kind("js", "json", |rng| {
            format!("{{\"a\" :  [{}, {}]}}", rng.random::<i8>(), Value::from(text(rng)))
        })
    },
    Kind {
        expected: "x::text",
        ..kind("jb", "jsonb", |rng| format!("[{}.50, null, {}]", rng.random::<u8>(), Value::from(text(rng))))
    },
    kind("mood", "v.mood", |rng| {
        ["glad", "so \"so\"", "NULL", "a,b(c){d}\\"][rng.random_range(0..4)].to_owned()
    }),
    kind("ip", "inet", |rng| {
        format!("10.{}.0.{}/{}", rng.random::<u8>(), rng.random::<u8>(), rng.random_range(0..33))
    }),
    kind("rng", "tstzrange", |rng| format!("[{} {}Z,)", day(rng), clock(rng))),
    kind("boxes", "box", |rng| format!("({},{}),(0,0)", rng.random::<u8>(), rng.random::<i8>())),
];

fn special(rng: &mut StdRng, otherwise: fn(&mut StdRng) -> String) -> String {
    match rng.random_range(0..12) {
        0 => "NaN".to_owned(),
        1 => "-Infinity".to_owned(),
        2 => "-0".to_owned(),
        _ => otherwise(rng),
    }
}

fn infinite(rng: &mut StdRng, otherwise: fn(&mut StdRng) -> String) -> String {
    match rng.random_range(0..12) {
        0 => "infinity".to_owned(),
        1 => "-infinity".to_owned(),
        _ => otherwise(rng),
    }
}

fn float(value: f64) -> String {
    if value.is_finite() { format!("{value:e}") } else { "Infinity".to_owned() }
}

/// What stands for something in the text forms of arrays and composites is frequent. Not all of it is blank, which
/// `char(n)` would not tell from nothing.
fn text(rng: &mut StdRng) -> String {
    const LETTERS: [&str; 18] = [
        "{",
        "}",
        "(",
        ")",
        ",",
        "\"",
        "\\",
        " ",
        "\n",
        "\t",
        "'",
        "[",
        "=",
        "NULL",
        "a",
        "\u{e4}",
        "\u{1f600}",
        "\u{1}",
    ];
    (0..rng.random_range(0..7)).map(|_| LETTERS[rng.random_range(0..LETTERS.len())]).collect()
}

fn day(rng: &mut StdRng) -> String {
    let years = if rng.random() { 1..4713 } else { 1990..2040 };
    let year = rng.random_range(years);
    format!("{year:04}-{:02}-{:02}", rng.random_range(1..13), rng.random_range(1..29))
}

fn era(rng: &mut StdRng) -> &'static str {
    if rng.random_range(0..5) == 0 { " BC" } else { "" }
}

fn clock(rng: &mut StdRng) -> String {
    let micros = rng.random_range(0..1_000_000_u32);
    let micros = if rng.random() { micros } else { micros / 100_000 * 100_000 };
    format!(
        "{:02}:{:02}:{:02}.{micros:06}",
        rng.random_range(0..24),
        rng.random_range(0..60),
        rng.random_range(0..60)
    )
}

fn zone(rng: &mut StdRng) -> String {
    format!(
        "{}{:02}:{:02}",
        if rng.random() { '+' } else { '-' },
        rng.random_range(0..15),
        rng.random_range(0..60)
    )
}

/// Where in its pool the value stands that fills `slot` of `row`, counted from 0.
fn at(row: usize, slot: usize) -> usize {
    (row * 7 + slot * 11 + row * slot * 3) % POOL
}

/// One shape in which a value is shown: its column's type, how SQL builds it, and its JSON. `$` stands for the name of the
/// kind in the type; what is built is made of the values of slots.
struct Form {
    ty: &'static str,
    sql: fn(&dyn Fn(usize) -> String, &str) -> String,
    json: fn(&dyn Fn(usize) -> String) -> String,
}

fn pair_sql(x: &dyn Fn(usize) -> String, name: &str, slot: usize) -> String {
    format!("row({}, array[{}, {}], {})::v.pair_{name}", x(slot), x(slot + 1), x(slot + 2), x(slot + 3))
}

fn pair_json(x: &dyn Fn(usize) -> String, slot: usize) -> String {
    format!(
        "{{\"v\":{},\"a \\\"list\\\"\":[{},{}],\"d\":{}}}",
        x(slot),
        x(slot + 1),
        x(slot + 2),
        x(slot + 3)
    )
}

const FORMS: &[Form] = &[
    Form { ty: "v.dom_$", sql: |x, _| x(0), json: |x| x(0) },
    Form {
        ty: "v.dom_$[]",
        sql: |x, name| format!("array[{}, {}, {}]::v.dom_{name}[]", x(0), x(1), x(2)),
        json: |x| format!("[{},{},{}]", x(0), x(1), x(2)),
    },
    Form {
        ty: "v.list_$",
        sql: |x, name| {
            let values =
                format!("array[array[{}, {}, {}], array[{}, {}, {}]]", x(0), x(1), x(2), x(3), x(4), x(5));
            format!("('[0:1][-3:-1]=' || ({values})::text)::v.list_{name}")
        },
        json: |x| format!("[[{},{},{}],[{},{},{}]]", x(0), x(1), x(2), x(3), x(4), x(5)),
    },
    Form { ty: "v.pair_$", sql: |x, name| pair_sql(x, name, 0), json: |x| pair_json(x, 0) },
    Form {
        ty: "v.pair_$[]",
        sql: |x, name| format!("array[{}, null, {}]", pair_sql(x, name, 0), pair_sql(x, name, 4)),
        json: |x| format!("[{},null,{}]", pair_json(x, 0), pair_json(x, 4)),
    },
    Form {
        ty: "v.bare_$[]",
        sql: |x, name| {
            let (one, two) = (pair_sql(x, name, 1), pair_sql(x, name, 5));
            format!(
                "array[row('::1/64', {}, array[{}, {}], {one}, array[{two}])::v.bare_{name}]",
                x(0),
                x(1),
                x(2)
            )
        },
        json: |x| {
            let (one, two) = (pair_json(x, 1), pair_json(x, 5));
            let parts = format!("\"v\":{},\"list\":[{},{}],\"p\":{one},\"ps\":[{two}]", x(0), x(1), x(2));
            format!("[{{\"ip\":\"::1/64\",{parts}}}]")
        },
    },
];

/// Which values are drawn.
pub(super) fn seed() -> u64 {
    std::env::var("VALUES_SEED").map_or(1, |seed| seed.parse().expect("a seed is a number"))
}

/// The columns of `v.random` behind its key.
pub(super) fn columns() -> Vec<String> {
    let of = |kind: &Kind| (0..FORMS.len()).map(|f| format!("{}_{f}", kind.name)).collect::<Vec<_>>();
    KINDS.iter().flat_map(of).collect()
}

pub(super) fn script(rng: &mut StdRng) -> String {
    let mut script = "create schema v;\n\
        set timezone = 'UTC'; set intervalstyle = 'iso_8601'; set datestyle = 'ISO, MDY'; set extra_float_digits = 1;\n\
        create type v.mood as enum ('glad', 'so \"so\"', 'NULL', 'a,b(c){d}\\');\n\
        create table v.expected (id int primary key, kind text, e text);\n"
        .to_owned();
    let mut columns = String::new();
    let mut pools = Vec::new();
    let mut values = String::new();
    for (k, Kind { name, declared, expected, value }) in KINDS.iter().enumerate() {
        let seeds: Vec<String> = (0..POOL)
            .map(|i| match rng.random_range(0..8) {
                0 => format!("({i}, null)"),
                // In hexadecimal digits: the script goes through YAML.
                _ => {
                    let hex: String = value(rng).bytes().map(|byte| format!("{byte:02x}")).collect();
                    format!("({i}, convert_from('\\x{hex}', 'UTF8'))")
                }
            })
            .collect();
        let seeds = seeds.join(", ");
        writeln!(
            script,
            "create table v.pool_{name} as select i, t::{declared} as x from (values {seeds}) s (i, t);\n\
             insert into v.expected select {first} + i, '{name}', coalesce(({expected})::text, 'null') from v.pool_{name};\n\
             create domain v.dom_{name} as {declared};\n\
             create domain v.list_{name} as {declared}[];\n\
             create type v.pair_{name} as (v {declared}, \"a \"\"list\"\"\" {declared}[], d v.dom_{name});\n\
             create type v.bare_{name} as (ip inet, v {declared}, list v.list_{name}, p v.pair_{name}, ps v.pair_{name}[]);",
            first = k * POOL,
        )
        .expect("writing to a string");
        pools.push(format!("(select array_agg(x order by i) from v.pool_{name}) as p_{name}"));
        for (f, form) in FORMS.iter().enumerate() {
            write!(columns, ", {name}_{f} {}", form.ty.replace('$', name)).expect("writing to a string");
            let slot = |slot: usize| format!("p_{name}[1 + (g * 7 + {slot} * 11 + g * {slot} * 3) % {POOL}]");
            write!(values, ", {}", (form.sql)(&slot, name)).expect("writing to a string");
        }
    }
    write!(
        script,
        "create table v.random (id int primary key{columns});\n\
         insert into v.random select g{values} from generate_series(0, {ROWS} - 1) g, (select {}) pools;",
        pools.join(", ")
    )
    .expect("writing to a string");
    script
}

/// Seen to fail with the same eight faults as the fixed values.
#[tokio::test]
async fn values_are_the_same_wherever_they_stand() {
    let seed = seed();
    let mut rng = StdRng::seed_from_u64(seed);
    let mut fixture = Fixture::new(&script(&mut rng), &["random", "expected"]).await;
    let (expected, _) = fixture.page("expected?$first=-1&$select=e").await;
    let expected: Vec<Value> = serde_json::from_str(&format!("[{expected}]")).expect("JSON");
    let expected: Vec<&str> = expected.iter().map(|row| row["e"].as_str().expect("a text")).collect();
    assert_eq!(expected.len(), KINDS.len() * POOL);
    for (Kind { name, .. }, pool) in KINDS.iter().zip(expected.chunks(POOL)) {
        let columns: Vec<String> = (0..FORMS.len()).map(|f| format!("{name}_{f}")).collect();
        let url = format!("random?$first=-1&$select={}", columns.join(","));
        let (rows, _) = fixture.page(&url).await;
        let row = |row: usize| {
            let value = |slot: usize| pool[at(row, slot)].to_owned();
            let fields: Vec<String> = FORMS
                .iter()
                .enumerate()
                .map(|(f, form)| format!("\"{name}_{f}\":{}", (form.json)(&value)))
                .collect();
            format!("{{{}}}", fields.join(","))
        };
        let wanted: Vec<String> = (0..ROWS).map(row).collect();
        if rows != wanted.join(",") {
            let found: Vec<&str> = rows.split("},{\"").collect();
            let first = wanted.iter().zip(&found).find(|(wanted, found)| !wanted.contains(*found));
            panic!("VALUES_SEED={seed} {name}: {first:#?}");
        }
    }
    assert!(fixture.world.stop().await.success());
}
