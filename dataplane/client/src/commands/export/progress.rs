//! The progress of an export on standard error, where that is a terminal.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use super::job::Job;
use crate::output::size;

const TICK: Duration = Duration::from_millis(120);
/// Of a share between 0 and 1.
const STEPS: u64 = 10_000;

/// One line that is drawn again and again. Elsewhere than on a terminal it draws nothing.
pub(super) struct Progress(ProgressBar);

impl Progress {
    pub(super) fn new() -> Progress {
        let bar = ProgressBar::new_spinner();
        bar.enable_steady_tick(TICK);
        Progress(bar)
    }

    /// Of a job that waits or runs.
    pub(super) fn job(&self, job: &Job) {
        self.0.set_message(message(job));
        match job.progress.filter(|share| 0.0 < *share && *share <= 1.0) {
            Some(share) => {
                self.style("{spinner} [{wide_bar}] {percent}%  {msg}  {eta} left");
                self.0.set_length(STEPS);
                self.0.set_position(steps(share));
            }
            None => self.style("{spinner} {msg}"),
        }
    }

    /// A download begins, with `have` bytes here already.
    pub(super) fn download(&self, have: u64, total: Option<u64>) {
        self.0.set_message("downloading");
        match total {
            Some(total) => {
                self.0.set_length(total);
                self.style("{spinner} [{wide_bar}] {decimal_bytes}/{decimal_total_bytes}  {decimal_bytes_per_sec}  {eta} left");
            }
            None => self.style("{spinner} {msg}  {decimal_bytes}  {decimal_bytes_per_sec}"),
        }
        self.0.set_position(have);
        self.0.reset_eta();
    }

    pub(super) fn at(&self, len: u64) {
        self.0.set_position(len);
    }

    pub(super) fn clear(&self) {
        self.0.finish_and_clear();
    }

    fn style(&self, template: &str) {
        self.0.set_style(ProgressStyle::with_template(template).expect("the templates are valid"));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}

fn steps(share: f64) -> u64 {
    (share * STEPS as f64) as u64
}

fn message(job: &Job) -> String {
    let mut parts = vec![job.status.clone()];
    parts.extend(job.queue_position.map(|n| format!("position {n}")));
    if job.status != "queued" {
        parts.extend(job.rows.map(|n| format!("{} rows", size::count(n))));
        parts.extend(job.bytes.map(size::bytes));
    }
    crate::output::escape::line(&parts.join(", "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_job_is_described_in_a_line() {
        let shown = |value| message(&Job::of(value).expect("a job"));
        let queued = json!({"id": "j", "status": "queued", "queuePosition": 3, "rows": 0, "bytes": 0});
        assert_eq!(shown(queued), "queued, position 3");
        let running = json!({"id": "j", "status": "running", "rows": 1_234_567, "bytes": 9_000_000});
        assert_eq!(shown(running), "running, 1,234,567 rows, 9.0 MB");
    }

    #[test]
    fn a_share_has_its_steps() {
        assert_eq!([0.0, 0.5, 1.0].map(steps), [0, 5000, 10_000]);
    }
}
