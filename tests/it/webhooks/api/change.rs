//! Subscriptions are made, read, changed and deleted by the key that owns them, and by no other.

use serde_json::{Value, json};

use crate::webhooks::fixture::{Mill, id};

const URL: &str = "http://127.0.0.1:9/hooks";

#[tokio::test]
async fn a_subscription_is_made_read_changed_and_deleted() {
    let mill = Mill::open().await;
    let body = json!({
        "name": "orders", "url": URL, "filter": {"tables": ["orders", "mill.bags"], "ops": ["insert", "delete"]},
        "batch": {"maxEvents": 10, "maxBytes": 2048}, "headers": {"Authorization": "Bearer x"},
        "retry": {"maxAttempts": 3, "initialDelay": 1, "maxDelay": 60, "disableOnGone": true}, "suspend": true,
    });
    let reply = mill.ask("one", "POST", "", &body).await;
    assert_eq!(reply.status, 201, "{reply:?}");
    assert_eq!(reply.header("cache-control"), Some("private, no-store"));
    let mut made = reply.json();
    let id = id(&made);
    assert_eq!(reply.header("location"), Some(&*format!("/api/ddl/events/webhooks/{id}")));
    let secret = made.as_object_mut().and_then(|made| made.remove("secret")).expect("it is shown once");
    assert!(secret.as_str().is_some_and(|secret| secret.starts_with("whsec_")), "{secret}");
    for (name, value) in body.as_object().expect("an object") {
        assert_eq!(&made[name], value, "{name}: {made}");
    }
    assert_eq!((&made["origin"], &made["state"]), (&json!("api"), &json!("enabled")), "{made}");

    let read = mill.told("one", "GET", &format!("/{id}"), Value::Null, 200).await;
    assert_eq!(read, made);
    let listed = mill.told("one", "GET", "", Value::Null, 200).await;
    assert_eq!(listed, json!({"subscriptions": [made]}));

    let change = json!({"name": "less", "filter": {"tables": null}, "retry": {"maxAttempts": 5}});
    let changed = mill.told("one", "PATCH", &format!("/{id}"), change, 200).await;
    let expected = [
        ("name", json!("less")),
        ("url", json!(URL)),
        ("filter", json!({"tables": null, "ops": ["insert", "delete"]})),
    ];
    for (name, value) in expected {
        assert_eq!(changed[name], value, "{changed}");
    }
    assert_eq!(
        changed["retry"],
        json!({"maxAttempts": 5, "initialDelay": 1, "maxDelay": 60, "disableOnGone": true})
    );

    mill.told("one", "DELETE", &format!("/{id}"), Value::Null, 204).await;
    mill.told("one", "GET", &format!("/{id}"), Value::Null, 404).await;
    assert_eq!(mill.told("one", "GET", "", Value::Null, 200).await, json!({"subscriptions": []}));
}

/// Seen to fail with a look at subscriptions that passes over whose they are.
#[tokio::test]
async fn a_subscription_is_there_for_its_own_key_alone() {
    let mill = Mill::open().await;
    let id = id(&mill.subscribed("one", URL).await);
    assert_eq!(mill.told("two", "GET", "", Value::Null, 200).await, json!({"subscriptions": []}));
    let mut answers = Vec::new();
    for id in [id.as_str(), "01JD0000000000000000000000"] {
        for (method, path, body) in [
            ("GET", "", Value::Null),
            ("PATCH", "", json!({"suspend": true})),
            ("DELETE", "", Value::Null),
            ("GET", "/deliveries", Value::Null),
            ("GET", "/dead-letters", Value::Null),
            ("GET", "/dead-letters/x", Value::Null),
            ("POST", "/dead-letters/x/redrive", Value::Null),
            ("POST", "/dead-letters/redrive", Value::Null),
            ("POST", "/secret/rotate", Value::Null),
            ("POST", "/replay", json!({"fromRetentionStart": true})),
            ("POST", "/test", Value::Null),
        ] {
            let mut told = mill.told("two", method, &format!("/{id}{path}"), body, 404).await;
            told["error"]["requestId"] = Value::Null;
            answers.push(told);
        }
    }
    answers.iter().for_each(|answer| assert_eq!(answer, &answers[0]));
    mill.told("one", "GET", &format!("/{id}"), Value::Null, 200).await;
}

