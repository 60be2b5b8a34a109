//! One reader that stays: what each transport sends, and the key looked at again while it does.

use std::sync::Arc;
use std::time::Duration;

use rowgate_core::problem::{Code, Problem};
use rowgate_pg::tenant::events::{Position, Tick};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};

use super::request::{After, Source, sources};
use super::shared::{GivenPage, Reader};
use super::{CHECK, begin, cursor, holds};
use crate::app::App;
use crate::auth::credential::Caller;
use crate::auth::key_context::KeyContext;
use crate::tenants::event_tail::StreamSlot;

/// Events in one look; they wait in memory until the reader has taken them.
const AT_ONCE: i32 = 200;
/// A reader hears at least this often that its connection lives.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// Between two tries while the database does not answer.
const PAUSE: Duration = Duration::from_millis(250);

/// A reader, which is asked for its next step when it has sent the one before.
pub(crate) struct Follower {
    caller: Caller,
    app: Arc<App>,
    tables: Option<String>,
    sources: Vec<Source>,
    ops: Vec<String>,
    ticks: watch::Receiver<Option<Tick>>,
    /// Of the newest tick for which `from` was found to hold.
    newest: i32,
    /// Of `from`.
    generation: i32,
    from: Position,
    checked: Instant,
    /// When the last step was made, and the position that the reader has since.
    last_step: Instant,
    known: Position,
    slot: StreamSlot,
    reads: Reader,
}

/// What happened.
pub(crate) enum Step {
    Events(Events),
    /// Events were lost; those that are left begin behind this cursor.
    Reset(String),
    /// Nothing for a while. The cursor is behind the events of others that were passed over.
    Quiet(Option<String>),
    /// The replica goes away.
    Draining,
    /// The key may read no more.
    Ended(Problem),
}

/// What was given of a page.
pub(crate) struct Events(Arc<GivenPage>);

impl Events {
    /// Cursors, and the events as JSON.
    pub(crate) fn each(&self) -> impl Iterator<Item = (String, &str)> {
        self.0.given.each()
    }
}

impl Follower {
    /// `tables` as a reader names them. With `false`: `after` is no longer kept, and what is left comes first.
    pub(crate) async fn open(
        caller: Caller,
        app: Arc<App>,
        context: &KeyContext,
        tables: Option<String>,
        ops: Vec<String>,
        after: After,
    ) -> Result<(Follower, bool), Problem> {
        let sources = sources(context, &context.snapshot.scope(&context.key), tables.as_deref())?;
        let most = context.snapshot.catalog.limits.streams;
        let slot = caller.tenant.event_tail.stream_slot(most);
        let slot = slot.ok_or_else(|| Problem::streams_exceeded(most))?;
        let ticks = caller.tenant.ticks();
        let (is_kept, (tick, generation, from)) = match begin(&caller, after).await {
            Err(problem) if problem.code == Code::InvalidCursor => {
                (false, begin(&caller, After::Start).await?)
            }
            begun => (true, begun?),
        };
        let (now, reads) = (Instant::now(), Reader::new(app.shared_reads.clone()));
        let follower = Follower {
            caller,
            app,
            tables,
            sources,
            ops,
            ticks,
            newest: tick.generation,
            generation,
            from,
            checked: now,
            last_step: now,
            known: from,
            slot,
            reads,
        };
        Ok((follower, is_kept))
    }

    /// Where it goes on.
    pub(crate) fn cursor(&self) -> String {
        cursor(self.generation, self.from)
    }

    /// What happens next.
    pub(crate) async fn next(&mut self) -> Step {
        let step = loop {
            if self.app.draining.is_cancelled() {
                break Step::Draining;
            }
            match self.look().await {
                Ok(Some(step)) => break step,
                Ok(None) => {}
                // the reader keeps its connection; without an answer nothing is given to it
                Err(problem) if is_passing(&problem) => sleep(PAUSE).await,
                Err(problem) => break Step::Ended(problem),
            }
            if HEARTBEAT <= self.last_step.elapsed() {
                let has_moved = self.known != self.from;
                self.known = self.from;
                break Step::Quiet(has_moved.then(|| self.cursor()));
            }
        };
        self.last_step = Instant::now();
        step
    }

    /// What there is, or nothing after waiting for a while.
    async fn look(&mut self) -> Result<Option<Step>, Problem> {
        if CHECK <= self.checked.elapsed() {
            let (context, asked) = self.reads.key(&self.caller).await?;
            let scope = context.snapshot.scope(&context.key);
            // while one of them is closed nothing is read: with the tables of before, others' events would be passed over
            self.sources = sources(&context, &scope, self.tables.as_deref())?;
            self.checked = asked;
        }
        let newest = *self.ticks.borrow_and_update();
        let newer = |tick: &Tick| tick.generation != self.newest || self.from.tick <= tick.number;
        let Some(tick) = newest.filter(newer) else {
            self.wait().await;
            return Ok(None);
        };
        let is_kept = tick.generation == self.newest && tick.floor < self.from.tick;
        let is_kept = is_kept || holds(&self.caller, self.generation, self.from).await?;
        let page = match is_kept {
            true => {
                let wanted = (&self.sources[..], &self.ops[..]);
                self.reads.page(&self.caller, self.from, wanted, AT_ONCE).await?
            }
            false => None,
        };
        let Some((page, _)) = page else {
            let (tick, generation, from) = begin(&self.caller, After::Start).await?;
            (self.newest, self.generation, self.from, self.known) = (tick.generation, generation, from, from);
            return Ok(Some(Step::Reset(self.cursor())));
        };
        self.newest = tick.generation;
        (self.generation, self.from) = (page.page.generation, page.page.next);
        self.slot.note_lag(tick.number - self.from.tick + 1);
        let Some((last, _)) = page.given.events().last() else { return Ok(None) };
        self.known = last;
        Ok(Some(Step::Events(Events(page))))
    }

    /// Until there is a tick, or something to do for the reader.
    async fn wait(&mut self) {
        self.reads.sweep();
        let due = (self.checked + CHECK).min(self.last_step + HEARTBEAT);
        tokio::select! {
            _ = self.ticks.changed() => {}
            () = sleep_until(due) => {}
            () = self.app.draining.cancelled() => {}
        }
    }
}

/// Whether the database may answer in a moment.
fn is_passing(problem: &Problem) -> bool {
    matches!(problem.code, Code::Unavailable | Code::StatementTimeout)
}
