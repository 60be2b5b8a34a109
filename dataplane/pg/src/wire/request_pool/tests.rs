//! A pool before a server that splits, delays, fails and closes wherever it can: every question gets its own rows or a
//! failure, and a connection is used again only after a proper end.
//!
//! Each case asks one question that something happens to, and then another one. Rows and key rows repeat what was bound,
//! so that leftovers of the first would be seen in the second. Seen to fail: with the status of ReadyForQuery not looked
//! at; with the connection of a broken exchange put back; with a message handed out one byte before it was whole; and, before
//! it was looked for, with what came behind ReadyForQuery taken for the next answer.

mod script;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::FutureExt as _;
use proptest::prelude::*;
use rowgate_core::derive::Root;
use rowgate_sql::shape::{Column, Encoding, Shape};
use rowgate_sql::text::{Bind, Sql};
use tokio::net::UnixStream;
use tokio::task::JoinSet;
use tokio_util::either::Either;

use super::*;
use crate::catalog::fingerprint::Watched;
use crate::connect::login::Endpoint;
use crate::wire::connection::Session;
use crate::wire::connection::frames::Inbox;
use crate::wire::exchange::row_stream::Piece;
use script::{Fault, Step, error, message, notice, parameter_status, serve};

/// From here on an answer has several chunks.
const LONG: u8 = 200;

/// What is asked, and which of the questions is the one that something happens to.
#[derive(Debug, Clone, Copy)]
struct Plan {
    first: u8,
    /// The connection has had the first question before, so that nothing is parsed.
    warm: bool,
    watched: bool,
}

const SHORT: Plan = Plan { first: 1, warm: false, watched: true };
const WARM: Plan = Plan { first: 1, warm: true, watched: false };
const STREAMED: Plan = Plan { first: LONG, warm: true, watched: false };

/// How the question went that something happened to.
#[derive(Debug)]
struct Played {
    first: Result<(), Failure>,
    is_reused: bool,
}

fn ask(number: u8, watched: bool) -> Ask {
    let column = |label: &str, encoding| Column { label: Some(label.into()), encoding };
    let columns = vec![column("\"id\":", Encoding::Int4), column("\"text\":", Encoding::Text)];
    let mut sql = Sql::new();
    sql.lit("select id, text from t where id = ").bind(Bind::text(23, number.to_string()));
    Ask {
        nested: None,
        key: Found::stub(number % script::KEYS),
        by_any_secret: false,
        role: script::role(number),
        statement_timeout_ms: 1,
        watched: watched.then(|| Arc::new(Watched::default())),
        sql,
        shape: Arc::new(Shape { columns, position: vec![], count: None }),
    }
}

/// Asks and checks the rows; those of an answer that breaks off up to there.
async fn read(pool: &RequestPool, number: u8, watched: bool) -> Result<(), Failure> {
    let right = script::json(number);
    let mut page = pool.read(ask(number, watched), 100).await?;
    assert_eq!(page.key.role, script::role(number));
    while let Some(rest) = &mut page.rest {
        match rest.next().await {
            Ok(Piece::Json(json)) => page.json.extend_from_slice(&json),
            Ok(Piece::End(_)) => break,
            Err(failure) => {
                assert!(right.as_bytes().starts_with(&page.json), "other rows than those of {number}");
                return Err(failure);
            }
        }
    }
    assert!(right.as_bytes() == page.json, "{number} got {:.200}", String::from_utf8_lossy(&page.json));
    Ok(())
}

/// One connection, and nowhere to get another one.
fn pool(fault: Fault, plan: Plan, grace: Duration) -> (RequestPool, tokio::task::AbortHandle) {
    pool_with(fault, usize::from(plan.warm), grace)
}

