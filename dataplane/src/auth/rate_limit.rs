//! The rate limits of each key: its buckets belong to its id, whichever secret or token is shown and whatever catalog is current.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rowgate_core::name::Ulid;
use rowgate_core::problem::Problem;
use rowgate_core::rate::Bucket;
use rowgate_core::secret::Credential;

use crate::auth::key_context::KeyContext;
use crate::tenants::tenant::Tenant;

/// Statements of a key that may be refused in a second. Refusing is cheap, so that one key could have the replica do little else; and who
/// writes statements meets few refusals.
const REFUSALS_PER_SECOND: u32 = 100;
/// To read and refuse 64 KiB takes 30 ms, a hundred times of what a short statement takes.
const BYTES_PER_REFUSAL: u64 = 1 << 10;
/// As long a statement waits, where more were. Where it would wait longer it is not read.
const MAX_DELAY: Duration = Duration::from_secs(1);

/// How many buckets are held before full ones are first looked for.
const MIN_SWEEP_SIZE: usize = 1_024;

/// What one credential may ask: the bucket of its key, and when the database last said that it lives.
pub(crate) struct RateLimit {
    buckets: Arc<KeyBuckets>,
    confirmed: tokio::sync::Mutex<Option<Instant>>,
}

/// What one key has used.
#[derive(Default)]
pub(crate) struct KeyBuckets {
    requests: Bucket,
    graphql_cost: Bucket,
    refusals: Bucket,
}

impl KeyBuckets {
    fn are_full(&self, now: Duration) -> bool {
        let KeyBuckets { requests, graphql_cost, refusals } = self;
        [requests, graphql_cost, refusals].iter().all(|bucket| bucket.is_full(now))
    }
}

/// The buckets of a tenant's keys.
pub(crate) struct RateLimits {
    start: Instant,
    buckets: Mutex<Buckets>,
}

struct Buckets {
    by_key: HashMap<Ulid, Arc<KeyBuckets>>,
    /// The size at which full buckets are dropped.
    sweep_at: usize,
}

impl Tenant {
    /// Counts one request against the limit of the key. Only a live key learns that it asks too often: where the record
    /// came from memory the database is asked first, once for all who wait for the same word.
    pub async fn admit(&self, credential: &Credential, context: &KeyContext) -> Result<(), Problem> {
        let limit = context.snapshot.catalog.limits.requests_per_second;
        let (Some(per_second), Some(rate_limit)) = (limit, &context.rate_limit) else { return Ok(()) };
        // Time enters here.
        let arrived = Instant::now();
        let since_start = self.rate_limits.since_start(arrived);
        let Err(early) = rate_limit.buckets.requests.take(since_start, per_second) else { return Ok(()) };
        self.confirm(credential, context, (rate_limit, arrived)).await?;
        Err(Problem::rate_limited(early.retry_after()))
    }

    /// Counts the rows that a GraphQL operation may return. A key that asks for more than it may have in a second gets them, and pays with
    /// the time until its next request is admitted. As with [`Tenant::admit`] only a live key learns of it.
    pub(crate) async fn admit_cost(
        &self,
        credential: &Credential,
        context: &KeyContext,
        n_rows: u64,
    ) -> Result<(), Problem> {
        let limit = context.snapshot.catalog.limits.graphql_cost_per_second;
        let (Some(per_second), Some(rate_limit)) = (limit, &context.rate_limit) else { return Ok(()) };
        let arrived = Instant::now();
        let since_start = self.rate_limits.since_start(arrived);
        let Err(early) = rate_limit.buckets.graphql_cost.spend(since_start, per_second, n_rows) else {
            return Ok(());
        };
        self.confirm(credential, context, (rate_limit, arrived)).await?;
        Err(Problem::graphql_cost_exceeded(early.retry_after(), per_second))
    }

    /// Waits before a statement of the key is read, where too many were refused.
    pub(crate) async fn admit_statement(&self, key: &Ulid) -> Result<(), Problem> {
        let now = Instant::now();
        let buckets = self.rate_limits.of(key, now);
        let debt = buckets.refusals.debt(self.rate_limits.since_start(now), REFUSALS_PER_SECOND);
        if debt.is_zero() {
            return Ok(());
        }
        tokio::time::sleep(debt.min(MAX_DELAY)).await;
        if MAX_DELAY < debt {
            return Err(Problem::refused_too_often(REFUSALS_PER_SECOND, debt - MAX_DELAY));
        }
        Ok(())
    }

