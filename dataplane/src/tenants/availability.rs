//! Whether a tenant's database answers: key look-ups and catalogs on one side, requests on the other. They log in apart, so
//! that one may work where the other does not; each is logged when it begins or ceases to, and not with the other.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use rowgate_core::name::TenantSlug;
use rowgate_core::problem::Problem;
use rowgate_pg::connect::login_failure::LoginFailure;
use rowgate_pg::failure::PgError;
use tokio::time::error::Elapsed;
use tokio::time::timeout;

use crate::tenants::tenant::Tenant;

/// A login that fails is tried again after half the time for which it has failed, and after this at the latest.
const MAX_CHECK_INTERVAL: Duration = Duration::from_secs(10);
/// A catalog is read within this, or the tenant counts as unavailable until the next try.
const LOAD_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(crate) struct Availability {
    requests: AtomicBool,
    look_ups: AtomicBool,
    /// `None`: the last look-up had a connection.
    failing: Mutex<Option<Failing>>,
    /// When a login that fails was last tried for no request.
    checked: Mutex<Option<Instant>>,
}

#[derive(Debug)]
struct Failing {
    failure: LoginFailure,
    first: Instant,
    last: Instant,
}

impl Default for Availability {
    fn default() -> Availability {
        Availability {
            requests: AtomicBool::new(true),
            look_ups: AtomicBool::new(true),
            failing: Mutex::default(),
            checked: Mutex::default(),
        }
    }
}

impl Availability {
    pub(crate) fn is_all(&self) -> bool {
        self.requests.load(Ordering::Relaxed) && self.look_ups.load(Ordering::Relaxed)
    }

    /// Every request passes here.
    pub(crate) fn note_request(&self, slug: &TenantSlug, answers: bool, cause: &str) {
        if is_news(&self.requests, answers) {
            log(slug, "requests", answers, cause);
        }
    }

    pub(crate) fn look_up_succeeded(&self, slug: &TenantSlug) {
        *locked(&self.failing) = None;
        if is_news(&self.look_ups, true) {
            log(slug, "key look-ups", true, "");
        }
    }

    /// `failure`: there was no connection.
    pub(crate) fn look_up_failed(&self, slug: &TenantSlug, failure: Option<LoginFailure>, cause: &str) {
        let now = Instant::now();
        let mut failing = locked(&self.failing);
        let first = failing.as_ref().map_or(now, |failing| failing.first);
        *failing = failure.map(|failure| Failing { failure, first, last: now });
        drop(failing);
        self.look_up_unanswered(slug, cause);
    }

    /// It is unknown whether there was a connection.
    pub(crate) fn look_up_unanswered(&self, slug: &TenantSlug, cause: &str) {
        if is_news(&self.look_ups, false) {
            log(slug, "key look-ups", false, cause);
        }
    }

    /// Why look-ups have no connection, and how long this has been so.
    pub(crate) fn failing(&self) -> Option<(LoginFailure, Duration)> {
        let failing = locked(&self.failing);
        failing.as_ref().map(|failing| (failing.failure.clone(), failing.last - failing.first))
    }

    /// True for the one caller that may now try a login that has failed for so long.
    pub(crate) fn begin_to_check(&self, lasted: Duration) -> bool {
        let mut checked = locked(&self.checked);
        let is_due = checked.is_none_or(|at| MAX_CHECK_INTERVAL.min(lasted / 2) <= at.elapsed());
        if is_due {
            *checked = Some(Instant::now());
        }
        is_due
    }
}

/// Read first: nearly always there is nothing to write.
fn is_news(answers: &AtomicBool, now: bool) -> bool {
    answers.load(Ordering::Relaxed) != now && answers.swap(now, Ordering::AcqRel) != now
}

fn log(tenant: &TenantSlug, of: &str, answers: bool, cause: &str) {
    match answers {
        true => tracing::info!(%tenant, of, "the tenant's database answers again"),
        false => tracing::warn!(%tenant, of, cause, "the tenant's database does not answer"),
    }
}

