//! Who asks: the key that a credential names, as this replica remembers it or as the database says.

use std::sync::Arc;
use std::time::Instant;

use rowgate_core::problem::Problem;
use rowgate_core::secret::Credential;
use rowgate_pg::tenant::keys::{self, Found};

use crate::auth::key_context::KeyContext;
use crate::auth::lookup_limiter::LookupPermit;
use crate::auth::rate_limit::RateLimit;
use crate::tenants::snapshot::Snapshot;
use crate::tenants::tenant::Tenant;

impl Tenant {
    /// Finds the live key, from memory or from the database, together with the catalog of the same generation.
    pub async fn authenticate(&self, credential: &Credential) -> Result<KeyContext, Problem> {
        let snapshot = self.current_or_loaded().await?;
        match snapshot.keys.get(credential) {
            Some((key, rate_limit, last_used)) => {
                Ok(KeyContext { snapshot, key, rate_limit, last_used, fresh: false })
            }
            None => self.look_up(credential, snapshot).await,
        }
    }

    /// As [`Tenant::authenticate`], with the database's word of now.
    pub async fn authenticate_fresh(&self, credential: &Credential) -> Result<KeyContext, Problem> {
        let snapshot = self.current_or_loaded().await?;
        self.look_up(credential, snapshot).await
    }

    /// Asks the database until its record and a catalog agree on the generation: twice, where nothing changes.
    async fn look_up(
        &self,
        credential: &Credential,
        mut snapshot: Arc<Snapshot>,
    ) -> Result<KeyContext, Problem> {
        for _ in 0..4 {
            let permit = match snapshot.keys.knows(credential) {
                true => None,
                false => Some(self.lookup_limiter.acquire().await.ok_or_else(Problem::unavailable)?),
            };
            let Some(found) = self.find(credential, permit).await? else {
                snapshot.forget(credential);
                return Err(Problem::unauthorized());
            };
            if found.generation == snapshot.catalog.generation {
                let looked = self.check_freshness(snapshot.clone()).await?;
                if !Arc::ptr_eq(&looked, &snapshot) {
                    snapshot = looked;
                    continue;
                }
                let (now, last_used) = (Instant::now(), self.last_used.of(&found.id));
                self.last_used.note(&last_used, now);
                let limited = snapshot.catalog.limits.is_rate_limited();
                let rate_limit =
                    limited.then(|| Arc::new(RateLimit::new(self.rate_limits.of(&found.id, now))));
                let (key, rate_limit, last_used) =
                    snapshot.keys.remember(credential, found, rate_limit, last_used);
                return Ok(KeyContext { snapshot, key, rate_limit, last_used, fresh: true });
            }
            if found.generation > snapshot.catalog.generation {
                snapshot = self.reload(Some(&snapshot)).await?;
            }
        }
        Err(Problem::unavailable())
    }

    /// `permit` is held as long as the exchange runs, even when its caller is gone.
    async fn find(
        &self,
        credential: &Credential,
        permit: Option<LookupPermit>,
    ) -> Result<Option<Found>, Problem> {
        match permit {
            None => self.metrics.look_ups_of_known_keys.add_one(),
            Some(_) => self.metrics.look_ups_of_unknown_keys.add_one(),
        }
        let (pool, credential) = (self.look_ups.clone(), credential.clone());
        let exchange = async move {
            let mut conn = pool.acquire().await?;
            let found = keys::find(&mut conn, &credential).await;
            drop(permit);
            conn.done(found)
        };
        self.run_detached(exchange).await
    }
}
