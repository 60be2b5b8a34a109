//! What is admitted and what is refused by our own judge, as the API server would.

mod cases;

use cases::object;
use rowgate_crds::{Kind, admit};
use serde_json::json;

#[test]
fn every_case_is_judged_as_it_says() {
    for case in cases::all() {
        let old = case.old.as_ref().map(|old| admit(case.kind, object(case.kind, "shop", old), None));
        let old = old.map(|old| old.expect("the old object is good"));
        let judged = match admit(case.kind, object(case.kind, "shop", &case.spec), old.as_ref()) {
            Ok(_) => String::new(),
            Err(errors) => errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"),
        };
        assert_eq!(judged, case.refusal, "{case:?}");
    }
}

#[test]
fn the_objects_name_is_the_slug_when_none_is_given() {
    let refused =
        admit(Kind::Tenant, object(Kind::Tenant, "my.shop", "{}"), None).expect_err("a dot is no slug");
    assert_eq!(
        refused[0].to_string(),
        "without spec.slug the object's name is the slug, which consists of at most 40 lower-case letters, digits and hyphens, and neither starts nor ends with a hyphen; rename the object or set spec.slug"
    );
    assert!(admit(Kind::Tenant, object(Kind::Tenant, "my.shop", "{slug: shop}"), None).is_ok());
}

#[test]
fn defaults_are_filled_in_and_only_those_of_the_contract() {
    let spec = "{slug: null, entities: [{name: a, source: {object: a}, graphql: {}}]}";
    let admitted = admit(Kind::Tenant, object(Kind::Tenant, "shop", spec), None).expect("the object is good");
    assert_eq!(
        admitted["spec"],
        json!({
            "entities": [{
                "name": "a", "source": { "object": "a", "schema": "public" }, "graphql": {}, "kind": "Table",
                "rest": { "enabled": true },
            }],
            "database": { "create": true, "deletionPolicy": "Retain" },
        })
    );
    assert_eq!(admitted["status"], json!({ "observedGeneration": -1 }));
    let key = object(Kind::ApiKey, "k", "{tenantRef: {name: t}}");
    let admitted = admit(Kind::ApiKey, key, None).expect("the object is good");
    assert_eq!(admitted["spec"], json!({ "tenantRef": { "name": "t" }, "revoked": false }));
}

#[test]
fn the_objects_own_fields_are_checked_too() {
    let mut object = object(Kind::ApiKey, "k", "{tenantRef: {name: t}}");
    object["metadata"]["lables"] = json!({});
    object["spce"] = json!({});
    object["metadata"]["name"] = json!("Big_One");
    let refused = admit(Kind::ApiKey, object, None).expect_err("three mistakes");
    let refused: Vec<String> = refused.iter().map(ToString::to_string).collect();
    assert_eq!(
        refused,
        [
            "metadata.name: \"Big_One\" holds characters other than lower-case letters, digits, hyphens and dots, or does not begin and \
             end with a letter or digit",
            "metadata.lables: unknown field; did you mean labels?",
            "spce: unknown field; did you mean spec?",
        ]
    );
}
