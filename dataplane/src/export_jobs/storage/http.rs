//! How object storage is reached: with the HTTP client, the TLS library and the trusted authorities of the rest of the data plane.

use std::pin::Pin;
use std::time::Duration;

use http_body_util::BodyExt as _;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector as TcpConnector;
use hyper_util::client::legacy::{Client, Error};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpRequestBody, HttpResponse,
    HttpResponseBody, HttpService,
};

use crate::delivery::sender::trust::system_tls;

/// Until the head of an answer is there: a part of 8 MiB takes so long at 0.6 Mbit/s.
const ANSWER_TIMEOUT: Duration = Duration::from_mins(2);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(super) struct Connector;

#[derive(Debug)]
struct Service(Client<HttpsConnector<TcpConnector>, HttpRequestBody>);

type Answer<'a> = Pin<Box<dyn Future<Output = Result<HttpResponse, HttpError>> + Send + 'a>>;

impl HttpConnector for Connector {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        let mut tcp = TcpConnector::new();
        tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
        tcp.enforce_http(false);
        let builder = HttpsConnectorBuilder::new().with_tls_config(system_tls());
        let connector = builder.https_or_http().enable_http1().wrap_connector(tcp);
        let client = Client::builder(TokioExecutor::new()).pool_timer(TokioTimer::new()).build(connector);
        Ok(HttpClient::new(Service(client)))
    }
}

impl HttpService for Service {
    fn call<'s, 'a>(&'s self, request: HttpRequest) -> Answer<'a>
    where
        's: 'a,
        Self: 'a,
    {
        Box::pin(async move {
            let late =
                || HttpError::new(HttpErrorKind::Timeout, std::io::Error::from(std::io::ErrorKind::TimedOut));
            let answer = tokio::time::timeout(ANSWER_TIMEOUT, self.0.request(request)).await;
            let answer = answer.map_err(|_| late())?.map_err(http_error)?;
            let broken = |error: hyper::Error| HttpError::new(HttpErrorKind::Interrupted, error);
            Ok(answer.map(|body| HttpResponseBody::new(body.map_err(broken))))
        })
    }
}

fn http_error(error: Error) -> HttpError {
    let kind = if error.is_connect() { HttpErrorKind::Connect } else { HttpErrorKind::Interrupted };
    HttpError::new(kind, error)
}
