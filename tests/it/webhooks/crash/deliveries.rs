//! What a receiver got, compared with what was captured.

use std::collections::BTreeMap;

use rowgate_tests::servers::postgres::rows;
use rowgate_tests::servers::receiver::Request;
use serde_json::Value;
use sqlx::PgConnection;

/// By row, its counters in their order.
pub(super) type Changes = BTreeMap<i64, Vec<i64>>;

/// What was captured of a table.
pub(super) async fn captured(conn: &mut PgConnection, table: &str) -> Changes {
    let text = format!(
        "select image::jsonb ->> 'id' as id, image::jsonb ->> 'n' as n from dl.outbox where rel = 'works.{table}'::regclass order by seq"
    );
    let mut changes = Changes::new();
    for row in rows(conn, &text).await {
        let number = |name: &str| row[name].as_str().and_then(|text| text.parse().ok()).expect("a number");
        changes.entry(number("id")).or_default().push(number("n"));
    }
    changes
}

/// Of one receiver.
#[derive(Default)]
pub(super) struct Deliveries {
    /// By EventId.
    events: BTreeMap<String, (i64, i64)>,
    /// As they came first.
    pub(super) first: Changes,
    /// EventIds by the id of the message.
    batches: BTreeMap<String, Vec<String>>,
    /// Events that came again.
    pub(super) n_repeated: usize,
}

impl Deliveries {
    /// Every repetition has the EventId of before, and a batch that is tried again is what it was.
    pub(super) fn of(requests: &[Request]) -> Deliveries {
        let mut all = Deliveries::default();
        for request in requests {
            let message = request.json();
            let id = message["id"].as_str().expect("an id").to_owned();
            assert_eq!(request.headers.get("webhook-id"), Some(&id), "{request:?}");
            let events = request.events();
            let ids: Vec<String> = events.iter().map(event_id).collect();
            let before = all.batches.entry(id).or_insert_with(|| ids.clone());
            assert_eq!(*before, ids, "a batch keeps its bounds");
            events.iter().for_each(|event| all.add(event));
        }
        all
    }

    fn add(&mut self, event: &Value) {
        let number = |value: &Value| value.as_i64().expect("a number");
        let change = (number(&event["data"]["id"]), number(&event["data"]["n"]));
        match self.events.insert(event_id(event), change) {
            Some(before) => {
                assert_eq!(before, change, "one EventId, two changes");
                self.n_repeated += 1;
            }
            None => self.first.entry(change.0).or_default().push(change.1),
        }
    }
}

fn event_id(event: &Value) -> String {
    event["EventId"].as_str().expect("an id").to_owned()
}
