//! The connections of this replica to one server, which all tenants share: at most so many are open, and while somebody waits
//! none keeps more than its share.
//!
//! Who has an idle connection never comes here: the budget is asked where a connection is opened or closed, and by whoever
//! frees one while somebody waits, which one atomic number says. A budget calls its lenders only while its lock is free, so that
//! a lender may ask it under the lender's own lock.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::time::Instant;

use state::{Party, State};

mod state;

/// How long a tenant's only connection serves it while other tenants have none: to open one costs some milliseconds.
const SLICE: Duration = Duration::from_millis(50);
/// An idle connection that was used within this time is closed only for a tenant that has fewer.
const IN_USE: Duration = Duration::from_secs(1);

/// One server. A cheap handle; clones share the budget.
#[derive(Clone)]
pub struct Server {
    shared: Arc<Shared>,
}

/// One tenant at a server. Clones are the same tenant.
#[derive(Clone)]
pub struct Share {
    server: Server,
    tenant: u64,
}

/// What connections are for. A call waits for requests and look-ups while it has its own session, and either waits for nobody:
/// each leaves some places to those after it, so that none waits for itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Purpose {
    Call,
    Request,
    LookUp,
}

/// Who has connections and may give them up.
pub(crate) trait Lender: Send + Sync {
    /// Since when the connection that was idle for longest is so; `None`: none is idle.
    fn idle_since(&self) -> Option<Instant>;
    /// Closes that connection.
    fn close_idle(&self);
    /// The right to open a connection, for whoever waits. Where nobody does the lender withdraws and drops it.
    fn offer(&self, permit: Permit);
    /// Ends the answer that is being delivered for longest, or the longest read. False: there is none.
    fn cut(&self) -> bool;
}

/// A lender at its server, until it is dropped.
pub(crate) struct Member {
    shared: Arc<Shared>,
    number: u64,
}

/// The right to have one connection open, which is given back when it is dropped. Never to be dropped under a lender's lock.
pub(crate) struct Permit {
    shared: Arc<Shared>,
    lender: u64,
    tenant: u64,
    purpose: Purpose,
    since: Instant,
}

/// How busy a server's budget is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerLoad {
    /// Connections at most.
    pub size: usize,
    /// Connections that are open or being opened.
    pub open: usize,
    /// Tenants' pools that wait for a connection.
    pub waiting: usize,
    /// Idle connections that were closed for somebody else.
    pub n_reclaimed: u64,
}

struct Shared {
    size: usize,
    /// Lenders that want a connection.
    n_wanting: AtomicUsize,
    n_tenants: AtomicU64,
    n_reclaimed: AtomicU64,
    state: Mutex<State>,
    /// Held while idle connections are closed, so that no more are than are wanted.
    clearing: Mutex<()>,
}

impl Server {
    /// A server that takes `size` connections of this replica, 4 at least.
    #[must_use]
    pub fn new(size: usize) -> Server {
        let shared = Shared {
            size: size.max(4),
            n_wanting: AtomicUsize::new(0),
            n_tenants: AtomicU64::new(0),
            n_reclaimed: AtomicU64::new(0),
            state: Mutex::default(),
            clearing: Mutex::default(),
        };
        Server { shared: Arc::new(shared) }
    }

    /// Another tenant of this server.
    #[must_use]
    pub fn share(&self) -> Share {
        let tenant = self.shared.n_tenants.fetch_add(1, Ordering::Relaxed);
        Share { server: self.clone(), tenant }
    }

    #[must_use]
    pub fn load(&self) -> ServerLoad {
        let open = self.shared.state().n_open();
        ServerLoad {
            size: self.shared.size,
            open,
            waiting: self.shared.n_wanting.load(Ordering::Relaxed),
            n_reclaimed: self.shared.n_reclaimed.load(Ordering::Relaxed),
        }
    }
}

impl Share {
    /// Of a server that takes as many as anybody wants.
    #[must_use]
    pub fn unbounded() -> Share {
        Server::new(usize::MAX).share()
    }

    pub(crate) fn enlist(&self, purpose: Purpose, lender: Weak<dyn Lender>) -> Member {
        let shared = self.server.shared.clone();
        let number =
            shared.state().enlist(Party { tenant: self.tenant, purpose, lender, n_held: 0, wants: None });
        Member { shared, number }
    }
}

