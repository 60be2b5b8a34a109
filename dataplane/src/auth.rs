//! Whose request it is: the key string, the tenant in the path, and the role that the caller says it is.

use std::sync::Arc;

use axum::extract::{FromRequestParts, MatchedPath};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName};
use rowgate_core::problem::{Code, Problem};
use rowgate_core::secret::{KeyDigest, PresentedKey};

use crate::app::App;
use crate::path;
use crate::respond::Refusal;
use crate::telemetry::Trace;
use crate::tenant::{Known, Tenant};

const X_API_KEY: HeaderName = HeaderName::from_static("x-api-key");
const X_MS_API_ROLE: HeaderName = HeaderName::from_static("x-ms-api-role");

/// Who sent a well-formed key of the path's tenant. Whether the key lives is the database's to say.
pub struct Caller {
    pub tenant: Arc<Tenant>,
    pub digest: KeyDigest,
    pub trace: Arc<Trace>,
    role: SaidRole,
}

/// The header `X-MS-API-ROLE`. It is compared and never used.
enum SaidRole {
    None,
    One(String),
    /// Repeated, empty or not text.
    Unfit,
}

impl FromRequestParts<Arc<App>> for Caller {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Caller, Refusal> {
        let trace = Trace::of(parts);
        let key = presented(&parts.headers, parts.uri.path()).ok_or_else(Problem::unauthorized)?;
        let digest = key.secret.digest(&app.pepper);
        let Some(tenant) = app.catalogs.tenant(&key.tenant)? else {
            if let Some(any) = app.catalogs.any() {
                any.look_up_in_vain(&digest).await;
            }
            return Err(Problem::unauthorized().into());
        };
        // Both are set once, here.
        let _first = trace.tenant.set(tenant.clone());
        Ok(Caller { tenant, digest, trace, role: SaidRole::of(&parts.headers) })
    }
}

impl Caller {
    /// Refuses a role header that names another role than the key's. Only a live key may learn that.
    pub fn check_role(&self, known: &Known) -> Result<(), Problem> {
        match &self.role {
            SaidRole::None => Ok(()),
            SaidRole::One(role) if *role == known.key.role => Ok(()),
            SaidRole::One(_) | SaidRole::Unfit => Err(Problem::new(
                Code::RoleMismatch,
                "X-MS-API-ROLE is not the role of this API key; send the key's own role once, or leave the header out",
            )),
        }
    }

    /// Notes whose request it is, for the log.
    pub fn note(&self, known: &Known) {
        // A second look at the same key changes nothing.
        let _first = self.trace.key.set(known.key.clone());
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

/// The key, if there is exactly one, it is well-formed, and the path `/auth/{tenant}/...` names its tenant.
fn presented(headers: &HeaderMap, path: &str) -> Option<PresentedKey> {
    let mut values = headers.get_all(X_API_KEY).iter();
    let (Some(value), None) = (values.next(), values.next()) else { return None };
    let key = PresentedKey::parse(value.to_str().ok()?).ok()?;
    let tenant = path.split('/').nth(2)?;
    (path::decode(tenant).ok()? == key.tenant.as_str()).then_some(key)
}

impl Trace {
    /// The request's trace, its route noted.
    pub fn of(parts: &Parts) -> Arc<Trace> {
        let trace = parts.extensions.get::<Arc<Trace>>().cloned().expect("http::service adds it");
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

    #[test]
    fn a_key_counts_once_and_for_its_own_tenant_only() {
        let shop = key("shop");
        let is_key = |keys: &[&str], path: &str| presented(&headers(&X_API_KEY, keys), path).is_some();
        assert!(is_key(&[&shop], "/auth/shop/api"));
        assert!(is_key(&[&shop], "/auth/%73hop/api/orders"));
        for path in
            ["/auth/Shop/api", "/auth/other/api", "/auth//api", "/auth/sh%op/api", "/auth/shop%2F/api", "/"]
        {
            assert!(!is_key(&[&shop], path), "{path}");
        }
        for keys in [&[][..], &[""], &[&shop, &shop], &["shop:dlk_x"], &[&format!("{shop},{shop}")]] {
            assert!(!is_key(keys, "/auth/shop/api"), "{keys:?}");
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
