//! A receiver that keeps its connections and notes when each row's event came.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::State;
use axum::http::Uri;
use rowgate_tests::wait::until;
use serde_json::Value;
use tokio::net::TcpListener;

/// Ends with the runtime.
pub(super) struct Sink {
    address: SocketAddr,
    got: Arc<Got>,
}

#[derive(Default)]
struct Got {
    /// By path and the row's id.
    arrivals: Mutex<HashMap<String, HashMap<i64, Instant>>>,
    wait: Duration,
}

impl Sink {
    pub(super) async fn open(host: &str) -> Sink {
        Sink::slow(host, Duration::ZERO).await
    }

    /// Waits so long before each answer.
    pub(super) async fn slow(host: &str, wait: Duration) -> Sink {
        let got = Arc::new(Got { wait, ..Got::default() });
        let listener = TcpListener::bind((host, 0)).await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let app = Router::new().fallback(take).with_state(got.clone());
        tokio::spawn(async move { axum::serve(listener, app).await });
        Sink { address, got }
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Returns when events of so many rows came to this path.
    pub(super) async fn got(&self, path: &str, n: i64) {
        let n = usize::try_from(n).expect("small");
        let has_all =
            || self.got.arrivals.lock().expect("no panic").get(path).is_some_and(|it| n <= it.len());
        until("the deliveries", async || has_all().then_some(())).await;
    }

    pub(super) fn forget(&self) {
        self.got.arrivals.lock().expect("no panic").clear();
    }

    /// Milliseconds from these moments to the arrival of the rows' events, sorted, once all came.
    pub(super) async fn since(&self, path: &str, committed: &[(i64, Instant)]) -> Vec<f64> {
        let times = || {
            let arrivals = self.got.arrivals.lock().expect("no panic");
            let arrivals = arrivals.get(path)?;
            let time = |(id, at): &(i64, Instant)| {
                Some(arrivals.get(id)?.saturating_duration_since(*at).as_secs_f64() * 1e3)
            };
            committed.iter().map(time).collect::<Option<Vec<f64>>>()
        };
        let mut times = until("the deliveries", async || times()).await;
        times.sort_by(f64::total_cmp);
        times
    }
}

async fn take(State(got): State<Arc<Got>>, uri: Uri, body: String) {
    let now = Instant::now();
    // what signs and posts alone sends none
    let body: Value = serde_json::from_str(&body).unwrap_or_default();
    let ids =
        body["events"].as_array().into_iter().flatten().filter_map(|event| event["data"]["id"].as_i64());
    got.arrivals
        .lock()
        .expect("no panic")
        .entry(uri.path().to_owned())
        .or_default()
        .extend(ids.map(|id| (id, now)));
    tokio::time::sleep(got.wait).await;
}
