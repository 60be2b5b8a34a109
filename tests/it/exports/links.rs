//! Links to files: what they give, and that no other text is one.

use serde_json::{Value, json};

use super::fixture::{Depot, Given, url};

fn bulk() -> Value {
    json!({"entity": "bulk", "format": "csv", "orderby": "id"})
}

#[tokio::test]
async fn a_file_is_given_whole_or_in_parts() {
    let depot = Depot::open().await;
    let (job, whole) = depot.export("plain", bulk()).await;
    let text = String::from_utf8(whole.clone()).expect("UTF-8");
    assert_eq!(text.lines().count(), super::fixture::BULK + 1);
    let given = depot.follow(url(&job), &[("Accept-Encoding", "gzip")]).await;
    let header = |given: &Given, name: &str| {
        given.headers.get(name).map(|value| value.to_str().expect("text").to_owned())
    };
    let len = whole.len().to_string();
    assert_eq!(header(&given, "content-disposition").as_deref(), Some("attachment; filename=\"bulk.csv\""));
    assert_eq!(header(&given, "content-length"), Some(len.clone()));
    assert_eq!(header(&given, "accept-ranges").as_deref(), Some("bytes"));
    assert_eq!(header(&given, "content-type").as_deref(), Some("text/csv; charset=utf-8; header=present"));
    assert_eq!(header(&given, "content-encoding"), None);
    let etag = header(&given, "etag").expect("a tag");
    assert!(etag.starts_with('"'), "{etag} is strong");

    let head = depot.follow_by("HEAD", url(&job), &[]).await;
    assert_eq!((head.status, head.bytes.len(), header(&head, "content-length")), (200, 0, Some(len.clone())));
    assert_eq!(header(&head, "etag"), Some(etag.clone()));

    let n = whole.len();
    for (range, start, end) in [
        ("bytes=0-9".to_owned(), 0, 10),
        (format!("bytes={}-", n - 7), n - 7, n),
        ("bytes=-5".to_owned(), n - 5, n),
        (format!("bytes=200000-{}", 2 * n), 200_000, n),
    ] {
        for if_range in [None, Some(("If-Range", etag.as_str()))] {
            let headers: Vec<_> = [("Range", range.as_str())].into_iter().chain(if_range).collect();
            let part = depot.follow(url(&job), &headers).await;
            assert_eq!(part.status, 206, "{range}");
            assert_eq!(part.bytes, whole[start..end], "{range}");
            assert_eq!(header(&part, "content-range"), Some(format!("bytes {start}-{}/{len}", end - 1)));
        }
    }
    let other = depot.follow(url(&job), &[("Range", "bytes=5-9"), ("If-Range", "\"other\"")]).await;
    assert!(other.status == 200 && other.bytes == whole, "another file is sent whole");
    let beyond = depot.follow(url(&job), &[("Range", &format!("bytes={n}-"))]).await;
    assert_eq!((beyond.status, beyond.bytes.len()), (416, 0));
    assert_eq!(header(&beyond, "content-range"), Some(format!("bytes */{len}")));
    let several = depot.follow(url(&job), &[("Range", "bytes=0-1,5-6")]).await;
    assert!(several.status == 200 && several.bytes == whole);
}

/// What an answer says, without the id of its request.
fn said(given: &Given) -> (u16, Value, Vec<String>) {
    let mut body: Value = serde_json::from_slice(&given.bytes).expect("JSON");
    body["error"].as_object_mut().expect("an error").remove("requestId");
    let names = given.headers.keys().map(|name| name.as_str().to_owned()).collect();
    (given.status, body, names)
}

/// Seen to fail where the signature is not compared.
#[tokio::test]
async fn a_link_that_is_not_good_gets_one_answer_whatever_is_wrong_with_it() {
    let depot = Depot::open().await;
    let notes = json!({"entity": "notes", "format": "csv"});
    let (mine, _) = depot.export("plain", notes.clone()).await;
    let (theirs, _) = depot.export("other", notes.clone()).await;
    let good = url(&mine).to_owned();
    let (base, token) = good.split_once("?token=").expect("a token");
    let last = if token.ends_with('A') { "Q" } else { "A" };
    let id = |job: &Value| job["id"].as_str().expect("an id").to_owned();
    let (_, other_token) = url(&theirs).split_once("?token=").expect("a token");
    let mut bad = vec![
        base.to_owned(),
        format!("{base}?token="),
        format!("{base}?token={}{last}", &token[..token.len() - 1]),
        format!("{base}?token=B{}", &token[1..]),
        format!("{base}?token={token}&x=1"),
        format!("{base}?Token={token}"),
        format!("{base}?token={other_token}"),
        good.replace(&id(&mine), &id(&theirs)),
        good.replace(&id(&mine), "00000000000000000000000000"),
        good.replace(&id(&mine), "%00"),
    ];
    // one that is too old for the export: it is gone
    let (gone, _) = depot.export("plain", notes.clone()).await;
    let removed = depot.ask("plain", "DELETE", &format!("/{}", id(&gone))).await;
    assert_eq!((removed.status.as_u16(), &*removed.body), (204, ""));
    bad.push(url(&gone).to_owned());
    let (expired, _) = depot.export("plain", notes).await;
    let past = format!("update control.exports set expires_at = now() where id = '{}'", id(&expired));
    depot.change_control(&past).await;
    bad.push(url(&expired).to_owned());
    let mut answers = Vec::new();
    for link in &bad {
        let given = depot.follow(link, &[]).await;
        assert_eq!(given.status, 404, "{link}");
        answers.push(said(&given));
    }
    assert_eq!(depot.follow(&good, &[]).await.status, 200);
    // revoked, its links end with it
    let key = depot.control("select key from control.exports where key is not null limit 1").await;
    assert_eq!(key.len(), 1);
    let mine_key =
        depot.control(&format!("select key from control.exports where id = '{}'", id(&mine))).await;
    depot.sql(&format!("select dl.revoke('{}')", mine_key[0]["key"].as_str().expect("an id"))).await;
    let given = depot.follow(&good, &[]).await;
    answers.push(said(&given));
    assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:#?}");
    assert_eq!(depot.follow(url(&theirs), &[]).await.status, 200);
}
