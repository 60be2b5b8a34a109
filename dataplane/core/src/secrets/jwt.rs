//! Tokens: who asks, for an hour, signed by the data plane (EdDSA over Ed25519). Whether the key lives they never say.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ed25519_dalek::{Signature, Signer as _};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::name::{TenantSlug, Ulid};
use crate::secret::Credential;

/// `iss` of every token.
pub const ISSUER: &str = "rowgate";
/// `aud` of every token.
pub const AUDIENCE: &str = "rowgate-api";
/// How many seconds a token lives at most.
pub const LIFETIME: i64 = 3600;
/// How many seconds the clocks of two replicas may differ.
pub const LEEWAY: i64 = 30;
/// No longer text is looked at.
pub const MAX_LEN: usize = 4096;

/// Who asks, and until when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claims {
    /// `sub`: the key's id.
    pub key: Ulid,
    /// `sid`: which of the key's secrets was exchanged.
    pub secret: Ulid,
    pub tenant: TenantSlug,
    /// `iat` and `nbf`, in seconds since 1970.
    pub issued: i64,
    /// `exp`, likewise.
    pub expires: i64,
}

/// One signing key, known to others by its `kid`. `Debug` prints a marker.
#[derive(Clone)]
pub struct SigningKey {
    kid: String,
    /// The first part of each of its tokens.
    header: String,
    key: ed25519_dalek::SigningKey,
}

/// The live signing keys: one signs, all verify. Two of them are published while one follows the other.
#[derive(Debug, Clone)]
pub struct Signers {
    signing: SigningKey,
    retiring: Vec<SigningKey>,
    /// Verified, and in no key set: another replica may have begun to sign with it.
    unpublished: Vec<SigningKey>,
}

/// No token of ours, or not valid now. There is one answer to every reason, so there is one error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the token was not issued by this installation, or is not valid now")]
pub struct NotAToken;

impl Claims {
    /// Claims that hold from `unix` (seconds since 1970) for `seconds`, or [`LIFETIME`] if that is shorter.
    #[must_use]
    pub fn new(key: Ulid, secret: Ulid, tenant: TenantSlug, unix: i64, seconds: i64) -> Claims {
        Claims { key, secret, tenant, issued: unix, expires: unix.saturating_add(seconds.min(LIFETIME)) }
    }

    /// By what the database finds the key.
    #[must_use]
    pub fn credential(&self) -> Credential {
        Credential::Token { key: self.key.clone(), secret: self.secret.clone() }
    }
}

