//! Roles that objects of another database keep from being dropped: they are closed, count as gone, and are dropped when
//! nothing holds them any more. No record is kept of them: PostgreSQL knows which exist.

use std::time::Duration;

use rowgate_core::name::Ulid;
use rowgate_core::role::{CONTROL_DATABASE, SHARED_ROLE, TenantLogin};
use rowgate_pg::connect::session;
use rowgate_pg::control::installation::Installation;
use rowgate_pg::control::tenants;
use rowgate_pg::failure::PgError;
use rowgate_pg::introspect;
use sqlx::PgConnection;
use tokio::time::timeout;

use crate::apply::Logins;
use crate::controller::job::Shared;
use crate::pass::PassError;
use crate::plan::{self, As, Of};

/// How long one of the servers that Secrets name may take to be swept; the next sweep goes on.
const SWEEP_TIMEOUT: Duration = Duration::from_secs(30);

/// Drops what it can of the roles of a tenant whose database is gone, and says which are left.
pub(crate) async fn take(
    logins: &mut Logins<'_>,
    tenant: &Ulid,
    database: &str,
) -> Result<Vec<String>, PassError> {
    // first those of keys, then their login; and what could not be dropped now is closed
    let mut left: Vec<Of> = Vec::new();
    for _ in 0..3 {
        let cluster = introspect::cluster(logins.get(As::Operator).await?, tenant, database).await?;
        let ops = plan::remains(tenant, &cluster, &left);
        if ops.is_empty() {
            break;
        }
        logins.apply(&ops, None).await?;
        left.append(&mut logins.left);
    }
    let conn = logins.get(As::Operator).await?;
    let cluster = introspect::cluster(conn, tenant, database).await?;
    let mut held: Vec<String> = cluster.roles.into_keys().filter(|role| role != SHARED_ROLE).collect();
    let keys = TenantLogin::Keys.role(tenant);
    // the login of keys' roles stays for them
    if 1 < held.len() {
        held.retain(|role| *role != keys);
    }
    log_holders(conn, &held).await?;
    Ok(held)
}

/// Names in the log who holds these roles, and how to take that away.
pub(crate) async fn log_holders(conn: &mut PgConnection, roles: &[String]) -> Result<(), PgError> {
    if roles.is_empty() {
        return Ok(());
    }
    for holder in introspect::holders(conn, roles).await? {
        tracing::warn!(
            role = holder.role,
            database = holder.database,
            tenant = holder.tenant.as_deref().unwrap_or("none"),
            catalog = holder.catalog,
            n_objects = holder.n_objects,
            "a role is closed and cannot be dropped because objects of another database name it; as a superuser in that database, run: drop owned by \"{}\"",
            holder.role
        );
    }
    Ok(())
}

/// Drops what is left of tenants that are no more, as far as it can be dropped now.
pub(crate) async fn sweep<S>(shared: &Shared<S>) -> Result<(), PgError> {
    sweep_server(shared, &shared.installation).await?;
    for server in shared.servers.opened() {
        // one that does not answer must not keep the others waiting
        match timeout(SWEEP_TIMEOUT, sweep_server(shared, &server)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::debug!(server = %server.endpoint, %error, "cannot look for roles of deleted tenants");
            }
            Err(_) => {
                tracing::debug!(server = %server.endpoint, "no answer about roles of deleted tenants");
            }
        }
    }
    Ok(())
}

async fn sweep_server<S>(shared: &Shared<S>, server: &Installation) -> Result<(), PgError> {
    let mut conn = session::connect(&server.operator()).await?;
    let left = introspect::leftovers(&mut conn).await?;
    // a tenant has its row before its roles, and only the control database knows those on other servers
    let mut control = session::connect(&shared.installation.operator()).await?;
    for tenant in tenants::without_row(&mut control, left).await? {
        let mut logins = Logins::new(server, &shared.connections, shared.lead, &tenant, CONTROL_DATABASE);
        let taken = take(&mut logins, &tenant, "").await;
        logins.close().await;
        if let Err(error) = taken {
            tracing::warn!(%tenant, %error, "cannot drop what is left of a deleted tenant");
        }
    }
    Ok(())
}
