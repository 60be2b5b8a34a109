//! Arrays and composites in both of PostgreSQL's forms, well-formed, broken and hostile.

use std::sync::Arc;

use proptest::prelude::*;
use rowgate_sql::shape::{Attribute, Body, Nested, Part, label};

use super::*;

fn part(oid: u32, encoding: Encoding) -> Part {
    Part { oid, encoding }
}

fn array(oid: u32, format: Format, element: Part) -> Encoding {
    let delimiter = if element.oid == 603 { b';' } else { b',' };
    Encoding::Nested(Arc::new(Nested { oid, format, body: Body::Array { element, delimiter } }))
}

fn composite(oid: u32, format: Format, parts: &[(&str, Part)]) -> Encoding {
    let attribute = |(name, part): &(&str, Part)| Attribute { label: label(name), part: part.clone() };
    let body = Body::Composite(parts.iter().map(attribute).collect());
    Encoding::Nested(Arc::new(Nested { oid, format, body }))
}

fn integers(format: Format) -> Encoding {
    array(1007, format, part(23, Encoding::Int4))
}

/// `(n integer, list integer[], at timestamptz, doc jsonb)`.
fn mixed(format: Format) -> Encoding {
    let parts = [
        ("n", part(23, Encoding::Int4)),
        ("list", part(1007, integers(format))),
        ("at", part(1184, Encoding::TimestampTz)),
        ("doc", part(3802, Encoding::Jsonb)),
    ];
    composite(20_000, format, &parts)
}

fn json(encoding: &Encoding, value: &[u8]) -> Option<String> {
    let mut out = Vec::new();
    write(encoding, value, &mut out).ok()?;
    Some(String::from_utf8(out).expect("JSON is UTF-8"))
}

