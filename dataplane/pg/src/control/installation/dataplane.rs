//! The installation as a data plane knows it: never with the operator's root.

use std::sync::Arc;

use rowgate_core::derive::Root;
use rowgate_core::name::Ulid;
use rowgate_core::role::{CONTROL_DATABASE, DATAPLANE_ROLE, TenantLogin};
use sqlx::PgConnection;

use super::{InstallationError, derived, read_marker, verifier};
use crate::connect::login::{Endpoint, Login};
use crate::connect::session;
use crate::control::servers::ClusterPlace;
use crate::failure::PgError;
use crate::tenant::lookups::LookUpLogin;

/// The label in place of a system identifier: the data plane logs in before it can know the cluster's.
pub(super) const CONTROL_LABEL: &str = "control";

/// What a data plane knows: never the operator's root.
#[derive(Debug, Clone)]
pub struct DataplaneInstallation {
    pub id: Ulid,
    /// The cluster of the control database.
    pub home: Arc<ClusterPlace>,
    root: Root,
}

impl DataplaneInstallation {
    /// The data plane on the control database.
    #[must_use]
    pub fn dataplane(&self) -> Login {
        login_of_dataplane(&self.home.endpoint, &self.root)
    }

    /// The login of requests of a tenant, in the tenant's cluster.
    #[must_use]
    pub fn auth(&self, tenant: &Ulid, cluster: &ClusterPlace, database: &str) -> Login {
        self.key(&TenantLogin::Auth.role(tenant), cluster, database)
    }

    /// Look-ups, revocation and what is written of events, there.
    #[must_use]
    pub fn lookups(&self, tenant: &Ulid, cluster: &ClusterPlace, database: &str) -> LookUpLogin {
        let login = self.key(&TenantLogin::Lookups.role(tenant), cluster, database);
        LookUpLogin::new(login, self.auth(tenant, cluster, database))
    }

    /// Calls by unscoped keys, there.
    #[must_use]
    pub fn sql(&self, tenant: &Ulid, cluster: &ClusterPlace, database: &str) -> Login {
        self.key(&TenantLogin::Sql.role(tenant), cluster, database)
    }

    /// Calls by the scoped key with this role, there.
    #[must_use]
    pub fn key(&self, role: &str, cluster: &ClusterPlace, database: &str) -> Login {
        derived(&self.root, &cluster.endpoint, &cluster.system_identifier, role.to_owned(), database)
    }

    /// The owner of a tenant's tables or of its schema `dl`, there, for whoever holds the operator's root.
    #[must_use]
    pub fn of_operator(
        &self,
        operator: &Root,
        login: TenantLogin,
        tenant: &Ulid,
        cluster: &ClusterPlace,
        database: &str,
    ) -> Login {
        derived(operator, &cluster.endpoint, &cluster.system_identifier, login.role(tenant), database)
    }

    /// The SCRAM verifier that belongs to [`DataplaneInstallation::sql`] and [`DataplaneInstallation::key`].
    #[must_use]
    pub fn verifier(&self, role: &str, cluster: &ClusterPlace) -> String {
        verifier(&self.root, &cluster.system_identifier, role)
    }

    /// Reads which cluster the control database is in: `rebind` changes it.
    pub async fn follow_home(&mut self, control: &mut PgConnection) -> Result<(), PgError> {
        let asked = sqlx::query_scalar("select system_identifier from control.installation");
        let system_identifier: String = asked.fetch_one(control).await?;
        if system_identifier != self.home.system_identifier {
            let endpoint = self.home.endpoint.clone();
            self.home = Arc::new(ClusterPlace { system_identifier, endpoint });
        }
        Ok(())
    }
}

/// The data plane's login to the control database at `control`, whether anything is installed there or not.
#[must_use]
pub fn control_login(control: &Endpoint, dataplane_root: &Root) -> Login {
    login_of_dataplane(control, dataplane_root)
}

/// Opens what the operator has installed, as the data plane alone.
pub async fn open_existing(
    control: Endpoint,
    dataplane_root: &Root,
) -> Result<(DataplaneInstallation, PgConnection), InstallationError> {
    let mut conn =
        session::connect(&login_of_dataplane(&control, dataplane_root)).await.map_err(not_installed)?;
    let marker = read_marker(&mut conn).await?.ok_or(InstallationError::NotInstalled)?;
    marker.check("data plane", &marker.dataplane_fingerprint, &dataplane_root.fingerprint())?;
    let (system_identifier, id) = (marker.system_identifier.clone(), marker.id()?);
    let home = Arc::new(ClusterPlace { system_identifier, endpoint: control });
    Ok((DataplaneInstallation { id, home, root: dataplane_root.clone() }, conn))
}

/// No such database or role, or not our password: one remedy for all.
pub(super) fn not_installed(error: PgError) -> InstallationError {
    match error.code() {
        Some("3D000" | "28P01" | "28000") => InstallationError::NotInstalled,
        _ => error.into(),
    }
}

pub(super) fn login_of_dataplane(endpoint: &Endpoint, root: &Root) -> Login {
    derived(root, endpoint, CONTROL_LABEL, DATAPLANE_ROLE.to_owned(), CONTROL_DATABASE)
}
