//! TLS: the server that was meant and nobody else, by both clients; and every other test of the wire through it.

use std::sync::Arc;

use parking_lot::Mutex;
use rowgate_pg::connect::login::{Endpoint, Login};
use rowgate_pg::connect::session;
use rowgate_pg::wire::{Failure, RequestPool};
use rowgate_sql::shape::Encoding::{Int4, Text};
use rowgate_tests::servers::postgres::{Server, rows};
use rowgate_tests::servers::tls::{Authority, SSL_REQUEST, Validity};
use rowgate_tests::wait::until;
use rustls::pki_types::ServerName;
use serde_json::json;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use crate::postgres::wire::fixture::{Tenant, pass_over};

/// Why neither client gets to the server, the pool's reason first.
async fn refusals(tenant: &Tenant, endpoint: Endpoint) -> [String; 2] {
    let login = Login { endpoint, ..tenant.login.clone() };
    let pool = RequestPool::new(login.clone(), 1);
    let wire = match pool.read(tenant.ask("a", "select 1", &[Int4]), usize::MAX).await {
        Err(Failure::NoConnection(why)) => why,
        other => panic!("{other:?}"),
    };
    let sqlx = session::connect(&login).await.err().map(|error| error.to_string());
    [wire, sqlx.expect("a refusal")]
}

fn port_of(endpoint: &Endpoint) -> u16 {
    match endpoint {
        Endpoint::Tcp { port, .. } => *port,
        Endpoint::Unix { .. } => panic!("it has a certificate"),
    }
}

#[test]
fn the_wire_tests_pass_through_tls() {
    pass_over("tls", &[]);
}

/// Seen to fail with an sqlx connection in mode verify-ca, and with a wire that falls back to clear text.
#[tokio::test]
async fn a_server_that_is_not_the_one_that_was_meant_is_refused_by_both_clients() {
    let authority = Authority::new();
    let server = Server::with_tls(&[], &authority, &authority.issue("localhost", Validity::Now)).await;
    let mut tenant = Tenant::found(&server, "wire_tls").await;
    let port = port_of(&server.way());

    let pool = tenant.pool();
    let pid = tenant.text(&pool, "a", "select pg_backend_pid()").await;
    let ssl = format!("select ssl, version from pg_stat_ssl where pid = {pid}");
    assert_eq!(rows(&mut tenant.superuser, &ssl).await, [json!({"ssl": true, "version": "TLSv1.3"})]);
    session::connect(&tenant.login).await.expect("the same by sqlx");

    for why in refusals(&tenant, authority.endpoint("127.0.0.1", port)).await {
        assert!(why.contains("is not for this host's name"), "{why}");
    }
    for why in refusals(&tenant, Authority::new().endpoint("localhost", port)).await {
        assert!(
            why.contains("comes from no authority that is trusted") && why.contains("--database-ca"),
            "{why}"
        );
    }
}

#[tokio::test]
async fn an_expired_certificate_is_refused_by_both_clients() {
    let authority = Authority::new();
    let server = Server::with_tls(&[], &authority, &authority.issue("localhost", Validity::Expired)).await;
    let tenant = Tenant::found(&server, "wire_expired").await;
    for why in refusals(&tenant, server.way()).await {
        assert!(why.contains("has expired"), "{why}");
    }
}

/// Answers every connection with `answer` after it has read a request for TLS, and keeps it open.
async fn answering(answer: &'static [u8]) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let port = listener.local_addr().expect("it is bound").port();
    tokio::spawn(async move {
        let mut open = Vec::new();
        while let Ok((mut stream, _)) = listener.accept().await {
            assert_eq!(startup(&mut stream).await, SSL_REQUEST, "nothing is said before TLS");
            stream.write_all(answer).await.expect("it is open");
            open.push(stream);
        }
    });
    port
}

