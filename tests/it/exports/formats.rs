//! What stands in the files: the rows that a key may read, in each format, the same as REST and the SQL endpoint give them.

use std::io::Read as _;

use serde_json::{Value, json};

use super::fixture::Depot;
use super::random;
use crate::reads::differential::given;

const CSV: &str = "id,word\r\n3,hidden_south3\r\n2,n2\r\n1,hidden_south1\r\n";

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect()
}

#[tokio::test]
async fn every_format_holds_the_rows_of_an_entity_and_of_a_query() {
    let depot = Depot::open().await;
    let of_entity = |format: &str| json!({"entity": "notes", "format": format, "select": "id,word", "filter": "id le 3", "orderby": "id desc"});
    let of_query = |format: &str| {
        json!({"query": "select id, word from depot.notes where id <= @most order by id desc", "parameters": {"most": 3},
            "format": format})
    };
    for body in [of_entity("csv"), of_query("csv")] {
        let text = depot.text("plain", body).await;
        assert_eq!(text, CSV);
    }
    for body in [of_entity("jsonl"), of_query("jsonl")] {
        let text = depot.text("plain", body).await;
        let expected = "{\"id\":3,\"word\":\"hidden_south3\"}\n{\"id\":2,\"word\":\"n2\"}\n{\"id\":1,\"word\":\"hidden_south1\"}\n";
        assert_eq!(text, expected);
    }
    for body in [of_entity("parquet"), of_query("parquet")] {
        let (job, bytes) = depot.export("plain", body).await;
        assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"));
        assert_eq!((job["rows"].clone(), job["capped"].clone()), (json!(3), json!(false)), "{job}");
        assert_eq!(job["progress"], json!(1.0));
    }
    let mut packed = of_entity("csv");
    packed["compression"] = json!("gzip");
    let (_, bytes) = depot.export("plain", packed).await;
    let mut text = String::new();
    flate2::read::GzDecoder::new(&bytes[..]).read_to_string(&mut text).expect("gzip");
    assert_eq!(text, CSV);
    let mut none = of_entity("csv");
    none["filter"] = json!("id lt 0");
    assert_eq!(depot.text("plain", none).await, "id,word\r\n", "no rows are a whole file, too");
    let safe = json!({"query": "select '=1+1' as a, '-2' as b, 'x' as c", "format": "csv", "csvSafe": true});
    assert_eq!(depot.text("plain", safe).await, "a,b,c\r\n'=1+1,'-2,x\r\n");
}

#[tokio::test]
async fn a_scoped_key_exports_its_rows_and_columns_only() {
    let depot = Depot::open().await;
    let of_entity = json!({"entity": "notes", "format": "jsonl"});
    let of_query = json!({"query": "select id, word from depot.notes", "format": "jsonl"});
    for body in [of_entity.clone(), of_query] {
        let text = depot.text("north", body).await;
        let rows = lines(&text);
        assert_eq!(rows.len(), 50);
        assert!(rows.iter().all(|row| row["id"].as_u64().is_some_and(|id| id % 2 == 0)), "{text}");
        assert!(rows.iter().all(|row| row.as_object().is_some_and(|row| row.len() == 2)), "{text}");
        assert!(!text.contains("hidden"), "{text}");
    }
    assert_eq!(lines(&depot.text("plain", of_entity).await).len(), 100);
}

#[tokio::test]
async fn an_export_the_sql_endpoint_and_rest_agree_on_every_type() {
    let depot = Depot::open().await;
    let seed = given("ROWGATE_SEED", 0);
    println!("ROWGATE_SEED={seed}");
    depot.sql(&random::script(seed, 500)).await;
    let by_rest =
        depot.send("plain", "GET", "/auth/depot/api/kinds?$orderby=id&$first=1000", "").await.json();
    assert_eq!(by_rest["value"].as_array().map(Vec::len), Some(503));
    let query = json!({"query": "select * from depot.kinds order by id"});
    let by_sql = depot.send("plain", "POST", "/api/ddl/sql", &query.to_string()).await.json();
    let export = json!({"entity": "kinds", "format": "jsonl", "orderby": "id"});
    let by_export = json!(lines(&depot.text("plain", export).await));
    assert_eq!(by_export, by_rest["value"]);
    assert_eq!(by_export, by_sql["value"]);
    let mut export = query.clone();
    export["format"] = json!("jsonl");
    assert_eq!(json!(lines(&depot.text("plain", export).await)), by_export);

    // what CSV holds is what PostgreSQL reads back
    let text = depot.text("plain", json!({"entity": "kinds", "format": "csv", "orderby": "id"})).await;
    let file = depot.world.folder().join("kinds.csv");
    std::fs::write(&file, text).expect("the folder is ours");
    depot.sql("create table depot.copied (like depot.kinds)").await;
    depot.sql(&format!("copy depot.copied from '{}' (format csv, header match)", file.display())).await;
    let mut connection = depot.server.connect("depot").await;
    let differ = "select one.id from depot.kinds one full join depot.copied two on one.id = two.id where one::text is distinct from two::text";
    assert_eq!(rowgate_tests::servers::postgres::rows(&mut connection, differ).await, Vec::<Value>::new());
}
