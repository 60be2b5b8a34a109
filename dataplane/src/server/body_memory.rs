//! How much memory the bodies of requests under way may hold, and what is made of them until their statements were answered.
//!
//! No tenant takes all of it: a tenant holds at most as much as it leaves free, and a key half of what its tenant may still
//! take. Alone that is half of it for a tenant and a quarter for a key; beside others it is less, so that the next
//! request finds some free.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::{Mutex, MutexGuard};
use rowgate_core::name::Ulid;
use rowgate_core::problem::Problem;

/// The memory of one replica.
#[derive(Debug)]
pub struct BodyMemory {
    limit: usize,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    tenants: HashMap<Ulid, OfTenant>,
}

/// Of a tenant that holds something.
#[derive(Debug, Default)]
struct OfTenant {
    all: usize,
    keys: HashMap<Ulid, usize>,
}

/// So many bytes of it, given back when this is dropped.
#[derive(Debug)]
pub(crate) struct BodyReservation {
    memory: Arc<BodyMemory>,
    tenant: Ulid,
    key: Ulid,
    n: AtomicUsize,
}

impl BodyMemory {
    /// In bytes: a quarter of it takes the largest body with the largest statement.
    pub const MIN_BYTES: usize = 32 << 20;

    /// `limit` bytes.
    #[must_use]
    pub fn new(limit: usize) -> Arc<BodyMemory> {
        Arc::new(BodyMemory { limit, taken: Mutex::default() })
    }

    /// How many bytes are held, and how many at most.
    pub fn load(&self) -> (usize, usize) {
        (self.taken().all, self.limit)
    }

    fn take(&self, tenant: &Ulid, key: &Ulid, n: usize) -> Result<(), Problem> {
        // what is held stays held, however much others hold by now
        if n == 0 {
            return Ok(());
        }
        let mut taken = self.taken();
        let (of_tenant, of_key) = taken.of(tenant, key);
        let (all, of_tenant, of_key) = (taken.all + n, of_tenant + n, of_key + n);
        let left = self.limit.checked_sub(all).and_then(|free| free.checked_sub(of_tenant));
        if left.is_none_or(|left| left < 2 * of_key) {
            // it holds more than everybody else together
            let is_own = all < 2 * of_key || self.limit / 4 < of_key;
            return Err(match is_own {
                true => Problem::body_share_exceeded(),
                false => Problem::body_budget_exceeded(),
            });
        }
        taken.all = all;
        let tenant = taken.tenants.entry(tenant.clone()).or_default();
        tenant.all = of_tenant;
        tenant.keys.insert(key.clone(), of_key);
        Ok(())
    }

    fn give_back(&self, tenant: &Ulid, key: &Ulid, n: usize) {
        if n == 0 {
            return;
        }
        let mut taken = self.taken();
        taken.all -= n;
        let Some(of_tenant) = taken.tenants.get_mut(tenant) else { return };
        of_tenant.all -= n;
        if let Some(of_key) = of_tenant.keys.get_mut(key) {
            *of_key -= n;
            if *of_key == 0 {
                of_tenant.keys.remove(key);
            }
        }
        if of_tenant.keys.is_empty() {
            taken.tenants.remove(tenant);
        }
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        // Nothing in here panics half-way.
        self.taken.lock()
    }
}

impl Taken {
    /// What the tenant holds, and what the key holds.
    fn of(&self, tenant: &Ulid, key: &Ulid) -> (usize, usize) {
        let of_tenant = self.tenants.get(tenant);
        let of_key = of_tenant.and_then(|tenant| tenant.keys.get(key));
        (of_tenant.map_or(0, |tenant| tenant.all), of_key.copied().unwrap_or(0))
    }
}

impl BodyReservation {
    /// Takes `n` bytes.
    ///
    /// # Errors
    /// 429 where the key itself holds too much, 503 where others do.
    pub(crate) fn new(
        memory: &Arc<BodyMemory>,
        tenant: &Ulid,
        key: &Ulid,
        n: usize,
    ) -> Result<BodyReservation, Problem> {
        memory.take(tenant, key, n)?;
        Ok(BodyReservation { memory: memory.clone(), tenant: tenant.clone(), key: key.clone(), n: n.into() })
    }