/// Seen to fail with a change of it that is accepted.
#[tokio::test]
async fn one_that_kubernetes_declares_is_changed_there() {
    let mill = Mill::open().await;
    let id = id(&mill.subscribed("one", URL).await);
    mill.sql("update dl.subscriptions set origin = 'kubernetes', uid = 'u'").await;
    for (method, body) in [("PATCH", json!({"suspend": true})), ("DELETE", Value::Null)] {
        let told = mill.told("one", method, &format!("/{id}"), body, 409).await;
        assert_eq!(told["error"]["code"], "ManagedByKubernetes", "{told}");
    }
    mill.told("one", "POST", &format!("/{id}/secret/rotate"), Value::Null, 200).await;
    mill.told("one", "POST", &format!("/{id}/replay"), json!({"fromRetentionStart": true}), 202).await;
    mill.told("one", "POST", &format!("/{id}/dead-letters/redrive"), Value::Null, 202).await;
    assert_eq!(mill.told("one", "GET", &format!("/{id}"), Value::Null, 200).await["suspend"], true);
}

#[tokio::test]
async fn one_that_is_disabled_is_enabled_and_goes_on_where_it_was() {
    let mill = Mill::open().await;
    let made = mill.subscribed("one", URL).await;
    let id = id(&made);
    mill.sql(
        "update dl.subscriptions set state = 'disabled', reason = 'DeadLetters', consecutive_dead_letters = 3, batch_id = 'b', attempts = 2",
    )
    .await;
    let told = mill.told("one", "PATCH", &format!("/{id}"), json!({"suspend": true}), 200).await;
    assert_eq!((&told["state"], &told["consecutiveDeadLetters"]), (&json!("disabled"), &json!(3)), "{told}");
    // it may send something now: to where nothing listens
    let told = mill.told("one", "PATCH", &format!("/{id}"), json!({"suspend": false}), 200).await;
    assert_eq!((&told["state"], &told["reason"]), (&json!("enabled"), &Value::Null), "{told}");
    assert_eq!((&told["consecutiveDeadLetters"], &told["cursor"]), (&json!(0), &made["cursor"]), "{told}");
}

#[tokio::test]
async fn a_tenant_has_as_many_subscriptions_as_its_limit() {
    let mill = Mill::open().await;
    for key in ["one", "one", "two"] {
        mill.subscribed(key, URL).await;
    }
    let reply = mill.ask("two", "POST", "", &json!({"name": "a", "url": URL})).await;
    assert_eq!(reply.status, 429, "{reply:?}");
    assert!(reply.body.contains("limits.subscriptions of the Tenant allows, 3;"), "{reply:?}");
    assert!(reply.header("retry-after").is_some(), "{reply:?}");
}

/// Seen to fail with a secret in what is read.
#[tokio::test]
async fn a_secret_is_shown_once_and_the_one_before_signs_for_a_day() {
    let mill = Mill::open().await;
    let made = mill.subscribed("one", URL).await;
    let id = id(&made);
    let first = made["secret"].as_str().expect("a secret");
    let rotated = mill.told("one", "POST", &format!("/{id}/secret/rotate"), Value::Null, 200).await;
    let second = rotated["secret"].as_str().expect("a secret");
    assert_ne!(first, second);
    for path in ["", &format!("/{id}"), &format!("/{id}/deliveries")] {
        let reply = mill.ask("one", "GET", path, &Value::Null).await;
        assert!(!reply.body.contains("whsec_") && !reply.body.contains("secret"), "{reply:?}");
    }
    for _ in 0..3 {
        mill.told("one", "POST", &format!("/{id}/secret/rotate"), Value::Null, 200).await;
    }
    let told = mill.told("one", "POST", &format!("/{id}/secret/rotate"), Value::Null, 429).await;
    assert_eq!(told["error"]["code"], "RateLimited", "{told}");
    // a refusal leaves no lock behind
    mill.sql("set lock_timeout = '10s'; update dl.subscription_secrets set expires_at = now() where expires_at is not null").await;
    mill.told("one", "POST", &format!("/{id}/secret/rotate"), Value::Null, 200).await;
}
