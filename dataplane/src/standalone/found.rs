//! The standalone Rowgate of a state folder, as another command finds it: its roots, and where its PostgreSQL is. Nothing is
//! made or started for it.

use std::io;
use std::path::{Path, PathBuf};

use rowgate_core::derive::Root;
use rowgate_pg::connect::login::Endpoint;
use rowgate_pg::control::installation::Roots;

use super::{given, postgres, roots};

/// Why it was not found.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    #[error(
        "no standalone Rowgate has used the state folder {}; start one, or name its folder with --state",
        .0.display()
    )]
    NoState(PathBuf),
    #[error("cannot read {}: {source}; run this as the user that runs standalone", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("the PostgreSQL of the state folder {} does not run; start standalone first", .0.display())]
    Stopped(PathBuf),
}

/// The roots in a state folder, and its PostgreSQL, which runs if it is our own.
pub(crate) async fn find(state: &Path) -> Result<(Roots, Endpoint), StateError> {
    let roots = Roots { operator: root(state, "operator")?, dataplane: root(state, "dataplane")? };
    let endpoint = match given::read(state) {
        Ok(Some(endpoint)) => Some(endpoint),
        Ok(None) => postgres::running(state).await,
        Err(source) => return Err(StateError::Unreadable { path: given::file(state), source }),
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
