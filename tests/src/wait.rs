//! Waiting for a published state. Tests never sleep for a guessed time.

use std::time::Duration;

use tokio::time::{Instant, sleep};

/// How long a state that surely comes may take on a slow machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Looks every 20 ms until `look` gives a value. After [`PATIENCE`] the test fails and says `what` never came.
pub async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(value) = look().await {
            return value;
        }
        assert!(Instant::now() < deadline, "waited {} s in vain for: {what}", PATIENCE.as_secs());
        sleep(Duration::from_millis(20)).await;
    }
}
