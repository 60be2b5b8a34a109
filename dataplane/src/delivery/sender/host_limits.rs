//! At most 16 requests at a time to one host over all replicas; tenants that wait for the same host take turns.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use rowgate_core::name::Ulid;
use tokio::sync::oneshot;

/// Over all replicas.
const MAX_IN_FLIGHT: usize = 16;

pub struct HostLimits {
    state: Mutex<State>,
}

struct State {
    /// What this replica may send at a time to one host.
    limit: usize,
    hosts: HashMap<String, Host>,
}

#[derive(Default)]
struct Host {
    n_taken: usize,
    /// The tenants that wait, the next one first, each with its requests in their order.
    waiting: VecDeque<(Ulid, VecDeque<oneshot::Sender<HostPermit>>)>,
}

/// The right to send one request to a host; dropping it gives it back.
pub struct HostPermit {
    limits: Arc<HostLimits>,
    host: String,
}

impl HostLimits {
    #[must_use]
    pub fn new() -> Arc<HostLimits> {
        Arc::new(HostLimits { state: Mutex::new(State { limit: MAX_IN_FLIGHT, hosts: HashMap::new() }) })
    }

    /// Divides the limit by the replicas that live; each keeps one at least. What is under way goes on.
    pub fn set_replicas(self: &Arc<Self>, n_live: usize) {
        let mut unwanted = Vec::new();
        let mut state = self.state.lock();
        state.limit = (MAX_IN_FLIGHT / n_live.max(1)).max(1);
        let limit = state.limit;
        for (name, host) in &mut state.hosts {
            self.grant(name, host, limit, &mut unwanted);
        }
        drop(state);
        // each takes the lock to give itself back
        drop(unwanted);
    }

    /// Waits until one of the requests to `host` is free, in turns with other tenants.
    pub async fn permit(self: &Arc<Self>, host: &str, tenant: &Ulid) -> HostPermit {
        let waiting = {
            let mut state = self.state.lock();
            let limit = state.limit;
            let of_host = state.hosts.entry(host.to_owned()).or_default();
            if of_host.n_taken < limit {
                of_host.n_taken += 1;
                return HostPermit { limits: self.clone(), host: host.to_owned() };
            }
            let (granted, waiting) = oneshot::channel();
            match of_host.waiting.iter_mut().find(|(waits, _)| waits == tenant) {
                Some((_, requests)) => requests.push_back(granted),
                None => of_host.waiting.push_back((tenant.clone(), VecDeque::from([granted]))),
            }
            waiting
        };
        waiting.await.expect("a host is not forgotten while requests wait for it")
    }

    /// Gives what is free to those who wait. What was granted as its request was given up is among the `unwanted`.
    fn grant(self: &Arc<Self>, name: &str, host: &mut Host, limit: usize, unwanted: &mut Vec<HostPermit>) {
        while host.n_taken < limit {
            let Some(request) = host.next() else { return };
            host.n_taken += 1;
            let permit = HostPermit { limits: self.clone(), host: name.to_owned() };
            if let Err(permit) = request.send(permit) {
                unwanted.push(permit);
            }
        }
    }

    fn give_back(self: &Arc<Self>, name: &str) {
        let mut unwanted = Vec::new();
        let mut state = self.state.lock();
        let limit = state.limit;
        if let Some(host) = state.hosts.get_mut(name) {
            host.n_taken = host.n_taken.saturating_sub(1);
            self.grant(name, host, limit, &mut unwanted);
            if host.n_taken == 0 && host.waiting.is_empty() {
                state.hosts.remove(name);
            }
        }
        drop(state);
        drop(unwanted);
    }
}

impl Host {
    /// The next request that somebody still waits for: of the tenant whose turn it is, which goes to the end of the row.
    fn next(&mut self) -> Option<oneshot::Sender<HostPermit>> {
        loop {
            let (tenant, mut requests) = self.waiting.pop_front()?;
            let next = std::iter::from_fn(|| requests.pop_front()).find(|request| !request.is_closed());
            if !requests.is_empty() {
                self.waiting.push_back((tenant, requests));
            }
            if next.is_some() {
                return next;
            }
        }
    }
}

