//! One operator works at a time: the holder of the Lease. Clocks of machines are never compared.
//!
//! As client-go does it: others watch whether the Lease changes, by their own clock; one that did not change for its own
//! duration is free. What a holder that was paused might still do is fenced in PostgreSQL.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{Api, ObjectMeta, PostParams};
use kube::{Client, ResourceExt as _};
use rowgate_reconcile::source::SourceError;
use tokio::time::Instant;

use crate::source::{ask, ask_unless_refused, refused};
use crate::tenure::Tenure;
use rowgate_reconcile::entropy;

/// For how long a Lease that does not change belongs to its holder.
const LEASE_DURATION: Duration = Duration::from_secs(15);
/// How often the holder changes it.
const RENEW_INTERVAL: Duration = Duration::from_secs(6);
/// A holder that could not change it for so long stops: well before anybody else may take it.
const RENEW_DEADLINE: Duration = Duration::from_secs(11);
/// How often others look, and the holder after a failure.
const RETRY_PERIOD: Duration = Duration::from_secs(1);

/// The name that this operator has in one Lease.
pub struct Leadership {
    api: Api<Lease>,
    name: String,
    identity: String,
    /// The Lease as it was last seen, and when it was first seen so.
    seen: Option<(Observed, Instant)>,
    /// As we wrote it last, while nothing has failed since.
    ours: Option<Lease>,
    /// Lasts from when we last began to write it and were heard, and not from the answer.
    tenure: Tenure,
}

/// What shows that a holder is alive: any change.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Observed {
    version: Option<String>,
    holder: String,
    duration: Duration,
}

/// What to do about a Lease.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    /// Make it, or write our name into it.
    Take,
    /// It is ours already.
    Renew,
    Wait,
}

/// Why this operator does not lead any more.
#[derive(Debug, thiserror::Error)]
pub enum Lost {
    #[error("the Lease {name} is held by {holder} now; this operator exits so that only one works")]
    Taken { name: String, holder: String },
    #[error(
        "the Lease {name} could not be renewed for {} s ({reason}); this operator exits because another one may take over",
        RENEW_DEADLINE.as_secs()
    )]
    Late { name: String, reason: String },
}

impl Leadership {
    #[must_use]
    pub fn new(client: Client, namespace: &str, name: &str, identity: &str, tenure: Tenure) -> Leadership {
        Leadership {
            api: Api::namespaced(client, namespace),
            name: name.to_owned(),
            identity: identity.to_owned(),
            seen: None,
            ours: None,
            tenure,
        }
    }

    /// Returns when the Lease is ours. An API server that does not answer is asked again.
    pub async fn acquire(&mut self) {
        let mut logged: Option<String> = None;
        loop {
            let said = match self.step().await {
                Ok(true) => return,
                Ok(false) => {
                    let holder = self.seen.as_ref().map(|(seen, _)| seen.holder.clone()).unwrap_or_default();
                    format!("{holder} leads; waiting for its Lease to expire")
                }
                Err(error) => format!("{error}; retrying"),
            };
            if logged.as_ref() != Some(&said) {
                tracing::info!(lease = self.name, "{said}");
                logged = Some(said);
            }
            tokio::time::sleep(RETRY_PERIOD.mul_f64(entropy::between(0.8, 1.2))).await;
        }
    }

    /// Keeps the Lease, and returns when it is lost.
    pub async fn keep(&mut self) -> Lost {
        let mut reason = String::new();
        loop {
            // an interval is counted from the beginning of the last write, as the Lease is
            let next = match self.tenure.left() {
                Some(left) if reason.is_empty() => left.saturating_sub(RENEW_DEADLINE - RENEW_INTERVAL),
                _ => RETRY_PERIOD,
            };
            tokio::time::sleep(next).await;
            // after that the API server is not asked
            let Some(left) = self.tenure.left() else { return self.late(&reason) };
            match tokio::time::timeout(left, self.renew()).await {
                Err(_) => return self.late("no answer"),
                Ok(Ok(true)) => reason.clear(),
                Ok(Ok(false)) => {
                    self.tenure.end();
                    let holder = self.seen.as_ref().map(|(seen, _)| seen.holder.clone()).unwrap_or_default();
                    return Lost::Taken { name: self.name.clone(), holder };
                }
                Ok(Err(error)) => {
                    reason = error.to_string();
                    tracing::warn!(lease = self.name, %error, "cannot renew the Lease; retrying");
                }
            }
        }
    }

    fn late(&self, reason: &str) -> Lost {
        Lost::Late { name: self.name.clone(), reason: reason.to_owned() }
    }

    /// Gives the Lease back, so that the next one need not wait.
    pub async fn release(&mut self) {
        self.tenure.end();
        let attempt = || format!("release the Lease {}", self.name);
        let released = async {
            let Some(mut lease) = ask(attempt, self.api.get_opt(&self.name)).await? else { return Ok(()) };
            let spec = lease.spec.get_or_insert_default();
            if spec.holder_identity.as_deref() == Some(self.identity.as_str()) {
                spec.holder_identity = Some(String::new());
                spec.lease_duration_seconds = Some(1);
                ask(attempt, self.api.replace(&self.name, &PostParams::default(), &lease)).await?;
            }
            Ok::<_, SourceError>(())
        };
        match released.await {
            Ok(()) => tracing::info!(lease = self.name, "released the Lease"),
            Err(error) => {
                tracing::warn!(%error, "cannot release the Lease; the next operator waits until it expires")
            }
        }
    }

