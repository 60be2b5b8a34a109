//! What tools like Helm and Flux take an object's status to be: `tests/cluster/kstatus`.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::thread;

use serde::Deserialize;
use serde_json::Value;

use super::tools::tool;

/// The word of sigs.k8s.io/cli-utils on an object.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Verdict {
    /// `Current`, `InProgress`, `Failed`, `Terminating`, `NotFound` or `Unknown`.
    pub status: String,
    pub message: String,
}

/// A verdict for each of `objects`.
#[must_use]
pub fn kstatus(objects: &[Value]) -> Vec<Verdict> {
    let mut command = Command::new(tool("kstatus"));
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
    let mut child = command.spawn().expect("kstatus was built");
    let mut stdin = child.stdin.take().expect("it is piped");
    let input: String = objects.iter().map(|object| format!("{object}\n")).collect();
    // It answers while it reads: who only wrote would fill both pipes.
    let writing = thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output().expect("kstatus runs");
    assert!(output.status.success(), "kstatus failed; what it said stands above");
    writing.join().expect("no panic").expect("kstatus reads all");
    let text = String::from_utf8(output.stdout).expect("it prints UTF-8");
    let verdicts: Vec<Verdict> =
        text.lines().map(|line| serde_json::from_str(line).expect("a verdict a line")).collect();
    assert_eq!(verdicts.len(), objects.len(), "a verdict for each object");
    verdicts
}
