//! What a caller reads when a query is refused: the code, and a sentence that says what to change.

use serde_json::{Value, json};

use super::fixture::{Lab, refusal};

#[tokio::test]
async fn a_refusal_says_what_to_change() {
    let lab = Lab::open().await;
    for (query, parameters, code, part) in [
        ("select top 5 * from lab.notes", json!({}), "InvalidSql", "write limit 10 at the end"),
        ("select isnull(word, '') as a from lab.notes", json!({}), "InvalidSql", "coalesce(a, b)"),
        ("select [id] from lab.notes", json!({}), "InvalidSql", "double quotes"),
        ("select getdate() as a", json!({}), "InvalidSql", "now()"),
        (
            "select id from lab.notes where word = \"n2\"",
            json!({}),
            "InvalidSql",
            "notes has the columns id, region, word",
        ),
        ("select nothing from lab.notes", json!({}), "InvalidSql", "column that does not exist"),
        (
            "select * from lab.note",
            json!({}),
            "InvalidSql",
            "the tables that it may read are lab.kinds, lab.notes",
        ),
        ("select 1 as a, 2 as a", json!({}), "InvalidSql", "two columns of the query are named \"a\""),
        ("select 1 as a where", json!({}), "InvalidSql", "line 1"),
        ("update lab.notes set word = 'x'", json!({}), "InvalidSql", "only a SELECT is allowed"),
        ("select 1 as a; select 2 as a", json!({}), "InvalidSql", "one statement is allowed"),
        (
            "select set_config('role', 'none', false) as a",
            json!({}),
            "InvalidSql",
            "the function set_config is not allowed",
        ),
        ("select @id as a", json!({}), "InvalidSql", "add \"id\" to parameters"),
        ("select 1 as a", json!({"id": 1}), "InvalidSql", "has no @id"),
        ("select @a::int as a", json!({"a": "x"}), "InvalidValue", "the parameter \"a\" is integer"),
        (
            "select @a::int as a",
            json!({"a": 3_000_000_000_u64}),
            "InvalidValue",
            "the parameter \"a\" is integer",
        ),
        ("select @a::numeric(3,1) as a", json!({"a": 1000}), "InvalidValue", "overflows"),
        ("select @a::date as a", json!({"a": "2024-02-30"}), "InvalidValue", "the parameter \"a\" is date"),
        ("select @a::int[] as a", json!({"a": 1}), "InvalidValue", "the parameter \"a\""),
        ("select 1 / (id - 1) as a from lab.notes", json!({}), "InvalidValue", "divides by zero"),
        ("select (select id from lab.notes) as a", json!({}), "InvalidValue", "several rows"),
        ("", json!({}), "InvalidSql", "SELECT"),
    ] {
        let (status, told, message) = lab.refused("plain", query, parameters).await;
        assert_eq!((status, told.as_str()), (400, code), "{query}: {message}");
        assert!(message.contains(part), "{query}: {message}");
    }
}

