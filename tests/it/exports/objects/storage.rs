//! moto, a public server of S3's protocol, and a proxy before it that breaks what a test wants broken.

use std::collections::BTreeSet;
use std::fs::File;
use std::process::{Command, Stdio};
use std::sync::Arc;

use parking_lot::Mutex;
use reqwest::header::{HOST, HeaderName, HeaderValue};
use rowgate_tests::client::Client;
use rowgate_tests::scratch::Scratch;
use rowgate_tests::servers::ports::free_port;
use rowgate_tests::wait::until;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

use crate::keys::tokens::clients::{packages, tests};

pub(super) const BUCKET: &str = "exports";
const SECRET: &str = "a-secret-of-object-storage";

/// What becomes of a request at the proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Pass,
    Status(u16),
    /// Its connection ends without an answer.
    Close,
    /// It gets no answer.
    Hold,
}

type Decide = Box<dyn FnMut(&str) -> Fate + Send>;

pub(super) struct ObjectStorage {
    _scratch: Scratch,
    moto: String,
    proxy: u16,
    client: Client,
    decide: Arc<Mutex<Decide>>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl ObjectStorage {
    /// With an empty bucket.
    pub(super) async fn start() -> ObjectStorage {
        let (scratch, port) = (Scratch::new(), free_port());
        let log = File::create(scratch.path().join("moto.log")).expect("the folder is ours");
        let mut command = Command::new("python3");
        command
            .args(["-I", "-B"])
            .arg(tests().join("clients/exports/moto.py"))
            .arg(packages().join("python"));
        let command = command.arg(port.to_string()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        scratch.adopt(command.spawn().expect("python3 is installed").id());
        let (moto, client) = (format!("http://127.0.0.1:{port}"), Client::new());
        until("moto", async || client.try_open("GET", &moto, &[], "").await.ok()).await;
        let made = client.ask("PUT", &format!("{moto}/{BUCKET}"), &[]).await;
        assert_eq!(made.status, 200, "{made:?}");
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
        let proxy = listener.local_addr().expect("it listens").port();
        let decide: Arc<Mutex<Decide>> = Arc::new(Mutex::new(Box::new(|_| Fate::Pass)));
        let asked = Arc::default();
        tokio::spawn(serve(listener, moto.clone(), decide.clone(), Arc::clone(&asked)));
        ObjectStorage { _scratch: scratch, moto, proxy, client, decide, asked }
    }

    /// The settings of a data plane that keeps its files below `team/a` of the bucket.
    pub(super) fn settings(&self) -> impl FnOnce(&mut Command) + use<> {
        let endpoint = format!("http://127.0.0.1:{}", self.proxy);
        move |command| {
            command
                .env("ROWGATE_EXPORTS_URL", format!("s3://{BUCKET}/team/a"))
                .env("AWS_ENDPOINT_URL", endpoint)
                .env("AWS_ALLOW_HTTP", "true")
                .env("AWS_REGION", "eu-central-1")
                .env("AWS_ACCESS_KEY_ID", "exporter")
                .env("AWS_SECRET_ACCESS_KEY", SECRET);
        }
    }

    /// What becomes of requests from now on, by their first line.
    pub(super) fn decide(&self, decide: impl FnMut(&str) -> Fate + Send + 'static) {
        *self.decide.lock() = Box::new(decide);
    }

    /// The first lines of all requests whose first line holds this.
    pub(super) fn asked(&self, part: &str) -> Vec<String> {
        self.asked.lock().iter().filter(|line| line.contains(part)).cloned().collect()
    }

    /// The names of all objects.
    pub(super) async fn objects(&self) -> BTreeSet<String> {
        let reply = self.client.get(&format!("{}/{BUCKET}?list-type=2", self.moto), &[]).await;
        assert_eq!(reply.status, 200, "{reply:?}");
        texts(&reply.body, "Key")
    }

    /// The ids of all uploads that have neither been completed nor ended.
    pub(super) async fn uploads(&self) -> BTreeSet<String> {
        let reply = self.client.get(&format!("{}/{BUCKET}?uploads", self.moto), &[]).await;
        assert_eq!(reply.status, 200, "{reply:?}");
        texts(&reply.body, "UploadId")
    }

    /// As somebody else writes into the bucket.
    pub(super) async fn put(&self, name: &str) {
        let reply = self.client.send("PUT", &format!("{}/{BUCKET}/{name}", self.moto), &[], "theirs").await;
        assert_eq!(reply.status, 200, "{reply:?}");
    }

    pub(super) async fn delete(&self, name: &str) {
        let reply = self.client.ask("DELETE", &format!("{}/{BUCKET}/{name}", self.moto), &[]).await;
        assert_eq!(reply.status, 204, "{reply:?}");
    }
}

/// What stands in each element of this name.
fn texts(xml: &str, name: &str) -> BTreeSet<String> {
    let opening = format!("<{name}>");
    let pieces = xml.split(&opening).skip(1);
    pieces.filter_map(|piece| piece.split_once('<')).map(|(text, _)| text.to_owned()).collect()
}

async fn serve(
    listener: TcpListener,
    moto: String,
    decide: Arc<Mutex<Decide>>,
    asked: Arc<Mutex<Vec<String>>>,
) {
    let client = reqwest::Client::new();
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(answer(stream, moto.clone(), client.clone(), decide.clone(), asked.clone()));
    }
}

/// One request, and then the connection ends.
async fn answer(
    stream: TcpStream,
    moto: String,
    client: reqwest::Client,
    decide: Arc<Mutex<Decide>>,
    asked: Arc<Mutex<Vec<String>>>,
) -> Option<()> {
    let mut stream = BufReader::new(stream);
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.ok().filter(|n_bytes| *n_bytes != 0)?;
        match line.trim_end() {
            "" => break,
            line => lines.push(line.to_owned()),
        }
    }
    let (first, headers) = lines.split_first()?;
    let mut words = first.split(' ');
    let (method, path) = (words.next()?, words.next()?);
    let mut request = client.request(method.parse().ok()?, format!("{moto}{path}"));
    let mut n_bytes = 0;
    for header in headers {
        let (name, value) = header.split_once(':')?;
        let name: HeaderName = name.parse().ok()?;
        match name.as_str() {
            "content-length" => n_bytes = value.trim().parse().ok()?,
            "connection" => {}
            _ if name == HOST => {}
            _ => request = request.header(name, HeaderValue::from_str(value.trim()).ok()?),
        }
    }
    let mut body = vec![0; n_bytes];
    stream.read_exact(&mut body).await.ok()?;
    let fate = decide.lock()(first);
    asked.lock().push(first.clone());
    let (status, headers, body) = match fate {
        Fate::Status(status) => (status, Vec::new(), Vec::new()),
        Fate::Close => return None,
        Fate::Hold => std::future::pending().await,
        Fate::Pass => {
            let given = request.body(body).send().await.ok()?;
            let (status, headers) = (given.status().as_u16(), given.headers().clone());
            let kept = headers
                .iter()
                .filter(|(name, _)| !["connection", "transfer-encoding"].contains(&name.as_str()));
            let kept =
                kept.map(|(name, value)| format!("{name}: {}\r\n", value.to_str().unwrap_or_default()));
            (status, kept.collect(), given.bytes().await.ok()?.to_vec())
        }
    };
    let length = match headers.iter().any(|header: &String| header.starts_with("content-length")) {
        true => String::new(),
        false => format!("content-length: {}\r\n", body.len()),
    };
    let head = format!("HTTP/1.1 {status} as said\r\n{}{length}connection: close\r\n\r\n", headers.concat());
    stream.write_all(&[head.as_bytes(), &body].concat()).await.ok()?;
    stream.shutdown().await.ok()
}
