//! SQL of callers, and calls of functions: as in any database, unless PUBLIC may execute what no policy filters.

use rowgate_tests::client::{Client, Reply};
use rowgate_tests::servers::postgres::execute;
use rowgate_tests::wait::until;
use serde_json::{Value, json};

use super::fixture::{Store, TENANT};

const ENTITY: &str = "    - {name: spent, kind: Procedure, source: {schema: app, object: spent}}\n";
const MAY: &str = "      - {entity: spent, actions: [execute]}\n";
const QUERY: &str = "select id from app.orders limit 1";
/// It runs with the rights of its caller.
const SPENT: &str = "create function app.spent(place text) returns bigint stable language sql
    as 'select count(*) from app.orders where region = place'";
/// What reads every row for its caller: by itself, within an aggregate that PUBLIC may execute, and by a view of the owner's.
const UNCONFINED: [(&str, &str); 4] = [
    (
        "create function app.total() returns bigint security definer language sql as 'select count(*) from app.orders'",
        "revoke execute on routine app.total() from public;",
    ),
    (
        "create function app.add(bigint, bigint) returns bigint security definer language sql
            as 'select count(*) + $2 from app.orders';
         revoke execute on routine app.add(bigint, bigint) from public;
         create aggregate app.all_of(bigint) (sfunc = app.add, stype = bigint)",
        "revoke execute on routine app.all_of(bigint) from public;",
    ),
    // PostgreSQL asks for no right on it
    (
        "create type app.mood as enum ('good');
         create function app.mood_json(app.mood) returns json security definer language sql
            as 'select json_agg(o) from app.orders o';
         revoke execute on routine app.mood_json(app.mood) from public;
         create cast (app.mood as json) with function app.mood_json(app.mood)",
        "drop cast (app.mood as json);",
    ),
    ("grant select on app.totals to public", "revoke select on app.totals from public;"),
];

impl Store {
    async fn post(&self, path: &str, body: &Value) -> Reply {
        let (url, key) = (format!("{}{path}", self.world.url()), self.key("north"));
        let headers = [("X-API-Key", key.as_str()), ("Content-Type", "application/json")];
        Client::new().send("POST", &url, &headers, &body.to_string()).await
    }

    /// Status and code of what a key of the north is told by each door for its own SQL, and by the call.
    async fn told(&self, name: &str) -> [(u16, Value); 4] {
        let hook = json!({"name": name, "url": "https://127.0.0.1:9/hooks", "payloadQuery": "select 1 as a for json path"});
        let query = json!({"query": QUERY, "format": "csv"});
        let replies = [
            self.post("/api/ddl/sql", &json!({"query": QUERY})).await,
            self.post("/api/ddl/exports", &query).await,
            self.post("/api/ddl/events/webhooks", &hook).await,
            self.post("/auth/store/api/spent", &json!({"place": "north"})).await,
        ];
        replies.map(|reply| (reply.status.as_u16(), reply.json()["error"]["code"].clone()))
    }

    /// Waits until SQL is answered so.
    async fn answers_sql(&self, status: u16) {
        until("SQL of callers, or none", async || {
            let reply = self.post("/api/ddl/sql", &json!({"query": QUERY})).await;
            (reply.status == status).then_some(())
        })
        .await;
    }
}

#[tokio::test]
async fn callers_write_sql_and_call_functions_unless_public_may_execute_what_no_policy_filters() {
    let scope = "    permissions:\n";
    let tenant = format!(
        "{}{MAY}",
        TENANT.replacen("    - name: customers\n", &format!("{ENTITY}    - name: customers\n"), 1)
    );
    assert!(tenant.contains(ENTITY) && tenant.contains(scope));
    let mut store = Store::new(&[("store.yaml", &tenant)]).await;
    let mut owner = store.as_role("store").await;
    execute(&mut owner, SPENT).await;
    let allow = |command: &mut std::process::Command| {
        command.env("ROWGATE_WEBHOOK_RANGES", "127.0.0.0/8");
    };
    store.world.spawn(allow);
    store.lend().await;
    store.is_served().await;

    // 50 of the north, 10 of them drafts
    let all = [(200, Value::Null), (202, Value::Null), (201, Value::Null), (201, Value::Null)];
    assert_eq!(store.told("at first").await, all);
    let regions = json!({"query": "select region, count(*) as n from app.orders group by region"});
    let regions = store.post("/api/ddl/sql", &regions).await.json();
    assert_eq!(regions["value"], json!([{"region": "north", "n": 40}]), "{regions}");
    for (place, seen) in [("north", 40), ("south", 0)] {
        let spent = store.post("/auth/store/api/spent", &json!({"place": place})).await.json();
        assert_eq!(spent["value"], json!([{"spent": seen}]), "{spent}");
    }

    let none =
        [(403, "Forbidden"), (403, "Forbidden"), (400, "InvalidPayloadQuery"), (404, "EntityNotFound")];
    let none = none.map(|(status, code)| (status, json!(code)));
    for (unconfined, line) in UNCONFINED {
        execute(&mut owner, unconfined).await;
        store.answers_sql(403).await;
        assert_eq!(store.told("refused").await, none);
        until(line, async || {
            let status = store.world.status("Tenant", "store");
            let mut warnings = status["warnings"].as_array()?.iter().filter_map(Value::as_str);
            warnings.any(|it| it.contains("no SQL of callers") && it.ends_with(line)).then_some(())
        })
        .await;
        assert_eq!(store.world.get(&store.key("north"), "/auth/store/api/orders?$first=1").await.status, 200);
        execute(&mut owner, line).await;
        store.answers_sql(200).await;
        until("a call", async || {
            let reply = store.post("/auth/store/api/spent", &json!({"place": "north"})).await;
            (reply.status == 201).then_some(())
        })
        .await;
        assert_eq!(store.told(line).await, all);
    }
}