/// A message without a tag.
async fn startup(stream: &mut (impl AsyncRead + Unpin)) -> Vec<u8> {
    let length = stream.read_u32().await.expect("a length");
    let mut message = length.to_be_bytes().to_vec();
    message.resize(length as usize, 0);
    stream.read_exact(&mut message[4..]).await.expect("the whole of it");
    message
}

/// Seen to fail with a wire that falls back to clear text.
#[tokio::test]
async fn whoever_answers_the_request_for_tls_otherwise_learns_nothing_and_says_nothing() {
    let authority = Authority::new();
    let tenant = Tenant::found(rowgate_tests::servers::postgres::shared().await, "wire_answers").await;
    for (answer, expected) in [
        (&b"N"[..], "does not offer TLS"),
        // In clear text, "you are in, ask".
        (b"SR\0\0\0\x08\0\0\0\0Z\0\0\0\x05I", "before the TLS handshake"),
        (b"NR\0\0\0\x08\0\0\0\0Z\0\0\0\x05I", "does not offer TLS"),
        (b"E\0\0\0\x09Mtrust\0\0", "with an error"),
        (b"R\0\0\0\x08\0\0\0\0", "no answer to the request for TLS"),
    ] {
        let [wire, _sqlx] = refusals(&tenant, authority.endpoint("localhost", answering(answer).await)).await;
        assert!(wire.contains(expected), "{wire}");
    }
}

/// Between client and server: shows the one a certificate of the same authority, and passes on all that is said.
/// `edit` may change what the server says first.
async fn between(
    config: Arc<rustls::ServerConfig>,
    client: Arc<rustls::ClientConfig>,
    server: u16,
    edit: fn(Vec<u8>) -> Vec<u8>,
) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let port = listener.local_addr().expect("it is bound").port();
    tokio::spawn(async move {
        while let Ok((mut near, _)) = listener.accept().await {
            startup(&mut near).await;
            near.write_all(b"S").await.expect("it is open");
            let Ok(mut near) = TlsAcceptor::from(config.clone()).accept(near).await else { continue };
            let mut far = TcpStream::connect(("127.0.0.1", server)).await.expect("the server is up");
            far.write_all(&SSL_REQUEST).await.expect("it is open");
            assert_eq!(far.read_u8().await.expect("an answer"), b'S');
            let name = ServerName::try_from("localhost").expect("a name");
            let mut far = TlsConnector::from(client.clone()).connect(name, far).await.expect("it is trusted");
            pass(&mut near, &mut far, edit).await;
        }
    });
    port
}

async fn pass<N, F>(near: &mut N, far: &mut F, edit: fn(Vec<u8>) -> Vec<u8>)
where
    N: AsyncRead + AsyncWrite + Unpin,
    F: AsyncRead + AsyncWrite + Unpin,
{
    let hello = startup(near).await;
    far.write_all(&hello).await.expect("it is open");
    far.flush().await.expect("it is open");
    let tag = far.read_u8().await.expect("a tag");
    assert_eq!(tag, b'R', "the request for SASL");
    let mut offer = edit(startup(far).await);
    offer.insert(0, tag);
    near.write_all(&offer).await.expect("it is open");
    near.flush().await.expect("it is open");
    // Either side may end it.
    let _ended = copy_bidirectional(near, far).await;
}

/// The list of mechanisms without the one that binds.
fn without_plus(message: Vec<u8>) -> Vec<u8> {
    let text = b"SCRAM-SHA-256-PLUS\0";
    let at =
        message.windows(text.len()).position(|part| part == text).expect("PostgreSQL offers it over TLS");
    let mut cut = message;
    cut.drain(at..at + text.len());
    let length = u32::try_from(cut.len()).expect("short").to_be_bytes();
    cut[..4].copy_from_slice(&length);
    cut
}

