//! Giving back a database that was there before Rowgate: every right of keys is revoked, tables have the row-level security that they had,
//! schema `dl` and the tenant's roles go, and its data stays. When it is interrupted anywhere, the next attempt finds less to do.

use std::collections::{BTreeMap, BTreeSet};

use rowgate_core::role::TenantLogin;
use rowgate_crds::Reason;
use rowgate_pg::control::installation::Installation;
use rowgate_pg::control::migrate;
use rowgate_pg::control::tenants::{self, Phase, Record};
use rowgate_pg::introspect;
use rowgate_pg::introspect::actual::Cluster;
use rowgate_sql::catalog::Limits;
use rowgate_sql::text::Ident;

use super::remains;
use crate::apply::connection_cache::ConnectionCache;
use crate::apply::{ApplyError, Logins};
use crate::desired::Desired;
use crate::entropy;
use crate::pass::PassError;
use crate::plan::{self, As, Closed};

/// How often what is left is planned again.
const MAX_ROUNDS: u32 = 8;

/// Whether a tenant's database is another role's, which the login of its owner becomes; one whose owner a DBA has changed is not.
pub(crate) fn is_adopted(record: &Record, cluster: &Cluster) -> bool {
    let login = TenantLogin::Owner.role(&record.id);
    let becomes = |owner: &str| {
        cluster.memberships.iter().any(|m| m.role == owner && m.member == login && m.set && !m.inherit)
    };
    cluster.database.as_ref().is_some_and(|there| there.owner != login && becomes(&there.owner))
}

/// Whether nothing was made for a tenant but its row: the roles come before the database, or before anything is done in one that is there.
pub(crate) fn is_unmade(record: &Record, cluster: &Cluster) -> bool {
    record.phase == Phase::Creating && !cluster.roles.contains_key(&TenantLogin::Owner.role(&record.id))
}

/// Gives it back, but for the row in the control database. What is left of roles is named, as [`remains::take`] does.
pub(crate) async fn give_back(
    installation: &Installation,
    connections: &ConnectionCache,
    lead: i64,
    record: &Record,
    cluster: &Cluster,
) -> Result<Vec<String>, PassError> {
    let mut logins = Logins::new(installation, connections, lead, &record.id, &record.database);
    let done = async {
        // of one that was never finished, or that another attempt has come through
        if cluster.database.is_some() && cluster.roles.contains_key(&TenantLogin::Owner.role(&record.id)) {
            inside(installation, &mut logins, record, cluster).await?;
        }
        remains::take(&mut logins, &record.id, &record.database).await
    };
    let done = done.await;
    logins.close().await;
    done
}

async fn inside(
    installation: &Installation,
    logins: &mut Logins<'_>,
    record: &Record,
    cluster: &Cluster,
) -> Result<(), PassError> {
    let desired = nothing(record, cluster)?;
    let has_schema = match logins.get(As::Owner).await {
        Ok(owner) => migrate::schema_owner(owner).await?.is_some(),
        // it was never let in
        Err(error) if error.code() == Some("42501") => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    if has_schema {
        let epoch = tenants::claim_epoch(logins.records().await?).await?;
        converge(installation, logins, &desired, epoch).await?;
        logins.apply(&plan::adopted::schema_removal(), None).await?;
    }
    let conn = logins.get(As::Operator).await?;
    let cluster = introspect::cluster(conn, &record.id, &record.database).await?;
    let leave: Vec<_> = plan::adopted::leave(&desired, &cluster).into_iter().collect();
    Ok(logins.apply(&leave, None).await?)
}

/// Applies the manifest that says nothing until nothing is left to do.
async fn converge(
    installation: &Installation,
    logins: &mut Logins<'_>,
    desired: &Desired,
    epoch: i64,
) -> Result<(), PassError> {
    let operator = installation.operator().role;
    let mut closed = Closed::default();
    for _ in 0..MAX_ROUNDS {
        let (cluster, db) = logins.introspect().await?;
        let outcome = plan::contents(desired, &cluster, &db, &closed, &operator, &mut entropy::ulid);
        if outcome.ops.is_empty() {
            return Ok(());
        }
        match logins.apply(&outcome.ops, Some(epoch)).await {
            Err(ApplyError::Moved { .. }) => {}
            applied => applied?,
        }
        for of in logins.left.drain(..) {
            let _is_new = closed.close(&of, "it cannot be dropped now");
        }
    }
    Err(PassError::Moved(format!("give back database {}", desired.database.as_str())))
}

/// What a Tenant asks for that exposes nothing and has no key.
fn nothing(record: &Record, cluster: &Cluster) -> Result<Desired, PassError> {
    let refused = |message: &str| PassError::Refused(Reason::InvalidSpec, message.to_owned());
    let owner = cluster.database.as_ref().map(|there| there.owner.clone());
    Ok(Desired {
        tenant: record.id.clone(),
        slug: record.slug.parse().map_err(|_| refused("the slug is none"))?,
        database: Ident::new(&record.database).ok_or_else(|| refused("database.name is too long"))?,
        owner: owner.ok_or_else(|| refused("the database is gone"))?,
        is_adopted: true,
        generation: 0,
        limits: Limits::default(),
        shared: Vec::new(),
        shared_claims: BTreeMap::new(),
        entities: Vec::new(),
        keys: Vec::new(),
        relationships: Vec::new(),
        unread_relationships: BTreeSet::new(),
        verifiers: BTreeMap::new(),
        migrations: None,
    })
}
