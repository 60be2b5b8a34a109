//! The sender against real sockets on this machine: whom it reaches, what it reads, and when it stops.

use std::future::{pending, ready};
use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use super::*;
use receiver::{Receiver, answer};

mod answers;
mod guard;
mod receiver;
mod tls;

/// Long enough for a busy machine, where a test expects an answer.
const LONG: Duration = Duration::from_secs(60);
/// Where a test expects none.
const SHORT: Duration = Duration::from_millis(200);

fn policy() -> Policy {
    let ranges = ["127.0.0.0/8", "::1/128"].map(|range| range.parse().expect("a range"));
    Policy { allow_http: true, ranges: ranges.to_vec() }
}

/// A resolver that gives one list after the other, the last one again and again, and counts.
fn resolver(answers: &[&[&str]]) -> (Resolve, Arc<AtomicUsize>) {
    let parse = |texts: &&[&str]| -> Vec<IpAddr> {
        texts.iter().map(|text| text.parse().expect("an address")).collect()
    };
    let answers: Vec<_> = answers.iter().map(parse).collect();
    let n_asked = Arc::new(AtomicUsize::new(0));
    let asked = n_asked.clone();
    let resolve: Resolve = Arc::new(move |_: &str| {
        let i = asked.fetch_add(1, Ordering::SeqCst);
        Box::pin(ready(Ok(answers[i.min(answers.len() - 1)].clone())))
    });
    (resolve, n_asked)
}

fn sender(answers: &[&[&str]], deadline: Duration, max_age: Duration) -> Sender {
    Sender::with(policy().ranges, resolver(answers).0, Roots::system(), deadline, max_age)
}

fn destination(url: &str) -> Destination {
    Destination::parse(url, &policy()).expect("a URL of a test")
}

async fn post(sender: &Sender, url: &str) -> Result<Answer, SendFailure> {
    let body = Bytes::from_static(b"{}");
    sender.post(&destination(url), &policy(), HeaderMap::new(), body).await.result
}

async fn status(sender: &Sender, url: &str) -> Result<u16, SendFailure> {
    post(sender, url).await.map(|answer| answer.status)
}

#[track_caller]
fn refused(result: &Result<u16, SendFailure>, word: &str) {
    match result {
        Err(SendFailure::Refused(text)) if text.contains(word) => {}
        other => panic!("{other:?} is no refusal of {word}"),
    }
}

#[track_caller]
fn unreachable(result: &Result<u16, SendFailure>, word: &str) {
    match result {
        Err(SendFailure::Unreachable(text)) if text.contains(word) => {}
        other => panic!("{other:?} does not say {word}"),
    }
}
