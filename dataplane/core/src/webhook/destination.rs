//! Where a webhook may go: the form of its URL, and the addresses that its host stands for.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;
use url::{Host, Url};

mod addresses;

/// Bytes of a URL at most.
const MAX_URL: usize = 2048;

/// What an installation and a tenant allow.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Policy {
    /// The tenant: webhooks without TLS.
    pub allow_http: bool,
    /// The installation: networks beside the public internet. Link-local and metadata addresses are none of them, ever.
    pub ranges: Vec<IpNet>,
}

/// A URL in a form to which webhooks may go. Its host's addresses are judged when they are known: at each connect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    url: Url,
}

/// Why not: a sentence that says what to change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal(String);

impl Destination {
    /// Judges the form, and the host where it is an address. Spellings of an address (`127.1`, `0x7f000001`, full-width digits)
    /// are what browsers read in them.
    ///
    /// # Errors
    /// Says what to change.
    pub fn parse(text: &str, policy: &Policy) -> Result<Destination, Refusal> {
        if MAX_URL < text.len() {
            return refuse(format!("the URL is longer than {MAX_URL} bytes"));
        }
        if text.chars().any(|c| c.is_control() || c.is_whitespace() || c == '\\') {
            return refuse("the URL holds a space, a control character or a backslash; percent-encode it");
        }
        let Ok(url) = Url::parse(text) else {
            return refuse("this is not a URL; write it like https://example.com/hooks");
        };
        match url.scheme() {
            "https" => {}
            "http" if policy.allow_http => {}
            "http" => {
                return refuse(
                    "the URL must begin with https://; the Tenant can allow http with webhooks.allowHttp: true",
                );
            }
            _ => return refuse("the URL must begin with https://"),
        }
        if !url.username().is_empty() || url.password().is_some() {
            return refuse("the URL holds a user name or password; send credentials as a header of the subscription");
        }
        if url.fragment().is_some() {
            return refuse("the URL holds a fragment (#...), which is never sent; leave it out");
        }
        if url.port() == Some(0) {
            return refuse("there is no port 0");
        }
        match url.host() {
            None => return refuse("the URL names no host"),
            Some(Host::Ipv4(address)) => address_allowed(address.into(), policy)?,
            Some(Host::Ipv6(address)) => address_allowed(address.into(), policy)?,
            Some(Host::Domain(name)) => name_allowed(name, policy)?,
        }
        Ok(Destination { url })
    }

    /// The URL as it is requested.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.url.as_str()
    }

    /// As it stands in the URL: a name, or an address, that of IPv6 in brackets.
    #[must_use]
    pub fn host(&self) -> &str {
        self.url.host_str().unwrap_or_default()
    }

    /// The name to resolve, or the address itself.
    #[must_use]
    pub fn name_or_address(&self) -> Result<&str, IpAddr> {
        match self.url.host() {
            Some(Host::Ipv4(address)) => Err(address.into()),
            Some(Host::Ipv6(address)) => Err(address.into()),
            Some(Host::Domain(name)) => Ok(name),
            None => Ok(""),
        }
    }

    #[must_use]
    pub fn port(&self) -> u16 {
        self.url.port_or_known_default().unwrap_or(443)
    }

    #[must_use]
    pub fn is_tls(&self) -> bool {
        self.url.scheme() == "https"
    }

    /// Path and query.
    #[must_use]
    pub fn target(&self) -> String {
        let query = self.url.query().map(|query| format!("?{query}")).unwrap_or_default();
        format!("{}{query}", self.url.path())
    }

    /// The `Host` header: the port only where it is not the scheme's.
    #[must_use]
    pub fn authority(&self) -> String {
        let port = self.url.port().map(|port| format!(":{port}")).unwrap_or_default();
        format!("{}{port}", self.host())
    }
}

/// Whether webhooks may be sent to the address.
///
/// # Errors
/// Says what the address is; never more than was asked.
pub fn address_allowed(address: IpAddr, policy: &Policy) -> Result<(), Refusal> {
    let listed = |address: IpAddr| policy.ranges.iter().any(|range| range.contains(&address));
    let v4 = |address: Ipv4Addr| match addresses::v4_never(address) {
        Some(what) => refuse_address(what),
        None if listed(address.into()) => Ok(()),
        None => addresses::v4(address).map_or(Ok(()), refuse_address),
    };
    let v6 = |address: Ipv6Addr| match addresses::v6_never(address) {
        Some(what) => refuse_address(what),
        None if listed(address.into()) => Ok(()),
        None => addresses::v6(address).map_or(Ok(()), refuse_address),
    };
    match address {
        IpAddr::V4(address) => v4(address),
        IpAddr::V6(address) => match addresses::carried(address) {
            // the same host as the address in it
            Some(inner) => v4(inner),
            None => v6(address),
        },
    }
}

/// Names that stand for this machine or this network whatever they resolve to. Where networks are allowed, the address decides.
fn name_allowed(name: &str, policy: &Policy) -> Result<(), Refusal> {
    let name = name.strip_suffix('.').unwrap_or(name);
    if name.is_empty() || name.ends_with('.') {
        return refuse("the URL names no host");
    }
    let last = name.rsplit('.').next().unwrap_or(name);
    if last == "localhost" && !policy.ranges.iter().any(|range| range.contains(&IpAddr::from(Ipv4Addr::LOCALHOST))) {
        return refuse_address("a loopback address");
    }
    let is_ours = name == last || matches!(last, "local" | "internal" | "localdomain" | "arpa");
    match is_ours && policy.ranges.is_empty() {
        true => refuse("the host is a name of a private network; webhooks go to public hosts"),
        false => Ok(()),
    }
}

fn refuse<T>(why: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal(why.into()))
}

fn refuse_address<T>(what: &str) -> Result<T, Refusal> {
    refuse(format!("the host is {what}; webhooks go to public hosts, and to networks that the installation allows"))
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refusal {}

#[cfg(test)]
mod tests;
