//! A test message, as a receiver gets it.

use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::{Value, json};
use sha2::Sha256;

use crate::webhooks::fixture::{Mill, id, receiver};

fn header<'a>(head: &'a str, name: &str) -> &'a str {
    let line = head.lines().find(|line| line.to_ascii_lowercase().starts_with(&format!("{name}:")));
    line.and_then(|line| line.split_once(':')).map(|(_, value)| value.trim()).expect("the header")
}

#[tokio::test]
async fn a_test_message_is_signed_with_every_secret_and_moves_nothing() {
    let mill = Mill::open().await;
    let (url, mut got) = receiver().await;
    let made = mill.subscribed("one", &url).await;
    let id = id(&made);
    let rotated = mill.told("one", "POST", &format!("/{id}/secret/rotate"), Value::Null, 200).await;
    let told = mill.told("one", "POST", &format!("/{id}/test"), Value::Null, 200).await;
    assert_eq!(
        (&told["delivered"], &told["status"], &told["error"]),
        (&json!(true), &json!(200), &Value::Null),
        "{told}"
    );
    let (head, body) = got.recv().await.expect("a message");
    let message: Value = serde_json::from_str(&body).expect("JSON");
    assert_eq!((&message["type"], &message["events"]), (&json!("test"), &json!([])), "{body}");
    assert_eq!(message["subscription"], *id, "{body}");
    let signature = header(&head, "rowgate-signature");
    let at = signature.split(',').find_map(|part| part.strip_prefix("t=")).expect("a time");
    for secret in [&made["secret"], &rotated["secret"]] {
        let secret = secret.as_str().expect("a secret");
        let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("any length");
        mac.update(format!("{at}.{body}").as_bytes());
        let hex: String = mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        assert!(signature.contains(&format!("v1={hex}")), "{signature}");
    }
    let read = mill.told("one", "GET", &format!("/{id}"), Value::Null, 200).await;
    assert_eq!((&read["cursor"], &read["lastDelivery"]), (&made["cursor"], &Value::Null), "{read}");
    assert_eq!(
        mill.told("one", "GET", &format!("/{id}/deliveries"), Value::Null, 200).await,
        json!({"deliveries": [], "hasMore": false})
    );
}

#[tokio::test]
async fn a_receiver_that_is_away_is_told() {
    let mill = Mill::open().await;
    let id = id(&mill.subscribed("one", "http://127.0.0.1:1/hooks").await);
    let told = mill.told("one", "POST", &format!("/{id}/test"), Value::Null, 200).await;
    assert_eq!((&told["delivered"], &told["status"]), (&json!(false), &Value::Null), "{told}");
    assert!(told["error"].is_string(), "{told}");
}
