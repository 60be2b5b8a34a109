//! Certificates for servers of tests, made when a test runs.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::Path;
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    date_time_ymd,
};
use rowgate_pg::connect::login::Endpoint;
use rowgate_pg::connect::tls::{Authorities, Tls};
use rowgate_standalone::postgres::Postgres;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::scratch::Scratch;

/// The request for TLS: its length and its code.
pub const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];

/// Somebody who issues certificates.
#[derive(Debug)]
pub struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
    scratch: Scratch,
}

/// When a certificate holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Validity {
    Now,
    Expired,
}

/// A server's certificate and its key, as PEM.
#[derive(Debug, Clone)]
pub struct Issued {
    pub certificate: String,
    pub key: String,
}

impl Default for Authority {
    fn default() -> Authority {
        Authority::new()
    }
}

impl Authority {
    /// All have the same name, so that only a signature tells them apart.
    #[must_use]
    pub fn new() -> Authority {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "an authority of a test");
        let key = KeyPair::generate().expect("a key");
        let pem = params.self_signed(&key).expect("a certificate").pem();
        let scratch = Scratch::new();
        fs::write(scratch.path().join("ca.pem"), &pem).expect("the folder is ours");
        Authority { pem, issuer: Issuer::new(params, key), scratch }
    }

    /// A server's certificate for `name`.
    #[must_use]
    pub fn issue(&self, name: &str, validity: Validity) -> Issued {
        self.issue_for(&[name], validity)
    }

    /// A certificate for a server that goes by several names.
    #[must_use]
    pub fn issue_for(&self, names: &[&str], validity: Validity) -> Issued {
        let mut params =
            CertificateParams::new(names.iter().map(ToString::to_string).collect::<Vec<_>>()).expect("names");
        if validity == Validity::Expired {
            params.not_before = date_time_ymd(2020, 1, 1);
            params.not_after = date_time_ymd(2021, 1, 1);
        }
        self.sign(&params)
    }

    /// A certificate for a client: `user` of `group`, as Kubernetes reads it.
    #[must_use]
    pub fn issue_client(&self, user: &str, group: &str) -> Issued {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, user);
        params.distinguished_name.push(DnType::OrganizationName, group);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.sign(&params)
    }

    fn sign(&self, params: &CertificateParams) -> Issued {
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        Issued { certificate: certificate.pem(), key: key.serialize_pem() }
    }

    /// The PEM file with its own certificate.
    #[must_use]
    pub fn file(&self) -> std::path::PathBuf {
        self.scratch.path().join("ca.pem")
    }

    /// A server that must be `host`, by this authority's word.
    #[must_use]
    pub fn endpoint(&self, host: &str, port: u16) -> Endpoint {
        let authorities = Authorities::from_file(&self.file()).expect("a certificate");
        Endpoint::Tcp { host: host.to_owned(), port, tls: Tls::VerifyFull(authorities) }
    }

    /// What a client of this authority takes, for tests that stand between.
    #[must_use]
    pub fn client(&self) -> Arc<ClientConfig> {
        let mut roots = RootCertStore::empty();
        let own = CertificateDer::from_pem_slice(self.pem.as_bytes()).expect("PEM");
        roots.add(own).expect("a certificate");
        let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()));
        let config = config.with_safe_default_protocol_versions().expect("ring has them");
        Arc::new(config.with_root_certificates(roots).with_no_client_auth())
    }
}

impl Issued {
    /// A server that shows it.
    #[must_use]
    pub fn server(&self) -> Arc<ServerConfig> {
        let chain = vec![CertificateDer::from_pem_slice(self.certificate.as_bytes()).expect("PEM")];
        let key = PrivateKeyDer::from_pem_slice(self.key.as_bytes()).expect("PEM");
        let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()));
        let config = config.with_safe_default_protocol_versions().expect("ring has them");
        Arc::new(config.with_no_client_auth().with_single_cert(chain, key).expect("they belong together"))
    }
}

/// Puts certificate and key where PostgreSQL looks for them; it reads a key only when it is its own alone.
pub(crate) fn install(postgres: &Postgres, issued: &Issued) {
    let owner = fs::metadata(postgres.data()).expect("it runs there");
    let put = |path: &Path, text: &str| {
        fs::write(path, text).expect("the folder is ours");
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).expect("it is ours");
        chown(path, Some(owner.uid()), Some(owner.gid())).expect("it is ours");
    };
    put(&postgres.data().join("server.crt"), &issued.certificate);
    put(&postgres.data().join("server.key"), &issued.key);
}

/// Puts the authority where PostgreSQL is told to look for it.
pub(crate) fn install_authority(postgres: &Postgres, authority: &Authority) {
    fs::write(postgres.data().join("ca.crt"), &authority.pem).expect("the folder is ours");
}

/// Whether the server on `port` offers TLS.
pub(crate) async fn offered(port: u16) -> bool {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.expect("it listens");
    stream.write_all(&SSL_REQUEST).await.expect("it listens");
    stream.read_u8().await.expect("an answer") == b'S'
}
