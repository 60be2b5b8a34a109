//! Every state of some objects, in the order in which the API server showed them.

use std::sync::Arc;

use jiff::Timestamp;
use parking_lot::Mutex;
use reqwest::{Response, StatusCode};
use serde_json::Value;
use tokio::task::JoinHandle;

use super::kubectl::Window;
use crate::wait::{Looks, until};

/// Goes on until it is dropped.
#[derive(Debug)]
pub struct Recording {
    window: Window,
    path: String,
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
        let now = items(&list).iter().map(|object| state("ADDED", object.clone())).collect();
        let states: Arc<Mutex<Vec<State>>> = Arc::new(Mutex::new(now));
        let place = list["metadata"]["resourceVersion"].as_str().expect("a list has one").to_owned();
        let (window, path) = (window.clone(), path.to_owned());
        let watching = tokio::spawn(watch(window.clone(), path.clone(), place, Arc::clone(&states)));
        Recording { window, path, states, watching }
    }

    /// Tells every state from the `seen`th on; gives how many there are by now.
    pub fn each_from(&self, seen: usize, tell: impl FnMut(&State)) -> usize {
        let states = self.states.lock();
        states[seen..].iter().for_each(tell);
        states.len()
    }

    /// What was shown so far.
    #[must_use]
    pub fn states(&self) -> Vec<State> {
        assert!(!self.watching.is_finished(), "the watch has failed, as is said above");
        self.states.lock().clone()
    }

    /// Waits until everything that the server shows now was written down.
    pub async fn caught_up(&self) {
        let known = self.states();
        let list = self.window.get(&self.path).await.expect("the server knows the resource");
        let uid = |object: &Value| object["metadata"]["uid"].clone();
        let listed = |state: &&State| items(&list).iter().any(|object| uid(object) == uid(&state.object));
        until("a recording that has caught up", async || {
            let states = self.states();
            let shown = |object: &Value| states.iter().any(|it| version(&it.object) == version(object));
            let gone = |state: &State| {
                states.iter().any(|it| it.change == "DELETED" && uid(&it.object) == uid(&state.object))
            };
            let all = items(&list).iter().all(shown) && known.iter().all(|it| listed(&it) || gone(it));
            all.then_some(())
        })
        .await;
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
        let mut answer = begun(&window, &path, &place).await;
        let mut rest = Vec::new();
        while let Ok(Some(bytes)) = answer.chunk().await {
            rest.extend_from_slice(&bytes);
            while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = rest.drain(..=end).collect();
                let mut event: Value = serde_json::from_slice(&line).expect("a line of JSON per change");
                let object = event["object"].take();
                let state = state(event["type"].as_str().unwrap_or_default(), object);
                version(&state.object).clone_into(&mut place);
                states.lock().push(state);
            }
        }
    }
}

/// A server that starts, or has lost its etcd for a moment, answers something else at first.
async fn begun(window: &Window, path: &str, place: &str) -> Response {
    let looks = Looks::default();
    loop {
        let answer = window.ask(&format!("{path}?watch=true&resourceVersion={place}")).await;
        let status = answer.status();
        assert_ne!(status, StatusCode::GONE, "the server has forgotten what came after {place}");
        if status.is_success() {
            return answer;
        }
        looks.again("a watch", status).await;
    }
}

fn items(list: &Value) -> &[Value] {
    list["items"].as_array().expect("a list")
}

fn version(object: &Value) -> &str {
    object["metadata"]["resourceVersion"].as_str().expect("each object has one")
}

fn state(change: &str, object: Value) -> State {
    assert!(["ADDED", "MODIFIED", "DELETED"].contains(&change), "a watch said {change} {object}");
    State { time: Timestamp::now(), change: change.to_owned(), object }
}
