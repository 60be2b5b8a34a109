//! Statuses on their way to the source. The loop does not wait for them; of one object only the newest is written.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

use crate::source::{ObjectRef, ResourceSource, SourceError, StatusReport};

/// Statuses written in one go: a new one waits for no more than these.
const BATCH: usize = 32;

/// After a status that could not be written.
const RETRY_DELAY: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
pub(crate) struct Reporter {
    waiting: Mutex<Queue>,
    more: Notify,
    /// Held while statuses are written, so that an older one never comes last.
    writing: tokio::sync::Mutex<()>,
}

/// In the order in which they came: a Tenant's status never comes before those of its keys.
#[derive(Debug, Default)]
struct Queue {
    by_position: BTreeMap<u64, Queued>,
    positions: BTreeMap<ObjectRef, u64>,
    next: u64,
}

#[derive(Debug)]
struct Queued {
    not_before: Instant,
    report: StatusReport,
}

impl Queue {
    fn push(&mut self, waiting: Queued) {
        self.remove(&waiting.report.object);
        self.positions.insert(waiting.report.object.clone(), self.next);
        self.by_position.insert(self.next, waiting);
        self.next += 1;
    }

    fn remove(&mut self, object: &ObjectRef) {
        if let Some(position) = self.positions.remove(object) {
            self.by_position.remove(&position);
        }
    }

    /// What is due, as much as is written in one go.
    fn take(&mut self, now: Instant) -> Vec<StatusReport> {
        let due =
            self.by_position.iter().filter(|(_, it)| it.not_before <= now).map(|(position, _)| *position);
        let due: Vec<u64> = due.take(BATCH).collect();
        let taken: Vec<StatusReport> =
            due.iter().filter_map(|position| self.by_position.remove(position)).map(|it| it.report).collect();
        for report in &taken {
            self.positions.remove(&report.object);
        }
        taken
    }
}

impl Reporter {
    fn waiting(&self) -> MutexGuard<'_, Queue> {
        self.waiting.lock()
    }

    /// Takes statuses in. One that waits for the same object is replaced.
    pub(crate) fn push(&self, reports: Vec<StatusReport>) {
        if reports.is_empty() {
            return;
        }
        let not_before = Instant::now();
        let mut waiting = self.waiting();
        reports.into_iter().for_each(|report| waiting.push(Queued { not_before, report }));
        drop(waiting);
        self.more.notify_one();
    }

    /// Drops what waits for objects that are there no more.
    pub(crate) fn retain(&self, uids: &HashSet<&str>) {
        let mut waiting = self.waiting();
        let gone = waiting.positions.keys().filter(|object| !uids.contains(object.uid.as_str()));
        for object in gone.cloned().collect::<Vec<_>>() {
            waiting.remove(&object);
        }
    }

    /// Writes these before it returns.
    pub(crate) async fn write<S: ResourceSource>(
        &self,
        source: &S,
        reports: &[StatusReport],
    ) -> Result<(), SourceError> {
        let _order = self.writing.lock().await;
        reports.iter().for_each(|report| self.waiting().remove(&report.object));
        source.report(reports).await
    }

    /// Writes what comes in, for ever.
    pub(crate) async fn run<S: ResourceSource>(&self, source: &S) {
        loop {
            let next = self.once(source).await;
            match next {
                Some(at) => {
                    drop(timeout(at.saturating_duration_since(Instant::now()), self.more.notified()).await)
                }
                None => self.more.notified().await,
            }
        }
    }

    /// Writes everything that is due, and says when the next is.
    async fn once<S: ResourceSource>(&self, source: &S) -> Option<Instant> {
        loop {
            let order = self.writing.lock().await;
            let batch = self.waiting().take(Instant::now());
            if batch.is_empty() {
                return self.waiting().by_position.values().map(|waiting| waiting.not_before).min();
            }
            if source.report(&batch).await.is_err() {
                // one object's trouble is not the others'
                for report in batch {
                    if let Err(error) = source.report(std::slice::from_ref(&report)).await {
                        tracing::warn!(object = %report.object, %error, "cannot write the status; retrying");
                        let mut waiting = self.waiting();
                        if !waiting.positions.contains_key(&report.object) {
                            waiting.push(Queued { not_before: Instant::now() + RETRY_DELAY, report });
                        }
                    }
                }
            }
            drop(order);
        }
    }
}

#[cfg(test)]
mod tests {
    use rowgate_crds::{ApiKeyStatus, Kind};

    use super::*;
    use crate::source::Status;

    fn report(name: &str, status: i64) -> StatusReport {
        let text = name.to_owned();
        let object = ObjectRef { kind: Kind::ApiKey, namespace: text.clone(), name: text.clone(), uid: text };
        StatusReport {
            object,
            status: Status::ApiKey(Box::new(ApiKeyStatus {
                observed_generation: status,
                ..ApiKeyStatus::default()
            })),
        }
    }

    #[test]
    fn the_newest_status_of_each_object_is_written_in_the_order_in_which_they_came() {
        let (mut queue, now) = (Queue::default(), Instant::now());
        for (name, status) in [("b", 1), ("a", 1), ("b", 2), ("c", 1)] {
            queue.push(Queued { not_before: now, report: report(name, status) });
        }
        queue.push(Queued { not_before: now + RETRY_DELAY, report: report("later", 1) });
        let number = |it: StatusReport| match it.status {
            Status::ApiKey(status) => (it.object.name, status.observed_generation),
            _ => (it.object.name, 0),
        };
        let taken: Vec<(String, i64)> = queue.take(now).into_iter().map(number).collect();
        assert_eq!(taken, [("a".to_owned(), 1), ("b".to_owned(), 2), ("c".to_owned(), 1)]);
        assert_eq!(queue.take(now), []);
        assert_eq!(queue.take(now + RETRY_DELAY).len(), 1);
        assert!(queue.positions.is_empty() && queue.by_position.is_empty());
    }
}