    /// Holds `n` bytes in all, if that is more than before. An error, as of [`BodyReservation::new`], leaves what is held.
    pub(crate) fn grow_to(&self, n: usize) -> Result<(), Problem> {
        let more = n.saturating_sub(self.n.load(Ordering::Relaxed));
        self.memory.take(&self.tenant, &self.key, more)?;
        self.n.fetch_add(more, Ordering::Relaxed);
        Ok(())
    }
}

impl Drop for BodyReservation {
    fn drop(&mut self) {
        self.memory.give_back(&self.tenant, &self.key, *self.n.get_mut());
    }
}

#[cfg(test)]
mod tests {
    use rowgate_core::problem::Code;

    use super::*;

    const MIB: usize = 1 << 20;

    fn id(n: u64) -> Ulid {
        Ulid::from_parts(n, [0; 10])
    }

    /// Takes a MiB after the other until that is refused.
    fn all(memory: &Arc<BodyMemory>, tenant: u64, key: u64) -> (Vec<BodyReservation>, Code) {
        let mut reserved = Vec::new();
        loop {
            match BodyReservation::new(memory, &id(tenant), &id(key), MIB) {
                Ok(more) => reserved.push(more),
                Err(problem) => return (reserved, problem.code),
            }
        }
    }

    #[test]
    fn a_key_gets_a_quarter_a_tenant_half_and_whoever_comes_next_something() {
        let memory = BodyMemory::new(64 * MIB);
        let (first, code) = all(&memory, 1, 1);
        assert_eq!((first.len(), code), (16, Code::BodyShareExceeded));
        let (second, code) = all(&memory, 1, 2);
        assert_eq!((second.len(), code), (8, Code::BodyBudgetExceeded));
        let few =
            BodyReservation::new(&memory, &id(1), &id(3), 9 * MIB).expect_err("more than the others leave");
        assert_eq!(few.code, Code::BodyBudgetExceeded);
        let further: Vec<_> = (3..40).flat_map(|key| all(&memory, 1, key).0).collect();
        assert!(memory.load().0 <= 32 * MIB, "{}", memory.load().0);
        let (neighbour, code) = all(&memory, 2, 1);
        assert_eq!((neighbour.len(), code), (8, Code::BodyBudgetExceeded));
        drop((first, second, further, neighbour));
        assert_eq!(memory.load().0, 0);
        assert!(memory.taken().tenants.is_empty(), "nothing is kept of who holds nothing");
    }

    #[test]
    fn what_is_refused_takes_nothing() {
        let memory = BodyMemory::new(64 * MIB);
        let reserved = BodyReservation::new(&memory, &id(1), &id(1), 0).expect("nothing");
        reserved.grow_to(16 * MIB).expect("a quarter");
        let refused = reserved.grow_to(17 * MIB).expect_err("more than a quarter");
        assert_eq!((refused.code, refused.retry_after), (Code::BodyShareExceeded, Some(1)));
        reserved.grow_to(1).expect("less than it holds");
        assert_eq!(memory.load().0, 16 * MIB);
        let busy =
            BodyReservation::new(&memory, &id(1), &id(2), 9 * MIB).expect_err("more than is left to it");
        assert_eq!((busy.code, busy.retry_after), (Code::BodyBudgetExceeded, Some(1)));
        assert_eq!(memory.load().0, 16 * MIB);
    }

    #[test]
    fn nobody_ever_takes_more_than_a_part() {
        let memory = BodyMemory::new(1_000);
        let (mut reserved, mut state) = (Vec::new(), 1_u64);
        let mut draw = |n: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % n
        };
        for _ in 0..3_000 {
            let (tenant, key, n) = (draw(4), draw(4), usize::try_from(draw(400)).expect("small"));
            reserved.extend(BodyReservation::new(&memory, &id(tenant), &id(key), n).ok());
            if draw(3) == 0 && !reserved.is_empty() {
                let which = usize::try_from(draw(1_000)).expect("small") % reserved.len();
                reserved.swap_remove(which);
            }
            let sum = |of: &dyn Fn(&BodyReservation) -> bool| -> usize {
                reserved.iter().filter(|it| of(it)).map(|it| it.n.load(Ordering::Relaxed)).sum()
            };
            assert_eq!(memory.load().0, sum(&|_| true));
            for t in 0..4 {
                assert!(sum(&|it| it.tenant == id(t)) <= 500);
                assert!((0..4).all(|k| sum(&|it| it.tenant == id(t) && it.key == id(k)) <= 250));
            }
        }
    }
}
