//! Stands between clients and the API server, and does to them what networks, load balancers and time do.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, split};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch as turn;
use tokio::task::JoinHandle;
use tokio::time::sleep;
use tokio_rustls::{TlsAcceptor, TlsConnector};

use super::Cluster;
use crate::servers::tls::Validity;

/// Open until it is told otherwise; it ends with this value. Clients reach it by
/// [`Namespace::kubeconfig_through`](super::Namespace::kubeconfig_through), in HTTP/1.1: one request at a time on each
/// connection.
#[derive(Debug)]
pub struct Gate {
    port: u16,
    rules: Arc<turn::Sender<Rules>>,
    accepting: JoinHandle<()>,
}

/// What happens to whoever comes through. A request is known by parts of its first line.
#[derive(Debug, Default)]
struct Rules {
    closed: bool,
    silent: Option<&'static [&'static str]>,
    hold: Option<Hold>,
    /// The paths whose next watch was made to begin long ago; `None`: none is.
    aged: Option<BTreeSet<String>>,
}

#[derive(Debug)]
struct Hold {
    parts: &'static [&'static str],
    least: Duration,
    state: Held,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Held {
    Awaited,
    There,
    Released,
}

impl Gate {
    pub async fn before(cluster: &Cluster) -> Gate {
        Gate::telling(cluster, |_| true).await
    }

    /// As [`Gate::before`]. `answered` is told the first line of each request that the server has answered; when it gives
    /// false, the client is not told.
    pub async fn telling(cluster: &Cluster, answered: impl Fn(&str) -> bool + Send + Sync + 'static) -> Gate {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener.local_addr().expect("it is bound").port();
        let acceptor = TlsAcceptor::from(cluster.authority().issue("127.0.0.1", Validity::Now).server());
        let (connector, there) = (TlsConnector::from(cluster.authority().client()), cluster.port());
        let rules = Arc::new(turn::Sender::new(Rules::default()));
        let (shared, answered) = (Arc::clone(&rules), Arc::new(answered));
        let accepting = tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                let (rules, acceptor, connector) = (shared.clone(), acceptor.clone(), connector.clone());
                let answered = answered.clone();
                tokio::spawn(async move {
                    let mut turned = rules.subscribe();
                    let cut = async move { drop(turned.wait_for(|rules| rules.closed).await) };
                    tokio::select! {
                        biased;
                        () = cut => {}
                        // either side ends connections as it likes
                        _ended = between(&rules, &*answered, near, &acceptor, &connector, there) => {}
                    }
                });
            }
        });
        Gate { port, rules, accepting }
    }

    /// Where it listens on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Cuts all connections, and every new one as it comes.
    pub fn close(&self) {
        self.rules.send_modify(|rules| rules.closed = true);
    }

    pub fn open(&self) {
        self.rules.send_modify(|rules| rules.closed = false);
    }

    /// Nothing is said any more about requests whose first line holds all of `parts`, those under way included; their
    /// connections stay. `None`: everything is passed on again.
    pub fn silence(&self, parts: Option<&'static [&'static str]>) {
        self.rules.send_modify(|rules| rules.silent = parts);
    }

    /// The next watch of each path asks for what happened since the server's first version instead of since its own: as
    /// after an outage that was longer than the server remembers. What it answers is its own.
    pub fn age(&self) {
        self.rules.send_modify(|rules| rules.aged = Some(BTreeSet::new()));
    }

    /// Holds back the next request whose first line holds all of `parts`, until [`Gate::release`] and for `least` at least.
    pub fn hold(&self, parts: &'static [&'static str], least: Duration) {
        self.rules.send_modify(|rules| rules.hold = Some(Hold { parts, least, state: Held::Awaited }));
    }

    /// Whether the request that is to be held back is there, and not released.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.rules.borrow().hold.as_ref().is_some_and(|hold| hold.state == Held::There)
    }

    pub fn release(&self) {
        self.rules.send_modify(|rules| {
            rules.hold.as_mut().expect("something is held").state = Held::Released;
        });
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.accepting.abort();
        self.close();
    }
}

