//! Rows that are flagged as deleted: out of every read of an entity that hides them, and within reach of every write.

use serde_json::{Value, json};

use super::fixtures::versioned_rows::{TS, VersionedRows, code, tag, version};

async fn ids(tenant: &VersionedRows, path: &str) -> Vec<Value> {
    tenant.get("all", path).await.rows().iter().map(|row| row["id"].clone()).collect()
}

/// Seen to fail without the condition in the count, and in a row read by its key.
#[tokio::test]
async fn flagged_rows_are_hidden_from_reads_and_from_nothing_else() {
    let tenant = VersionedRows::open().await;
    for (id, flag) in [(1, json!(null)), (2, json!(false)), (3, json!(false)), (4, json!(true))] {
        tenant.make("/bins", &json!({"id": id, "title": "x", "is_deleted": flag})).await;
    }
    let flag = |ts: &str, deleted: bool| json!({"is_deleted": deleted, TS: ts});
    let seen = version(&tenant.get("all", "/bins/id/3").await);
    // the answer is the row as it was written, but no read gives that, so it has no tag
    let flagged = tenant.patch("/bins/id/3", &flag(&seen, true)).await;
    let third = version(&flagged);
    assert_eq!((code(&flagged).0, flagged.header("etag")), (200, None), "{flagged:?}");
    assert_eq!(flagged.json()["value"][0]["is_deleted"], true);

    for (path, expected) in [
        ("/bins?$orderby=id", vec![1, 2]),
        ("/bins?$filter=id%20gt%201%20or%20id%20eq%203", vec![2]),
        ("/bins?$filter=is_deleted%20eq%20true", vec![]),
        ("/bins?$filter=id%20eq%203%20or%20id%20eq%204", vec![]),
        ("/bins/id/2", vec![2]),
        ("/bins/id/3", vec![]),
        ("/bins/id/4", vec![]),
        ("/trash?$orderby=id", vec![1, 2]),
        ("/trash/id/3", vec![]),
    ] {
        assert_eq!(ids(&tenant, path).await, expected, "{path}");
    }
    for (path, expected) in [
        ("/bins?$count=true&$first=1", 2),
        ("/bins?$count=true&$filter=id%20gt%201", 1),
        ("/bins?$count=true&$filter=is_deleted%20eq%20true", 0),
        ("/trash?$count=true", 2),
    ] {
        assert_eq!(tenant.get("all", path).await.json()["count"], expected, "{path}");
    }
    // pages, and a count behind the last row
    let first = tenant.get("all", "/bins?$first=1&$count=true").await.json();
    let next = first["nextLink"]
        .as_str()
        .expect("a second page")
        .split_once("/api")
        .expect("our address")
        .1
        .to_owned();
    assert_eq!(ids(&tenant, &next).await, [2]);
    tenant.execute(&format!("update v.bins set is_deleted = true, {TS} = {TS} where id = 2")).await;
    let empty = tenant.get("all", &next).await.json();
    assert_eq!((&empty["value"], &empty["count"]), (&json!([]), &json!(1)), "{empty}");

    // a hidden row is there: it is changed, flagged no more, and not made again
    let patched = tenant.patch("/bins/id/3", &json!({"title": "y", TS: third})).await;
    assert_eq!((code(&patched).0, patched.header("etag")), (200, None), "{patched:?}");
    assert_eq!(code(&tenant.patch("/bins/id/3", &json!({"title": "z"})).await).0, 428);
    assert_eq!(code(&tenant.ask("all", "POST", "/bins", r#"{"id": 3}"#, &[]).await).0, 409);
    let back = tenant.patch("/bins/id/3", &flag(&version(&patched), false)).await;
    assert_eq!((code(&back).0, tag(&back)), (200, tenant.tag("all", "/bins/id/3").await.0), "{back:?}");
    // without protection
    for (body, seen) in
        [(r#"{"title": "still"}"#, vec![]), (r#"{"title": "back", "is_deleted": null}"#, vec![3])]
    {
        let put = tenant.ask("all", "PUT", "/trash/id/3", body, &[]).await;
        assert_eq!(code(&put).0, 200, "{put:?}");
        assert_eq!(ids(&tenant, "/trash/id/3").await, seen, "{body}");
    }
}

#[tokio::test]
async fn where_nothing_says_so_flagged_rows_are_read_like_any_other() {
    let tenant = VersionedRows::open().await;
    let first = tenant.make("/docs", &json!({"id": 1, "title": "one"})).await;
    let flagged = tenant.patch("/docs/id/1", &json!({"is_deleted": true, TS: first})).await;
    assert_eq!(code(&flagged).0, 200, "{flagged:?}");
    let read = tenant.get("all", "/docs/id/1").await;
    assert_eq!((read.rows()[0]["is_deleted"].clone(), tag(&read)), (json!(true), tag(&flagged)));
    assert_eq!(ids(&tenant, "/docs").await, [1]);
}
