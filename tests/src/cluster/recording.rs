//! Every state of some objects, in the order in which the API server showed them.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::kubectl::Window;

/// Goes on until it is dropped.
#[derive(Debug)]
pub struct Recording {
    states: Arc<Mutex<Vec<State>>>,
    watching: JoinHandle<()>,
}

/// What a watch has shown.
#[derive(Debug, Clone)]
pub struct State {
    /// When the test saw it.
    pub time: Timestamp,
    /// `ADDED`, `MODIFIED` or `DELETED`.
    pub change: String,
    pub object: Value,
}

impl Recording {
    pub(super) async fn begin(window: &Window, path: &str) -> Recording {
        let list = window.get(path).await.expect("the server knows the resource");
        let now = list["items"].as_array().expect("a list");
        let now = now.iter().map(|object| state("ADDED", object.clone())).collect();
        let states: Arc<Mutex<Vec<State>>> = Arc::new(Mutex::new(now));
        let place = list["metadata"]["resourceVersion"].as_str().expect("a list has one").to_owned();
        let watching = tokio::spawn(watch(window.clone(), path.to_owned(), place, Arc::clone(&states)));
        Recording { states, watching }
    }

    /// What was shown so far.
    #[must_use]
    pub fn states(&self) -> Vec<State> {
        assert!(!self.watching.is_finished(), "the watch has failed, as is said above");
        self.states.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        self.watching.abort();
    }
}

/// A server may end a watch at any time; the next begins where it was, so that nothing is missing.
async fn watch(window: Window, path: String, mut place: String, states: Arc<Mutex<Vec<State>>>) {
    loop {
        let mut answer = window.ask(&format!("{path}?watch=true&resourceVersion={place}")).await;
        let mut rest = Vec::new();
        while answer.status().is_success()
            && let Ok(Some(bytes)) = answer.chunk().await
        {
            rest.extend_from_slice(&bytes);
            while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = rest.drain(..=end).collect();
                let mut event: Value = serde_json::from_slice(&line).expect("a line of JSON per change");
                let object = event["object"].take();
                let state = state(event["type"].as_str().unwrap_or_default(), object);
                let version = state.object["metadata"]["resourceVersion"].as_str();
                version.expect("each object has one").clone_into(&mut place);
                states.lock().unwrap_or_else(PoisonError::into_inner).push(state);
            }
        }
        sleep(Duration::from_millis(20)).await;
    }
}

fn state(change: &str, object: Value) -> State {
    assert!(["ADDED", "MODIFIED", "DELETED"].contains(&change), "a watch said {change} {object}");
    State { time: Timestamp::now(), change: change.to_owned(), object }
}
