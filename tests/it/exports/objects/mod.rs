//! Exports whose files are in object storage: uploaded in parts, given out by links of the storage, and gone when they should be, whatever
//! breaks between two parts.

mod storage;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};

use reqwest::redirect::Policy;
use rowgate_tests::wait::until;
use serde_json::{Value, json};

use super::fixture::{BULK, Depot, url};
use storage::{BUCKET, Fate, ObjectStorage};

/// How often the rows of `bulk` stand in an export of three parts.
const TIMES: usize = 12;
const N_ROWS: usize = TIMES * BULK;

async fn open() -> (ObjectStorage, Depot) {
    let storage = ObjectStorage::start().await;
    let depot = Depot::open_with(storage.settings()).await;
    (storage, depot)
}

/// An export of three parts.
fn large() -> Value {
    let query = format!(
        "select a.id, a.word, b.id as n from depot.bulk a cross join (select id from depot.bulk where id <= {TIMES}) b"
    );
    json!({"query": query, "format": "csv"})
}

async fn is_whole(depot: &Depot, job: &Value) {
    let given = depot.follow(url(job), &[]).await;
    assert_eq!((given.status, json!(given.bytes.len())), (200, job["bytes"].clone()), "{job}");
    let n_rows = given.bytes.iter().filter(|byte| **byte == b'\n').count() - 1;
    assert_eq!((n_rows, job["rows"].as_u64()), (N_ROWS, Some(N_ROWS as u64)));
}

async fn holds(storage: &ObjectStorage, names: &[String]) {
    let expected: BTreeSet<String> = names.iter().cloned().collect();
    until(&format!("only {expected:?}"), async || {
        (storage.objects().await == expected && storage.uploads().await.is_empty()).then_some(())
    })
    .await;
}

fn name(id: &str, fence: i32) -> String {
    format!("team/a/{id}.{fence}")
}

fn is_part(line: &str) -> bool {
    line.starts_with("PUT ") && line.contains("partNumber=")
}

/// The API's link asks for the key anew; the storage's, to which it leads, expires with it.
#[tokio::test]
async fn a_file_is_uploaded_given_out_by_a_link_of_the_storage_and_deleted_with_its_export() {
    let (storage, depot) = open().await;
    for theirs in ["team/a/notes.txt", "team/a/deeper/x.1", "team/ab", "other"] {
        storage.put(theirs).await;
    }
    let theirs: Vec<String> = storage.objects().await.into_iter().collect();
    let (small, bytes) = depot.export("plain", json!({"entity": "notes", "format": "csv"})).await;
    assert!(String::from_utf8_lossy(&bytes).starts_with("id,region,word\r\n"));
    assert!(
        storage.asked("?uploads").iter().all(|line| !line.starts_with("POST")),
        "one part needs no upload"
    );

    let id = depot.started("plain", large()).await;
    let job = depot.reached("plain", &id, "succeeded").await;
    is_whole(&depot, &job).await;
    assert!(3 <= storage.asked("partNumber=").len());
    let all = [theirs.clone(), vec![name(&id, 1), name(small["id"].as_str().expect("an id"), 1)]].concat();
    holds(&storage, &all).await;

    let client = reqwest::Client::builder().redirect(Policy::none()).build().expect("a client");
    let answer = client.get(url(&job)).send().await.expect("it answers");
    assert_eq!(answer.status(), 307);
    let to = answer.headers()["location"].to_str().expect("a URL").to_owned();
    assert!(to.contains(&format!("/{BUCKET}/{}?", name(&id, 1))) && to.contains("X-Amz-Expires="), "{to}");
    assert!(!depot.world.log().contains("X-Amz-Signature"), "links are secrets");
    let part = depot.follow(url(&job), &[("Range", "bytes=3-5")]).await;
    assert_eq!((part.status, &part.bytes[..]), (206, &b"wor"[..]));
    assert_eq!(part.headers["content-disposition"], "attachment; filename=\"query.csv\"");
    assert_eq!(part.headers["content-type"], "text/csv; charset=utf-8; header=present");
    let head = depot.follow_by("HEAD", url(&job), &[]).await;
    assert_eq!(
        (head.status, head.headers["content-length"].to_str().ok()),
        (200, Some(&*job["bytes"].to_string()))
    );
    let forged = url(&job).replace("token=A", "token=B").replace("token=M", "token=N");
    for bad in [format!("{}x", url(&job)), forged.replace("token=", "token=x")] {
        let refused = client.get(&bad).send().await.expect("it answers");
        assert_eq!(refused.status(), 404, "{bad}");
    }

    let reply = depot.ask("plain", "DELETE", &format!("/{id}")).await;
    assert_eq!(reply.status, 204, "{reply:?}");
    holds(&storage, &[theirs.clone(), vec![all[all.len() - 1].clone()]].concat()).await;
    assert_eq!(
        depot.follow(&to, &[]).await.status,
        404,
        "the storage's link is worth nothing without the file"
    );
    let key = depot.control("select key from control.exports").await;
    depot.sql(&format!("select dl.revoke('{}')", key[0]["key"].as_str().expect("an id"))).await;
    holds(&storage, &theirs).await;
}

