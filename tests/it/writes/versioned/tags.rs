//! `ETag`, 304 and `If-Match` of rows that keep their version.

use rowgate_tests::client::Reply;
use rowgate_tests::wait::until;
use serde_json::{Value, json};

use crate::http::edge::compression::unpacked;
use crate::writes::fixtures::versioned_rows::{TS, VersionedRows, code, tag, version};

const ROW: &str = "/docs/id/1";

async fn asks(tenant: &VersionedRows, key: &str, method: &str, path: &str, have: &str) -> Reply {
    tenant.ask(key, method, path, "", &[("If-None-Match", have)]).await
}

/// Seen to fail with a tag without the permission set, and with a 304 that is told before the key is known to live.
#[tokio::test]
async fn whoever_has_the_row_as_it_is_gets_304_and_a_dead_key_does_not() {
    let tenant = VersionedRows::open().await;
    let first = tenant.make("/docs", &json!({"id": 1, "title": "one"})).await;
    let read = tenant.get("all", ROW).await;
    let have = tag(&read);
    assert!(have.starts_with('"') && have.ends_with('"'), "a strong tag: {have}");
    assert_eq!(read.header("cache-control"), Some("private, no-cache"));
    let lists = [
        have.clone(),
        format!("\"x\", {have}"),
        format!("W/{have}"),
        "*".to_owned(),
        format!("W/\"a,b\" , W/{have},"),
    ];
    for method in ["GET", "HEAD"] {
        for list in &lists {
            let reply = asks(&tenant, "all", method, ROW, list).await;
            assert_eq!((reply.status.as_u16(), &*reply.body), (304, ""), "{method} {list}: {reply:?}");
            for name in ["etag", "cache-control", "vary"] {
                assert_eq!(reply.header(name), read.header(name), "{method} {list}");
            }
            for name in ["content-type", "content-length", "content-encoding"] {
                assert_eq!(reply.header(name), None, "{method} {list}");
            }
        }
        let other = asks(&tenant, "all", method, ROW, "\"x\"").await;
        assert_eq!((other.status.as_u16(), tag(&other)), (200, have.clone()), "{method}");
    }
    // what is no tag is not looked at
    assert_eq!(asks(&tenant, "all", "GET", ROW, have.trim_matches('"')).await.status, 200);

    // other fields, another permission set: another representation; another key of the same: the same
    let narrowed = tenant.tag("all", &format!("{ROW}?$select=id,title,{TS}")).await.0;
    let bare = tag(&tenant.get("all", &format!("{ROW}?$select=id")).await);
    let narrow = tenant.tag("narrow", ROW).await.0;
    let (scoped, twin) = (tenant.tag("scoped", ROW).await.0, tenant.tag("twin", ROW).await.0);
    assert_eq!((tenant.tag("guest", ROW).await.0, &twin), (have.clone(), &scoped));
    let all = [&have, &narrowed, &bare, &narrow, &scoped];
    for (i, one) in all.iter().enumerate() {
        assert!(all[..i].iter().all(|other| other != one), "{all:?}");
    }
    assert_eq!(tenant.get("all", &format!("{ROW}?$select=id")).await.rows(), [json!({"id": 1})]);
    for (key, have, status) in
        [("narrow", &have, 200), ("scoped", &have, 200), ("twin", &scoped, 304), ("guest", &have, 304)]
    {
        assert_eq!(asks(&tenant, key, "GET", ROW, have).await.status, status, "{key}");
    }
    // a role header that is not the key's comes first
    let wrong = tenant.ask("all", "GET", ROW, "", &[("If-None-Match", "*"), ("X-MS-API-ROLE", "x")]).await;
    assert_eq!(wrong.status, 403);

    tenant.patch(ROW, &json!({"title": "two", TS: first})).await;
    let changed = asks(&tenant, "all", "GET", ROW, &have).await;
    assert_eq!((changed.status.as_u16(), &changed.rows()[0]["title"]), (200, &json!("two")));
    let have = tag(&changed);
    assert_eq!(asks(&tenant, "all", "GET", ROW, &have).await.status, 304);

    // no row, a collection, a table without versions
    for path in ["/docs/id/9", "/docs", "/plain/id/1", "/titles/id/1", "/docs?$filter=id%20eq%201"] {
        let reply = asks(&tenant, "all", "GET", path, "*").await;
        assert_eq!((reply.status.as_u16(), reply.header("etag")), (200, None), "{path}");
        assert_eq!(reply.header("cache-control"), Some("private, no-store"), "{path}");
    }
    tenant.execute("select dl.revoke(id) from dl.keys where name = 'all'").await;
    for list in lists {
        assert_eq!(asks(&tenant, "all", "GET", ROW, &list).await.status, 401, "{list}");
    }
    assert_eq!(asks(&tenant, "all", "GET", ROW, &have).await.status, 401);
    assert_eq!(asks(&tenant, "guest", "GET", ROW, &have).await.status, 304);
}