/// As [`pool`], where the fault happens to the answer with this number.
fn pool_with(fault: Fault, faulty: usize, grace: Duration) -> (RequestPool, tokio::task::AbortHandle) {
    let password = Root::new([7; 32]).password("test", "auth", 1);
    let endpoint = Endpoint::Unix { directory: "/nonexistent".into(), port: 1 };
    let login = Login { endpoint, database: "d".to_owned(), role: "auth".to_owned(), password };
    let pool = RequestPool::with_limits(login, Limits { grace, ..Limits::new(1, 1) });
    let (ours, theirs) = UnixStream::pair().expect("two sockets");
    let mut inbox = Inbox::new();
    inbox.trust();
    let session = Session { pid: 1, secret: 1 };
    let slot = pool.shared.slots.take(Who::default(), Duration::ZERO).now_or_never().expect("it is free");
    slot.expect("open").give_back(Connection::new(Either::Left(ours), inbox, session, Sessions::Own));
    let server = tokio::spawn(serve(theirs, faulty, fault)).abort_handle();
    (pool, server)
}

/// Asks twice: the question of `plan`, to whose answer `fault` happens, and another one.
async fn play(plan: Plan, fault: Fault) -> Played {
    play_with(plan, fault, Duration::from_secs(60)).await
}

async fn play_with(plan: Plan, fault: Fault, grace: Duration) -> Played {
    let (pool, server) = pool(fault, plan, grace);
    if plan.warm {
        read(&pool, plan.first, plan.watched).await.expect("nothing has happened yet");
    }
    let first = read(&pool, plan.first, plan.watched).await;
    let is_reused = pool.load().idle == 1;
    // Of the same key: its role would tell another's answer.
    let second = read(&pool, 150 + plan.first % script::KEYS, false).await;
    match second {
        Ok(()) => assert!(is_reused, "there was no connection"),
        Err(Failure::Unavailable(_) | Failure::NoConnection(_)) => {}
        Err(other) => panic!("{first:?}, then {other:?}"),
    }
    server.abort();
    Played { first, is_reused }
}

#[tokio::test]
async fn an_answer_that_comes_twice_is_not_the_next_questions() {
    for plan in [SHORT, WARM] {
        for aside in [notice(), Vec::new()] {
            let fault: Fault = Arc::new(move |messages| {
                vec![Step::Send([messages.concat(), aside.clone(), messages.concat()].concat())]
            });
            let played = play(plan, fault).await;
            assert!(played.first.is_ok() && !played.is_reused, "{plan:?}: {played:?}");
        }
    }
}

/// Seen to fail with a connection that went back with what stood behind its answer: under load the next question got 500.
#[tokio::test]
async fn a_connection_whose_server_goes_down_behind_an_answer_is_not_used_again() {
    for plan in [SHORT, WARM] {
        let fault: Fault = Arc::new(|messages| {
            vec![Step::Send([messages.concat(), error("FATAL", "57P02")].concat()), Step::Close]
        });
        let played = play(plan, fault).await;
        assert!(played.first.is_ok() && !played.is_reused, "{plan:?}: {played:?}");
    }
}

/// The messages of the answer that something will happen to.
async fn messages(plan: Plan) -> Vec<Vec<u8>> {
    let (sender, receiver) = std::sync::mpsc::channel();
    let played = play(
        plan,
        Arc::new(move |messages| {
            sender.send(messages.clone()).expect("somebody waits");
            vec![Step::Send(messages.concat())]
        }),
    );
    let played = played.await;
    assert!(played.first.is_ok() && played.is_reused, "{played:?}");
    receiver.recv().expect("it was asked")
}

/// Every byte position of a short answer; of a long one those around its messages, and every 1,999th.
fn positions(messages: &[Vec<u8>]) -> Vec<usize> {
    let len = messages.concat().len();
    let mut ends = vec![0];
    ends.extend(messages.iter().scan(0, |end, message| {
        *end += message.len();
        Some(*end)
    }));
    let is_near = |at: usize| ends.iter().any(|end| at.abs_diff(*end) < 6);
    (0..=len).filter(|at| len < 2_000 || is_near(*at) || at.is_multiple_of(1_999)).collect()
}

fn cut(messages: &[Vec<u8>], at: usize, then: Step) -> Vec<Step> {
    let bytes = messages.concat();
    vec![Step::Send(bytes[..at].to_vec()), then]
}

