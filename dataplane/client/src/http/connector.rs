//! Connections: TLS with the authorities that the system trusts, and the proxies that the environment names.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hyper::Uri;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use hyper_util::rt::TokioIo;
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tower::util::BoxCloneSyncService;
use tower::{BoxError, ServiceExt as _, service_fn};
use url::Url;

use super::address::is_loopback;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A connection to a server, directly or through a proxy.
pub(crate) type Connector = HttpsConnector<BoxCloneSyncService<Uri, TokioIo<TcpStream>, BoxError>>;

/// `ca`: a PEM file with further authorities to trust.
pub(crate) fn connector(ca: Option<&Path>) -> Result<Connector, String> {
    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    roots.add_parsable_certificates(found.certs);
    if let Some(path) = ca {
        add_file(&mut roots, path).map_err(|why| format!("the file of --ca, {}, {why}", path.display()))?;
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("ring knows TLS 1.2 and 1.3")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let mut http = HttpConnector::new();
    http.enforce_http(false);
    http.set_connect_timeout(Some(CONNECT_TIMEOUT));
    http.set_nodelay(true);
    let proxies = Arc::new(Matcher::from_env());
    let dialled = BoxCloneSyncService::new(service_fn(move |to: Uri| {
        let (http, proxy) = (http.clone(), proxy(&proxies, &to));
        async move {
            match proxy {
                Some(proxy) => through(&proxy, http, to).await,
                None => Ok(http.oneshot(to).await?),
            }
        }
    }));
    Ok(HttpsConnectorBuilder::new()
        .with_tls_config(config)
        .https_or_http()
        .enable_http1()
        .wrap_connector(dialled))
}

fn add_file(roots: &mut RootCertStore, path: &Path) -> Result<(), String> {
    let n_before = roots.len();
    let pem = std::fs::read(path).map_err(|error| format!("cannot be read: {error}"))?;
    for certificate in CertificateDer::pem_slice_iter(&pem) {
        let certificate = certificate.map_err(|error| format!("is not a PEM file: {error}"))?;
        roots.add(certificate).map_err(|error| format!("holds an invalid certificate: {error}"))?;
    }
    if roots.len() == n_before {
        return Err("holds no certificate; give the PEM file of the authority".to_owned());
    }
    Ok(())
}

/// This machine itself is never reached through a proxy.
fn proxy(proxies: &Matcher, to: &Uri) -> Option<Intercept> {
    let is_local = Url::parse(&to.to_string()).is_ok_and(|url| is_loopback(&url));
    if is_local { None } else { proxies.intercept(to) }
}

async fn through(proxy: &Intercept, http: HttpConnector, to: Uri) -> Result<TokioIo<TcpStream>, BoxError> {
    if proxy.uri().scheme_str() != Some("http") {
        return Err("the environment names a proxy that is not an http:// proxy".into());
    }
    let tunnel = Tunnel::new(proxy.uri().clone(), http);
    let tunnel = match proxy.basic_auth() {
        Some(auth) => tunnel.with_auth(auth.clone()),
        None => tunnel,
    };
    tunnel
        .oneshot(to)
        .await
        .map_err(|error| format!("the proxy {} failed: {error}", host(proxy.uri())).into())
}

/// Without the user and the password that the URL of a proxy may hold.
fn host(uri: &Uri) -> &str {
    uri.host().unwrap_or("of the environment")
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn this_machine_needs_no_proxy() {
        let proxies = Matcher::builder().all("http://proxy.example:3128").no("direct.example").build();
        let is_proxied = |to: &str| proxy(&proxies, &to.parse().expect(to)).is_some();
        assert!(is_proxied("https://api.example.com/"));
        for to in
            ["http://127.0.0.1:8080/", "http://localhost:1/", "https://[::1]/", "https://direct.example/"]
        {
            assert!(!is_proxied(to), "{to}");
        }
    }

    #[test]
    fn a_file_of_authorities_holds_some() {
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        assert!(connector(None).is_ok());
        assert!(connector(Some(file.path())).is_err_and(|why| why.contains("holds no certificate")));
        file.write_all(b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n").expect("written");
        assert!(connector(Some(file.path())).is_err_and(|why| why.contains("invalid certificate")));
        assert!(connector(Some(Path::new("/nonexistent"))).is_err_and(|why| why.contains("cannot be read")));
    }
}
