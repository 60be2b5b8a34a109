//! The connection to the API server, and when each watch last heard of it.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::http::{Method, Request, Response};
use kube::client::{Body, ClientBuilder};
use kube::{Client, Config};
use parking_lot::Mutex;
use tokio::time::Instant;
use tower::{Layer, Service};

use crate::tenure::Tenure;

/// Any other request that takes longer has failed.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// Opens nothing yet: the first request connects. Gives the client, which writes in `tenure` only, and the namespace that
/// it belongs to. A watch is renewed after `watch`.
///
/// # Errors
/// When neither a pod's account nor a kubeconfig is there.
pub async fn connect(
    progress: &Progress,
    tenure: &Tenure,
    watch: Duration,
) -> Result<(Client, String), ConnectError> {
    let mut config = Config::infer().await.map_err(|error| ConnectError(error.to_string()))?;
    // a watch is silent for as long as nothing changes
    config.read_timeout = Some(watch + REQUEST_TIMEOUT);
    config.write_timeout = Some(REQUEST_TIMEOUT);
    config.connect_timeout = Some(REQUEST_TIMEOUT);
    let namespace = config.default_namespace.clone();
    let builder = ClientBuilder::try_from(config).map_err(|error| ConnectError(error.to_string()))?;
    Ok((builder.with_layer(progress).with_layer(tenure).build(), namespace))
}

/// Why it is not known where the API server is.
#[derive(Debug, thiserror::Error)]
#[error("the address of the API server is unknown ({0}); run in a pod, or set KUBECONFIG")]
pub struct ConnectError(String);

/// When the API server last answered a list or watch, by its path. An idle watch ends after a while
/// (`--watch-seconds`) and is renewed, so that an idle cluster makes progress too.
#[derive(Clone, Default)]
pub struct Progress(Arc<Mutex<HashMap<String, Instant>>>);

impl Progress {
    /// Watches `path` from now on.
    pub fn expect(&self, path: &str) {
        self.lock().insert(path.to_owned(), Instant::now());
    }

    /// How long the watch that heard nothing for longest has heard nothing.
    #[must_use]
    pub fn silence(&self) -> Duration {
        self.lock().values().map(Instant::elapsed).max().unwrap_or_default()
    }

    /// The paths with how long each has heard nothing.
    #[must_use]
    pub fn each(&self) -> Vec<(String, Duration)> {
        let mut each: Vec<_> = self.lock().iter().map(|(path, at)| (path.clone(), at.elapsed())).collect();
        each.sort();
        each
    }

    /// Something came from the watch of `path`.
    pub fn note(&self, path: &str) {
        if let Some(at) = self.lock().get_mut(path) {
            *at = Instant::now();
        }
    }

    fn lock(&self) -> parking_lot::MutexGuard<'_, HashMap<String, Instant>> {
        self.0.lock()
    }
}

impl<S> Layer<S> for Progress {
    type Service = Noted<S>;

    fn layer(&self, inner: S) -> Noted<S> {
        Noted { inner, progress: self.clone() }
    }
}

/// A client's service whose answers are noted.
#[derive(Clone)]
pub struct Noted<S> {
    inner: S,
    progress: Progress,
}

impl<S, B> Service<Request<Body>> for Noted<S>
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Future: Send + 'static,
{
    type Response = Response<B>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<B>, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let path = (request.method() == Method::GET).then(|| request.uri().path().to_owned());
        let progress = self.progress.clone();
        let answer = self.inner.call(request);
        Box::pin(async move {
            let answer = answer.await?;
            if let Some(path) = path.filter(|_| answer.status().is_success()) {
                progress.note(&path);
            }
            Ok(answer)
        })
    }
}
