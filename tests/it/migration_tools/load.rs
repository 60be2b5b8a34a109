//! Clients that ask for each entity while its table changes, and what they were answered.

use std::fmt::{self, Display};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rowgate_tests::client::{Client, Reply};
use rowgate_tests::world::World;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

/// Key, method, entity, and the rest of the path.
const QUESTIONS: [(&str, &str, &str, &str); 12] = [
    ("all", "GET", "customers", "?$first=5"),
    ("all", "GET", "orders", "?$first=5"),
    ("all", "GET", "products", "?$first=5"),
    ("all", "GET", "regions", "?$first=5"),
    ("all", "GET", "open_orders", "?$first=5"),
    ("north", "GET", "customers", "?$first=5"),
    ("north", "GET", "open_orders", "?$first=5"),
    ("all", "GET", "orders", "?$first=5&$expand=buyer"),
    ("all", "GET", "customers", "?$first=5&$expand=purchases($first=2)"),
    ("all", "PATCH", "customers", "/id/7"),
    ("all", "PATCH", "products", "/id/7"),
    ("all", "POST", "orders", ""),
];
/// Of each client, whatever a tool takes.
const MAX_REQUESTS: usize = 6_000;
const INTERVAL: Duration = Duration::from_millis(20);
/// How long an entity may be away, and a request may take.
const MAX_UNAVAILABLE: Duration = Duration::from_secs(5);
/// The id of the first order that is made.
const FIRST_ID: usize = 100_000;

/// A request and its answer.
struct Answered {
    from: Instant,
    to: Instant,
    reply: Reply,
}

/// What one client was answered, in order.
struct Answers {
    key: &'static str,
    method: &'static str,
    entity: &'static str,
    asked: Vec<Answered>,
}

pub(super) struct Load {
    clients: JoinSet<Answers>,
    is_over: Arc<AtomicBool>,
}

/// What became of all requests.
#[derive(Debug)]
pub(super) struct Summary {
    pub(super) n: usize,
    n_unavailable: usize,
    longest: Duration,
    /// Orders that were made, and those of which the answer does not say so.
    pub(super) made: Vec<usize>,
    in_doubt: Vec<usize>,
}

impl Load {
    pub(super) fn begin(world: &World) -> Load {
        let is_over = Arc::new(AtomicBool::new(false));
        let mut clients = JoinSet::new();
        for (key, method, entity, rest) in QUESTIONS {
            let url = format!("{}/auth/trade/api/{entity}{rest}", world.url());
            let (secret, is_over) = (world.key(key), is_over.clone());
            clients.spawn(async move {
                let asked = ask(method, &url, &secret, &is_over).await;
                Answers { key, method, entity, asked }
            });
        }
        Load { clients, is_over }
    }

    /// Ends the clients. Every answer is a success, or a 503 with Retry-After of one of the entities that are `changed`, each of
    /// which is away for 5 s at most, and none shows a row of another region.
    pub(super) async fn ends_well(self, changed: &[&str]) -> Summary {
        self.is_over.store(true, Ordering::Relaxed);
        let clients = self.clients.join_all().await;
        let wrong: Vec<String> = clients.iter().flat_map(|it| it.wrong(changed)).collect();
        let shown = wrong.iter().take(20).map(String::as_str).collect::<Vec<_>>().join("\n");
        assert!(wrong.is_empty(), "{} answers are wrong:\n{shown}", wrong.len());
        let all = || clients.iter().flat_map(|it| &it.asked);
        let orders =
            clients.iter().filter(|it| it.method == "POST").flat_map(|it| it.asked.iter().enumerate());
        let (made, in_doubt): (Vec<_>, Vec<_>) = orders.partition(|(_, it)| it.reply.status == 201);
        let ids = |of: Vec<(usize, &Answered)>| -> Vec<usize> {
            of.into_iter().map(|(n, _)| FIRST_ID + n).collect()
        };
        Summary {
            n: all().count(),
            n_unavailable: all().filter(|it| it.reply.status == 503).count(),
            longest: clients.iter().filter_map(|it| it.away().into_iter().max()).max().unwrap_or_default(),
            made: ids(made),
            in_doubt: ids(in_doubt),
        }
    }
}

async fn ask(method: &str, url: &str, key: &str, is_over: &AtomicBool) -> Vec<Answered> {
    let client = Client::new();
    let headers = [("X-API-Key", key), ("Content-Type", "application/json")];
    let mut turn = tokio::time::interval(INTERVAL);
    turn.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut asked = Vec::new();
    while asked.len() < MAX_REQUESTS && !is_over.load(Ordering::Relaxed) {
        turn.tick().await;
        let body = match method {
            "POST" => json!({"id": FIRST_ID + asked.len(), "customer": 1, "amount": 1}).to_string(),
            "PATCH" => json!({"name": format!("n{}", asked.len())}).to_string(),
            _ => String::new(),
        };
        let from = Instant::now();
        let reply = client.send(method, url, &headers, &body).await;
        asked.push(Answered { from, to: Instant::now(), reply });
    }
    asked
}

impl Answers {
    fn wrong(&self, changed: &[&str]) -> Vec<String> {
        let mut wrong: Vec<String> = self
            .asked
            .iter()
            .filter(|it| !self.is_right(it, changed))
            .map(|it| format!("{self}: {:?} after {:?}", it.reply, it.to - it.from))
            .collect();
        wrong.extend(
            self.away()
                .iter()
                .filter(|it| **it > MAX_UNAVAILABLE)
                .map(|it| format!("{self}: away for {it:?}")),
        );
        wrong
    }

    fn is_right(&self, asked: &Answered, changed: &[&str]) -> bool {
        let reply = &asked.reply;
        let is_answered = match reply.status.as_u16() {
            200 => self.key != "north" || reply.rows().iter().all(|row| row["region"] == "north"),
            201 => self.method == "POST",
            503 => changed.contains(&self.entity) && reply.header("retry-after").is_some(),
            _ => false,
        };
        is_answered && asked.to - asked.from <= MAX_UNAVAILABLE
    }

    /// How long each time: from the first request that was refused to the answer of the next that was not, or to the last.
    fn away(&self) -> Vec<Duration> {
        let (mut away, mut since) = (Vec::new(), None);
        for it in &self.asked {
            match (it.reply.status.is_success(), since) {
                (false, None) => since = Some(it.from),
                (true, Some(from)) => {
                    away.push(it.to - from);
                    since = None;
                }
                _ => {}
            }
        }
        away.extend(since.zip(self.asked.last()).map(|(from, last)| last.to - from));
        away
    }
}

impl Display for Answers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} as {}", self.method, self.entity, self.key)
    }
}

impl Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} requests, {} of them 503; away for {:?} at most",
            self.n, self.n_unavailable, self.longest
        )
    }
}

impl Summary {
    /// The orders beyond those of the script are those that were made, and perhaps some that are in doubt.
    pub(super) fn agrees_with(&self, ids: &[Value]) {
        let ids: Vec<usize> =
            ids.iter().filter_map(|row| row["id"].as_u64()).filter_map(|id| id.try_into().ok()).collect();
        let lost: Vec<_> = self.made.iter().filter(|id| !ids.contains(id)).collect();
        let foreign: Vec<_> =
            ids.iter().filter(|id| !self.made.contains(id) && !self.in_doubt.contains(id)).collect();
        assert!(lost.is_empty() && foreign.is_empty(), "lost {lost:?}, of nobody {foreign:?}");
    }
}
