//! One line for an event.

use serde_json::{Value, json};

use super::EventFormat;
use crate::output::{escape, table};
use crate::sse::SseEvent;

/// `None` where the stream only moves on.
pub(super) fn line(event: &SseEvent, format: EventFormat, width: Option<usize>) -> Option<String> {
    let value = match event.name.as_str() {
        "change" => serde_json::from_str(&event.data).unwrap_or_else(|_| json!({"text": event.data})),
        "reset" => json!({"type": "reset", "cursor": event.id}),
        _ => return None,
    };
    Some(match format {
        EventFormat::Json => escape::json(&value),
        EventFormat::Table => {
            let line = columns(&value);
            width.map_or_else(|| line.clone(), |width| table::cut(&line, width))
        }
    })
}

fn columns(event: &Value) -> String {
    if event["type"] == "reset" {
        return "reset: earlier events are no longer kept; read the rows again".to_owned();
    }
    let text = |name: &str| table::cell(event.get(name));
    let entity =
        table::cell(event.get("entity").filter(|entity| !entity.is_null()).or_else(|| event.get("table")));
    let (at, op, key) = (text("occurredAt"), text("op"), text("key"));
    format!("{at:<27}  {op:<8}  {entity:<16}  {key:<12}  {}", text("data")).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(name: &str, data: &str) -> SseEvent {
        SseEvent { name: name.to_owned(), data: data.to_owned(), id: Some("1.4.17".to_owned()) }
    }

    #[test]
    fn a_change_is_one_line_of_json() {
        let change = event("change", "{\"EventId\": \"1.4.17\",\n \"data\": {\"a\": \"\\u001b[2J\u{9b}\"}}");
        let line = line(&change, EventFormat::Json, Some(10)).expect("a line");
        assert_eq!(line, "{\"EventId\":\"1.4.17\",\"data\":{\"a\":\"\\u001b[2J\\u009b\"}}");
    }

    #[test]
    fn a_position_is_not_shown_and_a_reset_is() {
        assert_eq!(line(&event("position", ""), EventFormat::Json, None), None);
        let reset = line(&event("reset", ""), EventFormat::Json, None);
        assert_eq!(reset.as_deref(), Some("{\"type\":\"reset\",\"cursor\":\"1.4.17\"}"));
    }

    #[test]
    fn columns_fit_the_terminal() {
        let data = r#"{"op": "update", "entity": "orders", "occurredAt": "2024-05-02T09:30:00.120304Z", "key": {"id": 7}, "data": {"id": 7, "state": "shipped"}}"#;
        let shown = line(&event("change", data), EventFormat::Table, Some(80)).expect("a line");
        assert_eq!(
            shown,
            "2024-05-02T09:30:00.120304Z  update    orders            {\"id\":7}      {\"id\":7,…"
        );
    }
}
