//! Both signatures of a webhook: `Rowgate-Signature`, in the form of Stripe, and that of Standard Webhooks.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use super::secret::WebhookSecret;

/// `t=<unix>,v1=<hex>`, one `v1` for each secret: HMAC-SHA-256 over `<t>.<body>` under the whole text of the secret.
#[must_use]
pub fn rowgate(secrets: &[WebhookSecret], t: i64, body: &[u8]) -> String {
    let mut header = format!("t={t}");
    for secret in secrets {
        header.push_str(",v1=");
        for byte in mac(secret.reveal().as_bytes(), &[t.to_string().as_bytes(), b".", body]) {
            write!(header, "{byte:02x}").expect("a String takes all");
        }
    }
    header
}

/// `v1,<base64>` for each secret, with spaces between: HMAC-SHA-256 over `<id>.<t>.<body>` under the bytes that the secret
/// encodes.
#[must_use]
pub fn standard(secrets: &[WebhookSecret], id: &str, t: i64, body: &[u8]) -> String {
    let t = t.to_string();
    let sign = |secret: &WebhookSecret| {
        let parts = [id.as_bytes(), b".", t.as_bytes(), b".", body];
        format!("v1,{}", STANDARD.encode(mac(&secret.decoded(), &parts)))
    };
    secrets.iter().map(sign).collect::<Vec<_>>().join(" ")
}

fn mac(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes a key of any length");
    parts.iter().for_each(|part| mac.update(part));
    mac.finalize().into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The values were computed with Python's hmac module by the rules of both.
    #[test]
    fn signatures_are_those_that_receivers_compute() {
        let secret = WebhookSecret::parse("whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=").expect("32 bytes");
        let body = br#"{"id":"a"}"#;
        assert_eq!(
            rowgate(&[secret.clone()], 1_700_000_000, body),
            "t=1700000000,v1=eea035ca59b4f915e700aa7bdb3d1e27b1acc987a0e57b92d49a515b3ed2dbdd"
        );
        assert_eq!(
            standard(&[secret.clone()], "msg_1", 1_700_000_000, body),
            "v1,SCW3ikyp33OOSxqL2aK/gYdoS6XPsLCObqAMuGmHSOQ="
        );
        let two = [secret, WebhookSecret::generate(&[9; 32])];
        assert_eq!(rowgate(&two, 1, body).matches(",v1=").count(), 2);
        assert_eq!(standard(&two, "m", 1, body).split(' ').count(), 2);
    }
}