async fn between(
    rules: &turn::Sender<Rules>,
    answered: &(dyn Fn(&str) -> bool + Send + Sync),
    near: TcpStream,
    acceptor: &TlsAcceptor,
    connector: &TlsConnector,
    there: u16,
) -> io::Result<()> {
    let near = acceptor.accept(near).await?;
    let name = ServerName::try_from("127.0.0.1").expect("an address");
    let far = connector.connect(name, TcpStream::connect(("127.0.0.1", there)).await?).await?;
    let ((client, to_client), (server, to_server)) = (split(near), split(far));
    // the first line of the request that is under way
    let (asked, waits) = (turn::Sender::new(String::new()), AtomicBool::new(false));
    let told = || !waits.swap(false, Ordering::Relaxed) || answered(&asked.borrow());
    tokio::select! {
        ended = requests(rules, &asked, &waits, client, to_server) => ended,
        ended = answers(rules, &asked, told, server, to_client) => ended,
    }
}

async fn requests(
    rules: &turn::Sender<Rules>,
    asked: &turn::Sender<String>,
    waits: &AtomicBool,
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
) -> io::Result<()> {
    let mut piece = vec![0; 64 << 10];
    loop {
        let n = from.read(&mut piece).await?;
        if n == 0 {
            return Ok(());
        }
        let mut bytes = piece[..n].to_vec();
        if let Some(line) = first_line(&bytes) {
            asked.send_replace(line.clone());
            waits.store(true, Ordering::Relaxed);
            held(rules, &line).await;
            if let Some(older) = aged(rules, &line) {
                bytes.splice(..line.len(), older.into_bytes());
            }
        }
        heard(rules, asked).await;
        to.write_all(&bytes).await?;
        to.flush().await?;
    }
}

async fn answers(
    rules: &turn::Sender<Rules>,
    asked: &turn::Sender<String>,
    told: impl Fn() -> bool,
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
) -> io::Result<()> {
    let mut piece = vec![0; 64 << 10];
    loop {
        let n = from.read(&mut piece).await?;
        heard(rules, asked).await;
        if n == 0 || !told() {
            return Ok(());
        }
        to.write_all(&piece[..n]).await?;
        to.flush().await?;
    }
}

/// The first line of a request. A body never begins so: ours are JSON.
fn first_line(bytes: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(bytes.split(|byte| *byte == b'\r').next()?).ok()?;
    text.ends_with(" HTTP/1.1").then(|| text.to_owned())
}

fn has(line: &str, parts: &[&str]) -> bool {
    parts.iter().all(|part| line.contains(part))
}

/// Returns when the request may go on.
async fn held(rules: &turn::Sender<Rules>, line: &str) {
    let mut least = Duration::ZERO;
    let is_it = rules.send_if_modified(|rules| match &mut rules.hold {
        Some(hold) if hold.state == Held::Awaited && has(line, hold.parts) => {
            (hold.state, least) = (Held::There, hold.least);
            true
        }
        _ => false,
    });
    if is_it {
        let mut turned = rules.subscribe();
        let released = |rules: &Rules| rules.hold.as_ref().is_none_or(|hold| hold.state == Held::Released);
        sleep(least).await;
        drop(turned.wait_for(released).await);
    }
}

/// Returns when something may be said about the request that is under way.
async fn heard(rules: &turn::Sender<Rules>, asked: &turn::Sender<String>) {
    let is_heard = |rules: &Rules| rules.silent.is_none_or(|parts| !has(&asked.borrow(), parts));
    let _ = rules.subscribe().wait_for(is_heard).await;
}

/// The line of a watch that is to begin long ago.
fn aged(rules: &turn::Sender<Rules>, line: &str) -> Option<String> {
    let (path, query) = line.split_once('?').filter(|(_, query)| query.contains("watch=true"))?;
    let (before, rest) = query.split_once("resourceVersion=")?;
    let rest = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    let mut is_next = false;
    rules.send_if_modified(|rules| {
        is_next = rules.aged.as_mut().is_some_and(|aged| aged.insert(path.to_owned()));
        is_next
    });
    is_next.then(|| format!("{path}?{before}resourceVersion=1{rest}"))
}
