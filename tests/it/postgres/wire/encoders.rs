//! Every encoding against PostgreSQL's own JSON, for edges and thousands of random values.

use rowgate_sql::shape::Encoding;
use rowgate_tests::servers::postgres::{execute, major, shared};
use sqlx::postgres::PgConnection;

use super::fixture::{Tenant, utf8};

/// A fixed sequence, so that a failure comes again.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: i64) -> i64 {
        (self.next() % bound as u64) as i64
    }
}

/// Reads `x` of `app.<table>` with `encoding` and beside it the JSON that `expected` gives, row by row.
async fn agree(tenant: &Tenant, table: &str, encoding: Encoding, expected: &str) {
    let pool = tenant.pool();
    let text = format!("select x, {expected} from app.{table}");
    let page =
        pool.read(tenant.ask("a", &text, &[encoding, Encoding::Json]), usize::MAX).await.expect("an answer");
    let rows = utf8(&page).strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).expect("rows");
    let mut n_rows = 0;
    for row in rows.split("},{") {
        let row = row.strip_prefix("\"0\":").expect("ours first");
        let (ours, theirs) = row.split_once(",\"1\":").expect("theirs second");
        assert_eq!(ours, theirs, "{table}");
        n_rows += 1;
    }
    assert_eq!(n_rows, page.n_rows);
    assert!(20 <= n_rows, "{table}: {n_rows} rows");
}

/// Makes `app.<table>` with one row for each of `values`, which PostgreSQL reads through `expression` over `t`.
async fn fill(connection: &mut PgConnection, table: &str, expression: &str, values: &[String]) {
    let values: Vec<String> =
        values.iter().map(|value| format!("('{}')", value.replace('\'', "''"))).collect();
    execute(
        connection,
        &format!(
            "create table app.{table} as select {expression} as x from (values {}) v (t);
             insert into app.{table} values (null);
             grant select on app.{table} to public",
            values.join(",")
        ),
    )
    .await;
}

#[tokio::test]
async fn floats_are_written_with_postgresqls_digits() {
    let mut tenant = Tenant::found(shared().await, "wire_floats").await;
    let mut random = Random(1);
    let mut doubles: Vec<f64> =
        vec![0.0, -0.0, f64::MIN_POSITIVE, f64::MAX, 5e-324, 1e23, 9.5e-5, 123456789012345680.0];
    doubles.extend([
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        0.1 + 0.2,
        1e15,
        999999999999999.9,
        1e-4,
        1e-5,
    ]);
    doubles.extend((0..2046).map(|power| f64::from_bits(power << 52)));
    doubles.extend((0..2046).map(|power| -f64::from_bits((power << 52) - u64::from(0 < power))));
    doubles.extend((-30..30).map(|power| format!("1e{power}").parse::<f64>().expect("a float")));
    for _ in 0..10_000 {
        doubles.push(f64::from_bits(random.next()));
        doubles.push(random.below(1_000_000_000) as f64 / 1000.0);
        // Short numbers times powers of ten: among them lie all that are halfway between two floats.
        let digits = random.next() >> (random.next() % 64);
        doubles.push(digits as f64 * 10f64.powi(random.below(26) as i32));
    }
    let texts: Vec<String> = doubles.iter().map(|value| sql_float(format!("{value:e}"))).collect();
    fill(&mut tenant.superuser, "float8", "t::float8", &texts).await;
    agree(&tenant, "float8", Encoding::Float8, "to_json(x)").await;

    let mut singles: Vec<f32> =
        vec![0.0, -0.0, f32::MAX, f32::MIN_POSITIVE, 1e-45, f32::NAN, f32::INFINITY, 0.33];
    singles.extend([f32::NEG_INFINITY, 1e5, 1e6, 999999.0, 1e-4, 1e-5, 16777216.0, 33554432.0]);
    singles.extend((0..254).map(|power| f32::from_bits(power << 23)));
    for _ in 0..10_000 {
        singles.push(f32::from_bits(random.next() as u32));
        let digits = random.next() as u32 >> (random.next() % 32);
        singles.push(digits as f32 * 10f32.powi(random.below(12) as i32));
    }
    let texts: Vec<String> = singles.iter().map(|value| sql_float(format!("{value:e}"))).collect();
    fill(&mut tenant.superuser, "float4", "t::float4", &texts).await;
    agree(&tenant, "float4", Encoding::Float4, "to_json(x)").await;
}

