//! A neighbour that is asked all the time: whatever happens to somebody else, each of its requests is answered with 200.

use std::time::Duration;

use reqwest::Client;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Requests in a row, until [`Asked::always_answered`].
#[derive(Debug)]
pub(super) struct Asked {
    end: CancellationToken,
    asking: JoinHandle<Vec<String>>,
}

impl Asked {
    /// Asks `GET path` at `url` with this key, one request after the other.
    pub(super) fn begin(url: &str, path: &str, key: &str) -> Asked {
        let end = CancellationToken::new();
        let (url, key, ended) = (format!("{url}{path}"), key.to_owned(), end.clone());
        let asking = tokio::spawn(async move {
            let (client, mut wrong) = (Client::new(), Vec::new());
            let mut pace = tokio::time::interval(Duration::from_millis(100));
            while !ended.is_cancelled() {
                pace.tick().await;
                match client.get(&url).header("X-API-Key", &key).send().await {
                    Ok(answer) if answer.status() == 200 => {}
                    Ok(answer) => wrong.push(answer.status().to_string()),
                    Err(error) => wrong.push(error.to_string()),
                }
            }
            wrong
        });
        Asked { end, asking }
    }

    /// Ends it; no request was answered otherwise.
    pub(super) async fn always_answered(self) {
        self.end.cancel();
        let wrong = self.asking.await.expect("it ends when it is told to");
        assert!(wrong.is_empty(), "a neighbour was answered {wrong:?}");
    }
}