impl Member {
    /// The right to open a connection, if one is free and nobody waits for it.
    pub(crate) fn try_permit(&self) -> Option<Permit> {
        let mut state = self.shared.state();
        let is_free = self.shared.n_wanting.load(Ordering::Acquire) == 0
            && state.fits(self.number, self.shared.ceilings());
        is_free.then(|| self.shared.permit(&mut state, self.number)).flatten()
    }

    /// From now on the lender is offered permits. It calls [`Member::make_room`] then, without a lock of its own.
    pub(crate) fn want(&self) {
        let mut state = self.shared.state();
        if state.want(self.number) {
            self.shared.n_wanting.fetch_add(1, Ordering::AcqRel);
        }
    }

    pub(crate) fn unwant(&self) {
        let mut state = self.shared.state();
        if state.unwant(self.number) {
            self.shared.n_wanting.fetch_sub(1, Ordering::AcqRel);
        }
    }

    /// Whether any lender waits for a connection.
    pub(crate) fn is_contended(&self) -> bool {
        0 < self.shared.n_wanting.load(Ordering::Acquire)
    }

    /// Whether the lender gives up a connection that it has just freed. `wants_it`: somebody of its own waits for it.
    pub(crate) fn must_yield(&self, permit: &Permit, wants_it: bool) -> bool {
        let is_over = SLICE <= permit.since.elapsed();
        let state = self.shared.state();
        state.others(self.number, self.shared.ceilings()).any(|(mine, theirs)| match wants_it {
            true => theirs + 1 < mine || theirs == 0 && (is_over || 1 < mine),
            false => theirs <= mine,
        })
    }

    /// Closes idle connections, those that nobody has used for longest first, until whoever waits has got one or none is left.
    pub(crate) fn make_room(&self) {
        self.shared.settle();
        while self.is_contended() && self.shared.reclaim() {}
    }

    /// Ends an answer under way of the tenant that has most connections, where this one waits and has two less.
    pub(crate) fn cut_another(&self) {
        let lenders = self.shared.state().richer(self.number);
        for lender in lenders.iter().filter_map(Weak::upgrade) {
            if lender.cut() {
                return;
            }
        }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        if self.shared.state().delist(self.number) {
            self.shared.n_wanting.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.shared.state().close(self.lender, self.tenant, self.purpose);
        if 0 < self.shared.n_wanting.load(Ordering::Acquire) {
            self.shared.settle();
        }
    }
}

impl Shared {
    /// How many connections may be open for each purpose and those before it.
    fn ceilings(&self) -> [usize; 3] {
        let rest = (self.size / 8).max(1);
        [self.size - 2 * rest, self.size - rest, self.size]
    }

    fn permit(self: &Arc<Self>, state: &mut State, lender: u64) -> Option<Permit> {
        let (tenant, purpose) = state.open(lender)?;
        Some(Permit { shared: self.clone(), lender, tenant, purpose, since: Instant::now() })
    }

    /// Gives free places to those that wait, each time to the tenant that has fewest, and of these to the one whose turn it is.
    fn settle(self: &Arc<Self>) {
        loop {
            let mut state = self.state();
            let Some(next) = state.next(self.ceilings()) else { return };
            let Some(lender) = state.lender(next) else {
                // It is just being dropped.
                if state.unwant(next) {
                    self.n_wanting.fetch_sub(1, Ordering::AcqRel);
                }
                continue;
            };
            let permit = self.permit(&mut state, next);
            drop(state);
            let Some(permit) = permit else { return };
            lender.offer(permit);
        }
    }

    /// Closes one idle connection for whoever waits. False: nobody waits any more, or nobody has one to give.
    fn reclaim(self: &Arc<Self>) -> bool {
        let _one_at_a_time = self.clearing.lock();
        let lenders = self.state().lenders();
        let idle = lenders.into_iter().filter_map(|(lender, least)| {
            let lender = lender.upgrade()?;
            let since = lender.idle_since()?;
            (least || IN_USE <= since.elapsed()).then_some((since, lender))
        });
        let Some((_, lender)) = idle.min_by_key(|(since, _)| *since) else { return false };
        self.n_reclaimed.fetch_add(1, Ordering::Relaxed);
        lender.close_idle();
        true
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Each change of it is whole.
        self.state.lock()
    }
}

#[cfg(test)]
mod tests;
