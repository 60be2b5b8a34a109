//! Working as the operator on an installation that is there, beside the one that reconciles: nothing is made or changed.

use rowgate_core::role::{CONTROL_DATABASE, OPERATOR_ROLE};
use sqlx::{Connection as _, PgConnection};

use super::dataplane::{login_of_dataplane, not_installed};
use super::{Installation, InstallationError, Roots, checks, derived, read_marker};
use crate::connect::login::{Endpoint, Login};
use crate::connect::session;
use crate::failure::PgError;

/// An installation, and its control database as the operator.
#[derive(Debug)]
pub struct Operated {
    pub installation: Installation,
    pub control: PgConnection,
}

/// Opens the installation at `endpoint` as the operator. `given`: the login of
/// `--database-url`, which is the operator's where that is not made by Rowgate itself.
pub async fn operate(
    endpoint: Endpoint,
    given: Option<&Login>,
    roots: &Roots,
) -> Result<Operated, InstallationError> {
    let mut conn =
        session::connect(&login_of_dataplane(&endpoint, &roots.dataplane)).await.map_err(not_installed)?;
    let marker = read_marker(&mut conn).await?.ok_or(InstallationError::NotInstalled)?;
    marker.check("operator", &marker.operator_fingerprint, &roots.operator.fingerprint())?;
    marker.check("data plane", &marker.dataplane_fingerprint, &roots.dataplane.fingerprint())?;
    let owner = checks::owner(&mut conn, CONTROL_DATABASE).await?.unwrap_or_default();
    conn.close().await.map_err(PgError::from)?;
    let (system_identifier, id) = (marker.system_identifier.clone(), marker.id()?);
    let operator = match given.filter(|login| login.role == owner) {
        Some(login) => Login { database: CONTROL_DATABASE.to_owned(), ..login.clone() },
        None => {
            let (root, role) = (&roots.operator, OPERATOR_ROLE.to_owned());
            derived(root, &endpoint, &system_identifier, role, CONTROL_DATABASE)
        }
    };
    if operator.role != owner {
        return Err(InstallationError::OtherOperator { owner });
    }
    let control = session::connect(&operator).await?;
    let (advice, roots) = (Vec::new(), roots.clone());
    let installation = Installation { endpoint, system_identifier, id, advice, operator, roots };
    Ok(Operated { installation, control })
}
