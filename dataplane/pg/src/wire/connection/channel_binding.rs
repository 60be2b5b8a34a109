//! Channel binding `tls-server-end-point` (RFC 5929): the hash of the server's certificate goes into the SCRAM proof, so
//! that nobody with another certificate can pass the proof on.

use postgres_protocol::authentication::sasl::{ChannelBinding, SCRAM_SHA_256, SCRAM_SHA_256_PLUS};
use sha2::{Digest as _, Sha256, Sha384, Sha512};

use super::connect::{ConnectError, Method};

/// What a SCRAM exchange can be bound to.
pub(crate) enum Binding {
    /// No TLS.
    None,
    /// The certificate's hash; `None` where the standard defines none for it.
    EndPoint(Option<Vec<u8>>),
}

impl Binding {
    pub(crate) fn of_certificate(der: &[u8]) -> Binding {
        Binding::EndPoint(match signature_hash(der) {
            Some(Hash::Sha256) => Some(Sha256::digest(der).to_vec()),
            Some(Hash::Sha384) => Some(Sha384::digest(der).to_vec()),
            Some(Hash::Sha512) => Some(Sha512::digest(der).to_vec()),
            None => None,
        })
    }

    /// The strongest mechanism out of those `offered`, a list with a zero byte after each.
    pub(crate) fn choose(self, offered: &[u8]) -> Result<(&'static str, ChannelBinding), ConnectError> {
        let has = |name: &str| offered.split(|&byte| byte == 0).any(|offer| offer == name.as_bytes());
        match self {
            Binding::EndPoint(hash) if has(SCRAM_SHA_256_PLUS) => {
                let hash = hash.ok_or_else(|| {
                    ConnectError::Tls(
                        "PostgreSQL's certificate is signed in a way for which there is no channel binding: use one \
                         signed with ECDSA or RSA and SHA-256"
                            .to_owned(),
                    )
                })?;
                Ok((SCRAM_SHA_256_PLUS, ChannelBinding::tls_server_end_point(hash)))
            }
            // It says that we would have bound: a server whose offer was cut short on its way ends it there.
            Binding::EndPoint(_) if has(SCRAM_SHA_256) => Ok((SCRAM_SHA_256, ChannelBinding::unrequested())),
            Binding::None if has(SCRAM_SHA_256) => Ok((SCRAM_SHA_256, ChannelBinding::unsupported())),
            _ => Err(ConnectError::NotScram(Method::OtherSasl)),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hash {
    Sha256,
    Sha384,
    Sha512,
}

const SEQUENCE: u8 = 0x30;
const OID: u8 = 0x06;
const HASH_ALGORITHM: u8 = 0xa0;

const ECDSA: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04];
const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01];
const SHA2: &[u8] = &[0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02];

/// The hash of a certificate's signature algorithm; MD5 and SHA-1 count as SHA-256.
fn signature_hash(der: &[u8]) -> Option<Hash> {
    let (certificate, _) = element(der, SEQUENCE)?;
    let (_signed, rest) = element(certificate, SEQUENCE)?;
    let (algorithm, _) = element(rest, SEQUENCE)?;
    let (oid, parameters) = element(algorithm, OID)?;
    if let Some(kind) = oid.strip_prefix(ECDSA) {
        return match kind {
            [1] | [3, 2] => Some(Hash::Sha256),
            [3, 3] => Some(Hash::Sha384),
            [3, 4] => Some(Hash::Sha512),
            _ => None,
        };
    }
    match oid.strip_prefix(RSA)? {
        [4 | 5 | 11] => Some(Hash::Sha256),
        [12] => Some(Hash::Sha384),
        [13] => Some(Hash::Sha512),
        [10] => pss_hash(parameters),
        _ => None,
    }
}

/// RSASSA-PSS names its hash in its parameters.
fn pss_hash(parameters: &[u8]) -> Option<Hash> {
    let (parameters, _) = element(parameters, SEQUENCE)?;
    let Some((algorithm, _)) = element(parameters, HASH_ALGORITHM) else { return Some(Hash::Sha256) };
    let (algorithm, _) = element(algorithm, SEQUENCE)?;
    match element(algorithm, OID)?.0.strip_prefix(SHA2)? {
        [1] => Some(Hash::Sha256),
        [2] => Some(Hash::Sha384),
        [3] => Some(Hash::Sha512),
        _ => None,
    }
}

/// The content of the first element of `der`, which must be a `tag`, and what follows it.
fn element(der: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (&[found, length], rest) = der.split_first_chunk()?;
    let (length, rest) = match length {
        0..=0x7f => (usize::from(length), rest),
        0x81..=0x84 => {
            let (bytes, rest) = rest.split_at_checked(usize::from(length & 0x7f))?;
            (bytes.iter().fold(0, |length, &byte| length << 8 | usize::from(byte)), rest)
        }
        _ => return None,
    };
    (found == tag).then(|| rest.split_at_checked(length)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn der(tag: u8, content: &[u8]) -> Vec<u8> {
        let length = u16::try_from(content.len()).expect("short").to_be_bytes();
        [&[tag, 0x82][..], &length, content].concat()
    }

    fn certificate(oid: &[u8], parameters: &[u8]) -> Vec<u8> {
        let algorithm = der(SEQUENCE, &[der(OID, oid), parameters.to_vec()].concat());
        der(SEQUENCE, &[der(SEQUENCE, &[1; 300]), algorithm, der(3, &[0; 64])].concat())
    }

    #[test]
    fn a_certificate_is_hashed_as_its_signature_is() {
        let pss = |hash: &[u8]| {
            let algorithm = der(SEQUENCE, &der(OID, &[SHA2, hash].concat()));
            der(SEQUENCE, &der(HASH_ALGORITHM, &algorithm))
        };
        for (oid, parameters, expected) in [
            ([ECDSA, &[1]].concat(), vec![], Some(Hash::Sha256)),
            ([ECDSA, &[3, 2]].concat(), vec![], Some(Hash::Sha256)),
            ([ECDSA, &[3, 3]].concat(), vec![], Some(Hash::Sha384)),
            ([ECDSA, &[3, 4]].concat(), vec![], Some(Hash::Sha512)),
            ([RSA, &[5]].concat(), vec![5, 0], Some(Hash::Sha256)),
            ([RSA, &[11]].concat(), vec![5, 0], Some(Hash::Sha256)),
            ([RSA, &[12]].concat(), vec![5, 0], Some(Hash::Sha384)),
            ([RSA, &[13]].concat(), vec![5, 0], Some(Hash::Sha512)),
            ([RSA, &[10]].concat(), pss(&[3]), Some(Hash::Sha512)),
            ([RSA, &[10]].concat(), der(SEQUENCE, &[]), Some(Hash::Sha256)),
            // Ed25519 has no hash of its own.
            (vec![0x2b, 0x65, 0x70], vec![], None),
        ] {
            let certificate = certificate(&oid, &parameters);
            assert_eq!(signature_hash(&certificate), expected, "{oid:x?}");
            for end in 0..certificate.len() {
                assert_eq!(signature_hash(&certificate[..end]), None, "cut at {end}");
            }
        }
    }

    #[test]
    fn what_was_offered_is_never_bound_less_than_it_can_be() {
        let choose = |binding: Binding, offered: &[u8]| binding.choose(offered).map(|(name, _)| name);
        let both = b"SCRAM-SHA-256-PLUS\0SCRAM-SHA-256\0\0";
        let bound = || Binding::EndPoint(Some(vec![1; 32]));
        assert!(matches!(choose(bound(), both), Ok(SCRAM_SHA_256_PLUS)));
        assert!(matches!(choose(bound(), b"SCRAM-SHA-256\0\0"), Ok(SCRAM_SHA_256)));
        assert!(matches!(choose(Binding::None, both), Ok(SCRAM_SHA_256)));
        assert!(matches!(choose(Binding::EndPoint(None), both), Err(ConnectError::Tls(_))));
        assert!(matches!(choose(Binding::None, b"SCRAM-SHA-256-PLUS\0\0"), Err(ConnectError::NotScram(_))));
        assert!(matches!(choose(bound(), b"OAUTHBEARER\0\0"), Err(ConnectError::NotScram(_))));
    }
}
