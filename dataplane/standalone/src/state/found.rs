//! Finds the standalone installation of a state folder for another command: its roots, and the address of its PostgreSQL. It
//! creates and starts nothing.

use std::io;
use std::path::{Path, PathBuf};

use rowgate_core::derive::Root;
use rowgate_pg::connect::login::Endpoint;
use rowgate_pg::control::installation::Roots;

use super::{database, roots};
use crate::postgres;

/// Why the installation was not found.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    #[error(
        "the state folder {} holds no standalone Rowgate; start one, or name its folder with --state",
        .0.display()
    )]
    NoState(PathBuf),
    #[error("cannot read {}: {source}; run this command as the user that runs standalone", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("the PostgreSQL of the state folder {} is not running; start standalone first", .0.display())]
    Stopped(PathBuf),
}

/// The roots in a state folder, and the address of its PostgreSQL, which runs if standalone started it.
pub async fn find(state: &Path) -> Result<(Roots, Endpoint), StateError> {
    let roots = Roots { operator: root(state, "operator")?, dataplane: root(state, "dataplane")? };
    let endpoint = match database::read(state) {
        Ok(Some(endpoint)) => Some(endpoint),
        Ok(None) => postgres::running(state).await,
        Err(source) => return Err(StateError::Unreadable { path: database::file(state), source }),
    };
    Ok((roots, endpoint.ok_or_else(|| StateError::Stopped(state.to_owned()))?))
}

fn root(state: &Path, name: &str) -> Result<Root, StateError> {
    let path = state.join(format!("{name}.root"));
    roots::load(&path).map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => StateError::NoState(state.to_owned()),
        _ => StateError::Unreadable { path, source },
    })
}
