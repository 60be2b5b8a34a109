//! An export job, as the server describes it.

use serde::Deserialize;
use serde_json::Value;

use crate::commands::unexpected;
use crate::failure::Failure;
use crate::http::problem::Problem;

/// What is read of a job. Members of later versions are passed over.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Job {
    pub(super) id: String,
    pub(super) status: String,
    /// What the file is called where it is downloaded.
    pub(super) file: Option<String>,
    pub(super) queue_position: Option<u64>,
    pub(super) rows: Option<u64>,
    pub(super) bytes: Option<u64>,
    /// From 0 to 1, where it can be estimated.
    pub(super) progress: Option<f64>,
    /// Of the file, while the job keeps it. A look at the job renews it.
    pub(super) url: Option<String>,
    pub(super) event_cursor: Option<String>,
    pub(super) capped: Option<bool>,
    error: Option<JobError>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
struct JobError {
    code: String,
    message: String,
    #[serde(default)]
    details: Vec<String>,
}

/// What a job asks of whoever waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Stage {
    Waits,
    Succeeded,
    Failed(Problem),
}

impl Job {
    pub(super) fn of(value: Value) -> Result<Job, Failure> {
        serde_json::from_value(value).map_err(|_| unexpected("status"))
    }

    pub(super) fn stage(&self) -> Stage {
        let failed = |message: String| Stage::Failed(Problem::of_message(message));
        match (self.status.as_str(), &self.error) {
            ("queued" | "running", _) => Stage::Waits,
            ("succeeded", _) => Stage::Succeeded,
            (_, Some(JobError { code, message, details })) => Stage::Failed(Problem {
                code: code.clone(),
                message: format!("the export {} failed: {message}", self.id),
                details: details.clone(),
                request_id: None,
            }),
            ("cancelled", None) => failed(format!("the export {} was cancelled", self.id)),
            (status, None) => failed(format!("the export {} is {status}", self.id)),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn stage(value: Value) -> Stage {
        Job::of(value).expect("a job").stage()
    }

    #[test]
    fn a_job_waits_succeeds_or_fails() {
        assert_eq!(stage(json!({"id": "j", "status": "queued", "queuePosition": 3})), Stage::Waits);
        let running =
            json!({"id": "j", "status": "running", "rows": 5, "bytes": 9, "progress": 0.25, "new": {}});
        assert_eq!(Job::of(running.clone()).expect("a job").progress, Some(0.25));
        assert_eq!(stage(running), Stage::Waits);
        assert_eq!(stage(json!({"id": "j", "status": "succeeded", "progress": null})), Stage::Succeeded);
        let error = json!({"code": "StatementTimeout", "message": "too long"});
        let Stage::Failed(problem) = stage(json!({"id": "j", "status": "failed", "error": error})) else {
            panic!("it failed")
        };
        assert_eq!(problem.to_string(), "StatementTimeout: the export j failed: too long");
        for status in ["cancelled", "expired"] {
            assert!(matches!(stage(json!({"id": "j", "status": status})), Stage::Failed(_)));
        }
        Job::of(json!({"id": "j"})).expect_err("no status");
    }
}
