//! Dropping a database with every role of it: for a Tenant with `deletionPolicy: Delete`, and for a platform team that
//! has done with a retained one. When it is interrupted anywhere, the next attempt finds less to do.

use std::collections::BTreeSet;

use rowgate_core::name::Ulid;
use rowgate_core::role::TenantLogin;
use rowgate_crds::Reason;
use rowgate_pg::control::installation::Installation;
use rowgate_pg::control::tenants::{Phase, Record};
use rowgate_pg::control::{leader, retained, servers, tenants};
use rowgate_pg::failure::PgError;
use rowgate_pg::introspect;
use rowgate_sql::text::Ident;
use sqlx::PgConnection;

use crate::apply::Logins;
use crate::apply::connection_cache::ConnectionCache;
use crate::pass::PassError;
use crate::plan::{self, As};
use crate::removal::remains;

/// What became of a database that was to be dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removal {
    /// `n_closed`: roles of it that something in another database names; they are closed, and dropped when nothing does.
    Dropped { n_closed: usize },
    /// It belongs to another role than the tenant's owner, and stays.
    Foreign,
    /// It was handed to another Tenant, or was dropped.
    Gone,
}

/// Why a retained database was not dropped, or not wholly.
#[derive(Debug, thiserror::Error)]
pub enum DropError {
    #[error("the control database does not answer: {0}")]
    Control(#[source] PgError),
    #[error("database {database} was not dropped completely: {why}; drop it again to continue")]
    Stopped { database: String, why: String },
}

/// Drops the retained database `id`, as [`Removal`] says; `Gone`: nothing with this id is retained. Safe beside a
/// reconciler: it works behind the same fence, and no Tenant adopts a database that is being dropped.
pub async fn drop_retained(
    installation: &Installation,
    conn: &mut PgConnection,
    id: &Ulid,
) -> Result<Removal, DropError> {
    let record = tenants::find_by_id(conn, id).await.map_err(DropError::Control)?;
    let Some(record) = record.filter(|record| record.phase == Phase::Retained) else {
        return Ok(Removal::Gone);
    };
    let lead = leader::look(conn).await.map_err(DropError::Control)?.epoch;
    let removed = async {
        let server = on_its_server(installation, &record, conn).await?;
        let removal = remove(&server, &ConnectionCache::default(), lead, &record, conn).await?;
        if matches!(removal, Removal::Dropped { .. }) {
            forget(lead, &record, conn).await?;
        }
        Ok::<_, PassError>(removal)
    };
    removed
        .await
        .map_err(|error| DropError::Stopped { database: record.database.clone(), why: error.to_string() })
}

/// Of a tenant on another server than that of `home`, as it is written down.
async fn on_its_server(
    home: &Installation,
    record: &Record,
    conn: &mut PgConnection,
) -> Result<Installation, PassError> {
    let Some(cluster) = &record.cluster else { return Ok(home.clone()) };
    let row = servers::find(conn, cluster).await?;
    let refused = |why: String| PassError::Refused(Reason::ServerRefused, why);
    let row = row.ok_or_else(|| refused(format!("control.servers has no row for cluster {cluster}")))?;
    Ok(home.beside(row.place().map_err(refused)?))
}

/// Drops the database of `record` and every role of it; [`forget`] is left. `installation`: on its server. `conn`: the operator's, on the
/// control database.
pub(crate) async fn remove(
    installation: &Installation,
    connections: &ConnectionCache,
    lead: i64,
    record: &Record,
    conn: &mut PgConnection,
) -> Result<Removal, PassError> {
    let Some(database) = Ident::new(&record.database) else {
        return Err(PassError::Refused(Reason::InvalidSpec, "database.name is too long".to_owned()));
    };
    let mut logins = Logins::new(installation, connections, lead, &record.id, &record.database);
    let operator = logins.get(As::Operator).await?;
    let cluster = introspect::cluster(operator, &record.id, &record.database).await?;
    let sessions: BTreeSet<String> =
        tenants::sessions(operator, &record.database).await?.into_iter().collect();
    let ours = TenantLogin::Owner.role(&record.id);
    if cluster.database.as_ref().is_some_and(|there| there.owner != ours) {
        return Ok(Removal::Foreign);
    }
    let mut open = leader::fence(conn, lead).await?;
    let begun = retained::begin_drop(&mut open, record).await?;
    open.commit().await.map_err(PgError::from)?;
    if !begun {
        return Ok(Removal::Gone);
    }
    let operator = installation.operator().role;
    let ops = plan::removal(&record.id, &database, &cluster, &sessions, &operator);
    let applied = match logins.apply(&ops, None).await {
        Ok(()) => remains::take(&mut logins, &record.id, &record.database).await,
        Err(error) => Err(error.into()),
    };
    logins.close().await;
    Ok(Removal::Dropped { n_closed: applied?.len() })
}

/// The end of a tenant of which nothing is left but its row.
pub(crate) async fn forget(lead: i64, record: &Record, conn: &mut PgConnection) -> Result<(), PassError> {
    let mut open = leader::fence(conn, lead).await?;
    tenants::forget(&mut open, &record.id).await?;
    Ok(open.commit().await.map_err(PgError::from)?)
}
