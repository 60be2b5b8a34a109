//! The API server refuses what the contract refuses, in our words, and admits the rest as standalone does.

use std::collections::BTreeSet;

use rowgate_crds::{Kind, admit, definition};
use rowgate_tests::servers::cluster::{Cluster, Method, Namespace};
use serde_json::{Value, json};

#[path = "../../../../crds/tests/cases/mod.rs"]
mod cases;

use cases::Case;

/// What `kubectl apply` says about the specs of one object, one after the other; the words about all but the last are
/// of no interest.
async fn applied(namespace: &Namespace<'_>, kind: &str, name: &str, specs: &[&str]) -> String {
    let yaml = |spec: &&str| {
        format!("apiVersion: rowgate.dev/v1alpha1\nkind: {kind}\nmetadata: {{name: {name}}}\nspec: {spec}\n")
    };
    let (last, before) = specs.split_last().expect("a spec");
    for spec in before {
        namespace.apply(&yaml(spec)).await.ok();
    }
    namespace.apply(&yaml(last)).await.refused()
}

/// Seen to fail when a rule is taken out of the definitions: each of these with its own.
#[tokio::test]
async fn kubectl_is_told_in_our_words_what_to_change() {
    let namespace = Cluster::shared().await.namespace().await;
    let slug = "slug consists of at most 40 lower-case letters, digits and hyphens, and neither starts nor ends with a hyphen";
    let policies = "entities: [{name: a, source: {object: a}, rowLevelSecurity: {none: true, policies: [{name: p, expression: x}]}}]";
    for (kind, name, specs, field, words) in [
        ("Tenant", "bad", &["{slug: A}"][..], "spec.slug", slug),
        (
            "Tenant",
            "my.shop",
            &["{}"],
            "<nil>",
            "without spec.slug the object's name is the slug, which consists of at most 40 lower-case letters, digits and hyphens, and neither starts nor ends with a hyphen; rename the object or set spec.slug",
        ),
        (
            "Tenant",
            "moved",
            &["{slug: a}", "{slug: b}"],
            "<nil>",
            "slug cannot be changed: it is part of every key and address; create a new Tenant instead",
        ),
        (
            "Tenant",
            "both",
            &[&format!("{{{policies}}}")],
            "spec.entities[0].rowLevelSecurity",
            "rowLevelSecurity takes exactly one of policies, existing: true and none: true; leave it out to show no row",
        ),
        (
            "ApiKey",
            "unscoped",
            &["{tenantRef: {name: t}, claims: {region: north}}"],
            "spec",
            "claims need a scope: all unscoped keys share one role; give scope: {sameAs: shared} to keep the shared rights",
        ),
        (
            "ApiKey",
            "revived",
            &["{tenantRef: {name: t}, revoked: true}", "{tenantRef: {name: t}, revoked: false}"],
            "spec",
            "revoked cannot be taken back; create a new ApiKey",
        ),
        (
            "ApiKey",
            "forgotten",
            &["{tenantRef: {name: t}, revoked: true}", "{tenantRef: {name: t}}"],
            "spec",
            "revoked cannot be taken back; create a new ApiKey",
        ),
    ] {
        let said = applied(&namespace, kind, name, specs).await;
        let value = if field == "spec.slug" { "\"A\": " } else { "" };
        assert_eq!(
            said,
            format!("The {kind} \"{name}\" is invalid: {field}: Invalid value: {value}{words}\n")
        );
    }
}

/// What the server says about a text with a NUL, which PostgreSQL cannot store: a pattern has no words of its own.
const NO_NUL: &str = r"should match '^[^\x00]*$'";

#[tokio::test]
async fn no_text_of_a_spec_may_hold_a_nul() {
    let namespace = Cluster::shared().await.namespace().await;
    let spec = r#"{tenantRef: {name: t}, scope: {sameAs: shared}, claims: {region: "a\0b"}}"#;
    let said = applied(&namespace, "ApiKey", "text", &[spec]).await;
    assert!(said.contains("spec.claims.region") && said.contains(NO_NUL), "{said}");
}

