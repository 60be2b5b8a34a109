//! Where the server is, and the addresses below it.

use std::fmt;
use std::str::FromStr;

use rowgate_core::percent;
use url::{Host, Url};

/// The address of a server, without the slash at its end: `https://api.example.com`, or with a path before the routes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Base(Url);

/// An address that is requested, and whether it is on the server of the key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) url: String,
    /// The key is sent there. It is not sent to any other server.
    pub(crate) is_ours: bool,
}

impl FromStr for Base {
    type Err = String;

    fn from_str(text: &str) -> Result<Base, String> {
        const EXAMPLE: &str = "give it as https://api.example.com";
        let url = Url::parse(text.trim()).map_err(|_| format!("{text:?} is not a URL; {EXAMPLE}"))?;
        if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
            return Err(format!("{text:?} is not an http or https URL; {EXAMPLE}"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(format!("the URL must not hold a user or a password; {EXAMPLE}"));
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(format!("the URL must not have a query or a fragment; {EXAMPLE}"));
        }
        for route in ["/auth/", "/api/ddl"] {
            if let Some((prefix, _)) = url.as_str().split_once(route) {
                return Err(format!("give the URL of the server alone, without {route}...: {prefix}"));
            }
        }
        Ok(Base(url))
    }
}

impl fmt::Display for Base {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_str().trim_end_matches('/'))
    }
}

impl Base {
    /// Of a path with its query, both encoded, that begins with a slash.
    #[must_use]
    pub(crate) fn at(&self, path: &str) -> Target {
        Target { url: format!("{self}{path}"), is_ours: true }
    }

    /// Of a link in an answer: relative to this server, or absolute.
    pub(crate) fn link(&self, link: &str) -> Result<Target, String> {
        if link.starts_with('/') && !link.starts_with("//") {
            return Ok(self.at(link));
        }
        let url = Url::parse(link).map_err(|_| format!("the server sent {link:?}, which is not a URL"))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(format!("the server sent {link:?}, which is not an http or https URL"));
        }
        let is_ours = url.origin() == self.0.origin();
        Ok(Target { url: url.into(), is_ours })
    }

    /// Whether a key would cross a network in clear text.
    #[must_use]
    pub(crate) fn is_clear_text(&self) -> bool {
        self.0.scheme() == "http" && !is_loopback(&self.0)
    }
}

/// `localhost` and the addresses of this machine.
#[must_use]
pub(crate) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.is_loopback(),
        None => false,
    }
}

/// A path whose parts are encoded, each of them: `["auth", tenant, "api"]`.
#[must_use]
pub(crate) fn path(parts: &[&str]) -> String {
    parts.iter().map(|part| format!("/{}", percent::encode(part))).collect()
}

/// `path?a=b&c=d`, with the values encoded; `path` alone without parameters.
#[must_use]
pub(crate) fn with_query(path: &str, parameters: &[(&str, String)]) -> String {
    let pairs: Vec<String> =
        parameters.iter().map(|(name, value)| format!("{name}={}", percent::encode(value))).collect();
    if pairs.is_empty() { path.to_owned() } else { format!("{path}?{}", pairs.join("&")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_is_the_server_alone() {
        for (text, shown) in [
            ("http://127.0.0.1:8080/", "http://127.0.0.1:8080"),
            (" https://api.example.com ", "https://api.example.com"),
            ("https://example.com/rowgate/", "https://example.com/rowgate"),
        ] {
            assert_eq!(text.parse::<Base>().expect(text).to_string(), shown);
        }
        for text in [
            "",
            "127.0.0.1:8080",
            "ftp://a",
            "https://u:p@a",
            "https://a/?x",
            "https://a/#x",
            "http://a/auth/shop/api",
        ] {
            text.parse::<Base>().expect_err(text);
        }
    }

    #[test]
    fn the_key_goes_to_its_own_server_only() {
        let base: Base = "https://example.com/rowgate".parse().expect("a base");
        let at = |link: &str| base.link(link).expect(link);
        assert_eq!(at("/api/x"), Target { url: "https://example.com/rowgate/api/x".into(), is_ours: true });
        assert!(at("https://example.com/api/x?sig=1").is_ours);
        for link in ["http://example.com/x", "https://example.com:8443/x", "https://other.example/x"] {
            assert!(!at(link).is_ours, "{link}");
        }
        for link in ["file:///etc/passwd", "x", "//other.example/x"] {
            base.link(link).expect_err(link);
        }
    }

    #[test]
    fn clear_text_is_fine_on_this_machine_only() {
        let is_clear = |text: &str| text.parse::<Base>().expect(text).is_clear_text();
        assert!(is_clear("http://10.0.0.1") && is_clear("http://api.example.com"));
        assert!(!is_clear("http://localhost:1") && !is_clear("http://[::1]:1") && !is_clear("https://a"));
    }

    #[test]
    fn parts_and_values_are_encoded() {
        assert_eq!(path(&["auth", "shop", "api", "a/b ü"]), "/auth/shop/api/a%2Fb%20%C3%BC");
        let filter = ("$filter", "at gt 2024-01-31T10:00:00+02:00 & x".to_owned());
        assert_eq!(
            with_query("/p", &[filter]),
            "/p?$filter=at%20gt%202024-01-31T10%3A00%3A00%2B02%3A00%20%26%20x"
        );
        assert_eq!(with_query("/p", &[]), "/p");
    }
}
