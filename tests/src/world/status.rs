//! What the status of an object says.

use serde_json::Value;

use crate::wait::until_ok;
use crate::world::World;

/// The condition of this type; null where there is none.
#[must_use]
pub fn condition<'a>(status: &'a Value, named: &str) -> &'a Value {
    let mut all = status["conditions"].as_array().into_iter().flatten();
    all.find(|condition| condition["type"] == named).unwrap_or(&Value::Null)
}

/// Whether the condition of this type is `True`.
#[must_use]
pub fn holds(status: &Value, named: &str) -> bool {
    condition(status, named)["status"] == "True"
}

/// Reason and message of `Ready`.
#[must_use]
pub fn ready(status: &Value) -> (&str, &str) {
    let ready = condition(status, "Ready");
    let text = |name: &str| ready[name].as_str().unwrap_or_default();
    (text("reason"), text("message"))
}

/// The message of `Ready` of an object in a folder, once it has this reason.
pub async fn says(world: &World, kind: &str, name: &str, reason: &str) -> String {
    until_ok(&format!("{reason} of {kind}/{name}"), async || {
        let status = world.status(kind, name);
        match ready(&status) {
            (told, message) if told == reason => Ok(message.to_owned()),
            _ => Err(status),
        }
    })
    .await
}