fn locked<T>(state: &Mutex<T>) -> MutexGuard<'_, T> {
    // Each change of it is whole.
    state.lock()
}

impl Tenant {
    /// Runs an exchange in a task of its own: a caller that goes away must not leave a connection in the middle of one.
    pub(crate) async fn run_detached<T: Send + 'static>(
        &self,
        exchange: impl Future<Output = Result<T, PgError>> + Send + 'static,
    ) -> Result<T, Problem> {
        match self.tasks.start(timeout(LOAD_TIMEOUT, exchange)).await {
            Ok(answer) => self.noted(answer),
            Err(error) => {
                self.availability.look_up_unanswered(&self.slug, &error.to_string());
                Err(Problem::unavailable())
            }
        }
    }

    /// As [`Tenant::run_detached`], in the task of a caller that does not go away: without the hop to another thread, which costs
    /// as much as a short exchange.
    pub(crate) async fn run_attached<T>(
        &self,
        exchange: impl Future<Output = Result<T, PgError>>,
    ) -> Result<T, Problem> {
        self.noted(timeout(LOAD_TIMEOUT, exchange).await)
    }

    fn noted<T>(&self, answer: Result<Result<T, PgError>, Elapsed>) -> Result<T, Problem> {
        match answer {
            Ok(Ok(value)) => {
                self.availability.look_up_succeeded(&self.slug);
                return Ok(value);
            }
            Ok(Err(error)) => {
                if matches!(error, PgError::Beyond { .. }) {
                    self.load_backoff.begin(Instant::now());
                }
                let failure = LoginFailure::of(&error, &self.endpoint);
                self.availability.look_up_failed(&self.slug, failure, &error.to_string());
            }
            Err(_) => {
                self.load_backoff.begin(Instant::now());
                let cause = format!("no answer within {} s", LOAD_TIMEOUT.as_secs());
                self.availability.look_up_unanswered(&self.slug, &cause);
            }
        }
        Err(Problem::unavailable())
    }

    /// Takes note of whether the tenant's database answers requests; the cause is for the log.
    pub fn note_availability(&self, answers: bool, cause: &str) {
        self.availability.note_request(&self.slug, answers, cause);
    }
}

#[cfg(test)]
mod tests {
    use rowgate_pg::connect::login::Endpoint;
    use rowgate_pg::failure::PgError;

    use super::*;

    #[test]
    fn what_requests_find_says_nothing_of_look_ups_and_a_failure_lasts_until_one_succeeds() {
        let (availability, slug) = (Availability::default(), "acme".parse().expect("a slug"));
        let endpoint = Endpoint::Unix { directory: "/nowhere".into(), port: 5432 };
        let error = PgError::Unavailable { reason: "late".to_owned(), source: None };
        let failure = LoginFailure::of(&error, &endpoint);
        assert!(failure.is_some() && availability.failing().is_none() && availability.is_all());
        availability.look_up_failed(&slug, failure.clone(), "late");
        availability.note_request(&slug, true, "");
        assert!(!availability.is_all(), "requests say nothing of look-ups");
        assert_eq!(availability.failing().map(|(failure, _)| failure), failure);
        availability.look_up_unanswered(&slug, "later");
        assert!(availability.failing().is_some(), "nothing new is known");
        availability.look_up_failed(&slug, None, "a statement failed");
        assert!(availability.failing().is_none(), "there was a connection");
        availability.look_up_succeeded(&slug);
        availability.note_request(&slug, false, "no connection");
        assert!(!availability.is_all() && availability.failing().is_none());
        availability.note_request(&slug, true, "");
        assert!(availability.is_all());
    }

    #[test]
    fn the_longer_a_login_fails_the_less_often_it_is_tried() {
        let availability = Availability::default();
        assert!(availability.begin_to_check(Duration::from_secs(3600)), "never tried");
        assert!(
            !availability.begin_to_check(Duration::from_secs(3600))
                && availability.begin_to_check(Duration::ZERO)
        );
    }
}
