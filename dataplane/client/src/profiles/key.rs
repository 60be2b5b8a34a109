//! The key of an API consumer. It is never printed.

use std::fmt;

use serde::{Deserialize, Serialize};

/// An API key, `tenant:dlk_...`, or a token that was given for one.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Key(String);

/// How a key is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scheme {
    /// `X-API-Key: ...`
    ApiKey,
    /// `Authorization: Bearer ...`
    Bearer,
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

impl Key {
    /// The text may have white space around it, such as the line end of a file.
    pub(crate) fn parse(text: &str) -> Result<Key, String> {
        let text = text.trim();
        if text.is_empty() {
            return Err("the key is empty; it looks like shop:dlk_...".to_owned());
        }
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err("the key holds characters that no key has; it looks like shop:dlk_...".to_owned());
        }
        let key = Key(text.to_owned());
        if key.tenant().is_none() && key.scheme() == Scheme::ApiKey {
            return Err("this is neither an API key, which looks like shop:dlk_..., nor a token".to_owned());
        }
        Ok(key)
    }

    /// For the header of a request, and for nothing else.
    #[must_use]
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }

    /// The tenant that an API key belongs to. A token does not show its tenant.
    #[must_use]
    pub(crate) fn tenant(&self) -> Option<&str> {
        let (tenant, secret) = self.0.split_once(':')?;
        (!tenant.is_empty() && !secret.is_empty()).then_some(tenant)
    }

    #[must_use]
    pub(crate) fn scheme(&self) -> Scheme {
        let is_token = !self.0.contains(':') && self.0.split('.').count() == 3;
        if is_token { Scheme::Bearer } else { Scheme::ApiKey }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_names_its_tenant_and_is_not_shown() {
        let key = Key::parse(" shop:dlk_secret\n").expect("a key");
        assert_eq!((key.tenant(), key.scheme()), (Some("shop"), Scheme::ApiKey));
        assert_eq!(key.reveal(), "shop:dlk_secret");
        assert!(!format!("{key:?}").contains("secret"));
    }

    #[test]
    fn a_token_is_a_bearer_token() {
        let token = Key::parse("eyJh.eyJz.c2ln").expect("a token");
        assert_eq!((token.tenant(), token.scheme()), (None, Scheme::Bearer));
    }

    #[test]
    fn other_texts_are_no_keys_and_are_not_repeated() {
        for text in ["", " \n", "hunter2", "a b:c", "shop:dlk\u{1b}", ":x", "shop:"] {
            let why = Key::parse(text).expect_err(text);
            assert!(!why.contains("hunter2"), "{why}");
        }
    }
}
