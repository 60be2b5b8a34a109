//! Waiting for a published state. Tests never sleep for a guessed time.

use std::fmt::Display;
use std::time::Duration;

use tokio::time::{Instant, sleep};

/// How long a state that surely comes may take on a slow machine.
pub const DEADLINE: Duration = Duration::from_secs(240);

/// The first looks; a look may cost a connection or a process.
const SHORTEST: Duration = Duration::from_millis(20);
/// Those at something that takes long.
const LONGEST: Duration = Duration::from_millis(200);

/// Looks every 20 ms, and less often the longer it waits, until `look` gives a value. After [`DEADLINE`] the test fails and says `what` never came.
pub async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    until_ok(what, async || look().await.ok_or("nothing")).await
}

/// As [`until`], for looks that see something else meanwhile: a test that fails says what was seen last.
pub async fn until_ok<T, E: Display>(what: &str, mut look: impl AsyncFnMut() -> Result<T, E>) -> T {
    let looks = Looks::default();
    loop {
        match look().await {
            Ok(value) => return value,
            Err(seen) => looks.again(what, seen).await,
        }
    }
}

/// The looks of one wait, for tasks that may move between threads: such a one cannot pass a look on as a closure.
#[derive(Debug, Clone, Copy)]
pub struct Looks {
    deadline: Instant,
}

impl Default for Looks {
    fn default() -> Looks {
        Looks { deadline: Instant::now() + DEADLINE }
    }
}

impl Looks {
    /// Waits until the next look is due. After [`DEADLINE`] the test fails and says `what` never came.
    pub async fn again(&self, what: &str, seen: impl Display) {
        assert!(
            Instant::now() < self.deadline,
            "waited {} s in vain for: {what}; seen last: {seen}",
            DEADLINE.as_secs()
        );
        let waited = Instant::now() + DEADLINE - self.deadline;
        sleep((waited / 20).clamp(SHORTEST, LONGEST)).await;
    }
}
