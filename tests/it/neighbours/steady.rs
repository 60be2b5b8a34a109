//! A neighbour that is asked all the time, and has to answer each time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use reqwest::StatusCode;
use rowgate_tests::client::Client;
use rowgate_tests::world::World;
use tokio::task::JoinHandle;

pub(super) struct Steady {
    ends: Arc<AtomicBool>,
    asking: JoinHandle<usize>,
    tenant: &'static str,
}

impl Steady {
    /// Asks `path` of a tenant with its key, one request after the other.
    pub(super) fn asks(world: &World, tenant: &'static str, key: &str, path: &str) -> Steady {
        let ends = Arc::new(AtomicBool::new(false));
        let (url, key) = (format!("{}/auth/{tenant}/api/{path}", world.url()), world.key(key));
        let until = Arc::clone(&ends);
        let asking = tokio::spawn(async move {
            let client = Client::new();
            let mut n_answers = 0;
            while !until.load(Ordering::Relaxed) {
                let reply = client.get(&url, &[("X-API-Key", &key)]).await;
                assert_eq!(
                    reply.status,
                    StatusCode::OK,
                    "the neighbour, after {n_answers} answers: {reply:?}"
                );
                n_answers += 1;
            }
            n_answers
        });
        Steady { ends, asking, tenant }
    }

    /// It was answered all the time, and is Ready.
    pub(super) async fn ends(self, world: &World) {
        self.ends.store(true, Ordering::Relaxed);
        let n_answers = self.asking.await.unwrap_or_else(|error| panic!("the neighbour failed: {error}"));
        assert!(0 < n_answers, "the neighbour was not asked");
        let status = world.status("Tenant", self.tenant);
        let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
        let ready = conditions.iter().find(|condition| condition["type"] == "Ready");
        assert_eq!(ready.map(|ready| &ready["status"]), Some(&"True".into()), "{status}");
    }
}