/// Rust says `inf`; PostgreSQL reads that too, but NaN with a sign it does not.
fn sql_float(text: String) -> String {
    if text.contains("NaN") { "NaN".to_owned() } else { text }
}

#[tokio::test]
async fn numerics_keep_every_digit() {
    let mut tenant = Tenant::found(shared().await, "wire_numerics").await;
    let mut random = Random(2);
    let mut texts: Vec<String> = [
        "0",
        "0.0000",
        "-0.00001",
        "1e100",
        "1e-100",
        "NaN",
        "Infinity",
        "-Infinity",
        "10000",
        "9999.9999",
        "100000000",
    ]
    .map(str::to_owned)
    .to_vec();
    texts.push(format!("{}.{}", "9".repeat(3000), "1".repeat(2000)));
    for _ in 0..5_000 {
        let number = random.next() as i64 >> random.below(64);
        texts.push(format!("{number}e{}", random.below(60) - 30));
        texts.push(format!(
            "{}.{:0width$}",
            number % 100_000,
            random.below(1000),
            width = 1 + random.below(12) as usize
        ));
    }
    fill(&mut tenant.superuser, "numeric", "t::numeric", &texts).await;
    agree(&tenant, "numeric", Encoding::Numeric, "to_json(x)").await;
}

#[tokio::test]
async fn dates_times_and_intervals_read_as_postgresql_prints_them() {
    let mut tenant = Tenant::found(shared().await, "wire_times").await;
    let mut random = Random(3);
    let connection = &mut tenant.superuser;
    // Dates reach from 4713 BC to 5874897, timestamps to 294276.
    let (first, last) = (-2_451_507, 2_145_031_948);
    let mut days = vec![first, last, -730_119, -730_120, -730_486, 0, 59, 60, 2_921_939, 2_921_940];
    days.extend((0..3_000).map(|_| first + random.below(last - first)));
    days.extend((0..3_000).map(|_| random.below(2_000_000) - 1_000_000));
    let days: Vec<String> = days.iter().map(ToString::to_string).collect();
    fill(connection, "date", "date '2000-01-01' + t::int", &days).await;
    execute(connection, "insert into app.date values ('infinity'), ('-infinity')").await;

    let mut micros: Vec<i64> = vec![0, -1, 1, 999_999, 500_000, -500_000, 1_234_560];
    micros.extend((0..3_000).map(|_| random.below(9_000_000_000_000_000_000)));
    micros.extend((0..3_000).map(|_| -random.below(200_000_000_000_000_000)));
    micros.extend((0..1_000).map(|_| (random.below(1_000_000_000) - 500_000_000) * 1_000_000));
    let micros: Vec<String> = micros.iter().map(ToString::to_string).collect();
    let expression = "timestamp '2000-01-01' + (t || ' microseconds')::interval";
    fill(connection, "timestamp", expression, &micros).await;
    execute(connection, "insert into app.timestamp values ('infinity'), ('-infinity'), ('4714-11-24 BC')")
        .await;
    execute(
        connection,
        "create table app.timestamptz as select x at time zone 'UTC' as x from app.timestamp;
         grant select on app.timestamptz to public;",
    )
    .await;

    let day: Vec<String> = (0..2_000).map(|_| random.below(86_400_000_000).to_string()).collect();
    fill(connection, "time", "time '00:00' + (t || ' microseconds')::interval", &day).await;
    execute(connection, "insert into app.time values ('24:00'), ('00:00'), ('23:59:59.999999')").await;
    let zoned: Vec<String> = (0..2_000)
        .map(|i| {
            let (sign, zone) = (if random.next().is_multiple_of(2) { '+' } else { '-' }, random.below(16));
            let minutes = if i % 2 == 0 { String::new() } else { format!(":{:02}", random.below(60)) };
            let seconds = if i % 4 == 3 { format!(":{:02}", random.below(60)) } else { String::new() };
            format!(
                "{:02}:00:{:02}.{}{sign}{zone:02}{minutes}{seconds}",
                zone,
                random.below(60),
                random.below(1000)
            )
        })
        .collect();
    fill(connection, "timetz", "t::timetz", &zoned).await;

    let mut spans: Vec<String> =
        ["0", "1 mon", "-1 day", "1 year -1 day", "-0.5 s", "-1:00:00.25", "1 h -1 us"]
            .map(str::to_owned)
            .to_vec();
    // PostgreSQL 16 has no infinite intervals.
    if 17 <= major() {
        spans.extend(["infinity", "-infinity"].map(str::to_owned));
    }
    spans.extend((0..4_000).map(|_| {
        let mut part = |bound: i64| random.below(bound) - bound / 2;
        match part(4) {
            0 => format!(
                "{} months {} days {} microseconds",
                part(4_000_000_000),
                part(4_000_000_000),
                part(i64::MAX)
            ),
            1 => format!("{} months", part(30)),
            _ => format!("{} months {} days {} microseconds", part(50), part(50), part(100_000_000_000)),
        }
    }));
    fill(connection, "interval", "t::interval", &spans).await;

    agree(&tenant, "date", Encoding::Date, "to_json(x)").await;
    agree(&tenant, "timestamp", Encoding::Timestamp, "to_json(x)").await;
    let with_z = "to_json(replace(x_, '+00:00', 'Z'))".replace("x_", "to_json(x) #>> '{}'");
    agree(&tenant, "timestamptz", Encoding::TimestampTz, &with_z).await;
    agree(&tenant, "time", Encoding::Time, "to_json(x)").await;
    agree(&tenant, "timetz", Encoding::TimeTz, "to_json(x)").await;
    agree(&tenant, "interval", Encoding::Interval, "to_json(x)").await;
}

