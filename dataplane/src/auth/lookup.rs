//! Who asks: the key that a credential names, as this replica remembers it or as the database says.

use std::sync::Arc;
use std::time::Instant;

use rowgate_core::problem::Problem;
use rowgate_core::secret::Credential;
use rowgate_pg::tenant::keys;
use rowgate_pg::tenant::keys::Found;

use crate::auth::lookup_limiter::Pass;
use crate::auth::rate_limit::Allowance;
use crate::tenants::snapshot::{Known, Snapshot};
use crate::tenants::tenant::Tenant;

impl Tenant {
    /// Finds the live key, from memory or from the database, together with the catalog of the same generation.
    pub async fn recognize(&self, credential: &Credential) -> Result<Known, Problem> {
        let snapshot = self.current_or_loaded().await?;
        match snapshot.keys.get(credential) {
            Some((key, allowance, used)) => Ok(Known { snapshot, key, allowance, used, fresh: false }),
            None => self.ask_anew(credential, snapshot).await,
        }
    }

    /// As [`Tenant::recognize`], with the database's word of now.
    pub async fn recognize_anew(&self, credential: &Credential) -> Result<Known, Problem> {
        let snapshot = self.current_or_loaded().await?;
        self.ask_anew(credential, snapshot).await
    }

    /// Asks the database until its record and a catalog agree on the generation: twice, where nobody changes anything.
    async fn ask_anew(&self, credential: &Credential, mut snapshot: Arc<Snapshot>) -> Result<Known, Problem> {
        for _ in 0..4 {
            let pass = match snapshot.keys.knows(credential) {
                true => None,
                false => Some(self.strangers.pass().await.ok_or_else(Problem::unavailable)?),
            };
            let Some(found) = self.find(credential, pass).await? else {
                snapshot.forget(credential);
                return Err(Problem::unauthorized());
            };
            if found.generation == snapshot.catalog.generation {
                let looked = self.look(snapshot.clone()).await?;
                if !Arc::ptr_eq(&looked, &snapshot) {
                    snapshot = looked;
                    continue;
                }
                let (now, used) = (Instant::now(), self.uses.of(&found.id));
                self.uses.note(&used, now);
                let limited = snapshot.catalog.limits.requests_per_second.is_some();
                let allowance = limited.then(|| Arc::new(Allowance::new(self.buckets.of(&found.id, now))));
                let (key, allowance, used) = snapshot.keys.remember(credential, found, allowance, used);
                return Ok(Known { snapshot, key, allowance, used, fresh: true });
            }
            if found.generation > snapshot.catalog.generation {
                snapshot = self.reload(Some(&snapshot)).await?;
            }
        }
        Err(Problem::unavailable())
    }

    /// `pass` is held as long as the exchange runs, whoever still waits for it.
    async fn find(&self, credential: &Credential, pass: Option<Pass>) -> Result<Option<Found>, Problem> {
        match pass {
            None => self.meter.look_ups_of_known_keys.add_one(),
            Some(_) => self.meter.look_ups_of_strangers.add_one(),
        }
        let (pool, credential) = (self.look_ups.clone(), credential.clone());
        let exchange = async move {
            let mut conn = pool.acquire().await?;
            let found = keys::find(&mut conn, &credential).await;
            drop(pass);
            conn.done(found)
        };
        self.outliving(exchange).await
    }
}
