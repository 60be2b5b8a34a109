//! Who has how many connections of one server, and who waits for one.

use std::sync::{Arc, Weak};

use super::{HashMap, Lender, Purpose};

#[derive(Default)]
pub(super) struct State {
    /// By [`Purpose`].
    open: [usize; 3],
    /// Connections of each tenant that has any, look-ups aside: those are short, and have places of their own.
    held: HashMap<u64, usize>,
    parties: HashMap<u64, Party>,
    last: u64,
    turn: u64,
}

/// One lender.
pub(super) struct Party {
    pub(super) tenant: u64,
    pub(super) purpose: Purpose,
    pub(super) lender: Weak<dyn Lender>,
    pub(super) n_held: usize,
    /// `None`: it waits for nothing. Else its place among those that do.
    pub(super) wants: Option<u64>,
}

impl State {
    pub(super) fn enlist(&mut self, party: Party) -> u64 {
        self.last += 1;
        self.parties.insert(self.last, party);
        self.last
    }

    /// True: it waited for a connection.
    pub(super) fn delist(&mut self, number: u64) -> bool {
        self.parties.remove(&number).is_some_and(|party| party.wants.is_some())
    }

    pub(super) fn n_open(&self) -> usize {
        self.open.iter().sum()
    }

    /// Whether one more connection fits for this. `ceilings`: how many there may be for each purpose and those before it.
    pub(super) fn fits(&self, number: u64, ceilings: [usize; 3]) -> bool {
        self.parties.get(&number).is_some_and(|party| fits(self.open, party.purpose, ceilings))
    }

    /// True: it is new that it waits.
    pub(super) fn want(&mut self, number: u64) -> bool {
        self.turn += 1;
        let turn = self.turn;
        let Some(party) = self.parties.get_mut(&number).filter(|party| party.wants.is_none()) else {
            return false;
        };
        party.wants = Some(turn);
        true
    }

    /// True: it has waited until now.
    pub(super) fn unwant(&mut self, number: u64) -> bool {
        self.parties.get_mut(&number).is_some_and(|party| party.wants.take().is_some())
    }

    /// Counts one more connection, and gives the tenant that has it, and for what. Who waits on does so behind the others.
    pub(super) fn open(&mut self, number: u64) -> Option<(u64, Purpose)> {
        self.turn += 1;
        let party = self.parties.get_mut(&number)?;
        party.n_held += 1;
        party.wants = party.wants.map(|_| self.turn);
        self.open[party.purpose as usize] += 1;
        if party.purpose != Purpose::LookUp {
            *self.held.entry(party.tenant).or_default() += 1;
        }
        Some((party.tenant, party.purpose))
    }

    pub(super) fn close(&mut self, number: u64, tenant: u64, purpose: Purpose) {
        self.open[purpose as usize] -= 1;
        if let Some(party) = self.parties.get_mut(&number) {
            party.n_held -= 1;
        }
        if let Some(n_held) = self.held.get_mut(&tenant).filter(|_| purpose != Purpose::LookUp) {
            *n_held -= 1;
            if *n_held == 0 {
                self.held.remove(&tenant);
            }
        }
    }

    /// Who waits, for what there is room, and has fewest.
    pub(super) fn next(&self, ceilings: [usize; 3]) -> Option<u64> {
        let wanting = self.parties.iter().filter(|(_, party)| fits(self.open, party.purpose, ceilings));
        let wanting = wanting.filter_map(|(number, party)| {
            Some(((self.held(party.tenant), party.n_held, party.wants?), *number))
        });
        wanting.min().map(|(_, number)| number)
    }

    pub(super) fn lender(&self, number: u64) -> Option<Arc<dyn Lender>> {
        self.parties.get(&number)?.lender.upgrade()
    }

    /// For each other lender that waits, and for which there is room once this one has closed a connection: how many connections
    /// this one has, and how many the other. Between tenants all of them count; one tenant's lenders count their own.
    pub(super) fn others(&self, number: u64, ceilings: [usize; 3]) -> impl Iterator<Item = (usize, usize)> {
        let own = self.parties.get(&number);
        own.into_iter().flat_map(move |own| {
            let mut left = self.open;
            left[own.purpose as usize] -= 1;
            let waiting = self.parties.iter().filter(move |(it, party)| {
                **it != number && party.wants.is_some() && fits(left, party.purpose, ceilings)
            });
            waiting.map(|(_, party)| match party.tenant == own.tenant {
                true => (own.n_held, party.n_held),
                false => (self.held(own.tenant), self.held(party.tenant)),
            })
        })
    }

    /// All lenders that have a connection, and whether even one that was used just now may be closed: whoever waits has fewer,
    /// or is the same tenant.
    pub(super) fn lenders(&self) -> Vec<(Weak<dyn Lender>, bool)> {
        let waiting: Vec<_> = self.parties.values().filter(|party| party.wants.is_some()).collect();
        let Some(least) = waiting.iter().map(|party| self.held(party.tenant)).min() else {
            return Vec::new();
        };
        let is_free = |tenant| {
            least == 0 || least < self.held(tenant) || waiting.iter().any(|party| party.tenant == tenant)
        };
        let holding = self.parties.values().filter(|party| 0 < party.n_held);
        holding.map(|party| (party.lender.clone(), is_free(party.tenant))).collect()
    }

    /// Lenders of other tenants with two connections more than this one's, those with most first; none where this one waits for
    /// nothing.
    pub(super) fn richer(&self, number: u64) -> Vec<Weak<dyn Lender>> {
        let Some(own) = self.parties.get(&number).filter(|party| party.wants.is_some()) else {
            return Vec::new();
        };
        let mine = self.held(own.tenant);
        let richer = self.parties.values().filter(|party| mine + 1 < self.held(party.tenant));
        let mut richer: Vec<_> =
            richer.map(|party| (self.held(party.tenant), party.lender.clone())).collect();
        richer.sort_by_key(|(n_held, _)| std::cmp::Reverse(*n_held));
        richer.into_iter().map(|(_, lender)| lender).collect()
    }

    fn held(&self, tenant: u64) -> usize {
        self.held.get(&tenant).copied().unwrap_or_default()
    }
}

/// Whether one more connection fits beside those that are open.
fn fits(open: [usize; 3], purpose: Purpose, ceilings: [usize; 3]) -> bool {
    (purpose as usize..3).all(|last| open[..=last].iter().sum::<usize>() < ceilings[last])
}