impl Drop for HostPermit {
    fn drop(&mut self) {
        self.limits.give_back(&self.host);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    fn tenant(n: u64) -> Ulid {
        Ulid::from_parts(n, [0; 10])
    }

    /// All that are free of one host.
    fn take_all(limits: &Arc<HostLimits>) -> Vec<HostPermit> {
        let mut taken = Vec::new();
        while let Some(permit) = limits.permit("a", &tenant(1)).now_or_never() {
            taken.push(permit);
        }
        taken
    }

    #[tokio::test]
    async fn a_host_gets_16_at_a_time_divided_by_the_replicas() {
        let limits = HostLimits::new();
        for (n_live, expected) in [(1, 16), (2, 8), (3, 5), (16, 1), (40, 1), (0, 16)] {
            limits.set_replicas(n_live);
            assert_eq!(take_all(&limits).len(), expected, "{n_live} replicas");
        }
        let _taken = take_all(&limits);
        assert!(limits.permit("b", &tenant(1)).now_or_never().is_some(), "another host has its own");
        assert!(limits.permit("a", &tenant(2)).now_or_never().is_none());
    }

    #[tokio::test]
    async fn tenants_take_turns_however_many_requests_one_has() {
        let limits = HostLimits::new();
        limits.set_replicas(16);
        let mut held = limits.permit("a", &tenant(1)).await;
        let (granted, mut order) = tokio::sync::mpsc::unbounded_channel();
        let mut waiting = futures_util::stream::FuturesUnordered::new();
        for n in [1, 1, 1, 1, 2, 2, 3] {
            let (limits, granted) = (limits.clone(), granted.clone());
            let mut request = Box::pin(async move {
                let permit = limits.permit("a", &tenant(n)).await;
                granted.send((n, permit)).expect("the test listens");
            });
            assert!(request.as_mut().now_or_never().is_none());
            waiting.push(request);
        }
        let mut found = Vec::new();
        for _ in 0..7 {
            drop(held);
            futures_util::StreamExt::next(&mut waiting).await.expect("one is granted");
            let (n, permit) = order.try_recv().expect("one is granted");
            found.push(n);
            held = permit;
        }
        assert_eq!(found, [1, 2, 3, 1, 2, 1, 1]);
        drop(held);
        assert!(limits.state.lock().hosts.is_empty(), "nothing is kept of a host without requests");
    }

    #[tokio::test]
    async fn a_request_that_is_given_up_takes_nothing() {
        let limits = HostLimits::new();
        limits.set_replicas(16);
        let (one, two) = (tenant(1), tenant(2));
        let held = limits.permit("a", &one).await;
        let mut granted = Box::pin(limits.permit("a", &one));
        let mut waiting = Box::pin(limits.permit("a", &two));
        assert!(granted.as_mut().now_or_never().is_none() && waiting.as_mut().now_or_never().is_none());
        drop(limits.permit("a", &tenant(3)).now_or_never());
        drop(held);
        // granted, and given up before it was seen
        drop(granted);
        assert!(waiting.as_mut().now_or_never().is_some());
        assert!(limits.permit("a", &tenant(3)).now_or_never().is_some());
    }

    #[tokio::test]
    async fn more_room_is_given_to_those_who_wait() {
        let limits = HostLimits::new();
        limits.set_replicas(16);
        let (one, two) = (tenant(1), tenant(2));
        let _held = limits.permit("a", &one).await;
        let mut waiting = Box::pin(limits.permit("a", &two));
        assert!(waiting.as_mut().now_or_never().is_none());
        limits.set_replicas(8);
        assert!(waiting.as_mut().now_or_never().is_some());
    }
}
