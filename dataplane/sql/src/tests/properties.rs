//! What holds for any text: no panic, no deep stack, no text of the caller in SQL, one canonical form.

use proptest::prelude::*;

use super::*;
use crate::request::{Expr, Function};

fn parse(filter: &str) -> Result<Expr, Problem> {
    let encoded: String = filter.bytes().map(|byte| format!("%{byte:02X}")).collect();
    query_string::parse(&format!("$filter={encoded}")).map(|request| request.filter.expect("given"))
}

/// Runs on a quarter of the stack of a server's thread, drop included.
fn on_a_small_stack(work: fn()) {
    let thread = std::thread::Builder::new().stack_size(512 * 1024).spawn(work).expect("a thread");
    thread.join().expect("it ends well");
}

#[test]
fn long_chains_and_deep_nests_need_no_stack() {
    on_a_small_stack(|| {
        let mut chain = "id eq 1".to_owned();
        while chain.len() + 11 <= filter::MAX_FILTER_LEN {
            chain.push_str(" or id eq 1");
        }
        let query = collection("orders", &format!("$filter={}", chain.replace(' ', "+"))).expect("a chain");
        let compiled = compile::read(&query);
        assert_eq!(compiled.sql.binds().len(), (chain.len() + 4) / 11);
        let mut mixed = "id eq 1".to_owned();
        while mixed.len() + 24 <= filter::MAX_FILTER_LEN {
            mixed.push_str(" or id eq 1 and id eq 1");
        }
        drop(compile::read(
            &collection("orders", &format!("$filter={}", mixed.replace(' ', "+"))).expect("a chain"),
        ));
        for link in [" add 1", " sub id", " mul 2", " div id add 1"] {
            let mut sum = "id".to_owned();
            while sum.len() + link.len() + 5 <= filter::MAX_FILTER_LEN {
                sum.push_str(link);
            }
            let query =
                collection("orders", &format!("$filter={} eq 1", sum.replace(' ', "+"))).expect("a sum");
            drop(compile::read(&query));
        }
        // Every level that parentheses can hold.
        let level = "not(id eq 1 or paid and id eq 1 add 2 mul -substring(status,";
        drop(parse(&level.repeat(20)));
        let sums = format!("{}id{} eq 1", "-(1 add 2 mul ".repeat(16), ")".repeat(16));
        assert!(parse(&sums).expect("32 levels").to_string().len() > 16);
        drop(compile::read(
            &collection("orders", &format!("$filter={}", sums.replace(' ', "+"))).expect("32 levels"),
        ));
        let deep = format!("$filter={}id eq 1{}", "(not ".repeat(16), ")".repeat(16));
        drop(compile::read(&collection("orders", &deep).expect("32 levels")));
    });
    on_a_small_stack(|| {
        for open in
            ["(", "not(", "not ", "id in (", "a(", "('", "- ", "-(", "trim(", "1 add(", "id in (trim("]
        {
            assert!(parse(&open.repeat(4000 / open.len().min(4))).is_err(), "{open}");
        }
        assert!(parse(&format!("{}id eq 1{}", "(".repeat(4000), ")".repeat(4000))).is_err());
    });
}

fn valid() -> impl Strategy<Value = String> {
    let operand = prop::sample::select(vec![
        "add",
        "-id",
        "id",
        "status",
        "total",
        "placed",
        "paid",
        "1",
        "-2.5",
        "1e9",
        "'it''s'",
        "'ID Number'",
        "null",
        "true",
        "INF",
        "NaN",
        "2024-01-31",
        "2024-01-31T10:00:00Z",
        "10:00",
        "3f2504e0-4f89-11d3-9a0c-0305e82c3301",
        "duration'-P1DT2H3M4.5S'",
        "binary'AQ_-'",
        "Sales.Mood'it''s'",
        "datetime'2024-01-31T10:00:00'",
        "größe",
    ])
    .prop_map(str::to_owned);
    let op = prop::sample::select(vec!["eq", "ne", "gt", "ge", "lt", "le"]);
    let arithmetic = prop::sample::select(vec!["add", "sub", "mul", "div", "mod"]);
    let function = prop::sample::select(Function::ALL.to_vec());
    let term = operand.prop_recursive(3, 12, 3, move |inner| {
        prop_oneof![
            (inner.clone(), arithmetic.clone(), inner.clone()).prop_map(|(a, op, b)| format!("{a} {op} {b}")),
            inner.clone().prop_map(|term| format!("({term})")),
            inner.clone().prop_map(|term| format!("-({term})")),
            inner.clone().prop_map(|term| format!("- {term}")),
            (function.clone(), prop::collection::vec(inner, 0..4)).prop_map(|(function, terms)| format!(
                "{}({})",
                function.word(),
                terms.join(",")
            )),
        ]
    });
    let leaf = prop_oneof![
        4 => (term.clone(), op, term.clone()).prop_map(|(a, op, b)| format!("{a} {op} {b}")),
        1 => (term.clone(), prop::collection::vec(term.clone(), 1..4))
            .prop_map(|(term, list)| format!("{term} in ({})", list.join(", "))),
        1 => term,
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 1..4).prop_map(|parts| parts.join(" and ")),
            prop::collection::vec(inner.clone(), 1..4).prop_map(|parts| parts.join(" or ")),
            inner.clone().prop_map(|part| format!("({part})")),
            inner.prop_map(|part| format!("not ({part})")),
        ]
    })
}

proptest! {
    #[test]
    fn any_query_string_is_answered(text in "\\PC{0,200}", bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        drop(query_string::parse(&text));
        drop(query_string::parse(&String::from_utf8_lossy(&bytes)));
        drop(parse(&text));
        for option in ["$filter", "$select", "$orderby", "$first", "$after", "$"] {
            drop(collection("orders", &format!("{option}={text}")));
        }
    }

    #[test]
    fn a_mutated_filter_is_answered(filter in valid(), at in any::<prop::sample::Index>(), with in "['(), a1eq\\-é%]{0,3}") {
        let places: Vec<usize> = filter.char_indices().map(|(i, _)| i).collect();
        let at = places[at.index(places.len())];
        drop(collection("orders", &format!("$filter={}{with}{}", &filter[..at], &filter[at..])));
        drop(collection("orders", &format!("$filter={}", &filter[at..])));
        drop(collection("orders", &format!("$filter={}{with}", &filter[..at])));
    }

    #[test]
    fn a_filter_has_one_canonical_form(filter in valid()) {
        let expr = parse(&filter).expect("valid");
        let printed = expr.to_string();
        let again = parse(&printed).unwrap_or_else(|problem| panic!("{printed}: {problem:?}"));
        prop_assert_eq!(&again, &expr);
        prop_assert_eq!(again.to_string(), printed);
    }

    #[test]
    fn no_text_of_the_caller_gets_into_sql(text in "[a-z'\";$]{0,12}X9[a-z'\";$]{0,12}") {
        let quoted = text.replace('\'', "''");
        for filter in ["status eq '?'", "contains(status,'?')", "startswith(status,'?')", "endswith(status,'?')",
            "indexof(status,concat('?',status)) eq 1", "'?' in (status,trim(status))"] {
            let filter = format!("$filter={}", filter.replace('?', &quoted));
            let compiled = compile::read(&collection("orders", &filter).expect("a question"));
            prop_assert!(!compiled.sql.as_str().contains("X9"));
            prop_assert_eq!(compiled.sql.binds()[0].value.as_deref(), Some(text.as_bytes()));
        }
    }
}
