//! Requests and the SQL that they become.

use super::*;

/// `$filter` and the condition with its binds.
#[test]
fn filters() {
    for (filter, wanted) in [
        ("id eq 1", r#"t."id" = $1 <- 23:"1""#),
        ("1 eq id", r#"t."id" = $1 <- 23:"1""#),
        ("1 lt id", r#"t."id" > $1 <- 23:"1""#),
        ("id ne -1", r#"t."id" <> $1 <- 23:"-1""#),
        ("id ge '7'", r#"t."id" >= $1 <- 23:"7""#),
        ("status eq 'it''s'", r#"t."status" = $1 <- 25:"it's""#),
        ("status eq ''", r#"t."status" = $1 <- 25:"""#),
        ("status eq 'a&b=c%'", r#"t."status" = $1 <- 25:"a&b=c%""#),
        ("status eq null", r#"t."status" is null <- "#),
        ("null ne status", r#"t."status" is not null <- "#),
        ("address eq null", r#"t."address" is not distinct from null <- "#),
        ("doc ne null", r#"t."doc" is not null <- "#),
        ("total gt 1.50", r#"t."total" > $1 <- 1700:"1.50""#),
        ("total lt 1e3", r#"t."total" < $1 <- 1700:"1e3""#),
        (
            "total eq NaN or score le -INF",
            r#"t."total" = $1 or t."score" <= $2 <- 1700:"NaN" 701:"-infinity""#,
        ),
        ("ratio eq 0.33", r#"t."ratio" = $1 <- 700:"0.33""#),
        ("placed ge 2024-01-31", r#"t."placed_at" >= $1 <- 1184:"2024-01-31""#),
        ("placed ge 2024-01-31T10:00:00Z", r#"t."placed_at" >= $1 <- 1184:"2024-01-31T10:00:00Z""#),
        (
            "placed lt '2024-01-31 10:00:00+02:00'",
            r#"t."placed_at" < $1 <- 1184:"2024-01-31 10:00:00+02:00""#,
        ),
        (
            "local lt INF and day eq 2024-02-29",
            r#"t."local" < $1 and t."day" = $2 <- 1114:"infinity" 1082:"2024-02-29""#,
        ),
        (
            "at eq 10:00 or at eq '10:00:00.5'",
            r#"t."at" = $1 or t."at" = $2 <- 1083:"10:00" 1083:"10:00:00.5""#,
        ),
        (
            "ref eq 3f2504e0-4f89-11d3-9a0c-0305e82c3301",
            r#"t."ref" = $1 <- 2950:"3f2504e0-4f89-11d3-9a0c-0305e82c3301""#,
        ),
        ("paid eq true and paid gt 'false'", r#"t."paid" = $1 and t."paid" > $2 <- 16:"true" 16:"false""#),
        ("mood eq 'happy'", r#"t."mood" = $1 <- 20001:"happy""#),
        ("ip eq '10.0.0.1'", r#"t."ip" = $1 <- 869:"10.0.0.1""#),
        ("tags eq '{a,b}'", r#"t."tags" = $1 <- 1009:"{a,b}""#),
        ("photo eq 'SGk='", r#"t."photo" = $1 <- 17:[48, 69]"#),
        ("photo eq 'SGk'", r#"t."photo" = $1 <- 17:[48, 69]"#),
        ("small gt -1", r#"t."small" > $1 <- 21:"-1""#),
        ("id in (1,2, '3')", r#"t."id" in ($1, $2, $3) <- 23:"1" 23:"2" 23:"3""#),
        ("id in(1)", r#"t."id" in ($1) <- 23:"1""#),
        (
            "id in (1,null) and paid eq true",
            r#"(t."id" in ($1) or t."id" is null) and t."paid" = $2 <- 23:"1" 16:"true""#,
        ),
        ("id in (null)", r#"t."id" is null <- "#),
        ("not (id in (1, null))", r#"not (t."id" in ($1) or t."id" is null) <- 23:"1""#),
        ("'ID Number' gt 5", r#"t."id_number" > $1 <- 20:"5""#),
        ("'ID Number' in (5)", r#"t."id_number" in ($1) <- 20:"5""#),
        ("'status' eq status", r#"t."status" = $1 <- 25:"status""#),
        ("status eq 'ID Number'", r#"t."status" = $1 <- 25:"ID Number""#),
        ("'ID Number' lt id", r#"t."id_number" < t."id" <- "#),
        ("placed ge local", r#"t."placed_at" >= t."local" <- "#),
        (
            "id eq 1 and id eq 2 or id eq 3",
            r#"(t."id" = $1 and t."id" = $2) or t."id" = $3 <- 23:"1" 23:"2" 23:"3""#,
        ),
        (
            "id eq 1 and (id eq 2 or id eq 3)",
            r#"t."id" = $1 and (t."id" = $2 or t."id" = $3) <- 23:"1" 23:"2" 23:"3""#,
        ),
        (
            "((id eq 1)) or ((id eq 2 or (id eq 3)))",
            r#"t."id" = $1 or t."id" = $2 or t."id" = $3 <- 23:"1" 23:"2" 23:"3""#,
        ),
        (
            "not id eq 1 and not(not (id eq 2))",
            r#"not (t."id" = $1) and not (not (t."id" = $2)) <- 23:"1" 23:"2""#,
        ),
    ] {
        let query = format!("$filter={}", filter.replace('%', "%25").replace('&', "%26").replace('+', "%2B"));
        let text = sql("orders", &query);
        let (_, condition) = text.split_once(" where ").expect("a condition");
        assert_eq!(condition.replace(r#" order by t."id" limit 101"#, ""), wanted, "{filter}");
    }
}

/// Functions, arithmetic and bare booleans, with the condition and its binds.
#[test]
fn terms() {
    let c = r#" collate pg_catalog."C", "#;
    for (filter, wanted) in [
        ("paid", r#"t."paid" <- "#.to_owned()),
        ("true", r#"$1 <- 16:"true""#.to_owned()),
        ("1 ne 1", r#"$1 <> $2 <- 23:"1" 23:"1""#.to_owned()),
        ("1 eq 1.5", r#"$1 = $2 <- 23:"1" 1700:"1.5""#.to_owned()),
        ("'a' lt 'b'", r#"$1 < $2 <- 25:"a" 25:"b""#.to_owned()),
        ("1 eq '1'", r#"$1 = $2 <- 23:"1" 23:"1""#.to_owned()),
        ("'1' lt 2", r#"$1 > $2 <- 23:"2" 23:"1""#.to_owned()),
        ("null eq null", r#"$1 <- 16:"true""#.to_owned()),
        ("null ne null", r#"$1 <- 16:"false""#.to_owned()),
        ("null eq 5", r#"$1 is null <- 23:"5""#.to_owned()),
        ("'a' ne null", r#"$1 is not null <- 25:"a""#.to_owned()),
        ("5 in (5,null)", r#"$1 = $2 or $3 is null <- 23:"5" 23:"5" 23:"5""#.to_owned()),
        ("length('abc') eq 3", r#"pg_catalog.char_length($1) = $2 <- 25:"abc" 23:"3""#.to_owned()),
        ("2024-01-31 lt 2024-01-31T10:00:00Z", r#"$1 < $2 <- 1082:"2024-01-31" 1184:"2024-01-31T10:00:00Z""#.to_owned()),
        ("duration'PT1H' gt duration'-P1DT2H'", r#"$1 > $2 <- 1186:"PT1H" 1186:"P-1DT-2H""#.to_owned()),
        ("binary'AQID' eq photo", r#"t."photo" = $1 <- 17:[01, 02, 03]"#.to_owned()),
        ("photo in (binary'_-8=','AA')", r#"t."photo" in ($1, $2) <- 17:[ff, ef] 17:[00]"#.to_owned()),
        ("mood eq app.mood'happy' or mood eq 'sad'", r#"t."mood" = $1 or t."mood" = $2 <- 20001:"happy" 20001:"sad""#.to_owned()),
        ("ref eq guid'3f2504e0-4f89-11d3-9a0c-0305e82c3301'", r#"t."ref" = $1 <- 2950:"3f2504e0-4f89-11d3-9a0c-0305e82c3301""#.to_owned()),
        ("placed ge datetimeoffset'2024-01-31T10:00:00Z' and day eq date'2024-01-31'", r#"t."placed_at" >= $1 and t."day" = $2 <- 1184:"2024-01-31T10:00:00Z" 1082:"2024-01-31""#.to_owned()),
        ("not paid and paid eq false", r#"not (t."paid") and t."paid" = $1 <- 16:"false""#.to_owned()),
        ("(paid) or true", r#"t."paid" or $1 <- 16:"true""#.to_owned()),
        ("contains(status,'50%')", format!(r#"(pg_catalog.strpos(t."status"{c}$1) > 0) <- 25:"50%""#)),
        ("contains('abc',status) eq true", format!(r#"(pg_catalog.strpos($1{c}t."status") > 0) = $2 <- 25:"abc" 16:"true""#)),
        ("startswith(status,'a_')", format!(r#"pg_catalog.starts_with(t."status"{c}$1) <- 25:"a_""#)),
        (
            "not endswith(status,'z')",
            r#"not (pg_catalog.starts_with(pg_catalog.reverse(t."status") collate pg_catalog."C", pg_catalog.reverse($1))) <- 25:"z""#.to_owned(),
        ),
        ("tolower(status) eq 'a'", r#"pg_catalog.lower(t."status") = $1 <- 25:"a""#.to_owned()),
        ("'A' eq toupper(trim(status))", r#"pg_catalog.upper(pg_catalog.btrim(t."status", E' \t\n\x0b\f\r')) = $1 <- 25:"A""#.to_owned()),
        ("length(status) gt 3", r#"pg_catalog.char_length(t."status") > $1 <- 23:"3""#.to_owned()),
        ("length(status) eq null", r#"pg_catalog.char_length(t."status") is null <- "#.to_owned()),
        ("indexof(status,'b') eq -1", format!(r#"(pg_catalog.strpos(t."status"{c}$1) - 1) = $2 <- 25:"b" 23:"-1""#)),
        ("substring(status,1) eq 'b'", r#"pg_catalog.substr(t."status", $1 + 1) = $2 <- 23:"1" 25:"b""#.to_owned()),
        ("concat(concat(status,' '),'x') eq 'a x'", r#"((t."status" || $1) || $2) = $3 <- 25:" " 25:"x" 25:"a x""#.to_owned()),
        (
            "year(placed) eq 2024 and month(day) eq 2 and day(local) eq 3",
            r#"nullif(nullif(extract(year from pg_catalog.timezone('UTC', t."placed_at")), 'infinity'), '-infinity')::pg_catalog.int4 = $1 and extract(month from t."day")::pg_catalog.int4 = $2 and extract(day from t."local")::pg_catalog.int4 = $3 <- 23:"2024" 23:"2" 23:"3""#.to_owned(),
        ),
        (
            "hour(at) ge 9 and minute(local) lt 5 and second(placed) eq 0",
            r#"extract(hour from t."at")::pg_catalog.int4 >= $1 and extract(minute from t."local")::pg_catalog.int4 < $2 and pg_catalog.floor(extract(second from pg_catalog.timezone('UTC', t."placed_at")))::pg_catalog.int4 = $3 <- 23:"9" 23:"5" 23:"0""#.to_owned(),
        ),
        (
            "date(placed) eq 2024-02-29 and time(local) gt 10:00",
            r#"(pg_catalog.timezone('UTC', t."placed_at"))::pg_catalog.date = $1 and (t."local")::pg_catalog.time > $2 <- 1082:"2024-02-29" 1083:"10:00""#.to_owned(),
        ),
        ("date(placed) le day", r#"(pg_catalog.timezone('UTC', t."placed_at"))::pg_catalog.date <= t."day" <- "#.to_owned()),
        (
            "round(total) eq 2 or floor(score) eq 1.5 or ceiling(id) eq 2",
            r#"pg_catalog.round(t."total") = $1 or pg_catalog.floor(t."score") = $2 or t."id" = $3 <- 1700:"2" 701:"1.5" 23:"2""#.to_owned(),
        ),
        ("id add 1 eq 2", r#"t."id" + $1 = $2 <- 23:"1" 23:"2""#.to_owned()),
        ("small add 1 eq 2", r#"t."small" + $1 = $2 <- 23:"1" 23:"2""#.to_owned()),
        ("id add 1.5 lt 2.5", r#"t."id" + $1 < $2 <- 1700:"1.5" 1700:"2.5""#.to_owned()),
        ("id add 3000000000 gt 1", r#"t."id" + $1 > $2 <- 20:"3000000000" 20:"1""#.to_owned()),
        ("1 sub total gt 2", r#"$1 - t."total" > $2 <- 1700:"1" 1700:"2""#.to_owned()),
        ("ratio mul 2 gt 0.33", r#"t."ratio" * $1 > $2 <- 700:"2" 700:"0.33""#.to_owned()),
        ("ratio add id gt 0.33", r#"t."ratio" + t."id" > $1 <- 701:"0.33""#.to_owned()),
        (
            "id add 2 mul 3 sub -id eq 1",
            r#"t."id" + ($1 * $2) - (- t."id") = $3 <- 23:"2" 23:"3" 23:"1""#.to_owned(),
        ),
        (
            "(id add 2) mul 3 div (id sub (id sub 1)) mod 5 eq -(1)",
            r#"(t."id" + $1) * $2 / (t."id" - (t."id" - $3)) % $4 = $5 <- 23:"2" 23:"3" 23:"1" 23:"5" 23:"-1""#.to_owned(),
        ),
        ("'ID Number' add 1 eq id", r#"t."id_number" + $1 = t."id" <- 23:"1""#.to_owned()),
        ("-'ID Number' eq - 5", r#"(- t."id_number") = $1 <- 20:"-5""#.to_owned()),
        ("id in (1,id add 1,length(status))", r#"t."id" in ($1, t."id" + $2, pg_catalog.char_length(t."status")) <- 23:"1" 23:"1""#.to_owned()),
        ("5 in (id,id mul 2)", r#"t."id" = $1 or t."id" * $2 = $3 <- 23:"5" 23:"2" 23:"5""#.to_owned()),
        ("length(status) in (1,null)", r#"pg_catalog.char_length(t."status") in ($1) or pg_catalog.char_length(t."status") is null <- 23:"1""#.to_owned()),
        ("(id add 1 eq 2)", r#"t."id" + $1 = $2 <- 23:"1" 23:"2""#.to_owned()),
    ] {
        let text = sql("orders", &format!("$filter={}", filter.replace('%', "%25")));
        let (_, condition) = text.split_once(" where ").expect("a condition");
        assert_eq!(condition.replace(r#" order by t."id" limit 101"#, ""), wanted, "{filter}");
    }
}

/// Query strings and whole statements.
#[test]
fn collections() {
    let lines = r#"select t."order_id", t."line", t."qty" from "app"."order""lines" t"#;
    let by_key = r#"order by t."order_id", t."line""#;
    for (query, wanted) in [
        ("", format!("{lines} {by_key} limit 101 <- ")),
        ("x=1&debug=", format!("{lines} {by_key} limit 101 <- ")),
        ("$first=1", format!("{lines} {by_key} limit 2 <- ")),
        ("$first=10", format!("{lines} {by_key} limit 11 <- ")),
        ("$first=11", format!("{lines} {by_key} limit 26 <- ")),
        ("$first=-1", format!("{lines} {by_key} limit 100001 <- ")),
        ("%24first=1&$select=*", format!("{lines} {by_key} limit 2 <- ")),
        ("$orderby=line", format!(r#"{lines} order by t."line", t."order_id" limit 101 <- "#)),
        (
            "$orderby=qty+desc,order_id+asc",
            format!(r#"{lines} order by t."qty" desc, t."order_id", t."line" limit 101 <- "#),
        ),
        (
            "$select=qty,line,qty",
            r#"select t."qty", t."line", t."order_id" from "app"."order""lines" t order by t."order_id", t."line" limit 101 <- "#.to_owned(),
        ),
        (
            "$filter=qty%20gt%201+or+qty+eq+0",
            format!(r#"{lines} where t."qty" > $1 or t."qty" = $2 {by_key} limit 101 <- 23:"1" 23:"0""#),
        ),
        (
            "$filter=qty gt 1&$count=true",
            r#"select t."order_id", t."line", t."qty", (select pg_catalog.count(*) from "app"."order""lines" t where t."qty" > $1) from "app"."order""lines" t where t."qty" > $2 order by t."order_id", t."line" limit 101 <- 23:"1" 23:"1""#.to_owned(),
        ),
        ("$count=false", format!("{lines} {by_key} limit 101 <- ")),
    ] {
        assert_eq!(sql("lines", query), wanted, "{query}");
    }
    let query = collection("lines", "$filter=qty gt 1&$count=true").expect("a question");
    assert_eq!(
        show(&compile::count(&query).sql),
        r#"select pg_catalog.count(*) from "app"."order""lines" t where t."qty" > $1 <- 23:"1""#
    );
}

#[test]
fn the_shape_says_how_each_column_is_read_and_where_the_position_stands() {
    let query = "$select=tags,doc,ID+Number,address,mood,ip&$orderby=tags,mood,total+desc";
    let compiled = compile::read(&collection("orders", query).expect("a question"));
    assert_eq!(
        compiled.sql.as_str(),
        r#"select t."tags", t."doc", t."id_number", t."address", t."mood", t."ip", t."total", t."id" from "app"."orders" t order by t."tags", t."mood", t."total" desc, t."id" limit 101"#
    );
    let columns: Vec<_> = compiled
        .shape
        .columns
        .iter()
        .map(|c| (c.label.as_deref().unwrap_or(""), c.encoding.clone()))
        .collect();
    assert_eq!(
        columns,
        [
            (r#""tags":"#, Encoding::Nested(tags())),
            (r#""doc":"#, Encoding::Json),
            (r#""ID Number":"#, Encoding::Int8),
            (r#""address":"#, Encoding::Quoted),
            (r#""mood":"#, Encoding::Text),
            (r#""ip":"#, Encoding::Quoted),
            ("", Encoding::Numeric),
            ("", Encoding::Int4),
        ]
    );
    assert_eq!(compiled.shape.position, [0, 4, 6, 7]);
    assert_eq!(compiled.take, 100);
}

#[test]
fn every_readable_field_and_no_other_is_selected() {
    let text = sql("orders", "");
    assert!(!text.contains("secret") && !text.contains('*'), "{text}");
    assert!(text.contains(r#"t."placed_at""#), "{text}");
}

#[test]
fn rows_are_named_by_their_whole_key_in_any_order() {
    let lines = r#"select t."order_id", t."line", t."qty" from "app"."order""lines" t"#;
    for (path, query, wanted) in [
        (
            [("order_id", "5"), ("line", "2")],
            "",
            format!(r#"{lines} where t."order_id" = $1 and t."line" = $2 limit 1 <- 23:"5" 21:"2""#),
        ),
        (
            [("line", "2"), ("order_id", "-5")],
            "",
            format!(r#"{lines} where t."order_id" = $1 and t."line" = $2 limit 1 <- 23:"-5" 21:"2""#),
        ),
        (
            [("line", "2"), ("order_id", "5")],
            "$select=qty",
            r#"select t."qty" from "app"."order""lines" t where t."order_id" = $1 and t."line" = $2 limit 1 <- 23:"5" 21:"2""#.to_owned(),
        ),
    ] {
        let compiled = compile::read(&row("lines", &path, query).expect("a row"));
        assert_eq!(show(&compiled.sql), wanted);
        assert!(compiled.binding.is_none() && compiled.shape.position.is_empty() && compiled.take == 1);
    }
}

/// Order, values of the last row, and the condition of the next page.
#[test]
fn the_next_page_stands_after_the_last_row() {
    let one = Some(&[0, 0, 0, 1][..]);
    let null: Option<&[u8]> = None;
    let one_way = r#"(t."order_id", t."line") > ($1, $2)"#;
    for (query, position, wanted) in [
        ("", [one, Some(&[0, 2][..])], one_way),
        (
            "$filter=qty eq 1 or qty eq 2",
            [one, Some(&[0, 2][..])],
            r#"(t."qty" = $1 or t."qty" = $2) and (t."order_id", t."line") > ($3, $4)"#,
        ),
        ("$orderby=order_id desc,line desc", [one, one], r#"(t."order_id", t."line") < ($1, $2)"#),
        (
            "$orderby=order_id desc",
            [one, one],
            r#"(t."order_id" <= $1 and (t."order_id" < $2 or (t."line" > $3)))"#,
        ),
    ] {
        let text = after("lines", &query.replace(' ', "+"), &position);
        assert!(text.contains(&format!(" where {wanted} order by ")), "{query}: {text}");
    }
    let status = Some(&b"x"[..]);
    for (query, position, wanted) in [
        (
            "$orderby=status",
            [status, one],
            r#"(t."status" > $1 or t."status" is null or (t."status" = $2 and (t."id" > $3)))"#,
        ),
        ("$orderby=status", [null, one], r#"(t."status" is null and (t."id" > $1))"#),
        (
            "$orderby=status desc",
            [status, one],
            r#"(t."status" <= $1 and (t."status" < $2 or (t."id" > $3)))"#,
        ),
        ("$orderby=status desc", [null, one], r#"(t."status" is not null or (t."id" > $1))"#),
        (
            "$orderby=id,status",
            [one, status],
            r#"(t."id" >= $1 and (t."id" > $2 or (t."status" > $3 or t."status" is null)))"#,
        ),
        ("$orderby=id,status", [one, null], r#"(t."id" >= $1 and (t."id" > $2 or (false)))"#),
        (
            "$orderby=id,status desc",
            [one, null],
            r#"(t."id" >= $1 and (t."id" > $2 or (t."status" is not null)))"#,
        ),
    ] {
        let text = after("orders", &query.replace(' ', "+"), &position);
        assert!(text.contains(&format!(" where {wanted} order by ")), "{query}: {text}");
    }
    // Bound in the format and with the type that the column is read in.
    let text = after("orders", "$orderby=ip,tags,total", &[Some(b"::1"), Some(&[9]), Some(&[0, 1]), one]);
    assert!(
        text.ends_with(
            r#"<- 869:"::1" 869:"::1" 1009:[09] 1009:[09] 1700:[00, 01] 1700:[00, 01] 23:[00, 00, 00, 01]"#
        ),
        "{text}"
    );
}

#[test]
fn equal_shapes_have_equal_text() {
    let text = |query: &str| {
        compile::read(&collection("orders", query).expect("a question")).sql.as_str().to_owned()
    };
    assert_eq!(text("$filter=id+eq+1&$first=30"), text("$first=40&$filter=2+eq+id"));
    assert_ne!(text("$filter=id+eq+1"), text("$filter=id+ne+1"));
}
