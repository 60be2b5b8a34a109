//! The whole `status` of one object, on its way to where it stands.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use rowgate_crds::{ApiKeyStatus, Kind, RelationshipStatus, TenantStatus, WebhookSubscriptionStatus};
use serde_json::Value;

use crate::source::{Described as _, Event};
use crate::with_kind;

/// As plain values, and no text yet: thousands may wait, and most are compared with what stands there and not written.
#[derive(Debug, Clone, PartialEq)]
pub enum Status {
    Tenant(Box<TenantStatus>),
    ApiKey(Box<ApiKeyStatus>),
    Relationship(Box<RelationshipStatus>),
    WebhookSubscription(Box<WebhookSubscriptionStatus>),
}

/// Evaluates an expression with the status of whichever kind.
macro_rules! of_each {
    ($status:expr, $it:ident => $do:expr) => {
        match $status {
            Status::Tenant($it) => $do,
            Status::ApiKey($it) => $do,
            Status::Relationship($it) => $do,
            Status::WebhookSubscription($it) => $do,
        }
    };
}

impl Status {
    /// What stands there. `None`: nothing of this version's.
    pub(crate) fn read(kind: Kind, value: &Value) -> Option<Status> {
        with_kind!(kind, T => T::read_status(value))
    }

    pub(crate) fn conditions(&self) -> &[Condition] {
        of_each!(self, status => &status.conditions)
    }

    /// What is to be written where `there` stands, if that says something else: a condition whose status is what it was
    /// keeps the time since when it is so, and what differs in such times only is not written.
    #[must_use]
    pub fn over(&self, there: &Status) -> Option<Status> {
        let mut new = self.clone();
        let conditions = of_each!(&mut new, status => &mut status.conditions);
        for condition in conditions {
            let mut old = there.conditions().iter();
            let same = |old: &&Condition| old.type_ == condition.type_ && old.status == condition.status;
            if let Some(old) = old.find(same) {
                condition.last_transition_time = old.last_transition_time.clone();
            }
        }
        (new != *there).then_some(new)
    }

    /// The Event of an object that turns `Stalled` with this status, or for another cause than before. `there`: the
    /// status that it has.
    #[must_use]
    pub fn stalls(&self, there: Option<&Status>) -> Option<Event> {
        let holds = |it: &&Condition| it.type_ == "Stalled" && it.status == "True";
        let stalled = |status: &Status| {
            let condition = status.conditions().iter().find(holds)?;
            Some((condition.reason.clone(), condition.message.clone()))
        };
        let now = stalled(self)?;
        let is_new = there.and_then(stalled).as_ref() != Some(&now);
        is_new.then_some(Event { reason: now.0, note: now.1, warning: true })
    }

    /// The Events of what happened between `there`, the status that it has, and this one.
    #[must_use]
    pub fn events(&self, there: Option<&Status>) -> Vec<Event> {
        let mut events: Vec<Event> = self.stalls(there).into_iter().collect();
        if let (Status::WebhookSubscription(now), Some(Status::WebhookSubscription(before))) = (self, there) {
            events.extend(delivery_events(now, before));
        }
        events
    }

    /// As it is written.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let value = of_each!(self, status => serde_json::to_value(status));
        value.expect("a status is plain values")
    }
}

/// What became of deliveries. Of an object that has no status yet nothing has happened.
fn delivery_events(now: &WebhookSubscriptionStatus, before: &WebhookSubscriptionStatus) -> Vec<Event> {
    let mut events = Vec::new();
    let mut push = |reason: &str, note: String, warning: bool| {
        events.push(Event { reason: reason.to_owned(), note, warning });
    };
    let error = || now.last_error.as_deref().unwrap_or("no error is known");
    if before.dead_letters.unwrap_or(0) < now.dead_letters.unwrap_or(0) {
        let note = format!("a delivery was given up and kept as a dead letter: {}", error());
        push("DeadLetter", note, true);
    }
    let is_disabled = |it: &WebhookSubscriptionStatus| it.state.as_deref() == Some("disabled");
    if is_disabled(now) && !is_disabled(before) {
        let why = now.reason.as_deref().unwrap_or("Disabled");
        push("Disabled", format!("the subscription was disabled ({why}): {}", error()), true);
    }
    if !is_disabled(now) && is_disabled(before) && now.state.is_some() {
        push("Enabled", "the subscription was enabled again".to_owned(), false);
    }
    if let Some(replay) = now.last_replay.as_ref().filter(|_| now.last_replay != before.last_replay) {
        push("Replayed", format!("past events are sent again: {replay}"), false);
    }
    events
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use rowgate_crds::{ConditionType, Reason, condition};

    use super::*;

    #[test]
    fn an_object_that_turns_stalled_is_an_event_once_for_each_cause() {
        let status = |stalled: bool, message: &str, at: i64| {
            let since = Time(Timestamp::from_second(at).expect("a time"));
            let reason = if stalled { Reason::SourceNotFound } else { Reason::Done };
            let conditions = vec![condition(ConditionType::Stalled, stalled, reason, message, 1, since)];
            Status::ApiKey(Box::new(ApiKeyStatus { conditions, ..ApiKeyStatus::default() }))
        };
        let note = |now: &Status, there: Option<&Status>| now.stalls(there).map(|event| event.note);
        let (fine, gone) = (status(false, "", 1), status(true, "gone", 1));
        assert_eq!(note(&fine, None), None);
        for there in [None, Some(&fine), Some(&status(true, "broken", 1))] {
            assert_eq!(note(&gone, there).as_deref(), Some("gone"), "{there:?}");
        }
        assert_eq!(note(&status(true, "gone", 2), Some(&gone)), None, "it was told");
        let event = gone.stalls(None).expect("it is stalled");
        assert_eq!((event.reason.as_str(), event.warning), ("SourceNotFound", true));
    }

    #[test]
    fn a_time_alone_is_not_written_and_one_of_a_condition_that_did_not_turn_stays() {
        let status = |ready: bool, role: &str, at: i64| {
            let since = Time(Timestamp::from_second(at).expect("a time"));
            let conditions = vec![condition(ConditionType::Ready, ready, Reason::Served, "", 1, since)];
            let role = Some(role.to_owned());
            Status::ApiKey(Box::new(ApiKeyStatus { conditions, role, ..ApiKeyStatus::default() }))
        };
        let there = status(true, "a", 1);
        assert_eq!(status(true, "a", 2).over(&there), None, "another time alone");
        assert_eq!(status(true, "b", 2).over(&there), Some(status(true, "b", 1)), "another role");
        assert_eq!(status(false, "a", 2).over(&there), Some(status(false, "a", 2)), "it turned");
        let other = Status::Tenant(Box::default());
        assert_eq!(status(true, "a", 2).over(&other), Some(status(true, "a", 2)), "nothing told yet");
    }
}
