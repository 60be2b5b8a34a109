//! The neighbour: Tenant `acme` and its key `web`.

use rowgate_tests::asked::{Asked, Memory};
use rowgate_tests::reconciler::ready;
use rowgate_tests::stage::{DONE, Stage};

use crate::scenarios::NOTES;

/// KiB by which the peak of a process may grow.
const GROWTH: u64 = 32 << 10;

/// It asks until it is told to stop; each answer must be a 200.
pub(super) struct Neighbour {
    asked: Asked,
    pid: u32,
    memory: Memory,
}

impl Neighbour {
    pub(super) async fn of(stage: &Stage) -> Neighbour {
        let asked = Asked::begin(format!("{}{NOTES}", stage.url()), stage.key("web").await);
        Neighbour { asked, pid: stage.pid(), memory: Memory::of(&[stage.pid()]) }
    }

    /// It was served all the time, is Ready, and the process that reconciles is the same and needed no more memory.
    pub(super) async fn ends_well(self, stage: &Stage) {
        self.asked.always_answered().await;
        assert_eq!(stage.pid(), self.pid);
        let grown = self.memory.growth();
        assert!(grown.iter().all(|it| *it < GROWTH), "the process needed {grown:?} KiB more");
        let status = stage.status("Tenant", "acme").await;
        assert_eq!(ready(&status).0, DONE, "{status}");
    }
}
