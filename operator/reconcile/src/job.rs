//! One piece of the loop's work, run beside the others: a pass over a Tenant, the end of one that vanished, the release of
//! a key without a Tenant.

use std::collections::BTreeMap;
use std::sync::Arc;

use rowgate_crds::{ApiKey, Tenant};
use rowgate_pg::failure::PgError;
use rowgate_pg::installation::Installation;
use rowgate_pg::{leader, replicas, session, tenants};
use tokio::time::{Instant, timeout};

use crate::kept::Kept;
use crate::lanes::{Lanes, QUICK, TURN};
use crate::pass::{Memory, Pass, free_key, is_forced, is_leaving};
use crate::reporter::Reporter;
use crate::revocation;
use crate::source::{ObjectRef, ResourceSource, Snapshot};
use crate::status::TenantState;

/// What every piece of work needs.
pub(crate) struct Shared<S> {
    pub(crate) source: Arc<S>,
    pub(crate) installation: Installation,
    pub(crate) reporter: Reporter,
    pub(crate) lanes: Lanes,
    pub(crate) kept: Kept,
    /// What the fence of the control database is asked with.
    pub(crate) lead: i64,
}

/// A pass over one Tenant.
pub(crate) struct Job<S> {
    pub(crate) shared: Arc<Shared<S>>,
    pub(crate) snapshot: Arc<Snapshot>,
    pub(crate) tenant: Arc<Tenant>,
    pub(crate) keys: Vec<Arc<ApiKey>>,
    pub(crate) probe: bool,
    /// The last pass took long, or its database did not answer.
    pub(crate) slow: bool,
    pub(crate) memory: Memory,
}

/// What became of it.
pub(crate) struct Passed {
    pub(crate) uid: String,
    pub(crate) state: Arc<TenantState>,
    pub(crate) slow: bool,
    pub(crate) memory: Memory,
}

impl<S: ResourceSource> Job<S> {
    pub(crate) async fn run(mut self) -> Passed {
        let lanes = self.shared.lanes.clone();
        let mut place = lanes.enter(self.slow).await;
        let (mut slow, mut turn) = (self.slow, TURN);
        let began = Instant::now();
        let state = loop {
            let mut pass = Box::pin(pass(
                &self.shared,
                &self.snapshot,
                &self.tenant,
                &self.keys,
                self.probe,
                &mut self.memory,
            ));
            if !slow {
                if let Ok(state) = timeout(QUICK, &mut pass).await {
                    break state;
                }
                slow = true;
                if let Some(aside) = lanes.aside() {
                    place = aside;
                } else {
                    drop(pass);
                    drop(place);
                    place = lanes.enter(true).await;
                    continue;
                }
            }
            let mut done = timeout(turn, &mut pass).await.ok();
            while done.is_none() && !lanes.crowded() {
                done = timeout(turn, &mut pass).await.ok();
            }
            if let Some(state) = done {
                break state;
            }
            // begun anew when it is its turn again; a pass may be cut off anywhere
            turn *= 2;
            drop(pass);
            drop(place);
            place = lanes.enter(true).await;
        };
        drop(place);
        self.shared.source.passed(began.elapsed());
        let uid = self.tenant.metadata.uid.clone().unwrap_or_default();
        Passed { uid, state, slow, memory: self.memory }
    }
}

async fn pass<S: ResourceSource>(
    shared: &Shared<S>,
    snapshot: &Snapshot,
    tenant: &Tenant,
    keys: &[Arc<ApiKey>],
    probe: bool,
    memory: &mut Memory,
) -> Arc<TenantState> {
    let (leaving, keys) = keys.iter().map(|key| &**key).partition(|key| is_leaving(&key.metadata));
    let pass = Pass {
        source: &*shared.source,
        installation: &shared.installation,
        reporter: &shared.reporter,
        kept: &shared.kept,
        lead: shared.lead,
        snapshot,
        tenant,
        keys,
        leaving,
        probe,
        versions: BTreeMap::new(),
        announced: None,
        memory,
    };
    pass.run().await
}

/// A Tenant that is there no more, without a word before: its keys are revoked, its database is kept and served no more.
/// `epoch`: its fence, if it was taken. `spared`: it is there, but cannot be read, so that it is served on, and its keys die
/// but for these.
pub(crate) async fn retire<S>(
    shared: &Shared<S>,
    uid: &str,
    mut epoch: Option<i64>,
    spared: Option<Vec<String>>,
) -> Result<(), PgError> {
    let mut conn = session::connect(&shared.installation.operator()).await?;
    let Some(record) = tenants::find_by_uid(&mut conn, uid).await? else { return Ok(()) };
    if record.phase == tenants::Phase::Retained {
        return Ok(());
    }
    // first, and until it is done: a replica that is cut off from the control database serves them still
    let (kept, is_gone) = (spared.as_deref().unwrap_or_default(), spared.is_none());
    revocation::revoke_others(&shared.installation, &shared.kept, shared.lead, &mut epoch, &record, kept)
        .await?;
    if !is_gone {
        return Ok(());
    }
    let mut open = leader::fence(&mut conn, shared.lead).await?;
    tenants::set_retained(&mut open, &record.id).await?;
    replicas::wake(&mut open).await?;
    open.commit().await?;
    let from = format!("{}/{}", record.namespace, record.name);
    tracing::info!(tenant = %record.slug, id = %record.id, from, "the Tenant is gone; its keys are revoked and its database is kept");
    Ok(())
}

/// Lets go of a key whose Tenant is not there, once that Tenant's keys are revoked. False: they are not yet.
pub(crate) async fn bury<S: ResourceSource>(shared: &Shared<S>, key: &ApiKey) -> Result<bool, String> {
    let forced = is_forced(&key.metadata);
    let object = ObjectRef::from(key);
    let pending = async {
        let mut conn = session::connect(&shared.installation.operator()).await?;
        let records = tenants::not_retained(&mut conn).await?;
        let its =
            |it: &tenants::Record| it.namespace == object.namespace && it.name == key.spec.tenant_ref.name;
        Ok::<bool, PgError>(records.iter().any(its))
    };
    let warning = match pending.await {
        Ok(false) => None,
        Ok(true) if !forced => return Ok(false),
        Err(error) if !forced => return Err(error.to_string()),
        Ok(true) => Some("it is not known that the keys of its Tenant are revoked".to_owned()),
        Err(error) => Some(error.to_string()),
    };
    let warning = warning.map(|why| {
        let tenant = &key.spec.tenant_ref.name;
        format!(
            "released by annotation although {why}; left behind: the key, in the database of Tenant {tenant}"
        )
    });
    free_key(&*shared.source, key, &object, warning).await.map_err(|error| error.to_string())?;
    Ok(true)
}