/// Every text that a rule of ours refuses with.
fn our_words() -> BTreeSet<String> {
    fn collect(schema: &Value, words: &mut BTreeSet<String>) {
        let rules = schema["x-kubernetes-validations"].as_array().into_iter().flatten();
        words.extend(rules.map(|rule| rule["message"].as_str().expect("each has words").to_owned()));
        match schema {
            Value::Object(parts) => parts.values().for_each(|part| collect(part, words)),
            Value::Array(parts) => parts.iter().for_each(|part| collect(part, words)),
            _ => {}
        }
    }
    let mut words = BTreeSet::new();
    Kind::ALL.iter().for_each(|kind| collect(&definition(*kind), &mut words));
    words
}

fn plural(kind: Kind) -> &'static str {
    match kind {
        Kind::Tenant => "tenants",
        Kind::ApiKey => "apikeys",
        Kind::Relationship => "relationships",
        Kind::WebhookSubscription => "webhooksubscriptions",
    }
}

/// The object as the server would store it, or each field with what is wrong with it.
async fn judged(namespace: &Namespace<'_>, case: &Case, name: &str) -> Result<Value, Vec<(String, String)>> {
    let path = namespace.path(plural(case.kind));
    let object = |spec: &str| {
        let mut object = cases::object(case.kind, name, spec);
        object["metadata"]["namespace"] = json!(namespace.name());
        object
    };
    let trial = "?dryRun=All&fieldValidation=Strict";
    let (method, path, object) = match &case.old {
        None => (Method::POST, format!("{path}{trial}"), object(&case.spec)),
        Some(old) => {
            let (status, stored) = namespace.cluster().send(Method::POST, &path, &object(old)).await;
            assert!(status.is_success(), "{case:?}: {stored}");
            let mut object = object(&case.spec);
            object["metadata"]["resourceVersion"] = stored["metadata"]["resourceVersion"].clone();
            (Method::PUT, format!("{path}/{name}{trial}"), object)
        }
    };
    let (status, answer) = namespace.cluster().send(method, &path, &object).await;
    if status.is_success() {
        return Ok(answer);
    }
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let causes = answer["details"]["causes"].as_array().cloned().unwrap_or_default();
    // A request that could not be read has no causes.
    assert!(!causes.is_empty() || status == 400, "{case:?}: {status} {answer}");
    Err(causes.iter().map(|cause| (text(&cause["field"]), text(&cause["message"]))).collect())
}

/// Every case of our own judge: what it refuses the server refuses, with the same words about the same field where a
/// rule speaks; what it admits the server admits, with the same defaults. Seen to fail with each rule taken out of the
/// definitions, one after the other, but the one about an object's name, which `kubectl` is told above.
#[tokio::test]
async fn the_server_judges_as_we_do() {
    let namespace = Cluster::shared().await.namespace().await;
    let ours = our_words();
    let (mut n_admitted, mut n_rules) = (0, 0);
    for (n, case) in cases::all().iter().enumerate() {
        // The object's name is its slug by default; one case makes it explicit.
        let name = if case.spec == "{slug: shop}" { "shop".to_owned() } else { format!("shop-{n}") };
        let judged = judged(&namespace, case, &name).await;
        if case.refusal.is_empty() {
            let object = judged.unwrap_or_else(|causes| panic!("{case:?}: {causes:?}"));
            let own = |spec: &str, old: Option<&Value>| {
                admit(case.kind, cases::object(case.kind, &name, spec), old).expect("we admit it")
            };
            let old = case.old.as_ref().map(|old| own(old, None));
            let own = own(&case.spec, old.as_ref());
            assert_eq!((&object["spec"], &object["status"]), (&own["spec"], &own["status"]), "{case:?}");
            n_admitted += 1;
            continue;
        }
        let causes = judged.expect_err(&format!("{case:?} was admitted"));
        for line in case.refusal.lines() {
            let (field, words) = match ours.contains(line) {
                true => ("<nil>", line),
                false => line.split_once(": ").expect("a field and words"),
            };
            if ours.contains(words) {
                let said = |(at, message): &(String, String)| {
                    at == field && (message.ends_with(words) || message.ends_with(NO_NUL))
                };
                assert!(causes.iter().any(said), "{case:?}: {causes:?}");
                n_rules += 1;
            }
        }
    }
    assert!(
        20 < n_admitted && ours.len() < n_rules,
        "{n_admitted} admitted, {n_rules} by {} rules",
        ours.len()
    );
}
