//! What tests of keys and tokens that follow one another ask for.

use rowgate_tests::client::Reply;
use serde_json::Value;

pub(super) const PATH: &str = "/auth/shop/api/orders?$first=1";
pub(crate) const EXCHANGE: &str = "/api/auth/apikeys/exchange";

/// The token in an answer, and its `expiresIn`.
pub(crate) fn token(reply: Reply) -> (String, i64) {
    assert_eq!(reply.status, 200, "{reply:?}");
    let body: Value = serde_json::from_str(&reply.body).expect("JSON");
    (body["token"].as_str().expect("a text").to_owned(), body["expiresIn"].as_i64().expect("a number"))
}
