//! Whether calls may run in a tenant's database, here or at another replica: then those of revoked keys are looked for.

use std::sync::atomic::{AtomicBool, Ordering};

#[derive(Debug, Default)]
pub struct CallActivity {
    /// There were sessions at the last look, of ours: what they left in `dl.backends` is still to be swept.
    here: AtomicBool,
    elsewhere: AtomicBool,
    is_looking: AtomicBool,
}

impl CallActivity {
    /// Whether sessions of this replica are open, or were at the last look.
    pub fn is_here(&self) -> bool {
        self.here.load(Ordering::Acquire)
    }

    /// Another replica has sessions there, or had when it was last heard of.
    pub fn note_elsewhere(&self, is: bool) {
        self.elsewhere.store(is, Ordering::Release);
    }

    /// Whether there is anything to look for. `is_in_use`: sessions of this replica are open.
    pub fn may_be(&self, is_in_use: bool) -> bool {
        is_in_use || self.is_here() || self.elsewhere.load(Ordering::Acquire)
    }

    /// True for the one who is to look now, and says [`CallActivity::looked`] then.
    pub(crate) fn begin_to_look(&self, is_in_use: bool) -> bool {
        if is_in_use {
            self.here.store(true, Ordering::Release);
        }
        if !self.may_be(is_in_use) || self.is_looking.swap(true, Ordering::AcqRel) {
            return false;
        }
        if !is_in_use {
            self.here.store(false, Ordering::Release);
        }
        true
    }

    /// `is_swept`: nothing is left to do.
    pub(crate) fn looked(&self, is_swept: bool) {
        if !is_swept {
            self.here.store(true, Ordering::Release);
        }
        self.is_looking.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn somebody_looks_while_there_may_be_calls_and_once_more_after_them() {
        let call_activity = CallActivity::default();
        assert!(!call_activity.begin_to_look(false));
        assert!(call_activity.begin_to_look(true));
        assert!(!call_activity.begin_to_look(true), "one at a time");
        call_activity.looked(true);
        assert!(call_activity.begin_to_look(false), "what the last one left is swept");
        call_activity.looked(false);
        assert!(call_activity.is_here() && call_activity.begin_to_look(false), "until that was done");
        call_activity.looked(true);
        assert!(!call_activity.is_here() && !call_activity.begin_to_look(false));
        call_activity.note_elsewhere(true);
        assert!(call_activity.begin_to_look(false) && !call_activity.is_here());
    }
}
