//! Secrets, and every form in which one may be written down.

use aho_corasick::AhoCorasick;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

/// What must not be found, by name.
#[derive(Default)]
pub(super) struct Secrets(Vec<(String, Vec<String>)>);

impl Secrets {
    pub(super) fn add(&mut self, name: &str, secret: &[u8]) {
        assert!(12 <= secret.len(), "{name} is so short that it would be found by chance");
        self.0.push((name.to_owned(), forms(secret)));
    }

    /// A key string, and the part of it that is secret.
    pub(super) fn add_key(&mut self, name: &str, key: &str) {
        let (_, body) = key.split_once(":dlk_").expect("a key");
        self.add(&format!("the key {name}"), key.as_bytes());
        self.add(&format!("the secret of the key {name}"), &body.as_bytes()[12..55]);
    }

    /// A token, and its signature.
    pub(super) fn add_token(&mut self, name: &str, token: &str) {
        let (_, signature) = token.rsplit_once('.').expect("three parts");
        self.add(&format!("the token of {name}"), token.as_bytes());
        self.add(&format!("the signature of the token of {name}"), signature.as_bytes());
    }

    /// A root from its file, and what is derived of it and never leaves the process.
    pub(super) fn add_root(&mut self, name: &str, hex: &str) {
        let root: Vec<u8> =
            (0..64).step_by(2).map(|i| u8::from_str_radix(&hex[i..i + 2], 16).expect("hex")).collect();
        self.add(name, &root);
        for label in ["pepper/1", "cursor/1", "token/1", "token/2"] {
            let derived = mac(&mac(b"rowgate", &root), format!("{label}\x01").as_bytes());
            self.add(&format!("{label} of {name}"), &derived);
        }
    }

    /// Where any of them stands in one of these texts, each with the name of its place; the surroundings are shown, the
    /// secret is not.
    pub(super) fn found_in(&self, texts: &[(String, String)]) -> Vec<String> {
        let forms = self.0.iter().flat_map(|(name, forms)| forms.iter().map(move |form| (name, form)));
        let (names, forms): (Vec<_>, Vec<_>) = forms.unzip();
        let forms = AhoCorasick::new(forms).expect("a few thousand texts");
        let found =
            texts.iter().flat_map(|(place, text)| forms.find_iter(text).map(move |at| (place, text, at)));
        let told = found.map(|(place, text, at)| {
            let line = text[..at.start()].lines().next_back().unwrap_or_default();
            format!("{} in {place}, after {line:?}", names[at.pattern()])
        });
        told.collect()
    }
}

fn mac(key: &[u8], text: &[u8]) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("any length");
    mac.update(text);
    mac.finalize().into_bytes().to_vec()
}

fn forms(secret: &[u8]) -> Vec<String> {
    let each =
        |form: fn(&u8) -> String, between: &str| secret.iter().map(form).collect::<Vec<_>>().join(between);
    let hex = each(|byte| format!("{byte:02x}"), "");
    let mut forms = vec![
        hex.to_uppercase(),
        hex,
        each(|byte| format!("%{byte:02x}"), ""),
        each(|byte| format!("%{byte:02X}"), ""),
        each(|byte| format!("\\x{byte:02x}"), ""),
        each(|byte| byte.to_string(), ", "),
        each(|byte| byte.to_string(), ","),
    ];
    forms.extend(std::str::from_utf8(secret).ok().map(str::to_owned));
    forms.extend(std::str::from_utf8(secret).ok().map(|text| text.replace(':', "%3A")));
    // In base 64 a text looks in one of three ways, by where it begins; its first and last letters depend on its
    // neighbours.
    for before in 0..3 {
        let padded = [&vec![0; before][..], secret].concat();
        for engine in [STANDARD_NO_PAD, URL_SAFE_NO_PAD] {
            let text = engine.encode(&padded);
            forms.push(text[4..text.len() - 4].to_owned());
        }
    }
    forms
}

/// Each form of a secret is found wherever it stands.
#[test]
fn every_form_is_found() {
    let key = "shop:dlk_0123456789abABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqABCDEF";
    let mut secrets = Secrets::default();
    secrets.add_key("x", key);
    let found = |text| secrets.found_in(&[("a test".to_owned(), text)]);
    for text in [
        key.to_owned(),
        key[21..].to_owned(),
        STANDARD_NO_PAD.encode(format!("user:{key}")),
        URL_SAFE_NO_PAD.encode(format!("a{key}b")),
        key.bytes().map(|byte| format!("{byte:02x}")).collect(),
        format!("{:?}", key.as_bytes()),
        key.replace(':', "%3A"),
    ] {
        assert!(!found(format!("a\nb {text} c")).is_empty(), "{text}");
    }
    assert!(found(key[..21].to_owned()).is_empty(), "what finds a key is no secret");
}
