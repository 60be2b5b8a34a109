//! Until when the Lease is surely ours. After that the API server gets no write of this operator, whatever part of it has
//! not yet heard of the end: a process that was stopped for a while goes on where it was.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::http::{Method, Request, Response};
use kube::client::Body;
use parking_lot::Mutex;
use tokio::time::Instant;
use tower::{BoxError, Layer, Service};

/// By our own clock, which goes on while the process is stopped. Shared by its clones.
#[derive(Debug, Clone, Default)]
pub struct Tenure(Arc<Mutex<Option<Instant>>>);

/// Why a write was not sent.
#[derive(Debug, thiserror::Error)]
#[error("this operator does not hold the Lease")]
struct NotHeld;

impl Tenure {
    /// The Lease is ours until then.
    pub(crate) fn extend(&self, end: Instant) {
        *self.0.lock() = Some(end);
    }

    /// It is ours no more.
    pub(crate) fn end(&self) {
        *self.0.lock() = None;
    }

    /// For how long it is still ours. `None`: it is not.
    #[must_use]
    pub fn left(&self) -> Option<Duration> {
        (*self.0.lock())?.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())
    }

    /// Only the holder writes, but for the Lease, which an operator writes that wants to hold it.
    fn allows(&self, request: &Request<Body>) -> bool {
        request.method() == Method::GET
            || request.uri().path().starts_with("/apis/coordination.k8s.io/")
            || self.left().is_some()
    }
}

impl<S> Layer<S> for Tenure {
    type Service = Guarded<S>;

    fn layer(&self, inner: S) -> Guarded<S> {
        Guarded { inner, tenure: self.clone() }
    }
}

/// A client's service that refuses writes of who does not hold the Lease.
#[derive(Clone)]
pub struct Guarded<S> {
    inner: S,
    tenure: Tenure,
}

impl<S, B> Service<Request<Body>> for Guarded<S>
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
{
    type Response = Response<B>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<B>, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        if !self.tenure.allows(&request) {
            return Box::pin(async { Err(NotHeld.into()) });
        }
        let answer = self.inner.call(request);
        Box::pin(async move { answer.await.map_err(Into::into) })
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use tower::{ServiceExt as _, service_fn};

    use super::*;

    const STATUS: &str = "/apis/rowgate.dev/v1alpha1/namespaces/a/tenants/shop/status";

    async fn is_sent(tenure: &Tenure, method: Method, path: &str) -> bool {
        let server = service_fn(async |_: Request<Body>| Ok::<_, Infallible>(Response::new(())));
        let request = Request::builder().method(method).uri(path).body(Body::empty()).expect("a request");
        tenure.layer(server).oneshot(request).await.is_ok()
    }

    #[tokio::test]
    async fn nothing_is_written_before_the_lease_is_ours_and_after_its_end() {
        let tenure = Tenure::default();
        assert!(!is_sent(&tenure, Method::PATCH, STATUS).await);
        tenure.extend(Instant::now() + Duration::from_secs(3600));
        assert!(is_sent(&tenure, Method::PATCH, STATUS).await);
        tenure.extend(Instant::now());
        for method in [Method::PATCH, Method::POST, Method::PUT, Method::DELETE] {
            assert!(!is_sent(&tenure, method, STATUS).await);
        }
        tenure.extend(Instant::now() + Duration::from_secs(3600));
        tenure.end();
        assert!(!is_sent(&tenure, Method::PATCH, STATUS).await);
        assert!(is_sent(&tenure, Method::GET, STATUS).await);
        let lease = "/apis/coordination.k8s.io/v1/namespaces/a/leases/rowgate-operator";
        assert!(is_sent(&tenure, Method::PUT, lease).await);
    }
}