impl SigningKey {
    /// The key of `seed`. Its `kid` begins with the generation and ends with the public key's thumbprint (RFC 7638), so
    /// that nobody who remembers public keys by `kid` mistakes another root's key for this one.
    pub(crate) fn new(generation: u32, seed: &[u8; 32]) -> SigningKey {
        let key = ed25519_dalek::SigningKey::from_bytes(seed);
        let x = URL_SAFE_NO_PAD.encode(key.verifying_key().as_bytes());
        let thumbprint = Sha256::digest(format!(r#"{{"crv":"Ed25519","kty":"OKP","x":"{x}"}}"#));
        let kid = format!("{generation}-{}", URL_SAFE_NO_PAD.encode(&thumbprint[..12]));
        let header = URL_SAFE_NO_PAD.encode(format!(r#"{{"alg":"EdDSA","kid":"{kid}","typ":"JWT"}}"#));
        SigningKey { kid, header, key }
    }

    fn seal(&self, payload: &[u8]) -> String {
        let signed = format!("{}.{}", self.header, URL_SAFE_NO_PAD.encode(payload));
        let signature = self.key.sign(signed.as_bytes());
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature.to_bytes()))
    }

    /// Whether `signature` is this key's over `signed`; forms that other verifiers might see otherwise are refused.
    fn has_signed(&self, signed: &str, signature: &str) -> bool {
        let bytes = URL_SAFE_NO_PAD.decode(signature).ok().and_then(|bytes| bytes.try_into().ok());
        let Some(bytes) = bytes else { return false };
        self.key.verifying_key().verify_strict(signed.as_bytes(), &Signature::from_bytes(&bytes)).is_ok()
    }
}

impl Signers {
    /// `signing` signs; tokens of `retiring` hold as well.
    #[must_use]
    pub fn new(signing: SigningKey, retiring: Vec<SigningKey>) -> Signers {
        Signers { signing, retiring, unpublished: Vec::new() }
    }

    /// Verifies tokens of `keys` too, without publishing them.
    #[must_use]
    pub fn and_unpublished(self, keys: Vec<SigningKey>) -> Signers {
        Signers { unpublished: keys, ..self }
    }

    /// The token that says `claims`.
    #[must_use]
    pub fn sign(&self, claims: &Claims) -> String {
        let payload = serde_json::to_vec(&Payload::of(claims)).expect("names and numbers are JSON");
        self.signing.seal(&payload)
    }

    /// What `token` claims, if a live key signed it and it is valid at `unix`. The header is compared whole with those
    /// that we write: it names the key, and nothing in it, the algorithm least of all, is ever read.
    pub fn verify(&self, token: &str, unix: i64) -> Result<Claims, NotAToken> {
        if MAX_LEN < token.len() {
            return Err(NotAToken);
        }
        let (signed, signature) = token.rsplit_once('.').ok_or(NotAToken)?;
        let (header, payload) = signed.split_once('.').ok_or(NotAToken)?;
        let key = self.published().chain(&self.unpublished).find(|key| key.header == header);
        let key = key.ok_or(NotAToken)?;
        if !key.has_signed(signed, signature) {
            return Err(NotAToken);
        }
        let payload = URL_SAFE_NO_PAD.decode(payload).map_err(|_| NotAToken)?;
        let payload: Payload = serde_json::from_slice(&payload).map_err(|_| NotAToken)?;
        payload.claims(unix).ok_or(NotAToken)
    }

    /// The public keys, as a JSON Web Key Set (RFC 7517, RFC 8037).
    #[must_use]
    pub fn jwks(&self) -> String {
        let keys = self.published().map(|key| Jwk {
            kty: "OKP",
            crv: "Ed25519",
            alg: "EdDSA",
            r#use: "sig",
            kid: &key.kid,
            x: URL_SAFE_NO_PAD.encode(key.key.verifying_key().as_bytes()),
        });
        serde_json::to_string(&Jwks { keys: keys.collect() }).expect("texts are JSON")
    }

    fn published(&self) -> impl Iterator<Item = &SigningKey> {
        std::iter::once(&self.signing).chain(&self.retiring)
    }
}

#[derive(Serialize)]
struct Jwks<'a> {
    keys: Vec<Jwk<'a>>,
}

#[derive(Serialize)]
struct Jwk<'a> {
    kty: &'static str,
    crv: &'static str,
    alg: &'static str,
    r#use: &'static str,
    kid: &'a str,
    x: String,
}

/// The second part of a token. Further claims, which a newer replica may add, are not looked at.
#[derive(Serialize, Deserialize)]
struct Payload {
    iss: String,
    aud: String,
    sub: Ulid,
    sid: Ulid,
    tenant: TenantSlug,
    iat: i64,
    nbf: i64,
    exp: i64,
}

impl Payload {
    fn of(claims: &Claims) -> Payload {
        Payload {
            iss: ISSUER.to_owned(),
            aud: AUDIENCE.to_owned(),
            sub: claims.key.clone(),
            sid: claims.secret.clone(),
            tenant: claims.tenant.clone(),
            iat: claims.issued,
            nbf: claims.issued,
            exp: claims.expires,
        }
    }

    fn claims(self, unix: i64) -> Option<Claims> {
        let has_begun = self.iat.max(self.nbf) <= unix.saturating_add(LEEWAY);
        let lasts = unix < self.exp.saturating_add(LEEWAY) && self.exp <= self.iat.saturating_add(LIFETIME);
        (self.iss == ISSUER && self.aud == AUDIENCE && has_begun && lasts).then_some(Claims {
            key: self.sub,
            secret: self.sid,
            tenant: self.tenant,
            issued: self.iat,
            expires: self.exp,
        })
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey({}, hidden)", self.kid)
    }
}

#[cfg(test)]
mod tests;
