//! Hostile input over bare TCP: a 4xx or a closed connection for each, no panic, and no memory that stays.

pub(crate) mod raw;
pub(crate) mod table;

use std::fs;
use std::net::SocketAddr;

use raw::{Answer, exchange};
use rowgate_tests::servers::data_plane::DataPlane;
use rowgate_tests::world::World;
use table::{Case, cases, request};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

/// How often the whole table is sent for the look at the memory; `ROWGATE_HOSTILE_ROUNDS` asks for more.
const ROUNDS: usize = 36;
/// KiB by which the least that the process holds may grow from the first third of the rounds to the last. What it holds
/// goes up and down by 15 MiB, but only a leak lifts the least: that of twenty runs under load grew by 0.3 MiB at most.
const GROWTH: u64 = 6 * 1024;
/// How many clients begin a request and do not end it.
const N_OPEN: usize = 300;
/// KiB that each of them may cost: its head is 15 KiB, and a buffer grows by doubling.
const PER_CONNECTION: u64 = 64;

struct Hostile {
    /// PostgreSQL and the operator, beside the data plane that is tried.
    _world: World,
    plane: DataPlane,
    key: String,
}

impl Hostile {
    async fn open() -> Hostile {
        let mut world = World::founded_shop().await;
        world.start().await;
        // What it holds is what it uses: freed pages go back at once, where usually they are kept for a while.
        let root = world.state().join("dataplane.root");
        let plane = DataPlane::start_with(&world.socket(), &root, |command| {
            command.env("MIMALLOC_PURGE_DELAY", "0");
        })
        .await;
        let key = world.key("shop-admin");
        Hostile { _world: world, plane, key }
    }

    fn place(&self) -> SocketAddr {
        self.plane.url().trim_start_matches("http://").parse().expect("an address")
    }

    async fn send(&self, case: &Case) -> Vec<Answer> {
        exchange(self.place(), &case.bytes, case.ends).await
    }

    /// What a well-behaved client gets, without the time.
    async fn normal(&self) -> Answer {
        let bytes = request(b"GET /auth/shop/api/orders?$first=3&$orderby=id", &self.key, b"");
        let answers = exchange(self.place(), &bytes, false).await;
        assert_eq!((answers.len(), answers[0].status), (1, 200), "{answers:?}");
        answers[0].tellable()
    }

    /// A line of `/proc/PID/status`, in KiB.
    fn memory(&self, name: &str) -> u64 {
        let path = format!("/proc/{}/status", self.plane.pid());
        let text = fs::read_to_string(path).expect("the data plane runs");
        let line = text.lines().find_map(|line| line.strip_prefix(name)).expect("the kernel tells it");
        line.trim_matches([':', ' ', '\t', 'k', 'B']).parse().expect("a number")
    }
}

