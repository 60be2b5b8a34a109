//! GraphQL over WebSocket, by the subprotocol `graphql-transport-ws`: queries, and subscriptions for as long as the key lives.
//!
//! Numbers of close codes are those of the protocol: <https://github.com/enisdenjo/graphql-ws/blob/master/PROTOCOL.md>.

mod message;
mod session;

use std::sync::Arc;

use axum::extract::FromRequestParts as _;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, header};
use axum::response::Response;
use rowgate_core::problem::{Code, Problem};
use tokio::sync::{Semaphore, oneshot};
use tokio_util::sync::CancellationToken;

use crate::app::{App, Tasks};
use crate::auth::credential::Caller;
use crate::server::respond::Refusal;
use session::Session;

pub(crate) const SUBPROTOCOL: &str = "graphql-transport-ws";
/// Of all tenants. They are no connections of HTTP any more, whose number has a bound of its own.
const MAX_SOCKETS: usize = 5_000;
/// A message from a client, in bytes.
const MAX_MESSAGE: usize = 256 << 10;
/// Headers that `connection_init` may hold in place of the request.
const CREDENTIALS: [&str; 3] = ["x-api-key", "authorization", "x-ms-api-role"];

/// The WebSockets of this replica.
pub struct Sockets {
    tasks: Tasks,
    /// Cancelled when no more time is left to end.
    cut: CancellationToken,
    slots: Arc<Semaphore>,
}

impl Sockets {
    #[must_use]
    pub fn new(tasks: Tasks, cut: CancellationToken) -> Sockets {
        Sockets { tasks, cut, slots: Arc::new(Semaphore::new(MAX_SOCKETS)) }
    }
}

/// Whether the request asks for a WebSocket.
pub(super) fn is_asked_for(headers: &HeaderMap) -> bool {
    let upgrade = headers.get(header::UPGRADE).and_then(|value| value.to_str().ok());
    upgrade.is_some_and(|upgrade| upgrade.eq_ignore_ascii_case("websocket"))
}

/// Takes a WebSocket. A key of the request is checked first; without one, `connection_init` brings it.
pub(super) async fn accept(app: Arc<App>, mut parts: Parts) -> Result<Response, Refusal> {
    let has_key = CREDENTIALS[..2].iter().any(|name| parts.headers.contains_key(*name));
    if has_key {
        Caller::from_request_parts(&mut parts, &app).await?.authenticate_fresh().await?;
    }
    let upgrade = WebSocketUpgrade::from_request_parts(&mut parts, &app).await;
    let bad = |what: &str| Problem::new(Code::BadRequest, what);
    let upgrade =
        upgrade.map_err(|_| bad("the request is no handshake of a WebSocket of version 13 over HTTP/1.1"))?;
    let upgrade = upgrade.protocols([SUBPROTOCOL]).max_message_size(MAX_MESSAGE).max_frame_size(MAX_MESSAGE);
    if upgrade.selected_protocol().is_none() {
        return Err(bad("offer the subprotocol graphql-transport-ws in Sec-WebSocket-Protocol").into());
    }
    let Ok(slot) = app.sockets.slots.clone().try_acquire_owned() else {
        return Err(
            Problem::new(Code::Unavailable, "this replica has as many WebSockets as it serves").into()
        );
    };
    let (give, upgraded) = oneshot::channel();
    let serving = app.clone();
    app.sockets.tasks.start(async move {
        let Ok(socket) = upgraded.await else { return };
        let cut = serving.sockets.cut.clone();
        tokio::select! {
            () = Session::new(serving, parts, has_key).run(socket) => {}
            () = cut.cancelled() => {}
        }
        drop(slot);
    });
    Ok(upgrade.on_upgrade(async move |socket| {
        let _session_ended = give.send(socket);
    }))
}

/// The caller whose key a client put into `connection_init`.
async fn caller_of(app: &Arc<App>, parts: &Parts, payload: &[(String, String)]) -> Result<Caller, Refusal> {
    let mut parts = parts.clone();
    for (name, value) in payload {
        let name = name.to_ascii_lowercase();
        let known = CREDENTIALS.iter().find(|known| **known == name);
        let (Some(name), Ok(value)) = (known, value.parse()) else { continue };
        parts.headers.append(HeaderName::from_static(name), value);
    }
    Caller::from_request_parts(&mut parts, app).await
}

/// Ends the socket. What fails here has ended already.
async fn close(socket: &mut WebSocket, code: u16, reason: &'static str) {
    let frame = CloseFrame { code, reason: reason.into() };
    let _ended = socket.send(Message::Close(Some(frame))).await;
}

/// Codes after which a client connects again.
const RESTART: u16 = close_code::RESTART;
const TRY_AGAIN: u16 = close_code::AGAIN;