/// With the server's own certificate the same relay works, so it is the certificate that is refused.
/// Seen to fail with a client that never binds: it gets in.
#[tokio::test]
async fn another_certificate_of_a_trusted_authority_cannot_stand_between() {
    let authority = Authority::new();
    let own = authority.issue("localhost", Validity::Now);
    let other = authority.issue("localhost", Validity::Now);
    let server = Server::with_tls(&[], &authority, &own).await;
    let tenant = Tenant::found(&server, "wire_between").await;
    let there = port_of(&server.way());
    let pool = |port| {
        RequestPool::new(Login { endpoint: authority.endpoint("localhost", port), ..tenant.login.clone() }, 1)
    };

    let port = between(own.server(), authority.client(), there, |offer| offer).await;
    assert_eq!(tenant.text(&pool(port), "a", "select 'in'").await, "in");

    for (edit, expected) in [
        ((|offer| offer) as fn(Vec<u8>) -> Vec<u8>, "SCRAM channel binding check failed"),
        (without_plus, "SCRAM channel binding negotiation error"),
    ] {
        let port = between(other.server(), authority.client(), there, edit).await;
        match pool(port).read(tenant.ask("a", "select 1", &[Int4]), usize::MAX).await {
            Err(Failure::NoConnection(why)) => assert!(why.contains(expected), "{why}"),
            answer => panic!("{answer:?}"),
        }
    }
}

/// A relay that notes what each connection begins with: the request for TLS, and then only records of TLS.
async fn noting(server: u16) -> (u16, Arc<Mutex<Vec<[u8; 9]>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let port = listener.local_addr().expect("it is bound").port();
    let noted = Arc::new(Mutex::new(Vec::new()));
    let notes = Arc::clone(&noted);
    tokio::spawn(async move {
        while let Ok((mut near, _)) = listener.accept().await {
            let mut far = TcpStream::connect(("127.0.0.1", server)).await.expect("the server is up");
            let notes = Arc::clone(&notes);
            tokio::spawn(async move {
                let mut first = [0; 9];
                near.read_exact(&mut first[..8]).await.expect("a request");
                far.write_all(&first[..8]).await.expect("the server is up");
                let mut answer = [0];
                far.read_exact(&mut answer).await.expect("an answer");
                near.write_all(&answer).await.expect("it waits");
                near.read_exact(&mut first[8..]).await.expect("a handshake");
                notes.lock().push(first);
                far.write_all(&first[8..]).await.expect("the server is up");
                let _ended = copy_bidirectional(&mut near, &mut far).await;
            });
        }
    });
    (port, noted)
}

/// PostgreSQL takes it in clear text too, with the number that allows everybody to cancel that session.
/// Seen to fail with a cancel over plain TCP.
#[tokio::test]
async fn a_request_to_cancel_goes_through_tls_too() {
    let authority = Authority::new();
    let server = Server::with_tls(&[], &authority, &authority.issue("localhost", Validity::Now)).await;
    let mut tenant = Tenant::found(&server, "wire_tls_cancel").await;
    let (port, noted) = noting(port_of(&server.way())).await;
    let login = Login { endpoint: authority.endpoint("localhost", port), ..tenant.login.clone() };
    let pool = RequestPool::new(login, 1);
    let text = "select i, repeat('x', 1000) from generate_series(1, 1000000) i";
    let page = pool.read(tenant.ask("a", text, &[Int4, Text]), usize::MAX).await.expect("an answer");
    drop(page);
    let active = "select 1 as n from pg_stat_activity
        where datname = current_database() and state = 'active' and pid <> pg_backend_pid()";
    until("the end of the statement", async || {
        rows(&mut tenant.superuser, active).await.is_empty().then_some(())
    })
    .await;
    pool.close().await;
    let noted = noted.lock().clone();
    // The session and its cancel; 22 is a handshake.
    let expected = [&SSL_REQUEST[..], &[22]].concat();
    assert_eq!(noted, [<[u8; 9]>::try_from(&expected[..]).expect("8 and 1"); 2]);
}
