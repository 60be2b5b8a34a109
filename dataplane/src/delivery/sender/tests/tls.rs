//! A receiver by https is the one whose name the URL holds, by the word of an authority that is trusted.

use std::io::Write as _;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tempfile::NamedTempFile;
use tokio_rustls::TlsAcceptor;

use super::*;

struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

impl Authority {
    fn new(name: &str) -> Authority {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let pem = params.self_signed(&key).expect("a certificate").pem();
        Authority { issuer: Issuer::new(params, key), pem }
    }

    /// Those of the system, and this one.
    fn roots(&self) -> Roots {
        let mut file = NamedTempFile::new().expect("a file");
        file.write_all(self.pem.as_bytes()).expect("it is ours");
        Roots::with_file(file.path()).expect("a PEM file")
    }

    /// A receiver that shows a certificate of this authority, and its URL for `host`.
    async fn receiver(&self, names: &[&str], is_expired: bool) -> Receiver {
        let mut params =
            CertificateParams::new(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())
                .expect("names");
        if is_expired {
            params.not_before = date_time_ymd(2020, 1, 1);
            params.not_after = date_time_ymd(2021, 1, 1);
        }
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("ring knows them")
            .with_no_client_auth();
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let config =
            config.with_single_cert(vec![certificate.der().clone()], key).expect("they belong together");
        let acceptor = TlsAcceptor::from(Arc::new(config));
        Receiver::start(move |stream, _| {
            let acceptor = acceptor.clone();
            async move {
                if let Ok(mut stream) = acceptor.accept(stream).await {
                    answer(&mut stream, "HTTP/1.1 204 No Content\r\n\r\n").await;
                }
            }
        })
        .await
    }
}

fn trusting(roots: Roots) -> Sender {
    Sender::with(policy().ranges, resolver(&[&["127.0.0.1"]]).0, roots, LONG, LONG)
}

#[tokio::test]
async fn the_certificate_must_hold_the_name_and_come_from_an_authority() {
    let (ours, other) = (Authority::new("ours"), Authority::new("other"));
    let sender = trusting(ours.roots());
    let post = async |receiver: Receiver, host: &str| {
        status(&sender, &format!("https://{host}:{}/", receiver.address.port())).await
    };
    let good = &["hook.example", "127.0.0.1"];
    assert_eq!(post(ours.receiver(good, false).await, "hook.example").await, Ok(204));
    assert_eq!(post(ours.receiver(good, false).await, "127.0.0.1").await, Ok(204));
    unreachable(
        &post(ours.receiver(good, false).await, "other.example").await,
        "does not hold the host name",
    );
    unreachable(&post(ours.receiver(good, true).await, "hook.example").await, "has expired");
    unreachable(&post(other.receiver(good, false).await, "hook.example").await, "unknown authority");
    let (plain, _) = Receiver::answering("HTTP/1.1 204 No Content\r\n\r\n").await;
    // it waits for the end of a request's head, which no handshake holds
    let short = Sender::with(policy().ranges, resolver(&[&["127.0.0.1"]]).0, ours.roots(), SHORT, LONG);
    let url = format!("https://hook.example:{}/", plain.address.port());
    assert_eq!(status(&short, &url).await, Err(SendFailure::TimedOut));
}

#[test]
fn a_file_without_a_certificate_is_refused() {
    let mut file = NamedTempFile::new().expect("a file");
    file.write_all(b"-----BEGIN CERTIFICATE-----\nnonsense\n-----END CERTIFICATE-----\n")
        .expect("it is ours");
    assert!(Roots::with_file(file.path()).is_err());
    assert!(Roots::with_file(std::path::Path::new("/does/not/exist")).is_err());
}