/// Seen to fail with a filter parser that counts no depth: the data plane was gone.
#[tokio::test]
async fn each_gets_its_refusal_and_the_next_client_its_answer() {
    let hostile = Hostile::open().await;
    let before = hostile.normal().await;
    let mut wrong = Vec::new();
    for case in cases(&hostile.key) {
        let answers = hostile.send(&case).await;
        let statuses: Vec<_> = answers.iter().map(|answer| answer.status).collect();
        if statuses != case.statuses {
            wrong.push(format!("{}: {statuses:?} instead of {:?}", case.name, case.statuses));
        }
        for answer in answers.iter().filter(|answer| 400 <= answer.status) {
            // What came as far as our routes is told why; what HTTP itself refuses has a status only.
            if !answer.has("x-request-id") {
                continue;
            }
            let body: serde_json::Value = serde_json::from_slice(&answer.body).expect("a body in JSON");
            assert_eq!(body["error"]["status"], answer.status, "{}", case.name);
        }
        assert_eq!(hostile.normal().await, before, "after {}", case.name);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let log = hostile.plane.log();
    assert!(!log.contains("panic"), "{log}");
}

/// Seen to fail with 8 KiB that each request leaves behind.
#[tokio::test]
async fn memory_stays_flat() {
    let hostile = Hostile::open().await;
    let rounds = std::env::var("ROWGATE_HOSTILE_ROUNDS").ok();
    let rounds = rounds.map_or(ROUNDS, |text| text.parse().expect("a number of rounds"));
    let cases = cases(&hostile.key);
    let round = async || {
        // Eight at a time, as from eight clients.
        for some in cases.chunks(8) {
            let sent = some.iter().map(|case| hostile.send(case));
            for (answers, case) in futures_util::future::join_all(sent).await.into_iter().zip(some) {
                let statuses: Vec<_> = answers.iter().map(|answer| answer.status).collect();
                assert_eq!(statuses, case.statuses, "{}", case.name);
            }
        }
    };
    let mut held = Vec::new();
    for _ in 0..rounds {
        round().await;
        held.push(hostile.memory("VmRSS"));
    }
    let normal = hostile.normal().await;
    println!("KiB after each of {rounds} times {} hostile requests: {held:?}", cases.len());
    let third = |n: usize| &held[n * rounds / 3..(n + 1) * rounds / 3];
    let least = |n: usize| third(n).iter().min().copied().expect("three rounds at least");
    let (before, after) = (least(0), least(2));
    assert!(after < before + GROWTH, "{before} KiB at least, and {after} KiB later: {held:?}");

    // Each holds what it may of a head, and none of them ends it.
    let mut head = b"GET /auth/shop/api HTTP/1.1\r\nX-Long: ".to_vec();
    head.resize(15 * 1024, b'x');
    let mut open = Vec::new();
    for _ in 0..N_OPEN {
        let mut stream = TcpStream::connect(hostile.place()).await.expect("the server listens");
        stream.write_all(&head).await.expect("the server reads");
        open.push(stream);
    }
    assert_eq!(hostile.normal().await, normal, "beside {N_OPEN} that never end");
    let with_open = hostile.memory("VmRSS");
    println!("{with_open} KiB with {N_OPEN} half heads");
    let most = third(2).iter().max().expect("three rounds at least");
    assert!(
        with_open < most + N_OPEN as u64 * PER_CONNECTION,
        "{with_open} KiB for {N_OPEN}, {most} KiB before"
    );
    drop(open);

    assert_eq!(hostile.normal().await, normal);
    assert!(!hostile.plane.log().contains("panic"));
}

#[tokio::test]
async fn what_is_odd_and_allowed_is_answered_as_ever() {
    let hostile = Hostile::open().await;
    let path = "/auth/shop/api/orders?$first=3&$orderby=id";
    let rows = |answer: &Answer| {
        let body: serde_json::Value = serde_json::from_slice(&answer.body).expect("JSON");
        body["value"].clone()
    };
    let normal = rows(&hostile.normal().await);
    let key = &hostile.key;
    for bytes in [
        request(format!("GET http://elsewhere.example{path}").as_bytes(), key, b""),
        request(format!("GET {path}").as_bytes(), key, b"X-Forwarded-Host: elsewhere.example\r\n"),
        request(format!("GET {path}").as_bytes(), key, &b"Accept: \xff\r\n"[..]),
        format!("GET {path} HTTP/1.0\r\nHost: x\r\nX-API-Key: {key}\r\n\r\n").into_bytes(),
        format!("GET {path} HTTP/1.1\nHost: x\nX-API-Key: {key}\nConnection: close\n\n").into_bytes(),
        [b"\r\n\r\n", &request(format!("GET {path}").as_bytes(), key, b"")[..]].concat(),
    ] {
        let shown = String::from_utf8_lossy(&bytes).replace(key.as_str(), "KEY");
        let answers = exchange(hostile.place(), &bytes, false).await;
        assert_eq!(answers.len(), 1, "{shown}: {answers:?}");
        assert_eq!(answers[0].status, 200, "{shown}: {answers:?}");
        assert_eq!(rows(&answers[0]), normal, "{shown}");
    }
}
