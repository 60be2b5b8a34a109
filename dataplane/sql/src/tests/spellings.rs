//! Options, operators and constants of other languages: each is refused with what to write here.

use rowgate_core::problem::Code::{BadRequest, InvalidFilter, UnknownField};

use super::refusals::check;
use super::*;

/// A parameter without `$` that is an option, or a field, spelt otherwise.
#[test]
fn parameters() {
    for (query, words) in [
        ("select=id,status", r#"there is no option "select"; write $select=id,status"#),
        ("SELECT=id", "write $select=id"),
        ("fields[orders]=id,status", "write $select=id,status"),
        ("select=id,lines(qty)", "write $select=name,name"),
        ("filter=id eq 5", "write $filter=id eq 5"),
        ("filter[status]=open", "write $filter=status eq 'open'"),
        ("filters[id][$gte]=5", "write $filter=id ge 5"),
        (
            r#"where={"id":{"_eq":5},"status":{"_ilike":"A%25"}}"#,
            "write $filter=id eq 5 and startswith(tolower(status),'a')",
        ),
        (r#"where={"secret":{"_eq":5}}"#, "such as $filter=id eq 5"),
        ("or=(id.eq.1,status.eq.open)", "write $filter=id eq 1 or status eq 'open'"),
        ("not.and=(id.gt.1,paid.is.true)", "write $filter=not (id gt 1 and paid eq true)"),
        ("or=(secret.eq.1,id.eq.1)", "write $filter=id eq 1 or id eq 2"),
        ("orderby=id", "write $orderby=id"),
        ("order=id.desc", "write $orderby=id desc"),
        (r#"order_by={"id":"desc"}"#, "write $orderby=id desc"),
        ("sort=-id,status", "write $orderby=id desc,status"),
        ("first=1", "write $first=1"),
        ("limit=5", "write $first=5"),
        ("per_page=5", "write $first=5"),
        ("page[size]=5", "write $first=5"),
        ("limit=all", "write $first=100"),
        ("offset=5", "follow nextLink"),
        ("page=2", "follow nextLink"),
        ("after=AbCdEfGhIjKlMnOpQrStUv", "write $after=AbCdEfGhIjKlMnOpQrStUv"),
        ("count=exact", "write $count=true"),
        ("expand=lines", "write $expand=lines"),
        ("distinct_on=status", "write $select=status&$orderby=status"),
        ("q=x", "write $filter=contains(name,'x')"),
        ("on_conflict=id", "send PATCH or PUT to the row's URL"),
        ("id=eq.5", r#"there is no option "id"; write $filter=id eq 5"#),
        ("id=5", "write $filter=id eq 5"),
        ("Id=5", "write $filter=id eq 5"),
        ("id!=5", "write $filter=id ne 5"),
        ("id>=5", "write $filter=id ge 5"),
        ("id[lt]=5", "write $filter=id lt 5"),
        ("id__in=1,2", "write $filter=id in (1,2)"),
        ("status=not.is.null", "write $filter=status ne null"),
        ("status=like.*a*", "write $filter=contains(status,'a')"),
        ("status=O'Brien", "write $filter=status eq 'O''Brien'"),
        ("ID Number=5", "write $filter='ID Number' eq 5"),
    ] {
        check(collection("orders", query), BadRequest, words, query);
    }
    for ignored in [
        "x=1",
        "utm_source=a",
        "_=1",
        "secret=eq.5",
        "placed_at=gt.5",
        "api-version=2",
        "format=json",
        "secret__gt=5",
    ] {
        assert!(collection("orders", ignored).is_ok(), "{ignored}");
    }
}

/// What stands where an operator, a function or a constant is expected.
#[test]
fn words() {
    for (filter, words) in [
        ("id = 1", r#""=" is not an operator: write id eq 1 (at character 4 of $filter)"#),
        ("id EQ 1", "write id eq 1"),
        ("id == 1", "write id eq 1"),
        ("id =5", "write id eq 5"),
        ("id <> 1", "write id ne 1"),
        ("id neq 1", "write id ne 1"),
        ("id _gte 1", "write id ge 1"),
        ("id eq 1 && id eq 2", "write and"),
        ("id eq 1 OR id eq 2", "write or"),
        ("id * 2 eq 4", "write id mul 2"),
        ("length(status) = 3", "write eq"),
        ("NOT id eq 1", "lower case: write not"),
        ("NOT (id eq 1)", "lower case: write not"),
        ("status like '%a%'", "write contains(status,'a')"),
        ("status LIKE 'a%'", "write startswith(status,'a')"),
        ("status ilike 'A%'", "write startswith(tolower(status),'a')"),
        ("status contains 'a'", "write contains(status,'a')"),
        ("status startswith 'a'", "write startswith(status,'a')"),
        ("status IS NULL", "write status eq null"),
        ("status is not null", "write status ne null"),
        ("id between 1 and 3", "write id ge 1 and id le 3"),
        ("id not in (1,2)", "write not (id in (1,2))"),
        ("id _nin (1,2)", "write not (id in (1,2))"),
        ("id IN (1,2)", "write id in (1,2)"),
        ("mood has app.mood'happy'", "write mood eq app.mood'happy'"),
        ("id divby 2 eq 1", "write id div 2"),
        ("status eq \"open\"", "put text in single quotes: write 'open'"),
        ("status = \"open\"", "write status eq 'open'"),
        ("status eq \u{201c}open\u{201d}", "write 'open'"),
        (r#"{"id":{"_eq":5}}"#, "$filter is not JSON; write a condition such as id eq 5"),
        ("status eq 'O'Brien'", "a quote inside text is written twice: write 'O''Brien'"),
        (r"status eq 'O\'Brien'", "write 'O''Brien'"),
        ("contains(status,'O'Brien') and id eq 1", "write 'O''Brien'"),
        ("placed ge 2026-01-01T00:00:00 02:00", "write 2026-01-01T00:00:00%2B02:00"),
        ("placed ge '2026-01-01T00:00:00 02:00'", "write the + of the offset as %2B"),
        ("score eq 1e 3", "an unescaped + in a URL means a space: write 1e%2B3"),
        ("matchesPattern(status,'^a')", "write contains(name,'x')"),
        ("substringof('a',status)", "write contains(name,'x')"),
        ("cast(id,Edm.String) eq '5'", "write the constant alone"),
        ("now() gt placed", "write the time itself"),
        ("lower(status) eq 'a'", "write tolower(name)"),
        ("or(id.eq.1,id.eq.2)", "id eq 1 or id eq 2"),
        ("status eq N'a'", r#"write the text without "N" before its quote: 'a'"#),
        ("id eq duration'1h'", "write a duration as duration'P1DT2H3M4.5S'"),
        ("id eq duration'PT1H'", "it cannot be compared with a constant of another type"),
        ("status eq binary'AQID'", "another type"),
        ("status eq app.mood'sad'", "another type"),
        ("ref eq guid'x'", "write a uuid as"),
        ("placed eq datetime'x'", "write a date as"),
        ("photo eq binary'*'", "base 64"),
        ("app.mood'sad' eq 'sad'", "app.mood'sad' is an enum value; compare it with a field of that enum"),
        ("1 eq true", "the constant is integer and the constant is boolean cannot be compared"),
        ("'a' eq 5", "the constant is integer: write a whole number"),
        ("null gt null", "null has no order"),
        ("null lt 1", "null has no order"),
    ] {
        let query = format!("$filter={}", filter.replace('%', "%25").replace('&', "%26"));
        check(collection("orders", &query), InvalidFilter, words, filter);
    }
}

/// Words that would be a field's name.
#[test]
fn names() {
    for (filter, words) in [
        ("id=5", r#""=" is not an operator: write id eq 5"#),
        ("id>=5", "write id ge 5"),
        ("id.eq.5", "write id eq 5"),
        ("status.ilike.*A*", "write contains(tolower(status),'a')"),
        ("!paid", "write not paid"),
        ("status eq NULL", "lower case: write null"),
        ("paid eq True", "lower case: write true"),
        ("id eq 5L", "numbers have no suffix: write 5"),
        ("status eq open", "put text in single quotes: 'open'"),
    ] {
        check(collection("orders", &format!("$filter={filter}")), UnknownField, words, filter);
    }
}