/// 32-bit numbers, one after the other.
fn words(words: &[i32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

#[test]
fn binary_arrays_and_composites() {
    let list = integers(Format::Binary);
    for (value, expected) in [
        (&[0, 0, 23][..], Some("[]")),
        (&[1, 0, 23, 2, 1, 4, 7, 4, -8], Some("[7,-8]")),
        // lower bounds mean nothing, NULL has no bytes
        (&[1, 1, 23, 2, -5, -1, 4, 9], Some("[null,9]")),
        (&[2, 1, 23, 2, 1, 3, 0, 4, 1, 4, 2, -1, 4, 4, 4, 5, 4, 6], Some("[[1,2,null],[4,5,6]]")),
        (&[3, 0, 23, 1, 1, 2, 1, 1, 1, 4, 1, 4, 2], Some("[[[1],[2]]]")),
        // another element type; too many and impossible dimensions; an end too early and too late
        (&[1, 0, 25, 1, 1, 4, 7], None),
        (&[7, 0, 23, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 4, 7], None),
        (&[-1, 0, 23], None),
        (&[1, 0, 23, 0, 1], None),
        (&[1, 0, 23, -1, 1, 4, 7], None),
        (&[2, 0, 23, i32::MAX, 1, i32::MAX, 1, 4, 7], None),
        (&[2, 0, 23, 0, 1, i32::MAX, 1], None),
        (&[1, 0, 23, 2, 1, 4, 7], None),
        (&[1, 0, 23, 1, 1, 4, 7, 0], None),
        (&[1, 0, 23, 1, 1, -2], None),
        (&[1, 0, 23, 1, 1, 8, 7], None),
        (&[0, 0], None),
    ] {
        assert_eq!(json(&list, &words(value)).as_deref(), expected, "{value:?}");
    }

    let pair = mixed(Format::Binary);
    let mut value = words(&[4, 23, 4, 1, 1007, 24, 1, 0, 23, 1, 1, -1, 1184, 8, 0, 0, 3802, 3]);
    value.extend_from_slice(b"\x01{}");
    let expected = r#"{"n":1,"list":[null],"at":"2000-01-01T00:00:00Z","doc":{}}"#;
    assert_eq!(json(&pair, &value).as_deref(), Some(expected));
    let nulls = words(&[4, 23, -1, 1007, -1, 1184, -1, 3802, -1]);
    assert_eq!(json(&pair, &nulls).as_deref(), Some(r#"{"n":null,"list":null,"at":null,"doc":null}"#));
    for broken in [
        &[3, 23, -1, 1007, -1, 1184, -1][..],
        &[5, 23, -1, 1007, -1, 1184, -1, 3802, -1, 23, -1],
        &[4, 23, -1, 1007, -1, 1114, -1, 3802, -1],
        &[4, 23, -1, 1007, -1, 1184, -1, 3802, -1, 0],
        &[4, 23, -1, 1007, -1, 1184, -1, 3802],
        &[-1],
        &[],
    ] {
        assert_eq!(json(&pair, &words(broken)), None, "{broken:?}");
    }
    value.truncate(value.len() - 3);
    for version in [&b"\x02{}"[..], b"\x00{}"] {
        assert_eq!(json(&pair, &[&value, version].concat()), None, "{version:?}");
    }
    assert_eq!(json(&composite(20_001, Format::Binary, &[]), &[0; 4]).as_deref(), Some("{}"));
}

#[test]
fn arrays_and_composites_as_text() {
    let list = integers(Format::Text);
    let texts = array(1009, Format::Text, part(25, Encoding::Text));
    let boxes = array(1020, Format::Text, part(603, Encoding::Quoted));
    let vector = array(22, Format::Text, part(21, Encoding::Int2));
    let pair = mixed(Format::Text);
    let pairs = array(20_001, Format::Text, part(20_000, mixed(Format::Text)));
    for (encoding, value, expected) in [
        (&list, "{}", Some("[]")),
        (&list, "{1,NULL,-3}", Some("[1,null,-3]")),
        (&list, "[0:1][-1:0]={{1,2},{3,4}}", Some("[[1,2],[3,4]]")),
        (&list, "{{{{{{1}}}}}}", Some("[[[[[[1]]]]]]")),
        (&texts, r#"{a,"NULL","","x\"y\\z","{,}",null}"#, Some(r#"["a","NULL","","x\"y\\z","{,}","null"]"#)),
        (&boxes, "{(1,1),(0,0);(3,4),(1,2)}", Some(r#"["(1,1),(0,0)","(3,4),(1,2)"]"#)),
        (&vector, "1 2 -3", Some("[1,2,-3]")),
        (&vector, "", Some("[]")),
        (
            &pair,
            r#"(1,"{2,NULL}","0044-03-15 10:00:00.5+00 BC","{""a"": ""\\\\""}")"#,
            Some(r#"{"n":1,"list":[2,null],"at":"0044-03-15T10:00:00.5Z BC","doc":{"a": "\\"}}"#),
        ),
        (&pair, "(,,,)", Some(r#"{"n":null,"list":null,"at":null,"doc":null}"#)),
        (
            &pairs,
            r#"{"(1,\"{1,2}\",infinity,)",NULL}"#,
            Some(r#"[{"n":1,"list":[1,2],"at":"infinity","doc":null},null]"#),
        ),
        (&composite(20_002, Format::Text, &[]), "()", Some("{}")),
        (&list, "{{{{{{{1}}}}}}}", None),
        (&list, "{1,}", None),
        (&list, "{,1}", None),
        (&list, "{1", None),
        (&list, "{1}}", None),
        (&list, "1", None),
        (&list, "[0:1]", None),
        (&list, "{a}", None),
        (&list, "{01}", None),
        (&texts, "{\"a}", None),
        (&texts, "{\"a\\", None),
        (&pair, "(1,{},)", None),
        (&pair, "(1,{},,,)", None),
        (&pair, "(,,,", None),
        (&pair, "(,,2024-01-01,)", None),
        (&pair, "(,,\"2024-01-01 00:00:00\",)", None),
        (&pair, "", None),
    ] {
        assert_eq!(json(encoding, value.as_bytes()).as_deref(), expected, "{value}");
    }
}

#[test]
fn no_bytes_of_an_array_or_a_composite_make_it_panic_and_what_it_writes_is_json() {
    // Without json, whose text PostgreSQL has checked.
    let scalars = [
        (16, Encoding::Bool),
        (17, Encoding::Bytea),
        (23, Encoding::Int4),
        (25, Encoding::Text),
        (701, Encoding::Float8),
        (1114, Encoding::Timestamp),
        (1184, Encoding::TimestampTz),
        (1186, Encoding::Interval),
        (1700, Encoding::Numeric),
    ];
    let mut all = Vec::new();
    for format in [Format::Binary, Format::Text] {
        for (oid, encoding) in scalars.clone() {
            let list = array(1, format, part(oid, encoding.clone()));
            let pair = composite(2, format, &[("a", part(oid, encoding)), ("b", part(1, list.clone()))]);
            all.extend([list, pair.clone(), array(3, format, part(2, pair))]);
        }
    }
    let small = [0, 1, 2, 3, 4, 8, 12, 23, 25, -1, -2, i32::MAX, 16, 17, 701, 1114, 1184, 1186, 1700];
    let binary = proptest::collection::vec(proptest::sample::select(small.to_vec()), 0..24);
    let letters =
        proptest::sample::select("{}(),\"\\[]=:;- +.0123456789eTZtfxNULAa\u{e4}".chars().collect::<Vec<_>>());
    let text = proptest::collection::vec(letters, 0..40).prop_map(|all| all.into_iter().collect::<String>());
    let noise = proptest::collection::vec(any::<u8>(), 0..40);
    let values = prop_oneof![binary.prop_map(|all| words(&all)), text.prop_map(String::into_bytes), noise];
    proptest!(ProptestConfig::with_cases(4_000), |(value in values)| {
        for encoding in &all {
            if let Some(text) = json(encoding, &value) {
                let read: Result<serde_json::Value, _> = serde_json::from_str(&text);
                prop_assert!(read.is_ok(), "{encoding:?} {value:?} {text}");
            }
        }
    });
}
