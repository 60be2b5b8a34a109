//! The keys that sign and verify tokens, as this replica holds them now. Which they are is `rowgate_core::signing`'s to say.

use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Instant;

use rowgate_core::derive::Root;
use rowgate_core::jwt::{Claims, Signers};
use rowgate_core::problem::Problem;
use rowgate_core::signing::{Schedule, Stand};

/// Kept current by the loop that follows the control database.
pub struct Signing {
    root: Root,
    /// `None` until the control database was read once.
    held: RwLock<Option<Arc<Held>>>,
    read: Mutex<Option<Read>>,
}

/// The keys of one moment.
struct Held {
    stand: Stand,
    signers: Signers,
}

/// The last look, and when it was by our own clock, which only measures how long ago that is.
struct Read {
    schedule: Schedule,
    at: Instant,
}

impl Signing {
    /// No key is held before the first look.
    #[must_use]
    pub fn new(root: Root) -> Signing {
        Signing { root, held: RwLock::default(), read: Mutex::default() }
    }

    /// Takes over what a look at the control database found just now.
    pub fn follow(&self, schedule: Schedule) {
        let at = Instant::now();
        *self.read.lock().unwrap_or_else(PoisonError::into_inner) = Some(Read { schedule, at });
        self.turn(at);
    }

    /// Takes the keys of `now`; at every look, that of a control database which does not answer included.
    pub fn turn(&self, now: Instant) {
        let stand = {
            let read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(read) = &*read else { return };
            let seconds = now.saturating_duration_since(read.at).as_secs();
            let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
            read.schedule.at(read.schedule.read_at().saturating_add(seconds))
        };
        let before = self.held();
        if before.as_ref().is_some_and(|held| held.stand == stand) {
            return;
        }
        if before.is_some() {
            let (signing, published) = (stand.signing, &stand.published);
            tracing::info!(signing, ?published, may_sign = stand.may_sign, "the signing keys changed");
        }
        let signers = stand.signers(&self.root);
        *self.held.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(Held { stand, signers }));
    }

    /// The token that says `claims`. 503 while the control database was not read for so long that another key may sign.
    pub fn sign(&self, claims: &Claims) -> Result<String, Problem> {
        let held = self.held().filter(|held| held.stand.may_sign).ok_or_else(Problem::unavailable)?;
        Ok(held.signers.sign(claims))
    }

    /// What a token claims; `None`: it is none of ours, or not valid at `unix`. 503 before the first look.
    pub fn verify(&self, token: &str, unix: i64) -> Result<Option<Claims>, Problem> {
        let held = self.held().ok_or_else(Problem::unavailable)?;
        Ok(held.signers.verify(token, unix).ok())
    }

    /// The public keys, as a JSON Web Key Set. 503 before the first look.
    pub fn jwks(&self) -> Result<String, Problem> {
        Ok(self.held().ok_or_else(Problem::unavailable)?.signers.jwks())
    }

    fn held(&self) -> Option<Arc<Held>> {
        self.held.read().unwrap_or_else(PoisonError::into_inner).clone()
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
        let signing = Signing::new(Root::new([1; 32]));
        assert!(
            signing.sign(&claims()).is_err() && signing.verify("", NOW).is_err() && signing.jwks().is_err()
        );
        let generations = vec![Generation { number: 1, signs_from: 0 }];
        let before = Instant::now();
        signing.follow(Schedule::new(generations, NOW).expect("one signs"));
        let token = signing.sign(&claims()).expect("it was just read");
        let lease = Duration::from_secs(LEASE.try_into().expect("positive"));
        signing.turn(before + lease);
        assert!(signing.sign(&claims()).is_ok());
        signing.turn(Instant::now() + lease + Duration::from_secs(1));
        assert!(signing.sign(&claims()).is_err(), "another key may sign now");
        assert_eq!(signing.verify(&token, NOW), Ok(Some(claims())));
        let next = Signers::new(Root::new([1; 32]).signing_key(2), Vec::new()).sign(&claims());
        assert_eq!(signing.verify(&next, NOW), Ok(Some(claims())));
        assert!(signing.jwks().expect("it was read").contains(r#""kid":"2-"#));
    }
}
