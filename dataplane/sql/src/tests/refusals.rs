//! Every way to ask wrongly, with the code and the words of the answer.

use rowgate_core::problem::Code::{self, *};

use super::*;

pub(super) fn check(result: Result<Query, Problem>, code: Code, words: &str, what: &str) {
    let problem = result.err().unwrap_or_else(|| panic!("{what} was answered"));
    let said = format!("{} {}", problem.message, problem.details.join(" "));
    assert_eq!(problem.code, code, "{what}: {said}");
    assert!(said.contains(words), "{what}: {said}");
    assert!(!said.contains("secret") || what.contains("secret"), "{what}: {said}");
}

#[test]
fn options() {
    for (query, code, words) in [
        (
            "$top=5",
            BadRequest,
            r#"no option "$top"; the options are $select, $filter, $orderby, $first, $after, $count and $expand"#,
        ),
        ("$top=5", BadRequest, "write $first=5"),
        ("$Filter=id eq 1", BadRequest, "lower case and without spaces: write $filter"),
        ("%20$first=5", BadRequest, "without spaces: write $first"),
        ("$skip=5", BadRequest, "follow nextLink"),
        ("$skiptoken=AbCdEfGhIjKlMnOpQrStUv-_", BadRequest, "write $after=AbCdEfGhIjKlMnOpQrStUv-_"),
        ("$inlinecount=allpages", BadRequest, "write $count=true"),
        ("$format=json", BadRequest, "answers are JSON: leave it out"),
        ("$apply=groupby((status))", BadRequest, "grouping and aggregation"),
        ("$count=yes", BadRequest, "$count is true or false; write $count=true"),
        ("$count=", BadRequest, "$count is true or false"),
        ("$count=TRUE", BadRequest, "$count is true or false"),
        ("$expand=customer", UnknownField, "no relationship"),
        ("$first=1&%24first=2", BadRequest, "$first is given twice"),
        ("$first", BadRequest, "name=value"),
        ("x", BadRequest, "name=value"),
        ("%20", BadRequest, "name=value"),
        ("=3", BadRequest, "single quotes around the URL"),
        ("+=3", BadRequest, "single quotes around the URL"),
        ("$filter=a%", BadRequest, "%25"),
        ("$filter=%c3%28", BadRequest, "UTF-8"),
        ("$filter=status eq '%00'", BadRequest, "NUL"),
        ("$first=0", BadRequest, "from 1 to 100000, or -1"),
        ("$first=-2", BadRequest, "from 1 to 100000, or -1"),
        ("$first=100001", BadRequest, "from 1 to 100000, or -1"),
        ("$first=", BadRequest, "digits"),
        ("$first=-", BadRequest, "digits"),
        ("$first=%2B5", BadRequest, "digits"),
        ("$first=1.5", BadRequest, "digits"),
        ("$first=99999999999999999999", BadRequest, "digits"),
        ("$select=", BadRequest, "lacks a field name"),
        ("$select=nope", UnknownField, r#"orders has no field "nope" for this key"#),
        ("$select=staus", UnknownField, r#"did you mean "status"?"#),
        ("$select=placed_at", UnknownField, r#"no field "placed_at""#),
        ("$select=id number", UnknownField, r#"did you mean "ID Number"?"#),
        ("$orderby=id,", InvalidOrderBy, "lacks a field name"),
        ("$orderby=id up", InvalidOrderBy, "only asc or desc may follow"),
        (
            "$orderby=id DESC,status ASC",
            InvalidOrderBy,
            "lower case, after a space: write $orderby=id desc,status",
        ),
        ("$orderby=status nulls last", InvalidOrderBy, "NULL, which comes last in ascending"),
        ("$orderby=status asc nulls first", InvalidOrderBy, "write $orderby=status"),
        ("$orderby=id.desc", UnknownField, "write $orderby=id desc"),
        ("$orderby=-id", UnknownField, "write $orderby=id desc"),
        ("$orderby=-secret", UnknownField, "orders has no field"),
        ("$orderby=ID Number", InvalidOrderBy, "single quotes"),
        ("$orderby=id,id desc", InvalidOrderBy, r#"names "id" twice"#),
        ("$orderby=doc", InvalidOrderBy, r#"the field "doc" is json, which has no order"#),
        ("$orderby=address", InvalidOrderBy, "no order"),
        ("$orderby=email", InvalidOrderBy, "public.citext, which has no order"),
        ("$orderby=nope", UnknownField, "nope"),
        ("$after=", InvalidCursor, "start again without $after"),
        ("$after=AAAA", InvalidCursor, "start again without $after"),
    ] {
        check(collection("orders", query), code, words, query);
    }
    check(collection("people", ""), BadRequest, "other keyFields", "a key without an order");
}

#[test]
fn filters() {
    for (filter, words) in [
        ("", "ends where a field or a value is expected"),
        ("id", r#"the field "id" is integer, which is not a condition by itself; compare it with one of eq"#),
        ("5", "a constant is not a condition by itself"),
        ("null or paid", "a constant is not a condition by itself"),
        ("length(status) and paid", "the function length is integer, which is not a condition"),
        ("id add 1", "the result of add is integer, which is not a condition"),
        ("id eq", "ends where a field or a value"),
        (
            "id like2 1",
            "one of eq, ne, gt, ge, lt, le, in, add, sub, mul, div, mod, and, or, or the end is expected at character 4",
        ),
        ("id eq 1 id eq 2", "and, or, or the end is expected at character 9"),
        ("id eq 1 and", "ends where"),
        ("(id eq 1", "closing parenthesis"),
        ("id eq 1)", "and, or, or the end"),
        ("status eq 'a", "the quote at character 11 of $filter is not closed"),
        ("id in ()", "a field or a value"),
        ("id in (1,)", "a field or a value"),
        ("id in 1", "a list such as (1,2)"),
        ("id in (status)", r#"the field "id" is integer and the field "status" is text cannot be compared"#),
        ("id in (1,(id eq 2))", "a value is expected at character 10 of $filter, not a condition"),
        ("id gt null", "null has no order; write eq null or ne null, not gt"),
        ("pg_sleep(10) eq 1", r#"there is no function "pg_sleep""#),
        ("id eq 'x'", r#"the field "id" is integer: write a whole number from -2147483648 to 2147483647"#),
        ("id eq 2147483648", "whole number"),
        ("id eq 1.0", "whole number"),
        ("id eq true", "whole number"),
        ("id eq '+1'", "whole number"),
        ("small eq 40000", r#"the field "small" is app.positive: write a whole number from -32768"#),
        ("total eq 'x'", r#"the field "total" is numeric(12,2): write a number"#),
        ("total eq '1_000'", "write a number"),
        ("ratio eq 1e39", "out of range"),
        ("score eq 1e400", "out of range"),
        ("status eq 5", r#"the field "status" is text: write text in single quotes"#),
        ("status in ('a',5)", "write text in single quotes"),
        ("mood eq true", r#"the field "mood" is app.mood: write text"#),
        ("paid eq 1", r#"the field "paid" is boolean: write true or false"#),
        ("ref eq 'x'", "8-4-4-4-12"),
        ("day eq 2024-02-30", "a date such as"),
        ("day eq 2024-02-03T10:00:00Z", "a date such as"),
        ("day eq 'today'", "a date such as"),
        ("placed eq 'now'", "a timestamp"),
        ("local eq '2024-01-01T10:00:00+02:00'", "Z is the only offset allowed"),
        ("at eq 25:00", "a time such as"),
        ("photo eq '*'", "base 64"),
        ("doc eq '{}'", r#"the field "doc" is json, which has no eq"#),
        ("email eq 'a'", "public.citext, which has no eq"),
        ("place ne '(1,2)'", "point, which has no ne"),
        ("address in ('(1)')", "which has no eq"),
        ("id eq 'ID Number'", r#"the field "id" is integer"#),
        ("'ID Number' eq status", "cannot be compared"),
        ("status eq id", r#"the field "status" is text and the field "id" is integer cannot be compared"#),
        ("doc eq doc", "which has no eq"),
    ] {
        let query = format!("$filter={}", filter.replace('+', "%2B"));
        check(collection("orders", &query), InvalidFilter, words, filter);
    }
    check(collection("orders", "$filter=staus eq 'a'"), UnknownField, r#"did you mean "status""#, "a name");
    let long = format!("$filter=status eq '{}'", "a".repeat(filter::MAX_FILTER_LEN));
    check(collection("orders", &long), InvalidFilter, "longer than 8192 bytes", "a long filter");
}

/// Functions and arithmetic: what stands where something else has to stand.
#[test]
fn terms() {
    for (filter, words) in [
        ("contains(status)", "contains takes 2 arguments, not 1"),
        ("contains(status,'a','b')", "contains takes 2 arguments, not 3"),
        ("length()", "length takes 1 argument, not 0"),
        ("substring(status) eq 'a'", "substring takes 2 or 3 arguments, not 1"),
        ("contains(status,'a'", "a comma or a closing parenthesis"),
        ("contains(,'a')", "a field or a value is expected"),
        ("contains(status 'a')", "a comma or a closing parenthesis is expected at character 17"),
        ("Contains(status,'a')", r#"there is no function "Contains" did you mean contains?"#),
        ("contains(id,'a')", r#"argument 1 of contains has to be text; the field "id" is integer"#),
        ("contains(status,5)", "argument 2 of contains has to be text; the constant is integer"),
        ("contains(status,null)", "a computation with null"),
        ("startswith(tags,'a')", r#"the field "tags" is text[]"#),
        ("tolower(mood) eq 'a'", r#"argument 1 of tolower has to be text; the field "mood" is app.mood"#),
        ("year(status) eq 1", "argument 1 of year has to be a date or a timestamp"),
        ("year(at) eq 1", r#"the field "at" is time without time zone"#),
        ("hour(day) eq 1", "argument 1 of hour has to be a timestamp or a time"),
        ("hour(date(placed)) eq 1", "the function date is date"),
        ("year(2024-02-30) eq 1", "the constant must be of type date: write a date such as"),
        ("round(status) eq 1", "argument 1 of round has to be a number"),
        ("substring(status,-1) eq 'a'", "counted from 0"),
        ("substring(status,0,- 1) eq 'a'", "counted from 0"),
        (
            "substring(status,1.5) eq 'a'",
            "argument 2 of substring has to be a whole number; the constant is numeric",
        ),
        ("substring(status,'1') eq 'a'", "the constant is text"),
        ("length(status) eq 'x'", "the function length is integer: write a whole number"),
        ("length(status) eq 1.5", "the function length is integer: write a whole number"),
        ("length(status) eq status", "cannot be compared"),
        ("contains(status,'a') eq 1", "the function contains is boolean: write true or false"),
        ("tolower(status) eq 5", "the function tolower is text: write text in single quotes"),
        ("status add 1 eq 2", r#"add takes numbers; the field "status" is text"#),
        ("id sub status eq 2", r#"sub takes numbers; the field "status" is text"#),
        ("id add '1' eq 2", "add takes numbers; the constant is text"),
        ("id add true eq 2", "add takes numbers; the constant is boolean"),
        ("id add null eq 2", "a computation with null"),
        ("placed add 1 gt placed", r#"add takes numbers; the field "placed" is timestamp with time zone"#),
        ("day sub day eq 1", "sub takes numbers"),
        ("tags add tags eq 1", "add takes numbers"),
        ("score mod 2 eq 1", "mod takes whole and decimal numbers, not double precision"),
        ("total mod score eq 1", "mod takes whole and decimal numbers, not double precision"),
        ("ratio mul 1e39 gt 1", "mul takes a constant of type real here: the number is out of range"),
        ("-status eq 1", r#"a minus sign takes numbers; the field "status" is text"#),
        ("-'a' eq 1", "a minus sign takes numbers; the constant is text"),
        ("- eq 1", "expected"),
        ("-", "ends where a field or a value"),
        ("id add eq 1", "expected"),
        ("id add", "ends where a field or a value"),
        ("(id eq 1) add 2 eq 3", "a value is expected at character 1 of $filter, not a condition"),
        ("id add (id eq 1) eq 3", "a value is expected at character 8 of $filter"),
        ("-(id eq 1) eq 3", "a value is expected at character 2 of $filter"),
        ("length(id eq 1) eq 3", "a comma or a closing parenthesis"),
        ("length((id eq 1)) eq 3", "a value is expected at character 8 of $filter"),
        ("(id eq 1) eq true", "and, or, or the end is expected at character 11"),
        ("id eq (id eq 1)", "a value is expected at character 7 of $filter"),
        ("id add 1 eq 99999999999", "the result of add is integer: write a whole number"),
        ("id plus 1 eq 2", "write id add 1"),
        ("id pus 1 eq 2", "one of eq, ne, gt, ge, lt, le, in, add"),
    ] {
        let result = collection("orders", &format!("$filter={filter}"));
        check(result, InvalidFilter, words, filter);
    }
}

#[test]
fn depth_ends_at_32() {
    for (open, close) in [("- ", ""), ("trim(", ")"), ("substring(status,", ")")] {
        let nest = |n: usize| match open {
            "- " => format!("$filter={}id eq 1", open.repeat(n)),
            "trim(" => format!("$filter={}status{} eq 'a'", open.repeat(n), close.repeat(n)),
            _ => {
                format!("$filter=contains({}status{},'a')", "concat('a',".repeat(n - 1), close.repeat(n - 1))
            }
        };
        assert!(collection("orders", &nest(32)).is_ok(), "{open}");
        check(collection("orders", &nest(33)), InvalidFilter, "nests deeper than 32 levels", open);
    }
    for (open, close) in [("(", ")"), ("not ", ""), ("not (", ")")] {
        let levels = if open == "not (" { 2 } else { 1 };
        let nest =
            |n: usize| format!("$filter={}id eq 1{}", open.repeat(n / levels), close.repeat(n / levels));
        assert!(collection("orders", &nest(32)).is_ok(), "{open}");
        check(collection("orders", &nest(34)), InvalidFilter, "nests deeper than 32 levels", open);
    }
}

#[test]
fn an_absent_name_and_an_ungranted_one_get_the_same_answer() {
    let answer = |option: &str, name: &str| {
        let problem = collection("orders", &option.replace('?', name)).expect_err("no such field");
        let details: Vec<_> = problem.details.iter().map(|detail| detail.replace(name, "?")).collect();
        (problem.code, problem.message.replace(name, "?"), details)
    };
    for option in ["$select=?", "$orderby=?", "$filter=? eq 'x'", "$filter=id eq ?", "$filter='a' eq ?"] {
        assert_eq!(answer(option, "secret"), answer(option, "zzzzzz"), "{option}");
        // A near miss of the hidden name gets no hint.
        assert_eq!(answer(option, "secre").2, answer(option, "zzzzz").2, "{option}");
    }
    for filter in ["?=5", "?.eq.5", "!?", "id eq ?"] {
        let option = format!("$filter={filter}");
        assert_eq!(answer(&option, "secret"), answer(&option, "zzzzzz"), "{option}");
    }
    // A quoted text is never matched against hidden names either.
    let quoted = |name: &str| sql("orders", &format!("$filter='{name}' eq 'x'")).replace(name, "?");
    assert_eq!(quoted("secret"), quoted("zzzzzz"));
    // Nor a parameter without $.
    let stray = |name: &str| sql("orders", &format!("{name}=eq.5&{name}[gt]=5&{name}__gt=5"));
    assert_eq!(stray("secret"), stray("zzzzzz"));
    let absent = collection("nowhere", "").expect_err("absent");
    for entity in ["hidden", "other"] {
        assert_eq!(collection(entity, "").expect_err("not readable"), absent);
        assert_eq!(collection(entity, "$select=nope").expect_err("not readable"), absent);
        assert_eq!(row(entity, &[("x", "1")], "").expect_err("not readable"), absent);
    }
    assert_eq!(absent, Problem::entity_not_found());
    // The nearest name is one of those that this key may use, and never the name that was asked.
    for (asked, near) in [
        ("line", Some("lines")),
        ("Orders", Some("orders")),
        ("others", Some("other")),
        ("hiden", None),
        ("hidden", None),
        ("other", None),
    ] {
        let details = collection(asked, "").expect_err("no such entity").details;
        assert_eq!(details.first().cloned(), near.map(|near| format!("did you mean {near:?}?")), "{asked}");
    }
}

#[test]
fn rows() {
    let whole = "all of its key fields, each once: /lines/order_id/{value}/line/{value}";
    for (path, query, code, words) in [
        (&[("order_id", "1")][..], "", BadRequest, whole),
        (&[], "", BadRequest, whole),
        (&[("order_id", "1"), ("order_id", "1")], "", BadRequest, whole),
        (&[("order_id", "1"), ("qty", "1")], "", BadRequest, whole),
        (&[("order_id", "1"), ("line", "1"), ("line", "1")], "", BadRequest, whole),
        (
            &[("order_id", "x"), ("line", "1")],
            "",
            InvalidValue,
            r#"the key field "order_id" is integer: write a whole"#,
        ),
        (&[("order_id", "1"), ("line", "99999")], "", InvalidValue, "smallint"),
        (
            &[("order_id", "1"), ("line", "1")],
            "$filter=qty eq 1",
            BadRequest,
            "takes only $expand and $select",
        ),
        (&[("order_id", "1"), ("line", "1")], "$orderby=qty", BadRequest, "takes only $expand and $select"),
        (&[("order_id", "1"), ("line", "1")], "$first=1", BadRequest, "takes only $expand and $select"),
        (&[("order_id", "1"), ("line", "1")], "$after=x", BadRequest, "takes only $expand and $select"),
        (&[("order_id", "1"), ("line", "1")], "$count=true", BadRequest, "takes only $expand and $select"),
        (&[("order_id", "1"), ("line", "1")], "$select=nope", UnknownField, "nope"),
        (&[("order_id", "1"), ("line", "1")], "select=qty", BadRequest, "write $select=qty"),
        (&[("order_id", "1"), ("line", "1")], "limit=1", BadRequest, "takes only $expand and $select"),
        (&[("order_id", "1"), ("line", "1")], "qty=eq.1", BadRequest, "takes only $expand and $select"),
    ] {
        check(row("lines", path, query), code, words, &format!("{path:?} {query}"));
    }
}

#[test]
fn a_cursor_belongs_to_one_question() {
    let first = compile::read(&collection("orders", "$filter=id+gt+1&$orderby=status").expect("a question"));
    let binding = first.binding.expect("a page can follow");
    let token = |values: usize| cursor::encode(&key(), binding, &vec![Some(b"x".to_vec()); values]);
    let ask = |entity: &str, query: &str| collection(entity, &format!("{query}&$after={}", token(2)));
    assert!(ask("orders", "$filter=id+gt+1&$orderby=status").is_ok());
    assert!(ask("orders", "$orderby=status+asc,id&$filter=+id++gt+1&$first=7&$select=paid").is_ok());
    for query in [
        "$filter=id+gt+2&$orderby=status",
        "$orderby=status",
        "$filter=id+gt+1",
        "$filter=id+gt+1&$orderby=status+desc",
    ] {
        check(ask("orders", query), InvalidCursor, "another query", query);
    }
    check(ask("lines", ""), InvalidCursor, "another query", "another entity");
    let short = format!("$filter=id+gt+1&$orderby=status&$after={}", token(1));
    check(collection("orders", &short), InvalidCursor, "another query", "too few values");
    let catalog = catalog();
    let request = query_string::parse(&format!("$filter=id+gt+1&$orderby=status&$after={}", token(2)))
        .expect("well-formed");
    let other = Cursors { key: &key(), caller: "k2" };
    let result =
        rest::collection(&catalog, &catalog.scopes["set_x"], &entity_name("orders"), &request, other);
    check(result, InvalidCursor, "another query", "another key");
}
