//! What holds for any text: no panic, no deep stack, no text of the caller in SQL, one canonical form.

use proptest::prelude::*;

use super::*;
use crate::request::Expr;

fn parse(filter: &str) -> Result<Expr, Problem> {
    let encoded: String = filter.bytes().map(|byte| format!("%{byte:02X}")).collect();
    odata::parse(&format!("$filter={encoded}")).map(|request| request.filter.expect("given"))
}

/// Runs on the stack of a small thread, drop included.
fn on_a_small_stack(work: fn()) {
    let thread = std::thread::Builder::new().stack_size(256 * 1024).spawn(work).expect("a thread");
    thread.join().expect("it ends well");
}

#[test]
fn long_chains_and_deep_nests_need_no_stack() {
    on_a_small_stack(|| {
        let mut chain = "id eq 1".to_owned();
        while chain.len() + 11 <= odata::MAX_FILTER_LEN {
            chain.push_str(" or id eq 1");
        }
        let query = collection("orders", &format!("$filter={}", chain.replace(' ', "+"))).expect("a chain");
        let compiled = compile::read(&query);
        assert_eq!(compiled.sql.binds().len(), (chain.len() + 4) / 11);
        let mut mixed = "id eq 1".to_owned();
        while mixed.len() + 24 <= odata::MAX_FILTER_LEN {
            mixed.push_str(" or id eq 1 and id eq 1");
        }
        drop(compile::read(
            &collection("orders", &format!("$filter={}", mixed.replace(' ', "+"))).expect("a chain"),
        ));
        let deep = format!("$filter={}id eq 1{}", "(not ".repeat(16), ")".repeat(16));
        drop(compile::read(&collection("orders", &deep).expect("32 levels")));
    });
    on_a_small_stack(|| {
        for open in ["(", "not(", "not ", "id in (", "a(", "'"] {
            assert!(parse(&open.repeat(4000 / open.len().min(4))).is_err(), "{open}");
        }
        assert!(parse(&format!("{}id eq 1{}", "(".repeat(4000), ")".repeat(4000))).is_err());
    });
}

fn valid() -> impl Strategy<Value = String> {
    let operand = prop::sample::select(vec![
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
        "größe",
    ]);
    let op = prop::sample::select(vec!["eq", "ne", "gt", "ge", "lt", "le"]);
    let leaf = prop_oneof![
        (operand.clone(), op, operand.clone()).prop_map(|(a, op, b)| format!("{a} {op} {b}")),
        Just("id in (1,2,null)".to_owned()),
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
        drop(odata::parse(&text));
        drop(odata::parse(&String::from_utf8_lossy(&bytes)));
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
        let filter = format!("$filter=status eq '{}'", text.replace('\'', "''"));
        let compiled = compile::read(&collection("orders", &filter).expect("a question"));
        prop_assert!(!compiled.sql.as_str().contains("X9"));
        prop_assert_eq!(compiled.sql.binds()[0].value.as_deref(), Some(text.as_bytes()));
    }
}
