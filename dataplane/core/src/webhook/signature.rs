//! Signatures of a delivery in the two forms that public libraries verify. Both use HMAC-SHA-256; content and key differ.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::secret::WebhookSecret;
use crate::derive::mac_of_parts;

/// `Rowgate-Signature`: `t=<unix>,v1=<hex>[,v1=<hex>]` over `<t>.<body>`, as `stripe` verifies it: the key is the whole text
/// of the secret. Every secret that lives signs. No space stands behind a comma: those libraries do not skip it.
#[must_use]
pub fn rowgate(secrets: &[WebhookSecret], t: i64, body: &[u8]) -> String {
    let t = t.to_string();
    let mut header = format!("t={t}");
    for secret in secrets {
        let tag = mac_of_parts(secret.reveal().as_bytes(), &[t.as_bytes(), b".", body]);
        header.push_str(",v1=");
        header.extend(tag.iter().flat_map(|byte| [byte >> 4, byte & 15]).map(hex));
    }
    header
}

/// `webhook-signature`: `v1,<base64>[ v1,<base64>]` over `<id>.<t>.<body>`, as Standard Webhooks has it: the key is what the
/// text of the secret encodes.
#[must_use]
pub fn standard(secrets: &[WebhookSecret], id: &str, t: i64, body: &[u8]) -> String {
    let t = t.to_string();
    let sign = |secret: &WebhookSecret| {
        let content = [id.as_bytes(), b".", t.as_bytes(), b".", body];
        format!("v1,{}", STANDARD.encode(mac_of_parts(secret.bytes(), &content)))
    };
    secrets.iter().map(sign).collect::<Vec<_>>().join(" ")
}

fn hex(digit: u8) -> char {
    char::from_digit(u32::from(digit), 16).expect("four bits")
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &[u8] = br#"{"id":"01","events":[]}"#;
    const T: i64 = 1_764_000_000;

    /// 0, 1, 2, ..., 31; and 255 thirty-two times.
    fn secrets() -> [WebhookSecret; 2] {
        let texts = [
            "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",
            "whsec_//////////////////////////////////////////8=",
        ];
        texts.map(|text| WebhookSecret::parse(text).expect("a secret"))
    }

    // computed with Python's hmac, by the rules of the two libraries
    const HEX: [&str; 2] = [
        "687e74203dc36ea150754e16596d77bab9ea084a2cc2854b67cb651bf1f4736c",
        "557d20b51639a1d93f35b6d0dd74665119eaf44c864a58f7cd41abcac1e2a182",
    ];
    const BASE64: [&str; 2] =
        ["sfnbTRMGw+yoBA7ODqOUBHEBoW6wNYhUJrWUUlb7znE=", "YfkTDOmXKT1iWB7ERQUqQdt9pFRb7/k8/+1XVw0PLNY="];

    #[test]
    fn signatures_are_those_that_other_libraries_compute() {
        let secrets = secrets();
        assert_eq!(rowgate(&secrets[..1], T, BODY), format!("t=1764000000,v1={}", HEX[0]));
        assert_eq!(standard(&secrets[..1], "01", T, BODY), format!("v1,{}", BASE64[0]));
    }

    #[test]
    fn every_live_secret_signs() {
        let both = rowgate(&secrets(), T, BODY);
        assert_eq!(both, format!("t=1764000000,v1={},v1={}", HEX[0], HEX[1]));
        let both = standard(&secrets(), "01", T, BODY);
        assert_eq!(both, format!("v1,{} v1,{}", BASE64[0], BASE64[1]));
    }

    #[test]
    fn id_time_and_body_are_signed() {
        let one = &secrets()[..1];
        let signature = |t, body| rowgate(one, t, body).split_once(",v1=").expect("two parts").1.to_owned();
        assert_ne!(signature(T, BODY), signature(T + 1, BODY));
        assert_ne!(signature(T, BODY), signature(T, b"{}"));
        let all = [("01", T, BODY), ("02", T, BODY), ("01", T + 1, BODY), ("01", T, b"{}")]
            .map(|(id, t, body)| standard(one, id, t, body));
        assert!(all[1..].iter().all(|other| *other != all[0]));
    }
}
