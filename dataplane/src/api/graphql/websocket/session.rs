//! One WebSocket from its first message to its last.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::ws::{Message, WebSocket};
use axum::http::request::Parts;
use futures_util::StreamExt as _;
use futures_util::future::{AbortHandle, Abortable, Aborted, BoxFuture, FutureExt as _};
use futures_util::stream::FuturesUnordered;
use rowgate_core::problem::{Code, Problem};
use tokio::time::{Instant, interval, sleep_until, timeout};

use super::message::{self, ClientMessage};
use super::{RESTART, TRY_AGAIN, caller_of, close};
use crate::api::events::follow::Follower;
use crate::api::graphql::Answer;
use crate::api::graphql::error::{self, GraphQlError};
use crate::api::graphql::query::{self, Carries};
use crate::api::graphql::request::GraphQlRequest;
use crate::api::graphql::subscription::{self, Output, Subscription};
use crate::app::App;
use crate::auth::credential::Caller;

/// A client that takes longer to say who it is, or to close, is cut off.
const INIT_TIMEOUT: Duration = Duration::from_secs(3);
/// Between two looks whether the client is still there.
const PING: Duration = Duration::from_secs(15);
/// Operations of one socket at a time.
const MAX_OPERATIONS: usize = 100;

pub(super) struct Session {
    app: Arc<App>,
    parts: Parts,
    /// The request had a key.
    has_key: bool,
    /// Once the client has said who it is.
    caller: Option<Caller>,
    /// What runs, by the client's ids.
    running: HashMap<String, AbortHandle>,
    work: FuturesUnordered<Abortable<BoxFuture<'static, (String, Done)>>>,
}

/// What an operation came to, for now.
enum Done {
    Answered(Answer),
    Refused(GraphQlError),
    Follows(Box<(Follower, Subscription)>, Option<Output>),
}

