//! How much sooner a tenant that nobody has answers 401 than one that is there: requests in turn on one connection.
#![expect(clippy::print_stdout, reason = "the table is what the program is for")]

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Instant;

use rowgate_tests::client::Client;
use rowgate_tests::servers::data_plane::DataPlane;
use rowgate_tests::servers::postgres::Server;
use rowgate_tests::wait::until;
use rowgate_tests::world::{GUEST, World, invented};

use crate::stage::address;

/// Names that nobody has, as long as the one that is there.
const NOBODY: [&str; 8] = ["shoa", "shob", "shoc", "shod", "shoe", "shof", "shog", "shoh"];
/// Requests before those that count.
const WARM: usize = 1_000;

/// Request of a tenant's name, the same for every name but for that.
type Case = (&'static str, Box<dyn Fn(&str) -> String>);

pub(crate) async fn run(n: usize) {
    let server = Server::own().await;
    let mut world = World::shop_on(&server);
    world.start().await;
    let plane = world.replica().await;
    println!(
        "# Strangers: {n} requests each of a tenant that is there and of names that nobody has, in turn\n"
    );
    println!(
        "Microseconds until the 401. The difference is the median of known minus unknown, pair by pair, with the"
    );
    println!("interval that holds it in 95 of 100 runs.\n");
    println!("| | known | unknown | difference | from | to |\n|---|---|---|---|---|---|");
    // one tenant alone: every other name stands on it
    told(&plane, n, &of_one());
    world.write("guest.yaml", GUEST);
    let foreign = until("another tenant's key", async || world.secret("guest-key")).await;
    let exchange = format!("{}/api/auth/apikeys/exchange", plane.url());
    until("the other tenant", async || {
        let reply = Client::new().ask("POST", &exchange, &[("X-API-Key", &foreign)]).await;
        (reply.status == 200).then_some(())
    })
    .await;
    let reply = Client::new().ask("POST", &exchange, &[("X-API-Key", &foreign)]).await;
    let token = reply.json()["token"].as_str().expect("a token").to_owned();
    let key = format!("X-API-Key: {foreign}");
    let bearer = format!("Authorization: Bearer {token}");
    let of_two: Vec<Case> = vec![
        ("a live key of another tenant", Box::new(move |tenant| get(tenant, &key))),
        ("a token of another tenant", Box::new(move |tenant| get(tenant, &bearer))),
    ];
    told(&plane, n, &of_two);
}

fn of_one() -> Vec<Case> {
    let shown = |tenant: &str| get(tenant, &format!("X-API-Key: {}", invented(tenant)));
    vec![
        ("a secret that no key has, GET of rows", Box::new(shown)),
        ("the same, GET of the entities", {
            Box::new(move |tenant| shown(tenant).replace("/orders?$first=1", ""))
        }),
        ("the same, DELETE of a row", {
            Box::new(move |tenant| shown(tenant).replace("GET", "DELETE").replace("?$first=1", "/id/1"))
        }),
        ("a key with a typing error", {
            Box::new(|tenant| get(tenant, &format!("X-API-Key: {}x", invented(tenant))))
        }),
        ("no key", Box::new(|tenant| get(tenant, "X-Nothing: 1"))),
    ]
}

fn get(tenant: &str, header: &str) -> String {
    format!("GET /auth/{tenant}/api/orders?$first=1 HTTP/1.1\r\nHost: h\r\n{header}\r\n\r\n")
}

fn told(plane: &DataPlane, n: usize, cases: &[Case]) {
    for (name, request) in cases {
        let at = address(plane.url());
        let [known, unknown, [low, middle, high]] = tokio::task::block_in_place(|| measure(at, request, n));
        println!("| {name} | {:.1} | {:.1} | {middle:.2} | {low:.2} | {high:.2} |", known[1], unknown[1]);
    }
}

/// Lower bound, median and upper bound of the times of both and of their differences.
fn measure(at: SocketAddr, request: &dyn Fn(&str) -> String, n: usize) -> [[f64; 3]; 3] {
    let mut stream = TcpStream::connect(at).expect("it listens");
    stream.set_nodelay(true).expect("a socket");
    let (mut known, mut unknown, mut differences) = (Vec::new(), Vec::new(), Vec::new());
    for i in 0..WARM + n {
        let (there, nobody) = (request("shop"), request(NOBODY[i % NOBODY.len()]));
        // whoever comes second finds everything warm
        let (a, b) = match i / NOBODY.len() % 2 {
            0 => {
                let a = ask(&mut stream, &there);
                (a, ask(&mut stream, &nobody))
            }
            _ => {
                let b = ask(&mut stream, &nobody);
                (ask(&mut stream, &there), b)
            }
        };
        if WARM <= i {
            known.push(a);
            unknown.push(b);
            differences.push(a - b);
        }
    }
    [known, unknown, differences].map(middle)
}

/// Microseconds to the whole 401.
fn ask(stream: &mut TcpStream, request: &str) -> f64 {
    let mut answer = [0; 4096];
    let asked = Instant::now();
    stream.write_all(request.as_bytes()).expect("it reads");
    let mut n_read = 0;
    // the body is told last, and ends so
    while !answer[..n_read].ends_with(b"\"details\":[]}}") && !answer[..n_read].ends_with(b"}}") {
        let n = stream.read(&mut answer[n_read..]).expect("it answers");
        assert!(0 < n, "the connection ended: {}", String::from_utf8_lossy(&answer[..n_read]));
        n_read += n;
    }
    let took = asked.elapsed();
    assert!(answer.starts_with(b"HTTP/1.1 401"), "{}", String::from_utf8_lossy(&answer[..n_read]));
    took.as_secs_f64() * 1e6
}

/// The median, between the order statistics that hold it in 95 of 100 samples.
fn middle(mut all: Vec<f64>) -> [f64; 3] {
    all.sort_by(f64::total_cmp);
    let n = all.len() as f64;
    let reach = 0.98 * n.sqrt();
    [n / 2.0 - reach, n / 2.0, n / 2.0 + reach].map(|at| all[(at.max(0.0) as usize).min(all.len() - 1)])
}