/// Seen to fail with a tag that does not hang on the encoding.
#[tokio::test]
async fn every_encoding_and_every_length_has_a_tag_of_its_own() {
    let tenant = VersionedRows::open().await;
    // one packet, compressed, streamed
    for (id, n) in [(1, 10), (2, 4_000), (3, 300_000)] {
        let body: String = (0..n)
            .map(|i| char::from(b'a' + u8::try_from(i % 997 * (i % 997) % 23).expect("small")))
            .collect();
        tenant.make("/docs", &json!({"id": id, "body": body})).await;
        let path = format!("/docs/id/{id}");
        let plain = tenant.get("all", &path).await;
        let mut tags: Vec<String> = Vec::new();
        for encoding in ["identity", "gzip", "br", "zstd"] {
            let accept = ("Accept-Encoding", encoding);
            let url = tenant.url(&path);
            let request = reqwest::Client::new().get(&url).header(accept.0, accept.1);
            let reply = request.header("X-API-Key", tenant.world.key("all")).send().await.expect("an answer");
            let header =
                |name: &str| reply.headers().get(name).map(|it| it.to_str().expect("ASCII").to_owned());
            let (told, used) = (header("etag").expect("a tag"), header("content-encoding"));
            assert!(header("vary").is_some_and(|it| it.contains("Accept-Encoding")));
            let is_packed = 1_000 < n && encoding != "identity";
            assert_eq!(used.as_deref(), is_packed.then_some(encoding), "{n} {encoding}");
            let bytes = reply.bytes().await.expect("a body").to_vec();
            let text = used.map_or(bytes.clone(), |encoding| unpacked(&encoding, &bytes));
            assert_eq!(String::from_utf8(text).expect("JSON"), plain.body, "{n} {encoding}");
            let again = tenant.ask("all", "GET", &path, "", &[accept, ("If-None-Match", &told)]).await;
            assert_eq!((again.status.as_u16(), tag(&again)), (304, told.clone()), "{n} {encoding}");
            tags.push(told);
        }
        tags.dedup();
        assert_eq!(tags.len(), if n < 1_000 { 1 } else { 4 }, "{n}: {tags:?}");
        for (encoding, other) in [("gzip", &tags[0]), ("identity", &tags[tags.len() - 1])] {
            let headers = [("Accept-Encoding", encoding), ("If-None-Match", other.as_str())];
            let reply = tenant.ask("all", "GET", &path, "", &headers).await;
            assert_eq!(reply.status.as_u16(), if n < 1_000 { 304 } else { 200 }, "{n} {encoding}");
        }
        // in whatever the row was encoded, its version is one
        let have = tags.pop().expect("four");
        let body = json!({"title": "changed"}).to_string();
        for status in [200, 412] {
            let reply = tenant.ask("all", "PATCH", &path, &body, &[("If-Match", &have)]).await;
            assert_eq!(code(&reply).0, status, "{n}: {reply:?}");
        }
    }
}

