//! Whose request it is: the key or the token, the tenant in the path, and the role that the caller says it is.

use std::sync::Arc;

use axum::extract::{FromRequestParts, MatchedPath};
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName};
use rowgate_core::jwt::Claims;
use rowgate_core::name::{TenantSlug, Ulid};
use rowgate_core::problem::{Code, Problem};
use rowgate_core::secret::{Credential, PresentedKey};

use crate::app::App;
use crate::auth::key_context::KeyContext;
use crate::server::body_memory::{BodyMemory, BodyReservation};
use crate::server::path;
use crate::server::respond::{Refusal, RequestId};
use crate::server::trace::Trace;
use crate::tenants::registry::TenantMatch;
use crate::tenants::tenant::Tenant;

const X_API_KEY: HeaderName = HeaderName::from_static("x-api-key");
const X_MS_API_ROLE: HeaderName = HeaderName::from_static("x-ms-api-role");

/// Who sent a well-formed key of the path's tenant, or a token for one. Whether the key lives is the database's to say.
///
/// A key of a tenant that does not exist is a caller, too, so that all that is done for it is what is done for others: it is
/// looked for in another tenant, as a credential that is never found.
#[derive(Clone)]
pub struct Caller {
    pub tenant: Arc<Tenant>,
    pub credential: Credential,
    pub trace: Arc<Trace>,
    pub(crate) role: SaidRole,
    /// The tenant is the one that the key names.
    is_named: bool,
    body_memory: Arc<BodyMemory>,
}

/// What a request shows of itself, checked as far as that goes without a database.
struct Presented {
    tenant: TenantSlug,
    credential: Credential,
}

/// The header `X-MS-API-ROLE`. It is compared and never used.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum SaidRole {
    None,
    One(String),
    /// Repeated, empty or not text.
    Unfit,
}

impl FromRequestParts<Arc<App>> for Caller {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Caller, Refusal> {
        let trace = Trace::of(parts);
        let presented = Presented::of(&parts.headers, app)?.ok_or_else(Problem::unauthorized)?;
        if !fits(parts, &presented.tenant) {
            return Err(Problem::unauthorized().into());
        }
        let Presented { tenant: slug, credential } = presented;
        let found = app.tenants.find(&slug)?.ok_or_else(Problem::unauthorized)?;
        let TenantMatch { tenant, is_named } = found;
        let credential = match is_named {
            true => {
                // Both are set once, here.
                let _first = trace.tenant.set(tenant.clone());
                credential
            }
            false => credential.of_nobody(),
        };
        let (role, body_memory) = (SaidRole::of(&parts.headers), app.body_memory.clone());
        Ok(Caller { tenant, credential, trace, role, is_named, body_memory })
    }
}

impl Caller {
    /// The data plane itself, in the name of a key.
    pub(crate) fn owner(tenant: &Arc<Tenant>, key: Ulid, body_memory: Arc<BodyMemory>) -> Caller {
        let trace = Arc::new(Trace::new(RequestId::now()));
        let _first = trace.tenant.set(tenant.clone());
        let (credential, tenant) = (Credential::Owner(key), tenant.clone());
        Caller { tenant, credential, trace, role: SaidRole::None, is_named: true, body_memory }
    }

    /// The caller's key, remembered or looked up, with this request counted against its rate limit.
    pub async fn authenticate(&self) -> Result<KeyContext, Problem> {
        let context = self.tenant.authenticate(&self.credential).await?;
        self.found(&context)?;
        self.tenant.admit(&self.credential, &context).await?;
        Ok(context)
    }

    /// As [`Caller::authenticate`], with the database's word of now, so that the role that is named can be judged at once.
    pub async fn authenticate_fresh(&self) -> Result<KeyContext, Problem> {
        let context = self.tenant.authenticate_fresh(&self.credential).await?;
        self.found(&context)?;
        self.tenant.admit(&self.credential, &context).await?;
        self.check_role(&context)?;
        Ok(context)
    }

    /// Notes the key that was found, which is none of a tenant that stands in for nobody's.
    fn found(&self, context: &KeyContext) -> Result<(), Problem> {
        debug_assert!(self.is_named, "a tenant that stands in for nobody's has a caller");
        if !self.is_named {
            return Err(Problem::unauthorized());
        }
        self.note(context);
        Ok(())
    }

    /// The caller's key once more, without counting the request again: for what goes on after waiting for its body.
    pub async fn reauthenticate(&self) -> Result<KeyContext, Problem> {
        self.tenant.authenticate(&self.credential).await
    }

    /// Takes `n` bytes of memory for this request's body, or for what was made of it, as long as the answer lives.
    ///
    /// # Errors
    /// 429 where the key itself holds too much, 503 where others do.
    pub(crate) fn reserve(&self, context: &KeyContext, n: usize) -> Result<BodyReservation, Problem> {
        BodyReservation::new(&self.body_memory, &self.tenant.id, &context.key.id, n)
    }

    /// Refuses a role header that names another role than the key's. Only a live key may learn that.
    pub fn check_role(&self, context: &KeyContext) -> Result<(), Problem> {
        match &self.role {
            SaidRole::None => Ok(()),
            SaidRole::One(role) if *role == context.key.role => Ok(()),
            SaidRole::One(_) | SaidRole::Unfit => Err(Problem::new(
                Code::RoleMismatch,
                "X-MS-API-ROLE is not the role of this API key; send the key's own role once, or leave the header out",
            )),
        }
    }