#[tokio::test]
async fn an_answer_in_two_pieces_is_the_same_answer() {
    for plan in [SHORT, WARM, STREAMED] {
        for at in positions(&messages(plan).await) {
            let fault: Fault = Arc::new(move |messages| {
                let rest = messages.concat().split_off(at);
                cut(&messages, at, Step::Send(rest))
            });
            let played = play(plan, fault).await;
            assert!(played.first.is_ok() && played.is_reused, "{plan:?} {at}: {played:?}");
        }
    }
}

#[tokio::test]
async fn a_connection_that_is_closed_at_any_byte_is_no_answer() {
    for plan in [SHORT, WARM, STREAMED] {
        let all = messages(plan).await;
        let len = all.concat().len();
        for at in positions(&all) {
            let played = play(plan, Arc::new(move |messages| cut(&messages, at, Step::Close))).await;
            match (&played.first, played.is_reused) {
                (Err(Failure::Unavailable(_) | Failure::NoConnection(_)), false) if at < len => {}
                (Ok(()), true) if at == len => {}
                _ => panic!("{plan:?} {at}: {played:?}"),
            }
        }
    }
}

/// Seen to fail with a write that is asked again like a read.
#[tokio::test]
async fn a_write_whose_answer_is_lost_is_not_sent_again() {
    // First it is parsed and described, then it runs.
    for part in [0, 1] {
        let mut at = 0;
        loop {
            let len = Arc::new(AtomicUsize::new(0));
            let told = Arc::clone(&len);
            let fault: Fault = Arc::new(move |messages| {
                told.store(messages.concat().len(), Ordering::Relaxed);
                cut(&messages, at, Step::Close)
            });
            let (pool, server) = pool_with(fault, part, Duration::from_secs(60));
            let answer = pool.write(ask(SHORT.first, false)).await;
            assert!(
                matches!(answer, Err(WriteFailure::Any(Failure::Unavailable(_)))),
                "{part} {at}: {answer:?}"
            );
            assert_eq!(pool.counters().n_connects(), (0, 0), "{part} {at}: nobody knows whether it was done");
            server.abort();
            at += 1;
            if at == len.load(Ordering::Relaxed) {
                break;
            }
        }
        assert!(20 < at, "{part}: there were {at} bytes");
    }
}

#[tokio::test]
async fn a_server_that_falls_silent_at_any_byte_is_left() {
    for plan in [SHORT, WARM, Plan { warm: false, ..STREAMED }] {
        let all = messages(plan).await;
        let len = all.concat().len();
        let mut playing = JoinSet::new();
        for at in positions(&all).into_iter().filter(|at| *at < len) {
            // Time enough for the question before.
            let grace = Duration::from_millis(if plan.warm { 5_000 } else { 200 });
            let fault: Fault = Arc::new(move |messages| cut(&messages, at, Step::Silence));
            playing.spawn(async move { (at, play_with(plan, fault, grace).await) });
        }
        while let Some(played) = playing.join_next().await {
            let (at, played) = played.expect("no panic");
            assert!(matches!(played.first, Err(Failure::Timeout)), "{plan:?} {at}: {played:?}");
            assert!(!played.is_reused, "{plan:?} {at}");
        }
    }
}

#[tokio::test]
async fn an_error_instead_of_any_message_is_a_failure_and_leaves_nothing_behind() {
    let states = ["XX000", "42501", "42P01", "22P02", "22023", "57014", "40001", "25P02", "0A000"];
    for plan in [SHORT, WARM, STREAMED] {
        let n_messages = messages(plan).await.len();
        for i in 0..n_messages {
            for state in states {
                for status in [b"I", b"T", b"E"] {
                    let fault: Fault = Arc::new(move |mut messages| {
                        messages.truncate(i);
                        messages.extend([error("ERROR", state), message(b'Z', status)]);
                        vec![Step::Send(messages.concat())]
                    });
                    let played = play(plan, fault).await;
                    let case = format!("{plan:?} {i} {state} {}", char::from(status[0]));
                    // A statement of before may be parsed anew, in the same transaction as everything else.
                    let is_again = plan.warm && status == b"I" && played.first.is_ok();
                    assert!(played.first.is_err() || is_again, "{case}: {played:?}");
                    assert!(!played.is_reused || status == b"I", "{case}: {played:?}");
                }
            }
            let fault: Fault = Arc::new(move |mut messages| {
                messages.truncate(i);
                messages.push(error("FATAL", "57P01"));
                vec![Step::Send(messages.concat()), Step::Silence]
            });
            let played = play(plan, fault).await;
            let is_lost = matches!(played.first, Err(Failure::Unavailable(_) | Failure::NoConnection(_)));
            assert!(is_lost, "{plan:?} {i}: {played:?}");
            assert!(!played.is_reused, "{plan:?} {i}");
        }
    }
}

