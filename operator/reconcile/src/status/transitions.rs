//! What is kept of an object's conditions: when each turned.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use rowgate_crds::ConditionType;

/// The status of each condition of an object, and since when it is so: all that is kept of conditions. `None`: not
/// reported yet, or not in a form of ours.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Transitions {
    ready: Option<(bool, Timestamp)>,
    reconciling: Option<(bool, Timestamp)>,
    stalled: Option<(bool, Timestamp)>,
    events_healthy: Option<(bool, Timestamp)>,
    catalog_hardened: Option<(bool, Timestamp)>,
    delivering: Option<(bool, Timestamp)>,
}

impl Transitions {
    pub(crate) fn of(conditions: &[Condition]) -> Transitions {
        let of = |kind: ConditionType| {
            let kind = format!("{kind:?}");
            let condition = conditions.iter().find(|condition| condition.type_ == kind)?;
            let status = match condition.status.as_str() {
                "True" => true,
                "False" => false,
                _ => return None,
            };
            Some((status, condition.last_transition_time.0))
        };
        Transitions {
            ready: of(ConditionType::Ready),
            reconciling: of(ConditionType::Reconciling),
            stalled: of(ConditionType::Stalled),
            events_healthy: of(ConditionType::EventsHealthy),
            catalog_hardened: of(ConditionType::CatalogHardened),
            delivering: of(ConditionType::Delivering),
        }
    }

    /// Since when the condition is so, if it has this status.
    pub(super) fn since(self, kind: ConditionType, status: bool) -> Option<Timestamp> {
        let turned = match kind {
            ConditionType::Ready => self.ready,
            ConditionType::Reconciling => self.reconciling,
            ConditionType::Stalled => self.stalled,
            ConditionType::EventsHealthy => self.events_healthy,
            ConditionType::CatalogHardened => self.catalog_hardened,
            ConditionType::Delivering => self.delivering,
        };
        turned.filter(|(before, _)| *before == status).map(|(_, since)| since)
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use rowgate_crds::{Reason, condition};

    use super::*;

    #[test]
    fn a_condition_is_so_since_it_turned() {
        let at = Timestamp::UNIX_EPOCH;
        let one = |kind, status| condition(kind, status, Reason::Done, "", 1, Time(at));
        let mut conditions = vec![one(ConditionType::Ready, true), one(ConditionType::Stalled, false)];
        let transitions = Transitions::of(&conditions);
        assert_eq!(transitions.since(ConditionType::Ready, true), Some(at));
        assert_eq!(transitions.since(ConditionType::Ready, false), None, "it transitions now");
        assert_eq!(transitions.since(ConditionType::Stalled, false), Some(at));
        assert_eq!(transitions.since(ConditionType::Reconciling, false), None, "it was never told");
        conditions[0].status = "Unknown".to_owned();
        assert_eq!(Transitions::of(&conditions).since(ConditionType::Ready, false), None, "none of ours");
    }
}
