//! Deliveries of one tenant that are written together: one that comes while none is being written is written at once, and those that come
//! meanwhile go together, written by the first of them.

use std::mem;
use std::sync::Arc;

use parking_lot::Mutex;
use rowgate_core::webhook::step::{State, Status};
use rowgate_pg::tenant::delivery::commit::{self, Delivered, Standing};
use rowgate_pg::tenant::events::Position;
use tokio::sync::oneshot;

use crate::tenants::tenant::Tenant;

/// Of one tenant.
#[derive(Default)]
pub(crate) struct Commits(Mutex<Queue>);

#[derive(Default)]
struct Queue {
    is_writing: bool,
    waiting: Vec<Entry>,
}

struct Entry {
    delivered: Delivered,
    reply: oneshot::Sender<Reply>,
}

/// What one that waits gets.
enum Reply {
    /// Another one has written, and this of it. `None`: nothing of it.
    Written(Option<Standing>),
    /// To write it, with all that wait.
    Write(Box<Delivered>, Writer),
}

/// The one who writes. When this is dropped, it is the turn of the next.
struct Writer(Arc<Commits>);

impl Drop for Writer {
    fn drop(&mut self) {
        let next = {
            let mut queue = self.0.0.lock();
            queue.is_writing = !queue.waiting.is_empty();
            queue.is_writing.then(|| queue.waiting.remove(0))
        };
        if let Some(Entry { delivered, reply }) = next {
            // where it does not wait any more, this drops what it would have got, and so on
            let _gone = reply.send(Reply::Write(Box::new(delivered), Writer(self.0.clone())));
        }
    }
}

impl Commits {
    /// `Ok`: it is the caller's to be written. `Err`: where it is replied to.
    fn enter(
        self: &Arc<Self>,
        delivered: Delivered,
    ) -> Result<(Delivered, Writer), oneshot::Receiver<Reply>> {
        let mut queue = self.0.lock();
        if !mem::replace(&mut queue.is_writing, true) {
            return Ok((delivered, Writer(self.clone())));
        }
        let (sender, reply) = oneshot::channel();
        queue.waiting.push(Entry { delivered, reply: sender });
        Err(reply)
    }
}

/// Whether a delivery has changed nothing but the position.
pub(super) fn is_plain(before: &State<Position>, after: &State<Position>) -> bool {
    let is_quiet = |state: &State<Position>| {
        state.status == Status::Enabled
            && state.consecutive_dead_letters == 0
            && state.batch.is_none()
            && state.batch_limit.is_none()
    };
    is_quiet(before) && is_quiet(after) && before.replay_until == after.replay_until
}

/// Writes a batch that was delivered, and gives what the subscription is by now. `None`: it is to be written alone.
pub(super) async fn write(tenant: &Tenant, delivered: Delivered) -> Option<Standing> {
    let commits = &tenant.deliveries.commits;
    let (delivered, _writer) = match commits.enter(delivered) {
        Ok(own) => own,
        Err(reply) => match reply.await.ok()? {
            Reply::Written(standing) => return standing,
            Reply::Write(delivered, writer) => (*delivered, writer),
        },
    };
    let others = mem::take(&mut commits.0.lock().waiting);
    let of = |it: &Delivered| (it.subscription.clone(), it.lease.as_str().to_owned());
    let own = of(&delivered);
    let (mut all, mut replies) = (vec![delivered], Vec::new());
    for Entry { delivered, reply } in others {
        replies.push((of(&delivered), reply));
        all.push(delivered);
    }
    let written =
        tenant.by_delivery(move |conn| Box::pin(async move { commit::delivered(conn, &all).await })).await;
    let written = written.unwrap_or_default();
    for (which, reply) in replies {
        let _gone = reply.send(Reply::Written(written.get(&which).copied()));
    }
    written.get(&own).copied()
}

#[cfg(test)]
mod tests {
    use rowgate_pg::tenant::delivery::commit::Attempted;
    use rowgate_program::entropy;

    use super::*;

    fn of(subscription: &str) -> Delivered {
        let attempt = Attempted {
            batch: entropy::ulid(),
            attempt: 1,
            took_ms: 1,
            n_events: 1,
            n_bytes: 1,
            first_event: "1.1.1".to_owned(),
            last_event: "1.1.1".to_owned(),
            status: Some(200),
            error: None,
            request: None,
            response: None,
        };
        let (subscription, lease, cursor) =
            (subscription.to_owned(), entropy::ulid(), Position { tick: 1, seq: 1 });
        Delivered { subscription, lease, cursor, read: None, attempt, keeps_lease: true }
    }

    #[test]
    fn those_who_come_while_one_writes_are_written_by_the_first_of_them_that_is_still_there() {
        let commits = Arc::new(Commits::default());
        let (own, writer) = commits.enter(of("a")).ok().expect("nothing is being written");
        assert_eq!(own.subscription, "a");
        let [gone, mut next, mut last] =
            ["b", "c", "d"].map(|it| commits.enter(of(it)).err().expect("one writes"));
        drop(gone);
        drop(writer);
        let Ok(Reply::Write(own, writer)) = next.try_recv() else { panic!("it is not asked to write") };
        assert_eq!(own.subscription, "c");
        assert!(last.try_recv().is_err(), "it waits");
        drop(last);
        drop(writer);
        assert!(commits.enter(of("e")).is_ok(), "nothing is being written any more");
    }
}
