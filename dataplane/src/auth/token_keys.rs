//! The keys that sign and verify tokens, as this replica holds them now. Which they are is `rowgate_core::signing`'s to say.

use std::sync::Arc;
use std::time::Instant;

use parking_lot::{Mutex, RwLock};
use rowgate_core::derive::Root;
use rowgate_core::jwt::{Claims, Signers};
use rowgate_core::problem::Problem;
use rowgate_core::signing::{Schedule, Stand};

/// Kept current by the loop that follows the control database.
pub struct TokenKeys {
    root: Root,
    /// `None` until the control database was read once.
    current: RwLock<Option<Arc<CurrentKeys>>>,
    read: Mutex<Option<LastRead>>,
}

/// The keys of one moment.
struct CurrentKeys {
    stand: Stand,
    signers: Signers,
}

/// The last look, and when it was by our own clock, which only measures how long ago that is.
struct LastRead {
    schedule: Schedule,
    at: Instant,
}

impl TokenKeys {
    /// No key is held before the first look.
    #[must_use]
    pub fn new(root: Root) -> TokenKeys {
        TokenKeys { root, current: RwLock::default(), read: Mutex::default() }
    }

    /// Takes over what a look at the control database found just now.
    pub fn follow(&self, schedule: Schedule) {
        let at = Instant::now();
        *self.read.lock() = Some(LastRead { schedule, at });
        self.advance(at);
    }

    /// Takes the keys of `now`; at every look, that of a control database which does not answer included.
    pub fn advance(&self, now: Instant) {
        let stand = {
            let read = self.read.lock();
            let Some(read) = &*read else { return };
            let seconds = now.saturating_duration_since(read.at).as_secs();
            let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
            read.schedule.at(read.schedule.read_at().saturating_add(seconds))
        };
        let before = self.current();
        if before.as_ref().is_some_and(|current| current.stand == stand) {
            return;
        }
        if before.is_some() {
            let (signing, published) = (stand.signing, &stand.published);
            tracing::info!(signing, ?published, may_sign = stand.may_sign, "the signing keys changed");
        }
        let signers = stand.signers(&self.root);
        *self.current.write() = Some(Arc::new(CurrentKeys { stand, signers }));
    }

    /// The token that says `claims`. 503 while the control database was not read for so long that another key may sign.
    pub fn sign(&self, claims: &Claims) -> Result<String, Problem> {
        let current =
            self.current().filter(|current| current.stand.may_sign).ok_or_else(Problem::unavailable)?;
        Ok(current.signers.sign(claims))
    }

    /// What a token claims; `None`: it is none of ours, or not valid at `unix`. 503 before the first look.
    pub fn verify(&self, token: &str, unix: i64) -> Result<Option<Claims>, Problem> {
        let current = self.current().ok_or_else(Problem::unavailable)?;
        Ok(current.signers.verify(token, unix).ok())
    }

    /// The public keys, as a JSON Web Key Set. 503 before the first look.
    pub fn jwks(&self) -> Result<String, Problem> {
        Ok(self.current().ok_or_else(Problem::unavailable)?.signers.jwks())
    }

    fn current(&self) -> Option<Arc<CurrentKeys>> {
        self.current.read().clone()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rowgate_core::name::Ulid;
    use rowgate_core::signing::{Generation, LEASE};

    use super::*;

    const NOW: i64 = 1_800_000_000;

    fn claims() -> Claims {
        Claims::new(
            Ulid::from_parts(1, [1; 10]),
            Ulid::from_parts(1, [2; 10]),
            "shop".parse().expect("a slug"),
            NOW,
            60,
        )
    }

    #[test]
    fn a_replica_signs_as_long_as_it_looks_and_verifies_whatever_happens() {
        let keys = TokenKeys::new(Root::new([1; 32]));
        assert!(keys.sign(&claims()).is_err() && keys.verify("", NOW).is_err() && keys.jwks().is_err());
        let generations = vec![Generation { number: 1, signs_from: 0 }];
        let before = Instant::now();
        keys.follow(Schedule::new(generations, NOW).expect("one signs"));
        let token = keys.sign(&claims()).expect("it was just read");
        let lease = Duration::from_secs(LEASE.try_into().expect("positive"));
        keys.advance(before + lease);
        assert!(keys.sign(&claims()).is_ok());
        keys.advance(Instant::now() + lease + Duration::from_secs(1));
        assert!(keys.sign(&claims()).is_err(), "another key may sign now");
        assert_eq!(keys.verify(&token, NOW), Ok(Some(claims())));
        let next = Signers::new(Root::new([1; 32]).signing_key(2), Vec::new()).sign(&claims());
        assert_eq!(keys.verify(&next, NOW), Ok(Some(claims())));
        assert!(keys.jwks().expect("it was read").contains(r#""kid":"2-"#));
    }
}
