//! The same signing and posting with nothing around it, in a process of its own: what a delivery is compared with.
#![expect(clippy::print_stdout, reason = "it tells the process that started it")]

use std::net::SocketAddr;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::future::join_all;
use jiff::Timestamp;
use rowgate_core::webhook::secret::{SECRET_LEN, WebhookSecret};
use rowgate_core::webhook::signature;

use crate::account;

const AT_ONCE: usize = 8;
const POSTS: u64 = 20_000;

/// Microseconds of CPU for each post.
pub(super) fn measure(address: SocketAddr) -> f64 {
    let program = std::env::current_exe().expect("we run");
    let output = Command::new(program).args(["sign", &address.to_string()]).output().expect("it runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.trim().parse().unwrap_or_else(|_| panic!("{text}{}", String::from_utf8_lossy(&output.stderr)))
}

/// Be that process.
pub(crate) async fn run(address: SocketAddr) {
    let client = reqwest::Client::builder().no_proxy().build().expect("a client");
    let secrets = [WebhookSecret::generate(&[7; SECRET_LEN])];
    let body = format!("{{\"id\":\"01\",\"events\":[],\"rest\":\"{}\"}}", "z".repeat(2_200));
    let (left, url) = (Arc::new(AtomicU64::new(POSTS)), format!("http://{address}/bare"));
    let one = async || {
        while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1)).is_ok() {
            let at = Timestamp::now().as_second();
            let answer = client
                .post(&url)
                .header("content-type", "application/json")
                .header("rowgate-signature", signature::rowgate(&secrets, at, body.as_bytes()))
                .header("webhook-id", "01")
                .header("webhook-timestamp", at.to_string())
                .header("webhook-signature", signature::standard(&secrets, "01", at, body.as_bytes()))
                .body(body.clone());
            answer.send().await.expect("it answers").bytes().await.expect("it ends");
        }
    };
    let begun = account::cpu(&[std::process::id()]);
    join_all((0..AT_ONCE).map(|_| one())).await;
    println!("{}", (account::cpu(&[std::process::id()]) - begun) * 1e6 / POSTS as f64);
}
