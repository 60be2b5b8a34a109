//! Whom a delivery by https trusts, and why a handshake failed, in words that hold nothing of the network.

use std::path::Path;
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{CertificateError, ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::SendFailure;

/// The certificate authorities that may vouch for a receiver.
#[derive(Clone)]
pub struct Roots(TlsConnector);

impl Roots {
    /// Those that the system trusts. Where it has none, no receiver is trusted.
    #[must_use]
    pub fn system() -> Roots {
        Roots::of(system())
    }

    /// Those of the system, and those in a PEM file.
    pub fn with_file(path: &Path) -> Result<Roots, String> {
        let mut roots = system();
        let n_system = roots.len();
        let pem = std::fs::read(path).map_err(|error| format!("cannot be read: {error}"))?;
        for certificate in CertificateDer::pem_slice_iter(&pem) {
            let certificate = certificate.map_err(|error| format!("is not a PEM file: {error}"))?;
            roots.add(certificate).map_err(|error| format!("holds an invalid certificate: {error}"))?;
        }
        if roots.len() == n_system {
            return Err("holds no certificate; give the PEM file of the authority".to_owned());
        }
        Ok(Roots::of(roots))
    }

    fn of(roots: RootCertStore) -> Roots {
        let mut config = trusting(roots);
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Roots(TlsConnector::from(Arc::new(config)))
    }

    /// As a client of `host`: a name, or an address whose IPv6 form stands in brackets.
    pub(super) async fn handshake(
        &self,
        host: &str,
        stream: TcpStream,
    ) -> Result<TlsStream<TcpStream>, SendFailure> {
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let name = ServerName::try_from(host)
            .map_err(|_| SendFailure::Unreachable("no certificate can hold the host name".to_owned()))?;
        self.0.connect(name, stream).await.map_err(|error| {
            let error = error.get_ref().and_then(|error| error.downcast_ref());
            SendFailure::Unreachable(explain(error).to_owned())
        })
    }
}

/// For a client of servers that the system trusts.
pub(crate) fn system_tls() -> ClientConfig {
    trusting(system())
}

fn trusting(roots: RootCertStore) -> ClientConfig {
    ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("ring knows TLS 1.2 and 1.3")
        .with_root_certificates(roots)
        .with_no_client_auth()
}

fn system() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    for error in found.errors {
        tracing::warn!(%error, "some of the system's certificate authorities cannot be read");
    }
    roots.add_parsable_certificates(found.certs);
    roots
}

fn explain(error: Option<&rustls::Error>) -> &'static str {
    use CertificateError as Wrong;
    match error {
        Some(rustls::Error::InvalidCertificate(wrong)) => match wrong {
            Wrong::Expired | Wrong::ExpiredContext { .. } => "the receiver's certificate has expired",
            Wrong::NotValidYet | Wrong::NotValidYetContext { .. } => {
                "the receiver's certificate is not valid yet"
            }
            Wrong::UnknownIssuer => "the receiver's certificate comes from an unknown authority",
            Wrong::NotValidForName | Wrong::NotValidForNameContext { .. } => {
                "the receiver's certificate does not hold the host name"
            }
            Wrong::Revoked => "the receiver's certificate is revoked",
            _ => "the receiver's certificate is not valid",
        },
        Some(_) | None => "the TLS handshake with the receiver failed",
    }
}
