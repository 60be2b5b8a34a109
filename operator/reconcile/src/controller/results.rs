//! Takes in the results of polls, passes and removals.

use std::collections::BTreeSet;
use std::time::Duration;

use rowgate_crds::Reason;
use rowgate_pg::failure::PgError;
use tokio::time::Instant;

use super::standing::standing;
use super::{AWAITING_MAX_BACKOFF, Controller, Done, HEARTBEAT_TIMEOUT, POLL_INTERVAL, RETRY_DELAY};
use crate::controller::job::Passed;
use crate::controller::replica_poll::ReplicaPoll;
use crate::pass::{Memory, PassError, REMEDY};
use crate::source::{ResourceSource, SecretView};
use crate::status::report;
use crate::status::{Replicas, awaits_replicas};

/// From this share on PostgreSQL warns in its own log.
const QUEUE_WARNING_SHARE: f64 = 0.5;

impl<S: ResourceSource + 'static> Controller<S> {
    /// Takes in the result of a job. True: another reconciler has taken over.
    pub(super) fn done(&mut self, done: Done) -> bool {
        match done {
            Done::Passed(passed) => return self.passed(*passed),
            Done::Retired(uid, retired) => match retired {
                Ok(()) => self.retired(&uid),
                // perhaps by another server than the control database's: the poll knows
                Err(PassError::Pg(PgError::Replaced)) => {
                    self.next_poll = Instant::now();
                    if let Some(entry) = self.entries.get_mut(&uid) {
                        entry.failed_vanished(Memory::new(self.statuses.clone()), self.resync);
                    }
                }
                Err(error) => {
                    tracing::warn!(tenant = uid, %error, "the Tenant is gone or cannot be read; keys that are not wanted are revoked as soon as its database answers");
                    if let Some(entry) = self.entries.get_mut(&uid) {
                        entry.failed_vanished(Memory::new(self.statuses.clone()), self.resync);
                    }
                }
            },
            Done::OrphanReleased(uid, orphan_released) => self.orphan_released(&uid, orphan_released),
            Done::Released => {}
            Done::Shown(is_done) => self.subscriptions.compared(is_done),
            Done::Polled(Ok((conn, poll))) => {
                self.control = Some(conn);
                return self.polled(poll);
            }
            Done::Polled(Err(error)) => {
                (self.polling, self.lost) = (false, true);
                self.next_poll = Instant::now() + RETRY_DELAY;
                if HEARTBEAT_TIMEOUT <= self.heard.elapsed() {
                    let mut replicas = self.replicas.take().unwrap_or_default();
                    replicas.silent = Some(error.to_string());
                    self.replicas = Some(replicas);
                    self.report();
                    // the server that answers next may know less, such as a promoted standby: each tenant is compared
                    // first
                    self.entries.keys().for_each(|uid| self.statuses.revise(uid));
                }
            }
            Done::Sampled(sample) => self.sampled(*sample),
            Done::Listed(listed) => {
                self.listing = false;
                self.next_list =
                    Instant::now() + listed.as_ref().map_or(RETRY_DELAY, |_| self.resync.max(RETRY_DELAY));
                self.without_object =
                    listed.unwrap_or_default().into_iter().map(|record| record.uid).collect();
                self.without_object.retain(|uid| !self.entries.contains_key(uid));
            }
        }
        false
    }

    fn passed(&mut self, passed: Passed) -> bool {
        let Passed { uid, state, slow, memory } = passed;
        if state.replaced {
            return true;
        }
        self.statuses.finish_revision(&uid);
        let Some(entry) = self.entries.get_mut(&uid) else { return false };
        if entry.tenant.is_none() {
            // its object vanished meanwhile: newer statuses of its keys must not be overwritten
            entry.cut(memory);
            return false;
        }
        entry.finish(state, slow, memory, self.resync);
        let source = &self.shared.source;
        entry.note_secrets(|namespace, name| source.secret_view(namespace, name) != SecretView::Absent);
        if let (Some(replicas), Some(state)) = (&self.replicas, &entry.state) {
            let awaits = awaits_replicas(state, replicas);
            if awaits {
                self.pace.reset();
                self.next_poll = Instant::now();
            }
            // a replica may serve it by now, so it is reported after the next poll, unless no poll succeeds
            if awaits && !self.lost {
                entry.reported = None;
            } else {
                entry.reported = Some(standing(state, replicas));
                self.shared.reporter.push(self.statuses.tenant(state, replicas, entry.whole));
            }
        }
        false
    }

    /// Logs when the server's notification queue fills up, and when it has room again.
    fn note_queue(&mut self, usage: f64) {
        let is_filling = QUEUE_WARNING_SHARE <= usage;
        if is_filling && !self.queue_fills {
            let percent = (usage * 100.0).round();
            tracing::warn!(
                percent,
                "the PostgreSQL server's notification queue is filling up because a listening session keeps a transaction open; when it is full, NOTIFY fails and replicas follow a second later; PostgreSQL's log names the process and pg_stat_activity its database: end that session"
            );
        } else if !is_filling && self.queue_fills {
            tracing::info!("the PostgreSQL server's notification queue has room again");
        }
        self.queue_fills = is_filling;
    }

    /// A Tenant was retired; or it exists again, or needs another job.
    fn retired(&mut self, uid: &str) {
        match self.entries.get_mut(uid) {
            Some(entry) if entry.tenant.is_some() || entry.wanted => {
                entry.memory = Some(Memory::new(self.statuses.clone()))
            }
            _ => drop(self.entries.remove(uid)),
        }
    }

    fn orphan_released(&mut self, uid: &str, orphan_released: Result<bool, String>) {
        let Some(orphan) = self.orphans.get_mut(uid) else { return };
        let trouble = match orphan_released {
            Ok(true) => {
                orphan.due = Some(Instant::now() + self.resync);
                return;
            }
            Ok(false) => "its Tenant cannot be read, or is gone and its keys are not revoked yet".to_owned(),
            Err(error) => error,
        };
        orphan.due = Some(Instant::now() + RETRY_DELAY);
        let mut state = report::orphan(&orphan.key);
        state.findings.retry = Some((Reason::Deleting, format!("{trouble}; {REMEDY}")));
        self.shared.reporter.push(self.statuses.orphan(&state).into_iter().collect());
    }

    fn polled(&mut self, poll: ReplicaPoll) -> bool {
        self.polling = false;
        if poll.lead.epoch != self.shared.lead {
            return true;
        }
        self.note_queue(poll.lead.queue);
        if let Some((mark, said)) = poll.said {
            self.subscriptions.take(mark, said);
        }
        self.note_said();
        self.heard = Instant::now();
        self.shared.connections.tidy();
        let changed: BTreeSet<_> = self.tables.changed(&poll.seen).into_iter().collect();
        let known = self.replicas.take().and_then(|before| before.control);
        let control = match poll.control {
            Some(tried) => tried.err(),
            None => known.filter(|_| poll.live.is_empty()),
        };
        self.replicas = Some(Replicas { live: poll.live, control, silent: None });
        let mut awaiting = false;
        let was_lost = std::mem::take(&mut self.lost);
        let is_upgraded = std::mem::replace(&mut self.has_older, poll.has_older) != poll.has_older;
        for entry in self.entries.values_mut() {
            let Some(state) = &entry.state else { continue };
            if was_lost || is_upgraded || state.id.as_ref().is_some_and(|id| changed.contains(id)) {
                (entry.due, entry.wanted) = (Instant::now(), true);
            }
            awaiting |= self.replicas.as_ref().is_some_and(|replicas| awaits_replicas(state, replicas));
        }
        self.report();
        let awaited = self.pace.pause(AWAITING_MAX_BACKOFF, 0.0);
        let pace = match std::mem::take(&mut self.polls_again) {
            true => Duration::ZERO,
            false if awaiting => awaited,
            false => POLL_INTERVAL,
        };
        self.next_poll = Instant::now() + pace;
        false
    }
}
