//! Summarizes a status in one word and one line.

use serde_json::Value;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    Ready,
    /// Reconciliation cannot continue until something is changed: reason and message.
    Stalled(String),
    /// The resource will not become ready again: a revoked or expired key.
    Ended(String),
    /// In progress or being retried: reason and message of what prevents readiness.
    Working(String),
}

impl Verdict {
    pub(crate) fn of(status: &Value) -> Verdict {
        let condition = |name: &str| {
            let conditions = status.get("conditions").and_then(Value::as_array);
            conditions.into_iter().flatten().find(|condition| condition["type"] == name)
        };
        let holds = |name: &str| condition(name).filter(|condition| condition["status"] == "True");
        let sentence = |condition: &Value| {
            let text = |name: &str| condition[name].as_str().unwrap_or_default().to_owned();
            format!("{}: {}", text("reason"), text("message"))
        };
        if let Some(stalled) = holds("Stalled") {
            return Verdict::Stalled(sentence(stalled));
        }
        if holds("Ready").is_some() {
            return Verdict::Ready;
        }
        let why = condition("Ready").map(sentence).unwrap_or_default();
        match condition("Reconciling").is_some_and(|condition| condition["status"] == "False") {
            true => Verdict::Ended(why),
            false => Verdict::Working(why),
        }
    }

    /// Whether the verdict stays until something is changed.
    pub(crate) fn settled(&self) -> bool {
        !matches!(self, Verdict::Working(_))
    }

    /// The line for the terminal; work in progress has none.
    pub(crate) fn line(&self) -> Option<String> {
        match self {
            Verdict::Ready => Some("ready".to_owned()),
            Verdict::Stalled(why) => Some(format!("stalled: {why}")),
            Verdict::Ended(why) => Some(format!("ended: {why}")),
            Verdict::Working(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn stalled_counts_more_than_ready_and_neither_is_work_nor_is_an_end() {
        let condition =
            |name: &str, status: &str| json!({"type": name, "status": status, "reason": "R", "message": "m"});
        for (conditions, expected) in [
            (json!([condition("Ready", "True"), condition("Stalled", "False")]), Verdict::Ready),
            (
                json!([condition("Ready", "True"), condition("Stalled", "True")]),
                Verdict::Stalled("R: m".into()),
            ),
            (json!([condition("Ready", "False")]), Verdict::Working("R: m".into())),
            (
                json!([condition("Ready", "False"), condition("Reconciling", "True")]),
                Verdict::Working("R: m".into()),
            ),
            (
                json!([condition("Ready", "False"), condition("Reconciling", "False")]),
                Verdict::Ended("R: m".into()),
            ),
            (json!([]), Verdict::Working(String::new())),
        ] {
            assert_eq!(Verdict::of(&json!({"conditions": conditions})), expected);
        }
    }
}