#[tokio::test]
async fn a_wrong_body_says_what_to_send() {
    let lab = Lab::open().await;
    for (body, part) in [
        ("", "the body is not valid JSON"),
        ("[1]", "the body is not an object"),
        ("{}", "query is missing"),
        (r#"{"sql": "select 1"}"#, "members are query, parameters, explain"),
        (r#"{"query": "select 1 as a", "parameters": []}"#, "parameters is not an object"),
        (r#"{"query": "select 1 as a", "query": "select 2 as a"}"#, "twice"),
    ] {
        let reply = lab.send("plain", body).await;
        let (status, code, message) = refusal(&reply);
        assert_eq!((status, code.as_str()), (400, "BadRequest"), "{body}: {message}");
        assert!(message.contains(part), "{body}: {message}");
    }
    let reply = lab.get("plain", "/api/ddl/sql").await;
    assert_eq!((reply.status.as_u16(), reply.header("allow")), (405, Some("POST, OPTIONS")), "{reply:?}");
}

/// Names that a key may not see are answered as names that nothing has.
#[tokio::test]
async fn what_is_hidden_and_what_is_absent_are_one_answer() {
    let lab = Lab::open().await;
    let same = |reply: rowgate_tests::client::Reply, name: &str| {
        let mut answer = reply.json();
        answer["error"]["requestId"] = Value::Null;
        answer.to_string().replace(name, "NAME")
    };
    for (form, hidden, absent) in [
        ("select * from lab.{}", "secrets", "nowhere"),
        // PostgreSQL drops what is never reached before it checks a right
        ("select case when true then 1 else (select 1 from lab.{} limit 1) end as a", "secrets", "nowhere"),
        ("select coalesce(1, (select 1 from lab.{} limit 1)) as a", "definer_view", "nowhere"),
        ("select 1 as a where true or exists (select 1 from lab.{})", "secrets", "nowhere"),
        ("select 1 as a where false and exists (select 1 from {})", "open", "nowhere"),
        (
            "select case when true then 1 else (select length(n.{}) from lab.notes n limit 1) end as a",
            "hidden",
            "nowhere",
        ),
        (
            "select case when true then 1 else (select n.{} + 1 from lab.notes n limit 1) end as a",
            "hidden",
            "nowhere",
        ),
        ("with t as (select 1 / 0 as a from {}) select a from t", "secrets", "nowhere"),
        ("select n.{}, 1 / 0 as {} from lab.notes n", "hidden", "nowhere"),
        ("select n.{} as b, 1 as {} from lab.notes n", "hidden", "nowhere"),
        ("select id from lab.notes n join (select 'q'::text as {}) x using ({})", "hidden", "nowhere"),
        ("select 1 as a from lab.{} where false", "secrets", "nowhere"),
        ("select {} from lab.notes", "hidden", "nowhere"),
        ("select n.{} from lab.notes n", "hidden", "nowhere"),
        ("select id from lab.notes order by {}", "hidden", "nowhere"),
        ("select count(*) as a from lab.notes where {} = 1", "hidden", "nowhere"),
        ("select 1 as a from lab.notes n join lab.notes m using ({})", "hidden", "nowhere"),
        ("select * from lab.notes n, lab.{} s where n.id / 0 = 1", "secrets", "nowhere"),
        ("select 1 as a from lab.{} where 1 / 0 = 1", "secrets", "nowhere"),
        ("select 1 as a from lab.notes where {} = 'x' and 1 / 0 = 1", "hidden", "nowhere"),
        ("select n.{} as a, 2 as a from lab.notes n", "hidden", "nowhere"),
        ("select 1 as a from lab.notes where {} = @p", "hidden", "nowhere"),
        ("select 1 as a from lab.notes where length({}) = @p", "hidden", "nowhere"),
        ("select 1 as a from lab.{} s where s.word = @p", "secrets", "nowhere"),
        ("select 1 as a from (select * from lab.{}) s (b) where b = @p", "secrets", "nowhere"),
        ("select 1 as a from lab.notes where chr(0) = {}", "hidden", "nowhere"),
        ("select 1 as a from lab.{} where 'x'::int = 1", "secrets", "nowhere"),
    ] {
        let parameters = if form.contains("@p") { json!({"p": {"a": []}}) } else { json!({}) };
        for (key, explain) in [("north", false), ("south", false), ("plain", false), ("plain", true)] {
            let told = async |name: &str| {
                let body =
                    json!({"query": form.replace("{}", name), "parameters": parameters, "explain": explain});
                same(lab.send(key, &body.to_string()).await, name)
            };
            let (told, of_absent) = (told(hidden).await, told(absent).await);
            assert_eq!(told, of_absent, "{key}: {form}");
            assert!(explain || told.contains("does not exist or "), "{key}: {form}: {told}");
        }
    }
    // a name that a query gives is its own, whatever the table beside it has
    for form in [
        "select n.id as a from lab.notes n natural join (select 1 as {}) x limit 1",
        "select {} as a from lab.notes n, (select 1 as {}) x limit 1",
        "select (select {} from lab.notes n limit 1) as a from (select 'q'::text as {}) x",
        "select id as {} from lab.notes n group by {} order by 1 limit 1",
        "select n.*, 2 as {} from lab.notes n order by id limit 1",
        "select n as a from lab.notes n order by id limit 1",
        "with {} as (select 1 as a) select a from {}",
    ] {
        for key in ["north", "plain"] {
            let told = async |name: &str| {
                let body = json!({"query": form.replace("{}", name)});
                let reply = lab.send(key, &body.to_string()).await;
                assert_eq!(reply.status, 200, "{form}: {reply:?}");
                reply.body.replace(&format!("\"{name}\""), "NAME")
            };
            assert_eq!(told("hidden").await, told("nowhere").await, "{key}: {form}");
        }
    }
}
