//! Whom a TCP connection to PostgreSQL trusts: a certificate with the server's name, verified, or the machine itself.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::{Arc, LazyLock};

use rustls::client::Resumption;
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{CertificateError, ClientConfig, RootCertStore};

/// How a TCP connection is protected. There is nothing between the two: who encrypts without verifying talks to anybody.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tls {
    /// Not at all: for a server on this machine.
    Disable,
    /// The certificate must be valid, come from one of these, and hold the host's name.
    VerifyFull(Authorities),
}

/// The certificate authorities that may vouch for a server; read once.
#[derive(Clone)]
pub struct Authorities {
    /// `None`: those of the system.
    pem: Option<Arc<[u8]>>,
    config: Arc<ClientConfig>,
}

/// Servers that know it refuse a connection that was meant for another protocol.
const ALPN: &[u8] = b"postgresql";

impl Default for Tls {
    fn default() -> Tls {
        Tls::VerifyFull(Authorities::system())
    }
}

impl Authorities {
    /// Those that the system trusts. Where it has none, no server is trusted.
    #[must_use]
    pub fn system() -> Authorities {
        static SYSTEM: LazyLock<Authorities> = LazyLock::new(|| {
            let mut roots = RootCertStore::empty();
            let found = rustls_native_certs::load_native_certs();
            for error in found.errors {
                tracing::warn!(%error, "some of the system's certificate authorities cannot be read");
            }
            roots.add_parsable_certificates(found.certs);
            Authorities { pem: None, config: config(roots) }
        });
        SYSTEM.clone()
    }

    /// Those in a PEM file, and nobody else.
    pub fn from_file(path: &Path) -> Result<Authorities, String> {
        Authorities::from_pem(&std::fs::read(path).map_err(|error| format!("cannot be read: {error}"))?)
    }

    /// Those in a PEM text, and nobody else.
    pub fn from_pem(pem: &[u8]) -> Result<Authorities, String> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(pem) {
            let certificate = certificate.map_err(|error| format!("is no PEM: {error}"))?;
            roots.add(certificate).map_err(|error| format!("holds an invalid certificate: {error}"))?;
        }
        if roots.is_empty() {
            return Err("holds no certificate; give the PEM of the authority".to_owned());
        }
        Ok(Authorities { pem: Some(pem.into()), config: config(roots) })
    }

    /// The PEM of the file that was given; `None`: those of the system.
    #[must_use]
    pub fn pem(&self) -> Option<&[u8]> {
        self.pem.as_deref()
    }

    pub(crate) fn config(&self) -> Arc<ClientConfig> {
        self.config.clone()
    }
}

fn config(roots: RootCertStore) -> Arc<ClientConfig> {
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("ring knows TLS 1.2 and 1.3")
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![ALPN.to_vec()];
    // PostgreSQL resumes no session.
    config.resumption = Resumption::disabled();
    Arc::new(config)
}

/// What a server without TLS is told to be.
pub(crate) const NOT_OFFERED: &str = "PostgreSQL does not offer TLS: set ssl = on in postgresql.conf; only a server on this machine may be used without TLS, with --database-tls disable (sslmode=disable in --database-url)";

/// Why a handshake failed, where it was the certificate, and what to change.
pub(crate) fn explain(error: &io::Error) -> Option<String> {
    use CertificateError as Wrong;
    let error = error.get_ref()?.downcast_ref::<rustls::Error>()?;
    let rustls::Error::InvalidCertificate(wrong) = error else {
        return Some(format!("the TLS handshake with PostgreSQL failed: {error}"));
    };
    Some(match wrong {
        Wrong::NotValidForName | Wrong::NotValidForNameContext { .. } => {
            let names = match wrong {
                Wrong::NotValidForNameContext { presented, .. } => format!(" but for {}", presented.join(", ")),
                _ => String::new(),
            };
            format!(
                "PostgreSQL's certificate is not for this host's name{names}: connect by a name that it holds, or \
                 have one issued for this name"
            )
        }
        Wrong::UnknownIssuer | Wrong::BadSignature => {
            "PostgreSQL's certificate comes from no authority that is trusted: give the file of its authority with \
             --database-ca (sslrootcert in --database-url)"
                .to_owned()
        }
        Wrong::Expired | Wrong::ExpiredContext { .. } => {
            "PostgreSQL's certificate has expired: renew it, or set this machine's clock".to_owned()
        }
        Wrong::NotValidYet | Wrong::NotValidYetContext { .. } => {
            "PostgreSQL's certificate is not valid yet: set this machine's clock".to_owned()
        }
        other => format!("PostgreSQL's certificate cannot be accepted: {other}"),
    })
}

impl PartialEq for Authorities {
    fn eq(&self, other: &Authorities) -> bool {
        self.pem == other.pem
    }
}

impl Eq for Authorities {}

impl fmt::Debug for Authorities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.pem.is_none() { "those of the system" } else { "those of a file" })
    }
}