/// The tag stands for the field in the body. Seen to fail with a change that is made whatever `If-Match` names.
#[tokio::test]
async fn if_match_names_the_version_to_be_changed() {
    let tenant = VersionedRows::open().await;
    tenant.make("/docs", &json!({"id": 1, "title": "one"})).await;
    tenant.make("/docs", &json!({"id": 2, "title": "other"})).await;
    let (old, old_ts) = tenant.tag("all", ROW).await;
    let change = async |path: &str, body: Value, list: &str| {
        tenant.ask("all", "PATCH", path, &body.to_string(), &[("If-Match", list)]).await
    };
    let changed = change(ROW, json!({"title": "two"}), &old).await;
    assert_eq!(code(&changed).0, 200, "{changed:?}");
    let (now, ts) = tenant.tag("all", ROW).await;
    assert_eq!((tag(&changed), version(&changed)), (now.clone(), ts.clone()));
    let before = tenant.state().await;
    let x = || json!({"title": "x"});
    let both = |ts: &str| json!({"title": "x", TS: ts});
    let weak = format!("W/{now}");
    let cases = [
        (ROW, x(), old.clone(), 412, "read it again"),
        (ROW, x(), weak.clone(), 412, "read it again"),
        (ROW, x(), "\"x\"".to_owned(), 412, "read it again"),
        (ROW, x(), format!("\"x\", {old}, {weak}"), 412, "read it again"),
        (ROW, both(&old_ts), old.clone(), 412, "read it again"),
        ("/docs/id/9", x(), now.clone(), 412, "gone"),
        ("/docs/id/9", x(), "\"x\"".to_owned(), 412, "gone"),
        (ROW, both(&old_ts), now.clone(), 400, "different versions"),
        (ROW, both(&ts), old.clone(), 400, "different versions"),
        (ROW, both(&ts), "\"x\"".to_owned(), 400, "different versions"),
        (ROW, x(), now.trim_matches('"').to_owned(), 400, "double quotes"),
        (ROW, x(), String::new(), 400, "double quotes"),
        (ROW, x(), format!("{now}, *"), 400, "double quotes"),
        ("/plain/id/1", x(), now.clone(), 400, "keeps no version"),
        ("/plain/id/9", x(), "\"x\"".to_owned(), 400, "keeps no version"),
    ];
    for (path, body, list, status, words) in cases {
        for method in ["PATCH", "PUT"] {
            let mut body = body.clone();
            if method == "PUT" && path.starts_with("/docs") {
                body["Doc Size"] = json!(1);
                body["is_deleted"] = json!(false);
            }
            let reply = tenant.ask("all", method, path, &body.to_string(), &[("If-Match", &list)]).await;
            let expected = if status == 412 { "PreconditionFailed" } else { "BadRequest" };
            let what = format!("{method} {path} {body} {list}: {reply:?}");
            assert_eq!(code(&reply), (status, Some(expected.to_owned())), "{what}");
            assert!(reply.json()["error"]["message"].to_string().contains(words), "{what}");
            assert_eq!(tenant.state().await, before, "{what}");
        }
    }
    for headers in [vec![("If-None-Match", &*now)], vec![("If-Match", &*now), ("If-None-Match", "*")]] {
        let reply = tenant.ask("all", "PATCH", ROW, r#"{"title": "x"}"#, &headers).await;
        assert_eq!(code(&reply), (400, Some("BadRequest".to_owned())), "{headers:?}");
    }
    for headers in [[("If-Match", "\"x\"")], [("If-None-Match", "*")], [("If-Match", "x")]] {
        let reply = tenant.ask("all", "DELETE", "/plain/id/1", "", &headers).await;
        assert_eq!(code(&reply), (400, Some("BadRequest".to_owned())), "{headers:?}");
    }
    let forbidden = tenant.ask("maker", "PATCH", ROW, r#"{"title": "x"}"#, &[("If-Match", &now)]).await;
    assert_eq!(code(&forbidden), (403, Some("Forbidden".to_owned())));
    assert_eq!(tenant.state().await, before);

    // any of several; with the field that says the same; got with other fields, or by another key
    let mut latest = now;
    for kind in ["list", "lines", "both", "select", "narrow", "put"] {
        let (_, ts) = tenant.tag("all", ROW).await;
        let body = json!({"title": kind}).to_string();
        let reply = match kind {
            "list" => change(ROW, json!({"title": kind}), &format!("{old}, W/\"y\", {latest}")).await,
            "lines" => {
                tenant.ask("all", "PATCH", ROW, &body, &[("If-Match", &old), ("If-Match", &latest)]).await
            }
            "both" => change(ROW, json!({"title": kind, TS: ts}), &format!("{old}, {latest}")).await,
            "select" => {
                let other = tag(&tenant.get("all", &format!("{ROW}?$select=id")).await);
                assert_ne!(other, latest);
                change(ROW, json!({"title": kind}), &other).await
            }
            "narrow" => {
                let other = tenant.tag("narrow", ROW).await.0;
                change(ROW, json!({"title": kind}), &other).await
            }
            _ => {
                let body = r#"{"title": "put", "Doc Size": 1, "is_deleted": false}"#;
                tenant.ask("all", "PUT", ROW, body, &[("If-Match", &latest)]).await
            }
        };
        assert_eq!((code(&reply).0, &reply.json()["value"][0]["title"]), (200, &json!(kind)), "{reply:?}");
        let (tagged, ts) = tenant.tag("all", ROW).await;
        assert_eq!(reply.header("etag"), (kind != "put").then_some(&*tagged), "{kind}");
        assert_eq!(version(&reply), ts);
        latest = tagged;
    }
}

#[tokio::test]
async fn what_is_made_has_its_tag_and_pages_of_other_origins_may_read_it() {
    let tenant = VersionedRows::open().await;
    let made = tenant.ask("all", "POST", "/docs", r#"{"id": 1, "title": "one"}"#, &[]).await;
    assert_eq!(tag(&made), tenant.tag("all", ROW).await.0);
    let several = tenant.ask("all", "POST", "/docs", r#"[{"id": 2}]"#, &[]).await;
    assert_eq!((several.status.as_u16(), several.header("etag")), (201, None));
    let plain = tenant.ask("all", "POST", "/plain", r#"{"id": 2}"#, &[]).await;
    assert_eq!((plain.status.as_u16(), plain.header("etag")), (201, None));
    let blind = tenant.ask("maker", "POST", "/docs", r#"{"id": 3}"#, &[]).await;
    assert_eq!((blind.status.as_u16(), blind.header("etag")), (201, None));
    let page =
        tenant.ask("all", "GET", ROW, "", &[("Origin", "https://app.example"), ("If-None-Match", "*")]).await;
    assert_eq!(page.status, 304);
    assert_eq!(page.header("access-control-allow-origin"), Some("https://app.example"));
    assert!(page.header("access-control-expose-headers").is_some_and(|it| it.contains("ETag")), "{page:?}");
    // a table that is protected no longer forgets its tags
    tenant.world.edit("versioned.yaml", "      concurrencyProtection: {}\n", "");
    until("a row without a version", async || {
        let reply = tenant.get("all", ROW).await;
        (reply.status == 200 && reply.header("etag").is_none()).then_some(())
    })
    .await;
    let reply = tenant.patch(ROW, &json!({"title": "free"})).await;
    assert_eq!(code(&reply).0, 200, "{reply:?}");
}