/// Why a socket ends: a code and its reason.
struct Close(u16, &'static str);

const GOES_AWAY: Close = Close(RESTART, "This replica goes away; connect again");

impl Session {
    pub(super) fn new(app: Arc<App>, parts: Parts, has_key: bool) -> Session {
        Session { app, parts, has_key, caller: None, running: HashMap::new(), work: FuturesUnordered::new() }
    }

    pub(super) async fn run(mut self, mut socket: WebSocket) {
        if let Err(Close(code, reason)) = self.serve(&mut socket).await {
            close(&mut socket, code, reason).await;
            // until the client has taken it
            let gone = async { while let Some(Ok(_)) = socket.recv().await {} };
            let _in_time = timeout(INIT_TIMEOUT, gone).await;
        }
    }

    /// Until the client goes away, or there is a reason to end.
    async fn serve(&mut self, socket: &mut WebSocket) -> Result<(), Close> {
        let due = Instant::now() + INIT_TIMEOUT;
        let mut pings = interval(PING);
        let draining = self.app.draining.clone();
        loop {
            let messages = tokio::select! {
                message = socket.recv() => match message {
                    Some(Ok(Message::Text(text))) => self.hear(&text).await?,
                    Some(Ok(Message::Binary(_))) => return Err(Close(4400, "Messages are text")),
                    Some(Ok(Message::Ping(_) | Message::Pong(_))) => continue,
                    Some(Ok(Message::Close(_)) | Err(_)) | None => return Ok(()),
                },
                Some(done) = self.work.next(), if !self.work.is_empty() => match done {
                    Ok((id, done)) => self.done(id, done)?,
                    Err(Aborted) => continue,
                },
                () = sleep_until(due), if self.caller.is_none() => {
                    return Err(Close(4408, "Connection initialisation timeout"));
                }
                () = draining.cancelled() => return Err(GOES_AWAY),
                _ = pings.tick() => {
                    if socket.send(Message::Ping(Default::default())).await.is_err() {
                        return Ok(());
                    }
                    continue;
                }
            };
            for text in messages {
                if socket.send(Message::Text(text.into())).await.is_err() {
                    return Ok(());
                }
            }
        }
    }

    /// What is answered at once.
    async fn hear(&mut self, text: &str) -> Result<Vec<String>, Close> {
        let Some(message) = ClientMessage::parse(text) else {
            return Err(Close(4400, "This is no message of graphql-transport-ws"));
        };
        match message {
            ClientMessage::Init(_) if self.caller.is_some() => {
                return Err(Close(4429, "Too many initialisation requests"));
            }
            ClientMessage::Init(payload) => {
                self.caller = Some(self.caller(&payload).await?);
                return Ok(vec![message::ACK.to_owned()]);
            }
            ClientMessage::Ping(payload) => return Ok(vec![message::pong(payload.as_deref())]),
            ClientMessage::Pong => {}
            ClientMessage::Complete { id } => {
                if let Some(running) = self.running.remove(&id) {
                    running.abort();
                }
            }
            ClientMessage::Subscribe { id, request } => {
                let Some(caller) = self.caller.clone() else { return Err(Close(4401, "Unauthorized")) };
                if self.running.contains_key(&id) {
                    return Err(Close(4409, "A subscriber with this id already exists"));
                }
                if MAX_OPERATIONS <= self.running.len() {
                    return Err(Close(4429, "More than 100 operations on one connection"));
                }
                let app = self.app.clone();
                self.start(id, async move { begin(caller, app, request).await }.boxed());
            }
        }
        Ok(Vec::new())
    }

    /// Who the client says it is.
    async fn caller(&mut self, payload: &[(String, String)]) -> Result<Caller, Close> {
        let is_key =
            |name: &str| ["x-api-key", "authorization"].contains(&name.to_ascii_lowercase().as_str());
        if self.has_key && payload.iter().any(|(name, _)| is_key(name)) {
            return Err(Close(4403, "The request has a key, and connection_init has one; send one of them"));
        }
        let caller = caller_of(&self.app, &self.parts, payload).await;
        let caller = caller.map_err(|_| Close(4403, "Forbidden"))?;
        match caller.authenticate_fresh().await {
            Ok(_) => Ok(caller),
            Err(problem) if matches!(problem.code, Code::Unavailable | Code::RateLimited) => {
                Err(Close(TRY_AGAIN, "The key cannot be checked now; connect again"))
            }
            Err(_) => Err(Close(4403, "Forbidden")),
        }
    }

    fn start(&mut self, id: String, work: BoxFuture<'static, Done>) {
        let (handle, registration) = AbortHandle::new_pair();
        self.running.insert(id.clone(), handle);
        let work = async move { (id, work.await) }.boxed();
        self.work.push(Abortable::new(work, registration));
    }

    /// The messages of an operation that came to something.
    fn done(&mut self, id: String, done: Done) -> Result<Vec<String>, Close> {
        self.running.remove(&id);
        Ok(match done {
            Done::Answered(Answer { data: None, errors }) => vec![message::error(&id, &error::list(&errors))],
            Done::Answered(Answer { data, errors }) => {
                vec![message::next(&id, &error::body(data.as_deref(), &errors)), message::complete(&id)]
            }
            Done::Refused(error) | Done::Follows(_, Some(Output::Failed(error))) => {
                vec![message::error(&id, &error::list(&[error]))]
            }
            Done::Follows(_, Some(Output::Draining)) => return Err(GOES_AWAY),
            Done::Follows(following, output) => {
                let answers = match output {
                    Some(Output::Next(answers)) => answers,
                    _ => Vec::new(),
                };
                let messages = answers.iter().map(|answer| message::next(&id, answer)).collect();
                self.start(id, follow(following).boxed());
                messages
            }
        })
    }
}

async fn begin(caller: Caller, app: Arc<App>, request: Result<GraphQlRequest, Problem>) -> Done {
    match run(caller, app, request).await {
        Ok(done) => done,
        Err(problem) => Done::Refused(GraphQlError::from(problem)),
    }
}

async fn run(
    caller: Caller,
    app: Arc<App>,
    request: Result<GraphQlRequest, Problem>,
) -> Result<Done, Problem> {
    let context = caller.authenticate().await?;
    let carries = Carries { mutations: false, subscriptions: true };
    let prepared = match query::run(&caller, &app, context, request, carries).await? {
        query::Outcome::Answered(answer) => return Ok(Done::Answered(answer)),
        query::Outcome::Mutates(_) => return Err(Problem::internal()),
        query::Outcome::Subscribes(prepared) => prepared,
    };
    let context = caller.reauthenticate().await?;
    Ok(match subscription::open(caller, app, &context, &prepared).await {
        Ok(following) => Done::Follows(Box::new(following), None),
        Err(error) => Done::Refused(error),
    })
}

async fn follow(mut following: Box<(Follower, Subscription)>) -> Done {
    let (follower, subscription) = &mut *following;
    let output = subscription.output(follower.next().await);
    Done::Follows(following, Some(output))
}