/// What passes by itself is tried again; what does not fails the export, and leaves nothing behind.
#[tokio::test]
async fn failures_between_parts_are_overcome_or_told_and_nothing_is_left() {
    let (storage, depot) = open().await;
    let n_parts = AtomicUsize::new(0);
    storage.decide(move |line| match is_part(line).then(|| n_parts.fetch_add(1, Ordering::Relaxed)) {
        Some(1) => Fate::Status(503),
        Some(3) => Fate::Close,
        Some(4) => Fate::Status(500),
        _ => Fate::Pass,
    });
    let id = depot.started("plain", large()).await;
    let job = depot.reached("plain", &id, "succeeded").await;
    is_whole(&depot, &job).await;
    let tries = depot.control("select fence, attempts from control.exports").await;
    assert_eq!(tries, [json!({"fence": 1, "attempts": 1})], "no part twice means no job twice");

    // as where the credentials allow no more
    storage.decide(|line| if line.contains("partNumber=2") { Fate::Status(403) } else { Fate::Pass });
    let failing = depot.started("plain", large()).await;
    let failed = depot.reached("plain", &failing, "failed").await;
    let said = failed["error"]["message"].as_str().unwrap_or_default();
    assert!(failed["error"]["code"] == "Unavailable", "{failed}");
    assert!(
        said.contains("3 times") && said.contains("the storage of exports does not take the file"),
        "{failed}"
    );
    let log = depot.world.log();
    assert!(log.contains("object storage does not take the file of an export"), "{log}");
    assert!(!log.contains("a-secret-of-object-storage"));
    storage.decide(|_| Fate::Pass);
    holds(&storage, &[name(&id, 1)]).await;

    storage.delete(&name(&id, 1)).await;
    let gone = depot.follow(url(&job), &[]).await;
    assert_eq!(gone.status, 404, "of the storage");
}

/// The upload that a replica left behind is ended by the next, which begins again.
#[tokio::test]
async fn a_replica_that_is_killed_between_parts_leaves_nothing_behind() {
    let (storage, mut depot) = open().await;
    storage.decide(|line| if line.contains("partNumber=2") { Fate::Hold } else { Fate::Pass });
    let id = depot.started("plain", large()).await;
    until("a part that waits", async || {
        (!storage.asked("partNumber=1").is_empty() && !storage.asked("partNumber=2").is_empty()).then_some(())
    })
    .await;
    depot.world.kill().await;
    assert_eq!(
        storage.objects().await,
        BTreeSet::from([name(&id, 1) + ".part"]),
        "what says where the rest is"
    );
    assert_eq!(storage.uploads().await.len(), 1);
    storage.decide(|_| Fate::Pass);
    depot.world.start_with(storage.settings()).await;
    let job = depot.reached("plain", &id, "succeeded").await;
    is_whole(&depot, &job).await;
    holds(&storage, &[name(&id, 2)]).await;
}

/// One that runs elsewhere is stopped at once, and its upload ended.
#[tokio::test]
async fn an_export_that_is_cancelled_between_parts_leaves_nothing_behind() {
    let (storage, depot) = open().await;
    storage.decide(|line| if line.contains("partNumber=2") { Fate::Hold } else { Fate::Pass });
    let id = depot.started("plain", large()).await;
    until("a part that waits", async || (!storage.asked("partNumber=2").is_empty()).then_some(())).await;
    let reply = depot.ask("plain", "DELETE", &format!("/{id}")).await;
    assert_eq!(reply.status, 204, "{reply:?}");
    storage.decide(|_| Fate::Pass);
    holds(&storage, &[]).await;
}
