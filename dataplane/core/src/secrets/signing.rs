//! Which generations of the signing key sign, are published, and verify: decided from times in the control database, so
//! that every replica decides the same. Pure; `now` is always that database's clock, in seconds since 1970.
//!
//! A rotation is one new row, with a time from which it signs that lies [`LEAD`] ahead. A token never meets a verifier
//! that does not know its key:
//! - Others keep our JWKS for [`JWKS_MAX_AGE`]; every replica publishes a new key before `LEAD - JWKS_MAX_AGE` have passed:
//!   the one that sees the row at once, the one that is cut off from the control database because after [`LEASE`] without
//!   a look it publishes the next generation unseen.
//! - A replica verifies the next generation at any time. Nobody signs with it before its time, and it costs nothing.
//! - A replica that is cut off signs no more after `LEASE`, which ends before any rotation that it may have missed
//!   signs: so no token of the old key is made after the new one signs, and [`KEEP`] later none of them lives.

use crate::derive::Root;
use crate::jwt::{LEEWAY, LIFETIME, Signers};

/// Seconds from the row of a new generation to its first token. The column's default in `control.signing_keys`.
pub const LEAD: i64 = 3600;
/// For how many seconds a replica that cannot look at the control database goes on signing.
pub const LEASE: i64 = 3000;
/// How many seconds others may keep our public keys.
pub const JWKS_MAX_AGE: i64 = 300;
/// How many seconds an old generation verifies after the next one signs: a token's life, with twice the clocks'
/// difference on either side and a look that came late.
pub const KEEP: i64 = LIFETIME + 4 * LEEWAY;

/// One generation of the signing key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Generation {
    pub number: u32,
    pub signs_from: i64,
}

/// Every generation that there is, as one look at the control database found them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    /// By number, never empty; the first signs.
    generations: Vec<Generation>,
    read_at: i64,
}

/// What holds at one moment, in numbers of generations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stand {
    /// Signs, unless the last look is too long ago.
    pub signing: u32,
    pub may_sign: bool,
    /// In the JWKS; `signing` is one of them.
    pub published: Vec<u32>,
    /// Verified although it stands in no JWKS.
    pub unpublished: Option<u32>,
}

impl Schedule {
    /// `None`: no generation signs, which the control database never says by itself.
    #[must_use]
    pub fn new(mut generations: Vec<Generation>, read_at: i64) -> Option<Schedule> {
        generations.sort_by_key(|generation| generation.number);
        let signs = generations.iter().any(|generation| generation.signs_from <= read_at);
        signs.then_some(Schedule { generations, read_at })
    }

    /// When it was read.
    #[must_use]
    pub fn read_at(&self) -> i64 {
        self.read_at
    }

    /// What holds at `now`.
    #[must_use]
    pub fn at(&self, now: i64) -> Stand {
        let signs = |generation: &&Generation| generation.signs_from <= now.max(self.read_at);
        let signing = self.generations.iter().rfind(signs).map_or(1, |generation| generation.number);
        let successors = self.generations.iter().skip(1).map(Some).chain([None]);
        let has_left = |successor: Option<&Generation>| {
            successor.is_some_and(|next| next.signs_from.saturating_add(KEEP) <= now)
        };
        let mut published: Vec<u32> = self
            .generations
            .iter()
            .zip(successors)
            .filter(|(_, successor)| !has_left(*successor))
            .map(|(generation, _)| generation.number)
            .collect();
        let next = self.generations.last().map_or(1, |last| last.number.saturating_add(1));
        let may_sign = now.saturating_sub(self.read_at) <= LEASE;
        let unpublished = may_sign.then_some(next);
        if !may_sign {
            published.push(next);
        }
        Stand { signing, may_sign, published, unpublished }
    }
}

impl Stand {
    /// The keys of `root` that it takes.
    #[must_use]
    pub fn signers(&self, root: &Root) -> Signers {
        let others = self.published.iter().filter(|number| **number != self.signing);
        let others = others.map(|number| root.signing_key(*number)).collect();
        let unpublished = self.unpublished.iter().map(|number| root.signing_key(*number)).collect();
        Signers::new(root.signing_key(self.signing), others).and_unpublished(unpublished)
    }
}

#[cfg(test)]
mod tests;