    /// A statement of so many bytes.
    pub(crate) fn count_refusal(&self, key: &Ulid, n_bytes: usize) {
        let now = Instant::now();
        let buckets = self.rate_limits.of(key, now);
        let amount = 1 + n_bytes as u64 / BYTES_PER_REFUSAL;
        buckets.refusals.overdraw(self.rate_limits.since_start(now), REFUSALS_PER_SECOND, amount);
    }

    async fn confirm(
        &self,
        credential: &Credential,
        context: &KeyContext,
        (rate_limit, arrived): (&RateLimit, Instant),
    ) -> Result<(), Problem> {
        match context.fresh {
            true => Ok(()),
            false => {
                rate_limit
                    .confirm(arrived, async || self.authenticate_fresh(credential).await.map(drop))
                    .await
            }
        }
    }
}

impl RateLimit {
    pub(crate) fn new(buckets: Arc<KeyBuckets>) -> RateLimit {
        RateLimit { buckets, confirmed: tokio::sync::Mutex::default() }
    }

    /// Asks whether the credential still lives, or takes the word of another request's question that began after this
    /// one had arrived: a key that asks too often costs its database one look-up at a time.
    pub(crate) async fn confirm(
        &self,
        arrived: Instant,
        ask: impl AsyncFnOnce() -> Result<(), Problem>,
    ) -> Result<(), Problem> {
        let mut confirmed = self.confirmed.lock().await;
        if confirmed.is_none_or(|began| began < arrived) {
            let began = Instant::now();
            ask().await?;
            *confirmed = Some(began);
        }
        Ok(())
    }
}

impl Default for RateLimits {
    fn default() -> RateLimits {
        let buckets = Buckets { by_key: HashMap::new(), sweep_at: MIN_SWEEP_SIZE };
        RateLimits { start: Instant::now(), buckets: Mutex::new(buckets) }
    }
}

impl RateLimits {
    /// The time of all buckets here.
    pub(crate) fn since_start(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.start)
    }

    /// The buckets of a live key. Those that no request holds and that are full again equal new ones and may go.
    pub(crate) fn of(&self, key: &Ulid, now: Instant) -> Arc<KeyBuckets> {
        let mut buckets = self.buckets.lock();
        if let Some(bucket) = buckets.by_key.get(key) {
            return bucket.clone();
        }
        if buckets.sweep_at <= buckets.by_key.len() {
            let now = self.since_start(now);
            buckets.by_key.retain(|_, bucket| 1 < Arc::strong_count(bucket) || !bucket.are_full(now));
            buckets.sweep_at = MIN_SWEEP_SIZE.max(2 * buckets.by_key.len());
        }
        buckets.by_key.entry(key.clone()).or_default().clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(i: u64) -> Ulid {
        Ulid::from_parts(i, [0; 10])
    }

    #[test]
    fn a_bucket_in_use_or_not_full_is_kept_and_others_are_not() {
        let rate_limits = RateLimits::default();
        let now = rate_limits.start;
        let buckets = rate_limits.of(&id(2), now);
        let emptied = rate_limits.of(&id(1), now);
        emptied.requests.take(Duration::ZERO, 1).expect("it is full");
        let overdrawn = rate_limits.of(&id(0), now);
        overdrawn.graphql_cost.spend(Duration::ZERO, 1, 2).expect("it is full");
        let overdrawn = Arc::downgrade(&overdrawn);
        let emptied = Arc::downgrade(&emptied);
        for i in 3..10 * u64::try_from(MIN_SWEEP_SIZE).expect("small") {
            rate_limits.of(&id(i), now);
        }
        assert!(Arc::ptr_eq(&buckets, &rate_limits.of(&id(2), now)) && overdrawn.upgrade().is_some());
        let again = rate_limits.of(&id(1), now);
        assert!(emptied.upgrade().is_some_and(|emptied| Arc::ptr_eq(&emptied, &again)));
        assert!(again.requests.take(Duration::ZERO, 1).is_err(), "it did not fill by being forgotten");
        assert!(rate_limits.buckets.lock().by_key.len() <= MIN_SWEEP_SIZE);
    }

    #[tokio::test]
    async fn a_word_counts_for_those_who_came_before_it_was_asked_for() {
        let rate_limit = RateLimit::new(Arc::default());
        let asked = std::sync::atomic::AtomicUsize::new(0);
        let ask = async || {
            asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            Ok(())
        };
        let early = Instant::now();
        rate_limit.confirm(early, ask).await.expect("it lives");
        rate_limit.confirm(early, ask).await.expect("it lives");
        assert_eq!(asked.load(std::sync::atomic::Ordering::Relaxed), 1);
        let later = early + Duration::from_secs(3_600);
        let dead = rate_limit.confirm(later, async || Err(Problem::unauthorized())).await;
        assert_eq!(dead, Err(Problem::unauthorized()));
    }
}
