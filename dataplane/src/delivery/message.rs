//! What a receiver gets: the body, and the headers with both signatures.

use axum::http::HeaderMap;
use axum::http::header::{CONTENT_TYPE, HeaderName, HeaderValue, USER_AGENT};
use bytes::Bytes;
use jiff::Timestamp;
use rowgate_core::webhook::secret::WebhookSecret;
use rowgate_core::webhook::signature;

const ROWGATE_SIGNATURE: HeaderName = HeaderName::from_static("rowgate-signature");
const WEBHOOK_ID: HeaderName = HeaderName::from_static("webhook-id");
const WEBHOOK_TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");
const WEBHOOK_SIGNATURE: HeaderName = HeaderName::from_static("webhook-signature");
const AGENT: HeaderValue = HeaderValue::from_static(concat!("Rowgate/", env!("CARGO_PKG_VERSION")));

/// One request to a receiver.
pub(crate) struct Message<'a> {
    /// Of the batch, the same over its retries.
    pub(crate) id: &'a str,
    /// `row.batch`, or `test`.
    pub(crate) kind: &'static str,
    pub(crate) subscription: &'a str,
    /// From 1 on.
    pub(crate) attempt: u32,
    pub(crate) replay: bool,
    /// JSON objects.
    pub(crate) events: Vec<&'a str>,
}

impl Message<'_> {
    /// The body, as it is signed and sent at `now`.
    pub(crate) fn body(&self, now: Timestamp) -> Bytes {
        let Message { id, kind, subscription, attempt, replay, events } = self;
        // ids are letters and digits
        let text = format!(
            "{{\"id\":\"{id}\",\"type\":\"{kind}\",\"timestamp\":\"{now:.3}\",\"subscription\":\"{subscription}\",\
             \"attempt\":{attempt},\"replay\":{replay},\"events\":[{}]}}",
            events.join(",")
        );
        Bytes::from(text)
    }

    /// Headers of the subscription's own, and ours, which none of those replaces. `own`: a JSON object of texts.
    pub(crate) fn headers(
        &self,
        own: &str,
        secrets: &[WebhookSecret],
        now: Timestamp,
        body: &[u8],
    ) -> HeaderMap {
        let own: serde_json::Map<String, serde_json::Value> = serde_json::from_str(own).unwrap_or_default();
        let mut headers = HeaderMap::new();
        for (name, value) in &own {
            let value = value.as_str().and_then(|value| HeaderValue::from_str(value).ok());
            if let (Ok(name), Some(mut value)) = (HeaderName::try_from(name), value) {
                value.set_sensitive(true);
                headers.insert(name, value);
            }
        }
        let at = now.as_second();
        let text = |text: String| HeaderValue::try_from(text).expect("it is ASCII");
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(USER_AGENT, AGENT);
        headers.insert(ROWGATE_SIGNATURE, text(signature::rowgate(secrets, at, body)));
        headers.insert(WEBHOOK_ID, text(self.id.to_owned()));
        headers.insert(WEBHOOK_TIMESTAMP, text(at.to_string()));
        headers.insert(WEBHOOK_SIGNATURE, text(signature::standard(secrets, self.id, at, body)));
        headers
    }
}
