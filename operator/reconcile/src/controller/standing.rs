//! How tenants stand with the replicas, and the reports of those whose standing has changed.

use rowgate_pg::connect::login_failure::LoginFailure;

use super::Controller;
use crate::source::ResourceSource;
use crate::status::{Replicas, TenantState, login_failure, serving};

impl<S: ResourceSource + 'static> Controller<S> {
    /// Reports the tenants whose standing with the replicas has changed.
    pub(super) fn report(&mut self) {
        let Some(replicas) = &self.replicas else { return };
        for entry in self.entries.values_mut() {
            let Some(state) = entry.state.as_ref().filter(|it| !self.statuses.is_revised(&it.object.uid))
            else {
                continue;
            };
            let now = standing(state, replicas);
            if entry.reported.as_ref() != Some(&now) {
                let whole = entry.whole && entry.reported.is_none();
                entry.reported = Some(now);
                self.shared.reporter.push(self.statuses.tenant(state, replicas, whole));
            }
        }
    }
}

/// What of the replicas a tenant's status shows: how many serve it, how many live, whether anybody knows, and why some
/// cannot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Standing {
    n_serving: usize,
    n_live: usize,
    is_silent: bool,
    failure: Option<(usize, LoginFailure)>,
    control: Option<LoginFailure>,
}

pub(super) fn standing(state: &TenantState, replicas: &Replicas) -> Standing {
    Standing {
        n_serving: serving(state, replicas),
        n_live: replicas.live.len(),
        is_silent: replicas.silent.is_some(),
        failure: login_failure(state, replicas).map(|(n, failure)| (n, failure.clone())),
        control: replicas.control.clone(),
    }
}
