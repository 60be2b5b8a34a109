//! `rotate-signing-key`: begins to replace the key that signs tokens, with nothing but the control database running.

use std::fmt;

use rowgate_pg::control::installation::{InstallationError, open_existing};
use rowgate_pg::control::replicas;
use rowgate_pg::control::signing::{self, Rotation};
use rowgate_pg::failure::PgError;

use crate::config::ControlSettings;

/// A rotation that begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Begun(Rotation);

/// Why none begins.
#[derive(Debug, thiserror::Error)]
pub enum RotateError {
    #[error(
        "the last rotation, to signing key {0}, ends at {1}, and at most two keys verify at once; rotate again after that"
    )]
    UnderWay(i32, String),
    #[error(transparent)]
    Installation(#[from] InstallationError),
    #[error("the control database refused the rotation: {0}")]
    Pg(#[from] PgError),
}

/// Writes the next generation and wakes the replicas.
pub async fn run(control: &ControlSettings) -> Result<Begun, RotateError> {
    let (_, mut conn) = open_existing(control.endpoint.clone(), &control.root).await?;
    let rotation = signing::rotate(&mut conn).await?;
    if !rotation.begun {
        return Err(RotateError::UnderWay(rotation.generation, rotation.ends));
    }
    // a lost wake costs a second
    replicas::wake(&mut conn).await?;
    Ok(Begun(rotation))
}

impl fmt::Display for Begun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Rotation { generation, signs_from, ends, .. } = &self.0;
        write!(
            f,
            "signing key {generation} is in the JWKS within seconds and signs from {signs_from}; tokens signed with key {} stay valid until they expire, and that key leaves the JWKS at {ends}",
            generation - 1
        )
    }
}