    /// Notes whose request it is, for the log.
    pub fn note(&self, context: &KeyContext) {
        // A second look at the same key changes nothing.
        let _first = self.trace.key.set(context.key.clone());
    }
}

impl SaidRole {
    fn of(headers: &HeaderMap) -> SaidRole {
        let mut values = headers.get_all(X_MS_API_ROLE).iter();
        match (values.next(), values.next()) {
            (None, _) => SaidRole::None,
            (Some(value), None) => match value.to_str() {
                Ok(role) if !role.is_empty() => SaidRole::One(role.to_owned()),
                _ => SaidRole::Unfit,
            },
            _ => SaidRole::Unfit,
        }
    }
}

impl Presented {
    /// `None`: neither a key nor a token, or more than one, or not a good one.
    fn of(headers: &HeaderMap, app: &App) -> Result<Option<Presented>, Problem> {
        match (headers.contains_key(X_API_KEY), headers.contains_key(AUTHORIZATION)) {
            (true, true) => Err(Problem::new(
                Code::BadRequest,
                "the request has both X-API-Key and Authorization; send only one of them",
            )),
            (true, false) => Ok(key(headers).map(|key| {
                let credential = Credential::Secret(key.secret.digest(&app.pepper));
                Presented { tenant: key.tenant, credential }
            })),
            (false, _) => Ok(token(headers, app)?.map(|claims| {
                let credential = claims.credential();
                Presented { tenant: claims.tenant, credential }
            })),
        }
    }
}

/// The key, if there is exactly one and it is well-formed.
fn key(headers: &HeaderMap) -> Option<PresentedKey> {
    PresentedKey::parse(only(headers, &X_API_KEY)?).ok()
}

/// What the token says, if there is exactly one, a key of ours signed it, and it is valid now.
fn token(headers: &HeaderMap, app: &App) -> Result<Option<Claims>, Problem> {
    let parts = only(headers, &AUTHORIZATION).and_then(|value| value.split_once(' '));
    let Some((_, token)) = parts.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer")) else {
        return Ok(None);
    };
    // Time enters here.
    app.token_keys.verify(token, jiff::Timestamp::now().as_second())
}

fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let (Some(value), None) = (values.next(), values.next()) else { return None };
    value.to_str().ok()
}

/// Whether the path names `tenant`, or belongs to a route that names none.
fn fits(parts: &Parts, tenant: &TenantSlug) -> bool {
    let pattern = parts.extensions.get::<MatchedPath>().map(MatchedPath::as_str);
    let named = parts.uri.path().split('/').nth(2).and_then(|part| path::decode(part).ok());
    match pattern {
        Some(pattern) if !pattern.contains("{tenant}") => true,
        // there is nothing, which is said to live keys only
        None if parts.uri.path().starts_with("/api/ddl") => true,
        // Every pattern that names a tenant begins with /auth/{tenant}/, as `http` tests.
        _ => named.is_some_and(|named| named == tenant.as_str()),
    }
}

impl Trace {
    /// The request's trace, its route noted.
    pub fn of(parts: &Parts) -> Arc<Trace> {
        let trace = parts.extensions.get::<Arc<Trace>>().cloned().expect("api::service adds it");
        if let Some(route) = parts.extensions.get::<MatchedPath>() {
            let _first = trace.route.set(route.clone());
        }
        trace
    }
}

#[cfg(test)]
mod tests {
    use rowgate_core::name::TenantSlug;
    use rowgate_core::secret::{ApiKeySecret, ENTROPY_LEN};

    use super::*;

    fn key(tenant: &str) -> String {
        let tenant: TenantSlug = tenant.parse().expect("a slug");
        ApiKeySecret::generate(&[7; ENTROPY_LEN]).reveal(&tenant)
    }

    fn headers(name: &HeaderName, values: &[&str]) -> HeaderMap {
        values.iter().map(|value| (name.clone(), value.parse().expect("a header"))).fold(
            HeaderMap::new(),
            |mut headers, (name, value)| {
                headers.append(name, value);
                headers
            },
        )
    }

    fn parts(path: &str) -> Parts {
        axum::http::Request::builder().uri(path).body(()).expect("a request").into_parts().0
    }

    #[test]
    fn a_key_counts_once_and_for_its_own_tenant_only() {
        let (shop, slug) = (key("shop"), "shop".parse().expect("a slug"));
        assert!(super::key(&headers(&X_API_KEY, &[&shop])).is_some());
        for path in ["/auth/shop/api", "/auth/%73hop/api/orders"] {
            assert!(fits(&parts(path), &slug), "{path}");
        }
        for path in
            ["/auth/Shop/api", "/auth/other/api", "/auth//api", "/auth/sh%op/api", "/auth/shop%2F/api", "/"]
        {
            assert!(!fits(&parts(path), &slug), "{path}");
        }
        for keys in [&[][..], &[""], &[&shop, &shop], &["shop:dlk_x"], &[&format!("{shop},{shop}")]] {
            assert!(super::key(&headers(&X_API_KEY, keys)).is_none(), "{keys:?}");
        }
    }

    #[test]
    fn a_role_header_is_one_text_or_unfit() {
        let said = |values: &[&str]| match SaidRole::of(&headers(&X_MS_API_ROLE, values)) {
            SaidRole::None => "none".to_owned(),
            SaidRole::One(role) => role,
            SaidRole::Unfit => "unfit".to_owned(),
        };
        assert_eq!(said(&[]), "none");
        assert_eq!(said(&["datalake_user"]), "datalake_user");
        assert_eq!(said(&[""]), "unfit");
        assert_eq!(said(&["a", "a"]), "unfit");
    }
}
