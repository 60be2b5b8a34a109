//! One-row GETs of a tenant at a rate that does not depend on the answers, so that a late answer delays no later question.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep_until};

use crate::load::{self, Requests};

/// Of each connection; all of them together ask a hundred times a second.
const INTERVAL: Duration = Duration::from_millis(100);
const CONNECTIONS: u32 = 10;

/// How long each answer took from the moment when it was due to be asked for, in milliseconds, sorted; and how many were not 200.
pub(super) fn ask(address: SocketAddr, requests: &Requests, time: Duration) -> io::Result<(Vec<f64>, u64)> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let begin = Instant::now() + Duration::from_millis(50);
        let tasks = (0..CONNECTIONS).map(|i| {
            let first = begin + INTERVAL * i / CONNECTIONS;
            tokio::spawn(one(address, requests.clone(), u64::from(i), first, begin + time))
        });
        let tasks: Vec<_> = tasks.collect();
        let (mut all, mut n_failures) = (Vec::new(), 0);
        for task in tasks {
            let (times, n) = task.await.map_err(io::Error::other)??;
            all.extend(times);
            n_failures += n;
        }
        all.sort_by(f64::total_cmp);
        Ok((all, n_failures))
    })
}

async fn one(
    address: SocketAddr,
    requests: Arc<dyn Fn(u64) -> Vec<u8> + Send + Sync>,
    number: u64,
    first: Instant,
    end: Instant,
) -> io::Result<(Vec<f64>, u64)> {
    let mut stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let (mut times, mut n_failures, mut buffer) = (Vec::new(), 0, Vec::new());
    let (mut due, mut n) = (first, number << 32);
    while due < end {
        sleep_until(due).await;
        stream.write_all(&requests(n)).await?;
        if load::answer(&mut stream, &mut buffer).await? != 200 {
            n_failures += 1;
        }
        times.push(due.elapsed().as_secs_f64() * 1000.0);
        due += INTERVAL;
        n += 1;
    }
    Ok((times, n_failures))
}
