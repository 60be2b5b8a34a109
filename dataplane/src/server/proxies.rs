//! Which proxies may say by what scheme and host the caller reached them.
//!
//! `X-Forwarded-Proto` and `X-Forwarded-Host` are the two headers that count; `Forwarded` (RFC 7239) does not, because
//! a proxy that sets one of the two ways passes the other on as the caller wrote it.

use std::net::IpAddr;

use axum::http::{HeaderMap, HeaderName};
use ipnet::IpNet;

pub const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
pub const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");

/// The networks whose word counts. None by default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrustedProxies(Vec<IpNet>);

impl TrustedProxies {
    /// Networks and single addresses, separated by commas. An error names every part that is neither.
    pub fn parse(text: &str) -> Result<TrustedProxies, String> {
        let (mut networks, mut wrong) = (Vec::new(), Vec::new());
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            match part.parse().or_else(|_| part.parse::<IpAddr>().map(IpNet::from)) {
                Ok(network) => networks.push(network),
                Err(_) => wrong.push(format!("{part:?}")),
            }
        }
        match wrong.is_empty() {
            true => Ok(TrustedProxies(networks)),
            false => Err(format!(
                "holds entries that are not networks: {}; give addresses or networks such as 10.0.0.0/8, separated by commas",
                wrong.join(", ")
            )),
        }
    }

    /// Whether the peer of a connection is one of them.
    #[must_use]
    pub fn trust(&self, peer: IpAddr) -> bool {
        // A socket of both families shows 10.0.0.1 as ::ffff:10.0.0.1.
        let peer = peer.to_canonical();
        self.0.iter().any(|network| network.contains(&peer))
    }
}

/// Takes out of a request what only a trusted proxy may say.
pub fn forget(headers: &mut HeaderMap) {
    headers.remove(X_FORWARDED_PROTO);
    headers.remove(X_FORWARDED_HOST);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_and_addresses_are_trusted_and_nobody_else() {
        let proxies = TrustedProxies::parse("10.0.0.0/8, 192.0.2.7,fd00::/8").expect("good");
        let holds = |peer: &str| proxies.trust(peer.parse().expect("an address"));
        for peer in ["10.1.2.3", "192.0.2.7", "fd12::1", "::ffff:10.0.0.1"] {
            assert!(holds(peer), "{peer}");
        }
        for peer in ["11.0.0.1", "192.0.2.8", "127.0.0.1", "::1", "fe80::1", "::ffff:11.0.0.1"] {
            assert!(!holds(peer), "{peer}");
        }
        assert!(!TrustedProxies::parse("").expect("none").trust([127, 0, 0, 1].into()));
        assert!(!TrustedProxies::default().trust([127, 0, 0, 1].into()));
    }

    #[test]
    fn every_part_that_is_no_network_is_named() {
        let why = TrustedProxies::parse("10.0.0.0/33, proxy.internal, ::1").expect_err("two mistakes");
        assert!(why.contains(r#""10.0.0.0/33", "proxy.internal";"#), "{why}");
    }
}
