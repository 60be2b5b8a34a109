//! The addresses at which clients reach the data plane, as statuses tell them.

use rowgate_crds::Endpoints;

/// URLs without a slash at the end, such as `http://127.0.0.1:8080`; one listener serves all three unless a deployment
/// divides them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct PublicUrls {
    /// `/auth/{tenant}/...`
    pub data: String,
    /// The exchange of keys for tokens.
    pub auth: String,
    /// `/api/ddl/...`
    pub ddl: String,
}

impl PublicUrls {
    /// All at one address.
    #[must_use]
    pub fn at(url: &str) -> PublicUrls {
        PublicUrls { data: url.to_owned(), auth: url.to_owned(), ddl: url.to_owned() }
    }

    pub(crate) fn endpoints(&self, slug: &str) -> Endpoints {
        let PublicUrls { data, auth, ddl } = self;
        Endpoints {
            rest: Some(format!("{data}/auth/{slug}/api")),
            graphql: Some(format!("{data}/auth/{slug}/graphql")),
            openapi: Some(format!("{data}/auth/{slug}/openapi.json")),
            tokens: Some(format!("{auth}/api/auth/apikeys/exchange")),
            ddl: Some(format!("{ddl}/api/ddl")),
        }
    }
}
