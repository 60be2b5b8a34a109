//! The neighbour: Tenant `acme` and its key `web`.

use rowgate_tests::asked::Asked;
use rowgate_tests::stage::{DONE, Stage};
use rowgate_tests::world::status::ready;

use crate::reconcile::scenarios::NOTES;

/// It asks until it is told to stop; each answer must be a 200.
pub(super) struct Neighbour {
    asked: Asked,
    pid: u32,
}

impl Neighbour {
    pub(super) async fn of(stage: &Stage) -> Neighbour {
        let asked = Asked::begin(format!("{}{NOTES}", stage.url()), stage.key("web").await, &stage.pids());
        Neighbour { asked, pid: stage.pid() }
    }

    /// It was served all the time, is Ready, the process that reconciles is the same, and none needed more memory.
    pub(super) async fn ends_well(self, stage: &Stage) {
        self.asked.always_answered().await;
        assert_eq!(stage.pid(), self.pid);
        let status = stage.status("Tenant", "acme").await;
        assert_eq!(ready(&status).0, DONE, "{status}");
    }
}
