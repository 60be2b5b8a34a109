//! Where webhooks may go: the rules of a URL, and the one judgement of addresses, made when it is saved and at every connect.

use std::net::IpAddr;

use ipnet::IpNet;
use url::{Host, Url};

mod address;
#[cfg(test)]
mod forms;

pub use address::AddressKind;

/// How long a URL may be, in bytes.
pub const MAX_URL_LEN: usize = 2048;
const MAX_HOST_LEN: usize = 253;

/// What is allowed beside public addresses by https.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Policy {
    /// The tenant allows plain http.
    pub allow_http: bool,
    /// Ranges that the installation allows, private ones too; never a tenant. Link-local addresses and those of metadata
    /// services are refused all the same.
    pub ranges: Vec<IpNet>,
}

/// A URL that may be sent to, as far as can be said without looking up its host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    url: Url,
}

/// Why nothing is sent there. The texts hold neither the URL nor the address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("the URL is longer than {MAX_URL_LEN} bytes")]
    TooLong,
    #[error("the URL cannot be parsed")]
    Unreadable,
    #[error("the URL must begin with https://")]
    Scheme,
    #[error("the tenant does not allow plain http; use https://, or set allowHttp on the Tenant")]
    PlainHttp,
    #[error("the URL must not hold a user name or a password")]
    UserInfo,
    #[error("the URL must not name port 0")]
    Port,
    #[error("the host name is not valid")]
    HostName,
    #[error(
        "the host name belongs to a local network, and the installation allows no ranges of addresses there"
    )]
    LocalName,
    #[error("the address of the host is {0}, and nothing is sent there")]
    Address(AddressKind),
}

/// The last labels of names that local networks use, and that no public host has.
const LOCAL: [&str; 11] = [
    "localhost",
    "localdomain",
    "local",
    "internal",
    "intranet",
    "private",
    "lan",
    "home",
    "corp",
    "svc",
    "home.arpa",
];

impl Destination {
    /// Reads a URL and judges all of it but the addresses behind a name. A fragment is dropped: it is never sent.
    pub fn parse(text: &str, policy: &Policy) -> Result<Destination, Refusal> {
        if MAX_URL_LEN < text.len() {
            return Err(Refusal::TooLong);
        }
        let after_scheme = after_scheme(text, policy)?;
        // The parser forgives what others read otherwise: white space within, backslashes, more slashes.
        let is_forgiven = |c: char| c.is_whitespace() || c.is_control() || c == '\\';
        if text.contains(is_forgiven) || after_scheme.starts_with('/') {
            return Err(Refusal::Unreadable);
        }
        let mut url = Url::parse(text).map_err(|_| Refusal::Unreadable)?;
        let authority = after_scheme.split(['/', '?', '#']).next().unwrap_or_default();
        if authority.contains('@') {
            return Err(Refusal::UserInfo);
        }
        if url.port() == Some(0) {
            return Err(Refusal::Port);
        }
        match url.host().ok_or(Refusal::HostName)? {
            Host::Ipv4(ip) => address_allowed(ip.into(), policy)?,
            Host::Ipv6(ip) => address_allowed(ip.into(), policy)?,
            Host::Domain(name) => {
                let name = name.strip_suffix('.').unwrap_or(name).to_owned();
                judge_name(&name, policy)?;
                url.set_host(Some(&name)).map_err(|_| Refusal::HostName)?;
            }
        }
        url.set_fragment(None);
        Ok(Destination { url })
    }

    #[must_use]
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// A name, or an address whose IPv6 form stands in brackets.
    #[must_use]
    pub fn host(&self) -> &str {
        self.url.host_str().expect("parse requires a host")
    }

    /// The address, where the host is one: it needs no look-up.
    #[must_use]
    pub fn address(&self) -> Option<IpAddr> {
        match self.url.host()? {
            Host::Ipv4(ip) => Some(ip.into()),
            Host::Ipv6(ip) => Some(ip.into()),
            Host::Domain(_) => None,
        }
    }

    #[must_use]
    pub fn port(&self) -> u16 {
        self.url.port_or_known_default().expect("http and https have one")
    }

    #[must_use]
    pub fn is_https(&self) -> bool {
        self.url.scheme() == "https"
    }
}

/// Judges an address that a host has: at creation where the URL holds it, and at every connect.
pub fn address_allowed(ip: IpAddr, policy: &Policy) -> Result<(), Refusal> {
    address::judge(ip, &policy.ranges).map_err(Refusal::Address)
}

/// The host that a URL names, in the one spelling that all its spellings share; it is not judged. None: nothing is sent there.
#[must_use]
pub fn host_of(url: &str) -> Option<String> {
    let url = Url::parse(url).ok()?;
    let host = url.host_str()?;
    Some(host.strip_suffix('.').unwrap_or(host).to_owned())
}

fn after_scheme<'a>(text: &'a str, policy: &Policy) -> Result<&'a str, Refusal> {
    let (scheme, after) = text.split_once("://").ok_or(Refusal::Scheme)?;
    match scheme.to_ascii_lowercase().as_str() {
        "https" => Ok(after),
        "http" if policy.allow_http => Ok(after),
        "http" => Err(Refusal::PlainHttp),
        _ => Err(Refusal::Scheme),
    }
}

/// Judges a name as the parser spells it: lower case and Punycode. Where the installation allows ranges, its local names are
/// judged by their addresses alone.
fn judge_name(name: &str, policy: &Policy) -> Result<(), Refusal> {
    let is_label = |label: &str| {
        let fits = !label.is_empty() && label.len() <= 63;
        fits && label.bytes().all(|c| matches!(c, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_'))
    };
    if MAX_HOST_LEN < name.len() || !name.split('.').all(is_label) {
        return Err(Refusal::HostName);
    }
    let ends =
        |suffix: &&str| name.strip_suffix(*suffix).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    let is_local = !name.contains('.') || LOCAL.iter().any(ends);
    if is_local && policy.ranges.is_empty() {
        return Err(Refusal::LocalName);
    }
    Ok(())
}