#[tokio::test]
async fn an_answer_that_does_not_end_between_two_transactions_is_none() {
    for plan in [SHORT, WARM, STREAMED] {
        for status in [&b"T"[..], b"E", b"?", b"", b"II"] {
            let fault: Fault = Arc::new(move |mut messages| {
                messages.pop();
                messages.push(message(b'Z', status));
                vec![Step::Send(messages.concat())]
            });
            let played = play(plan, fault).await;
            assert!(matches!(played.first, Err(Failure::Internal(_))), "{plan:?} {status:?}: {played:?}");
            assert!(!played.is_reused, "{plan:?} {status:?}");
        }
    }
}

#[tokio::test]
async fn messages_that_are_missing_doubled_or_out_of_order_are_no_answer() {
    for plan in [SHORT, WARM, STREAMED] {
        let all = messages(plan).await;
        let before_rows = if plan.watched { 2 } else { 1 };
        let rows = (0..all.len()).filter(|i| all[*i][0] == b'D').skip(before_rows).collect::<Vec<_>>();
        let is_row = |i: usize| rows.contains(&i);
        for i in 0..all.len() {
            for change in ["missing", "doubled", "swapped"] {
                let next = (i + 1) % all.len();
                let fault: Fault = Arc::new(move |mut messages| {
                    match change {
                        "missing" => drop(messages.remove(i)),
                        "doubled" => messages.insert(i, messages[i].clone()),
                        _ => messages.swap(i, next),
                    }
                    vec![Step::Send(messages.concat()), Step::Close]
                });
                // Any number of rows in any order is an answer.
                if is_row(i) && (change != "swapped" || is_row(next)) {
                    continue;
                }
                let played = play(plan, fault).await;
                let case = format!("{plan:?} {i} {change}: {played:?}");
                match (change, all[i][0]) {
                    // What comes behind the end is no part of it.
                    ("doubled", b'Z') => assert!(played.first.is_ok(), "{case}"),
                    _ => assert!(played.first.is_err() && !played.is_reused, "{case}"),
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_pieces_with_any_asides_between_the_messages_are_the_same_answer(
        first in prop_oneof![1..100_u8, Just(LONG)],
        warm: bool,
        watched: bool,
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..40),
        asides in prop::collection::vec((any::<prop::sample::Index>(), 0..3_usize), 0..6),
        ends_with_aside: bool,
    ) {
        let fault: Fault = Arc::new(move |mut messages| {
            let kinds = [notice(), parameter_status(), message(b'A', b"\0\0\0\x07channel\0payload\0")];
            for (at, kind) in &asides {
                messages.insert(at.index(messages.len()), kinds[*kind].clone());
            }
            if ends_with_aside {
                messages.push(notice());
            }
            let bytes = messages.concat();
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len())).collect();
            cuts.sort_unstable();
            let mut pieces = Vec::new();
            let mut from = 0;
            for to in cuts {
                pieces.push(Step::Send(bytes[from..to].to_vec()));
                from = to;
            }
            pieces.push(Step::Send(bytes[from..].to_vec()));
            pieces
        });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let played = runtime.block_on(play(Plan { first, warm, watched }, fault));
        prop_assert!(played.first.is_ok() && played.is_reused, "{played:?}");
    }
}
