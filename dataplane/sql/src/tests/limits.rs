//! What a filter may build up on one row, and what is worked out behind the conditions of a view.

use rowgate_core::problem::Code;

use super::*;

/// The condition of a filter, without its binds.
fn condition(filter: &str) -> String {
    let text = sql("orders", &format!("$filter={}", filter.replace(' ', "+")));
    let (_, condition) = text.split_once(" where ").expect("a condition");
    condition.split(r#" order by t."id""#).next().expect("a condition").to_owned()
}

/// The same with each `#` another number.
fn many(n: usize, term: &str) -> String {
    (0..n).map(|i| term.replace('#', &i.to_string())).collect()
}

#[test]
fn few_functions_of_a_text_stand_by_themselves_and_many_behind_a_look_at_its_length() {
    const LOOK: &str = r#"case when coalesce(pg_catalog.octet_length(t."status"), 0)::pg_catalog.int8 * "#;
    for (filter, copies) in [
        (format!("id eq 1{}", many(24, " or contains(status,'#')")), None),
        (format!("id eq 1{}", many(25, " or contains(status,'#')")), Some(25)),
        (format!("id eq 1{}", many(6, " or tolower(status) eq '#'")), None),
        (format!("id eq 1{}", many(7, " or tolower(status) eq '#'")), Some(28)),
        (format!("id eq 1{}", many(13, " or trim(status) eq '#'")), Some(26)),
        (format!("id eq 1{}", many(13, " or endswith(status,'#')")), Some(26)),
        // The left side of a field in a list is worked out once more.
        (format!("tolower(status) in ('a'{})", many(6, ",status")), Some(28)),
        (format!("contains({}status{},'x')", "concat(status,".repeat(6), ")".repeat(6)), Some(34)),
        // The first change of case makes a text longer, and no other one.
        (format!("contains({}status{},'x')", "toupper(".repeat(9), ")".repeat(9)), Some(28)),
        // Comparisons free what they read.
        (format!("id eq 1{}", many(99, " or status eq '#'")), None),
        (format!("id eq 1{}", many(99, " or startswith(status,'#')")), None),
        (format!("status in ('a'{})", many(99, ",status")), None),
    ] {
        let condition = condition(&filter);
        let found = condition.split_once(LOOK).map(|(before, rest)| {
            assert!(before.is_empty(), "{filter}: {condition}");
            rest.split(' ').next().and_then(|n| n.parse().ok()).expect("a number")
        });
        assert_eq!(found, copies, "{filter}: {condition}");
    }
}

#[test]
fn what_an_index_may_serve_stands_before_the_look() {
    let filter = format!("id eq 1 and tolower(status) eq 'a'{}", many(21, " and contains(status,'#')"));
    let condition = condition(&filter);
    let begin = r#"t."id" = $1 and pg_catalog.lower(t."status") = $2 and (pg_catalog.strpos(t."status""#;
    assert!(condition.starts_with(begin), "{condition}");
    let end = concat!(
        r#" and case when coalesce(pg_catalog.octet_length(t."status"), 0)::pg_catalog.int8 * 1 <= 16777216 "#,
        r#"then (pg_catalog.strpos(t."status" collate pg_catalog."C", $23) > 0) else "#,
        r#"pg_catalog.repeat(' ', 1073741823 + coalesce(pg_catalog.octet_length(t."status"), 0)) is null end <- "#,
    );
    let condition = sql("orders", &format!("$filter={}", filter.replace(' ', "+")));
    let condition = condition.replace(r#" order by t."id" limit 101"#, "");
    assert!(condition.contains(end), "{condition}");
}

#[test]
fn long_computations_with_decimals_are_refused_and_those_with_whole_numbers_are_not() {
    for (filter, words) in [
        (format!("total{} eq 1", " add total".repeat(256)), None),
        (format!("total{} eq 1", " add total".repeat(257)), Some("more than 256 steps")),
        (format!("id{} eq 1", " mul id".repeat(257)), None),
        (format!("id eq 1{}", many(257, " or round(total) eq #")), Some("more than 256 steps")),
    ] {
        let found = collection("orders", &format!("$filter={}", filter.replace(' ', "+")));
        match (found, words) {
            (Ok(_), None) => {}
            (Err(problem), Some(words)) => {
                assert_eq!(problem.code, Code::InvalidFilter);
                assert!(problem.message.contains(words), "{problem:?}");
            }
            (found, _) => panic!("{filter}: {found:?}"),
        }
    }
}

/// The statement of a read of `orders` as if it were a view, from `from` on.
fn of_view(filter: &str) -> String {
    let query = format!("$select=id&$orderby=day&$filter={}", filter.replace(' ', "+"));
    let mut query = collection("orders", &query).expect("a question");
    Arc::make_mut(&mut query.entity).kind = EntityKind::View;
    let compiled = compile::read(&query);
    let (_, from) = compiled.sql.as_str().split_once(" from ").expect("a source");
    from.replace(r#" order by t."day", t."id" limit 101"#, "")
}

#[test]
fn what_may_raise_is_worked_out_behind_a_view() {
    let plain = r#""app"."orders" t where "#;
    for filter in [
        "id eq 1 and status in ('a','b') and total gt 5 and day ne null",
        "contains(tolower(concat(status,'x')),'a') or length(trim(status)) gt 3 or indexof(status,'a') eq 1",
        "startswith(status,'a') and year(placed) eq 2024 and time(local) lt 10:00:00",
        "total eq 1.5 and ratio gt 2 and ip eq '::1' and tags eq '{a}' and mood eq 'sad'",
        "total gt id and ratio lt score",
    ] {
        let from = of_view(filter);
        assert!(from.starts_with(plain) && !from.contains("offset"), "{filter}: {from}");
    }
    for (filter, inside, outside) in [
        ("1 div (id sub 5) eq 1", "", r#"$1 / (t."id" - $2) = $3"#),
        (
            "1 div (id sub 5) eq 1 and status eq 'a'",
            r#" where t."status" = $1"#,
            r#"$2 / (t."id" - $3) = $4"#,
        ),
        (
            "status eq 'a' and (paid or -id eq 1) and ref eq null",
            r#" where t."status" = $1 and t."ref" is null"#,
            r#"(t."paid" or (- t."id") = $2)"#,
        ),
        ("total eq score", "", r#"t."total" = t."score""#),
        ("round(total) in (1,2)", "", r#"pg_catalog.round(t."total") in ($1, $2)"#),
        ("substring(status,id) ne null", "", r#"pg_catalog.substr(t."status", t."id" + 1) is not null"#),
    ] {
        let from = of_view(filter);
        let wanted = format!(r#""app"."orders" t{inside} offset 0) t where {outside}"#);
        let (columns, found) = from.split_once(" from ").expect("a source inside");
        assert!(columns.starts_with(r#"(select t."id", "#) && columns.contains(r#"t."day""#), "{from}");
        assert_eq!(found, wanted, "{filter}");
    }
    let table = sql("orders", "$filter=1+div+(id+sub+5)+eq+1");
    assert!(!table.contains("offset"), "{table}");
}
