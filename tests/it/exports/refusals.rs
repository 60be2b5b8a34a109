//! What is refused when it is asked for, with the codes of REST and of the SQL endpoint.

use serde_json::{Value, json};

use super::fixture::Depot;

#[tokio::test]
async fn what_cannot_be_exported_is_refused_at_once_and_says_what_to_change() {
    let depot = Depot::open().await;
    for (body, status, code, message) in [
        (json!({"entity": "absent", "format": "csv"}), 404, "EntityNotFound", ""),
        (json!({"entity": "not a name", "format": "csv"}), 404, "EntityNotFound", ""),
        (json!({"entity": "notes", "format": "csv", "select": "id,absent"}), 400, "UnknownField", "absent"),
        (json!({"entity": "notes", "format": "csv", "select": "hidden"}), 400, "UnknownField", "hidden"),
        (
            json!({"entity": "notes", "format": "csv", "filter": "hidden eq 'x'"}),
            400,
            "UnknownField",
            "hidden",
        ),
        (json!({"entity": "notes", "format": "csv", "filter": "id eq"}), 400, "InvalidFilter", ""),
        (json!({"entity": "notes", "format": "csv", "filter": "id eq 'x'"}), 400, "InvalidFilter", "bigint"),
        (
            json!({"entity": "kinds", "format": "csv", "filter": "m eq 'fair'"}),
            400,
            "InvalidValue",
            "does not fit its field",
        ),
        (
            json!({"entity": "notes", "format": "csv", "orderby": "id up"}),
            400,
            "InvalidOrderBy",
            "asc or desc",
        ),
        (json!({"entity": "notes", "format": "xlsx"}), 400, "BadRequest", "csv, jsonl or parquet"),
        (
            json!({"entity": "notes", "query": "select 1 as a", "format": "csv"}),
            400,
            "BadRequest",
            "send one of them",
        ),
        (json!({"entity": "notes", "format": "parquet", "csvSafe": true}), 400, "BadRequest", "csvSafe"),
        (json!({"query": "delete from depot.notes", "format": "csv"}), 400, "InvalidSql", ""),
        (json!({"query": "select hidden from depot.notes", "format": "csv"}), 400, "InvalidSql", ""),
        (json!({"query": "select 1 from depot.absent", "format": "csv"}), 400, "InvalidSql", "depot.absent"),
        (json!({"query": "select 1 as a, 2 as a", "format": "csv"}), 400, "InvalidSql", "AS"),
        (
            json!({"query": "select id from depot.notes where id = @id", "format": "csv"}),
            400,
            "InvalidSql",
            "add",
        ),
        (
            json!({"query": "select id from depot.notes where id = @id", "parameters": {"id": "x"}, "format": "csv"}),
            400,
            "InvalidValue",
            "\\\"id\\\"",
        ),
    ] {
        let reply = depot.start("plain", &body).await;
        assert_eq!(reply.status, status, "{body}: {reply:?}");
        assert_eq!(reply.json()["error"]["code"], code, "{body}: {reply:?}");
        assert!(reply.body.contains(message) && !reply.body.contains('$'), "{body}: {reply:?}");
    }
    let foreign = depot.start("north", &json!({"entity": "bulk", "format": "csv"})).await;
    let absent = depot.start("north", &json!({"entity": "absent", "format": "csv"})).await;
    let error =
        |body: &Value| body["error"]["message"].as_str().unwrap_or_default().replace("absent", "bulk");
    assert_eq!((foreign.status, error(&foreign.json())), (absent.status, error(&absent.json())));
    assert_eq!(depot.ask("plain", "GET", "").await.json(), json!({"value": []}));
    assert_eq!(depot.ask("plain", "GET", "?x=1").await.status, 400);
}

/// A row that does not fit the format is found when the rows are read.
#[tokio::test]
async fn a_value_that_parquet_cannot_hold_fails_the_export_and_is_named() {
    let depot = Depot::open().await;
    let query = json!({"query": "select cast('infinity' as date) as day", "format": "parquet"});
    let id = depot.started("plain", query).await;
    let job = depot.reached("plain", &id, "failed").await;
    let message = job["error"]["message"].as_str().unwrap_or_default();
    assert!(
        job["error"]["code"] == "InvalidValue" && message.contains("\"day\"") && message.contains("infinity"),
        "{job}"
    );
    let query = json!({"query": "select 1 / (id - 7) as a from depot.notes", "format": "csv"});
    let id = depot.started("plain", query).await;
    let job = depot.reached("plain", &id, "failed").await;
    assert_eq!(job["error"]["code"], "InvalidValue", "{job}");
}

#[tokio::test]
async fn a_server_without_a_folder_for_exports_says_how_they_are_turned_on() {
    let depot = Depot::open().await;
    let replica = depot.world.replica().await;
    let key = depot.world.key("plain");
    let client = rowgate_tests::client::Client::new();
    for method in ["GET", "POST"] {
        let headers = [("X-API-Key", key.as_str()), ("Content-Type", "application/json")];
        let url = format!("{}/api/ddl/exports", replica.url());
        let reply = client.send(method, &url, &headers, if method == "POST" { "{}" } else { "" }).await;
        assert_eq!((reply.status.as_u16(), reply.json()["error"]["code"].clone()), (404, json!("NotFound")));
        assert!(reply.body.contains("--exports-dir"), "{reply:?}");
    }
}

/// A number of ten bytes has 131,072 digits.
#[tokio::test]
async fn a_row_that_grows_when_it_is_written_fails_its_export() {
    let depot = Depot::open().await;
    for format in ["jsonl", "parquet"] {
        let query = "select array_agg(1e131071) as a from generate_series(1, 2000) g";
        let id = depot.started("plain", json!({"query": query, "format": format})).await;
        let job = depot.reached("plain", &id, "failed").await;
        assert_eq!(job["error"]["code"], "TooLarge", "{format}: {job}");
        assert!(job["error"]["message"].as_str().is_some_and(|it| it.contains("64 MiB")), "{format}: {job}");
    }
}