#[tokio::test]
async fn texts_bytes_and_the_rest_agree() {
    let mut tenant = Tenant::found(shared().await, "wire_texts").await;
    let mut random = Random(4);
    let connection = &mut tenant.superuser;
    let mut texts: Vec<String> = (1..=0x2ff).filter_map(char::from_u32).map(|c| format!("a{c}b")).collect();
    texts.extend(
        ["", "\"", "\\", "\\u0000", "\u{10ffff}", "\u{2028}", "</script>", "Zoë 雪"].map(str::to_owned),
    );
    fill(connection, "text", "t::text", &texts).await;
    fill(connection, "bpchar", "t::char(6)", &texts).await;
    let numbers: Vec<String> = (0..1_000).map(|_| (random.next() as i64).to_string()).collect();
    fill(connection, "int8", "t::int8", &numbers).await;
    fill(connection, "int4", "(t::int8 >> 32)::int4", &numbers).await;
    fill(connection, "int2", "(t::int8 >> 48)::int2", &numbers).await;
    fill(connection, "oid", "(t::int8 & 4294967295)::oid", &numbers).await;
    fill(connection, "one_byte", "((t::int8 & 255) - 128)::int4::\"char\"", &numbers).await;
    fill(connection, "bool", "(t::int8 & 1 = 1)", &numbers).await;
    fill(connection, "uuid", "md5(t)::uuid", &numbers).await;
    fill(connection, "bytea", "substr(sha512(t::bytea), 1, (t::int8 & 63)::int)", &numbers).await;
    fill(connection, "jsonb", "jsonb_build_object('x', t, 'y', array[t::int8])", &numbers).await;
    fill(connection, "array", "array[t, null, '\"']", &numbers).await;
    execute(connection, "create type app.mood as enum ('glad', 'so \"so\"')").await;
    fill(connection, "moods", "case when t::int8 > 0 then 'glad' else 'so \"so\"' end::app.mood", &numbers)
        .await;

    agree(&tenant, "text", Encoding::Text, "to_json(x)").await;
    agree(&tenant, "text", Encoding::Quoted, "to_json(x)").await;
    agree(&tenant, "bpchar", Encoding::Text, "to_json(x)").await;
    agree(&tenant, "int8", Encoding::Int8, "to_json(x)").await;
    agree(&tenant, "int4", Encoding::Int4, "to_json(x)").await;
    agree(&tenant, "int2", Encoding::Int2, "to_json(x)").await;
    agree(&tenant, "oid", Encoding::Oid, "x::text::json").await;
    agree(&tenant, "one_byte", Encoding::Quoted, "to_json(x)").await;
    agree(&tenant, "bool", Encoding::Bool, "to_json(x)").await;
    agree(&tenant, "uuid", Encoding::Uuid, "to_json(x)").await;
    agree(&tenant, "bytea", Encoding::Bytea, "to_json(translate(encode(x, 'base64'), E'\\n', ''))").await;
    agree(&tenant, "jsonb", Encoding::Jsonb, "to_json(x)").await;
    agree(&tenant, "array", Encoding::Quoted, "to_json(x::text)").await;
    agree(&tenant, "moods", Encoding::Text, "to_json(x)").await;
}