    /// Changes the Lease in the version that we wrote last: if another writer changed it since, it is read again. True:
    /// it is ours.
    async fn renew(&mut self) -> Result<bool, SourceError> {
        let Some(ours) = self.ours.take() else { return self.step().await };
        let attempt = || format!("write the Lease {}", self.name);
        let wanted = written(Some(ours), &self.name, &self.identity, true, entropy::now());
        let (params, now) = (PostParams::default(), Instant::now());
        match ask_unless_refused(attempt, self.api.replace(&self.name, &params, &wanted)).await? {
            Ok(lease) => {
                self.wrote(lease, now);
                Ok(true)
            }
            Err(_) => self.step().await,
        }
    }

    /// It stands there; we began to write it at `now`.
    fn wrote(&mut self, lease: Lease, now: Instant) {
        self.tenure.extend(now + RENEW_DEADLINE);
        self.seen = Some((observed(&lease), now));
        self.ours = Some(lease);
    }

    /// One look at the Lease, with what follows from it. True: it is ours.
    async fn step(&mut self) -> Result<bool, SourceError> {
        let attempt = || format!("read the Lease {}", self.name);
        let lease = ask(attempt, self.api.get_opt(&self.name)).await?;
        let now = Instant::now();
        let seen = lease.as_ref().map(observed);
        if self.seen.as_ref().map(|(seen, _)| seen) != seen.as_ref() {
            self.seen = seen.map(|seen| (seen, now));
        }
        let unchanged = self.seen.as_ref().map(|(seen, since)| (seen, now.duration_since(*since)));
        let ours = match step(unchanged, &self.identity) {
            Step::Wait => return Ok(false),
            Step::Take => false,
            Step::Renew => true,
        };
        let attempt = || format!("write the Lease {}", self.name);
        let params = PostParams::default();
        let wanted = written(lease, &self.name, &self.identity, ours, entropy::now());
        let answer = match wanted.resource_version() {
            // the version that we saw, so that of two who take it one is refused
            Some(_) => ask_unless_refused(attempt, self.api.replace(&self.name, &params, &wanted)).await?,
            None => ask_unless_refused(attempt, self.api.create(&params, &wanted)).await?,
        };
        match answer {
            Ok(lease) => {
                self.wrote(lease, now);
                Ok(true)
            }
            // another operator was quicker; a holder reads the Lease again before that counts
            Err(status) if status.code == 409 && !ours => Ok(false),
            Err(status) => Err(refused(attempt(), &status)),
        }
    }
}

/// Pure: what follows from a Lease that has not changed for so long.
fn step(unchanged: Option<(&Observed, Duration)>, identity: &str) -> Step {
    let Some((seen, unchanged)) = unchanged else { return Step::Take };
    if seen.holder == identity {
        return Step::Renew;
    }
    if seen.holder.is_empty() || seen.duration <= unchanged {
        return Step::Take;
    }
    Step::Wait
}

fn observed(lease: &Lease) -> Observed {
    let spec = lease.spec.clone().unwrap_or_default();
    let seconds = spec.lease_duration_seconds.and_then(|seconds| u64::try_from(seconds).ok());
    Observed {
        version: lease.resource_version(),
        holder: spec.holder_identity.unwrap_or_default(),
        duration: seconds.map_or(LEASE_DURATION, Duration::from_secs),
    }
}

/// The Lease with our name in it. The times are for people: no operator compares them.
fn written(lease: Option<Lease>, name: &str, identity: &str, ours: bool, now: Timestamp) -> Lease {
    let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
    let mut lease = lease.unwrap_or_else(|| Lease { metadata, ..Lease::default() });
    let spec: &mut LeaseSpec = lease.spec.get_or_insert_default();
    if !ours {
        spec.acquire_time = Some(MicroTime(now));
        spec.lease_transitions = Some(spec.lease_transitions.unwrap_or(-1).saturating_add(1));
    }
    spec.holder_identity = Some(identity.to_owned());
    spec.lease_duration_seconds = i32::try_from(LEASE_DURATION.as_secs()).ok();
    spec.renew_time = Some(MicroTime(now));
    lease
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_is_taken_when_it_is_free_or_did_not_change_for_its_duration() {
        let lease = |holder: &str, seconds| Observed {
            version: Some("1".into()),
            holder: holder.into(),
            duration: Duration::from_secs(seconds),
        };
        let after = |seen: &Observed, seconds| step(Some((seen, Duration::from_secs(seconds))), "me");
        assert_eq!(step(None, "me"), Step::Take);
        assert_eq!(after(&lease("", 15), 0), Step::Take);
        assert_eq!(after(&lease("other", 15), 14), Step::Wait);
        assert_eq!(after(&lease("other", 15), 15), Step::Take);
        assert_eq!(after(&lease("other", 60), 15), Step::Wait);
        assert_eq!(after(&lease("me", 15), 99), Step::Renew);
    }

    #[test]
    fn taking_is_counted_and_renewing_is_not() {
        let now = Timestamp::UNIX_EPOCH;
        let later = Timestamp::from_second(60).expect("a time");
        let first = written(None, "l", "a", false, now);
        let renewed = written(Some(first.clone()), "l", "a", true, later);
        let taken = written(Some(renewed.clone()), "l", "b", false, later);
        let fields = |lease: &Lease| {
            let spec = lease.spec.clone().expect("a spec");
            let times = (spec.acquire_time.expect("a time").0, spec.renew_time.expect("a time").0);
            (spec.holder_identity.expect("a holder"), spec.lease_transitions, times)
        };
        assert_eq!(fields(&first), ("a".into(), Some(0), (now, now)));
        assert_eq!(fields(&renewed), ("a".into(), Some(0), (now, later)));
        assert_eq!(fields(&taken), ("b".into(), Some(1), (later, later)));
    }
}
