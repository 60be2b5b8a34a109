//! The abuse of one key: a process of its own that asks for all that is dear, on many connections at once, until its input ends.
#![expect(clippy::print_stdout, reason = "the process that started it reads what it counts")]

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::sleep;

use super::{Counts, count};
use crate::load;
use crate::stage::{request, sent};

/// What is asked, and on how many connections. The tables have 20,000 rows.
const QUERIES: [(&str, &str, usize); 6] = [
    (
        "cross join",
        "select count(*) as n from b.items x cross join b.items y where x.stock + y.stock = -1",
        8,
    ),
    (
        "sort",
        "select md5(x.name || n) as m from b.items x cross join generate_series(1, 100) n order by 1 limit 10",
        8,
    ),
    (
        "recursion",
        "with recursive r(n) as (select 1 union all select n + 1 from r where n < 5000000) select max(n) as n from r",
        8,
    ),
    ("10,000 rows", "select x.* from b.items x order by x.note, x.sku limit 10000", 8),
    ("refused", "select pg_sleep(10)", 8),
    ("no such table", "select * from b.nothing", 8),
];
/// Connections that read an answer of 10,000 rows so slowly that they are all but closed.
const SLOW: usize = 4;
/// Exports that wait, or run, at a time.
const EXPORTS: usize = 8;

/// Prints how often what was answered how, as JSON.
pub(crate) async fn run(address: SocketAddr, key: &str) -> Result<(), Box<dyn std::error::Error>> {
    let key = format!("X-API-Key: {key}\r\n");
    let counts = Counts::default();
    for (name, query, n_connections) in QUERIES {
        let request = sent("POST", "/api/ddl/sql", &key, &json!({"query": query}).to_string());
        for _ in 0..n_connections {
            tokio::spawn(ask(address, name, request.clone(), counts.clone()));
        }
    }
    let query =
        json!({"query": "select x.*, n from b.items x cross join generate_series(1, 2) n limit 10000"});
    for _ in 0..SLOW {
        tokio::spawn(read_slowly(address, sent("POST", "/api/ddl/sql", &key, &query.to_string())));
    }
    for i in 0..EXPORTS {
        let format = ["parquet", "csv"][i % 2];
        let query = "select x.* from b.items x cross join generate_series(1, 100)";
        let body = json!({"query": query, "format": format, "compression": "zstd"});
        tokio::spawn(export(address, key.clone(), body, counts.clone()));
    }
    tokio::task::spawn_blocking(|| io::copy(&mut io::stdin(), &mut io::sink())).await??;
    print!("{}", serde_json::to_string(&*counts.lock().expect("nothing panics"))?);
    Ok(())
}

/// One request after the other, until the process ends.
pub(super) async fn ask(address: SocketAddr, name: &str, request: Vec<u8>, counts: Counts) {
    loop {
        match load::ask(address, &request).await {
            Ok((status, _)) => count(&counts, name, &status.to_string()),
            Err(_) => count(&counts, name, "broken off"),
        }
    }
}

async fn read_slowly(address: SocketAddr, request: Vec<u8>) -> io::Result<()> {
    let mut some = vec![0; 4096];
    loop {
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(&request).await?;
        while stream.read(&mut some).await.is_ok_and(|n| 0 < n) {
            sleep(Duration::from_millis(100)).await;
        }
    }
}

/// One export after the other.
async fn export(address: SocketAddr, key: String, body: Value, counts: Counts) -> io::Result<()> {
    loop {
        let post = sent("POST", "/api/ddl/exports", &key, &body.to_string());
        let (status, answer) = load::ask(address, &post).await?;
        count(&counts, "export", &status.to_string());
        let answer: Value = serde_json::from_slice(&answer).unwrap_or_default();
        let Some(id) = answer["id"].as_str() else { continue };
        let path = format!("/api/ddl/exports/{id}");
        loop {
            sleep(Duration::from_millis(200)).await;
            let (_, job) = load::ask(address, &request(&path, &key)).await?;
            let job: Value = serde_json::from_slice(&job).unwrap_or_default();
            let status = job["status"].as_str().unwrap_or("gone");
            if !["queued", "running"].contains(&status) {
                count(&counts, "export", status);
                break;
            }
        }
        load::ask(address, &sent("DELETE", &path, &key, "")).await?;
    }
}
