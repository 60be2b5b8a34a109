//! `--exports-url`: a bucket, and the path in it below which the files are.

use std::env;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::path::Path;
use object_store::{BackoffConfig, RetryConfig};

use super::http::Connector;
use super::objects::{Objects, Uploads};

const MAX_RETRIES: usize = 5;
const RETRY_TIMEOUT: Duration = Duration::from_secs(30);

/// Where in which provider's storage. Says nothing of credentials, which come from the environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    provider: Provider,
    /// Of the bucket, without the path.
    bucket: String,
    prefix: Path,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Provider {
    S3,
    Gcs,
    Azure,
}

impl Location {
    /// # Errors
    /// What is wrong with the text, and how it is written.
    pub fn parse(text: &str) -> Result<Location, String> {
        let wrong =
            "is not object storage; write it like s3://bucket/path, gs://bucket/path or az://container/path";
        let (scheme, rest) = text.split_once("://").ok_or(wrong)?;
        let provider = match scheme {
            "s3" => Provider::S3,
            "gs" => Provider::Gcs,
            "az" => Provider::Azure,
            _ => return Err(wrong.to_owned()),
        };
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let is_name = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
        if bucket.is_empty() || !bucket.chars().all(is_name) {
            return Err(wrong.to_owned());
        }
        if prefix.contains(['?', '#']) {
            return Err(
                "has a ? or # in its path; credentials and options come from the environment".to_owned()
            );
        }
        let prefix = Path::parse(prefix.trim_end_matches('/')).map_err(|error| error.to_string())?;
        Ok(Location { provider, bucket: bucket.to_owned(), prefix })
    }

    /// A client of the storage, with the credentials of the environment; nothing is asked yet.
    ///
    /// # Errors
    /// A setting of the environment is missing, or would send credentials without TLS.
    pub(super) fn open(&self) -> object_store::Result<Objects> {
        self.only_tls()?;
        let bucket = self.bucket.as_str();
        let retry = RetryConfig {
            backoff: BackoffConfig::default(),
            max_retries: MAX_RETRIES,
            retry_timeout: RETRY_TIMEOUT,
        };
        Ok(match self.provider {
            Provider::S3 => {
                let builder = AmazonS3Builder::from_env().with_bucket_name(bucket);
                let store = Arc::new(builder.with_http_connector(Connector).with_retry(retry).build()?);
                Objects::new(self.clone(), store.clone(), store.clone(), Uploads::ById(store))
            }
            Provider::Gcs => {
                let builder = GoogleCloudStorageBuilder::from_env().with_bucket_name(bucket);
                let store = Arc::new(builder.with_http_connector(Connector).with_retry(retry).build()?);
                Objects::new(self.clone(), store.clone(), store.clone(), Uploads::ById(store))
            }
            Provider::Azure => {
                let builder = MicrosoftAzureBuilder::from_env().with_container_name(bucket);
                let store = Arc::new(builder.with_http_connector(Connector).with_retry(retry).build()?);
                Objects::new(self.clone(), store.clone(), store, Uploads::Whole)
            }
        })
    }

    /// Another endpoint than the provider's needs TLS, or a setting that says otherwise.
    fn only_tls(&self) -> object_store::Result<()> {
        let (endpoints, allowed): (&[&str], _) = match self.provider {
            Provider::S3 => (&["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"], "AWS_ALLOW_HTTP"),
            Provider::Azure => (&["AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT"], "AZURE_ALLOW_HTTP"),
            Provider::Gcs => return Ok(()),
        };
        let is_plain = |name: &&str| env::var(name).is_ok_and(|url| url.starts_with("http:"));
        match endpoints.iter().copied().find(is_plain) {
            Some(name) if env::var(allowed).as_deref() != Ok("true") => {
                let what = format!("{name} is an address without TLS; use https, or set {allowed}=true");
                Err(object_store::Error::Generic { store: "exports", source: what.into() })
            }
            _ => Ok(()),
        }
    }

    /// The object of this name.
    pub(super) fn object(&self, name: &str) -> Path {
        self.prefix.clone().join(name)
    }

    pub(super) fn prefix(&self) -> &Path {
        &self.prefix
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match self.provider {
            Provider::S3 => "s3",
            Provider::Gcs => "gs",
            Provider::Azure => "az",
        };
        write!(f, "{scheme}://{}/{}", self.bucket, self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_with_or_without_a_path_is_a_location() {
        for (text, shown) in [
            ("s3://exports", "s3://exports/"),
            ("s3://exports/", "s3://exports/"),
            ("gs://exports/rowgate/eu/", "gs://exports/rowgate/eu"),
            ("az://exports/a", "az://exports/a"),
        ] {
            assert_eq!(Location::parse(text).expect(text).to_string(), shown);
        }
        let object = Location::parse("s3://b/a/b").expect("a location").object("x.1");
        assert_eq!(object.as_ref(), "a/b/x.1");
    }

    #[test]
    fn what_is_none_is_refused_with_an_example() {
        for text in [
            "",
            "exports",
            "/var/lib",
            "s3:/b",
            "s3://",
            "s3://a b",
            "http://b/c",
            "file:///x",
            "s3://u:p@b/x",
        ] {
            let said = Location::parse(text).expect_err(text);
            assert!(said.contains("s3://bucket/path"), "{text}: {said}");
        }
        for text in ["s3://b/x?versioning", "s3://b/#x", "s3://b/a//b", "s3://b/../b"] {
            assert!(Location::parse(text).is_err(), "{text}");
        }
    }
}
