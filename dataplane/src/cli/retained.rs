//! `retained`: the databases that were kept when their Tenants were deleted, for platform teams: which there are, handing one to
//! another namespace, dropping one for good.

mod acts;
mod list;

use std::fmt;

use clap::{Args, Subcommand};
use rowgate_core::name::Ulid;
use rowgate_pg::failure::PgError;
use rowgate_program::settings::Mistakes;
use rowgate_reconcile::removal::retained::DropError;

use super::target::{InstallationFlags, Target, TargetError};

/// The flags of `retained`.
#[derive(Debug, Clone, Args)]
#[command(
    after_help = "A retained database can be adopted only from the namespace in which it was retained: by a Tenant of the same
name, or by a Tenant with the same slug that names it in spec.database.adoptRetained. To every other Tenant
the slug is taken. `hand-over` gives the database to one Tenant of another namespace instead.

Examples:
  rowgate-dataplane retained
  rowgate-dataplane retained hand-over 01k9zv5n2m8q4r6t0w3y7b1d5f --to team-b/shop
  rowgate-dataplane retained drop 01k9zv5n2m8q4r6t0w3y7b1d5f
  kubectl -n rowgate exec deploy/rowgate-dataplane -- \\
    /rowgate-dataplane retained --root-file /etc/rowgate/dataplane/root"
)]
pub struct RetainedFlags {
    #[command(subcommand)]
    act: Option<ActFlags>,
    #[command(flatten)]
    target: InstallationFlags,
}

#[derive(Debug, Clone, Subcommand)]
enum ActFlags {
    /// Give a retained database to the Tenant NAMESPACE/NAME, which names it in spec.database.adoptRetained; from then on no
    /// other Tenant can adopt it. Its keys stay revoked. To undo this, run the command again with another Tenant or with the
    /// one from which the database was retained
    HandOver {
        /// The database's id, as `retained` lists it [example: 01k9zv5n2m8q4r6t0w3y7b1d5f]
        #[arg(value_name = "ID")]
        id: String,
        /// The Tenant that may adopt it, with the same slug as before [example: team-b/shop]
        #[arg(long, value_name = "NAMESPACE/NAME")]
        to: String,
    },
    /// Drop a retained database permanently, with all its data and roles, as deletionPolicy: Delete does. The command asks for
    /// the id again before it drops anything
    Drop {
        /// The database's id, as `retained` lists it [example: 01k9zv5n2m8q4r6t0w3y7b1d5f]
        #[arg(value_name = "ID")]
        id: String,
        /// Do not ask for the id again
        #[arg(long)]
        yes: bool,
    },
}

/// What is asked for, checked.
#[derive(Debug, Clone)]
pub struct RetainedCommand {
    act: Act,
    target: Target,
}

#[derive(Debug, Clone)]
enum Act {
    List,
    HandOver { id: Ulid, namespace: String, name: String },
    Drop { id: Ulid, yes: bool },
}

/// Why it was not done.
#[derive(Debug, thiserror::Error)]
pub enum RetainedError {
    #[error("no database with the id {0} is retained; `rowgate-dataplane retained` lists those that are")]
    Unknown(Ulid),
    #[error("database {0} is being dropped and cannot be adopted; `retained drop` finishes it")]
    Dropping(String),
    #[error(
        "database {0} does not belong to its tenant's owner role, so it was created or taken over outside Rowgate; it was not dropped"
    )]
    Foreign(String),
    #[error("nothing was dropped: the text entered is not the id {0}")]
    NotConfirmed(Ulid),
    #[error(transparent)]
    Drop(#[from] DropError),
    #[error(transparent)]
    Target(#[from] TargetError),
    #[error("the control database refused: {0}")]
    Control(#[from] PgError),
}

/// What was done, to be read by people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Done(String);

impl RetainedFlags {
    /// Checks all flags; all mistakes are reported together.
    pub fn command(&self) -> Result<RetainedCommand, Mistakes> {
        let mut mistakes = Vec::new();
        let act = match &self.act {
            None => Some(Act::List),
            Some(ActFlags::HandOver { id, to }) => {
                let (id, to) = (ulid(id, &mut mistakes), tenant(to, &mut mistakes));
                id.zip(to).map(|(id, (namespace, name))| Act::HandOver { id, namespace, name })
            }
            Some(ActFlags::Drop { id, yes }) => ulid(id, &mut mistakes).map(|id| Act::Drop { id, yes: *yes }),
        };
        let target = self.target.read(self.act.is_some());
        let target = target.map_err(|Mistakes(more)| mistakes.extend(more)).ok();
        match (act, target) {
            (Some(act), Some(target)) if mistakes.is_empty() => Ok(RetainedCommand { act, target }),
            _ => Err(Mistakes(mistakes)),
        }
    }
}

/// Does what is asked for.
pub async fn run(command: RetainedCommand) -> Result<Done, RetainedError> {
    match command.act {
        Act::List => list::all(command.target).await.map(Done),
        Act::HandOver { id, namespace, name } => {
            acts::hand_over(command.target, &id, &namespace, &name).await.map(Done)
        }
        Act::Drop { id, yes } => acts::drop(command.target, &id, yes).await.map(Done),
    }
}

fn ulid(text: &str, mistakes: &mut Vec<String>) -> Option<Ulid> {
    let id = text.parse::<Ulid>();
    id.map_err(|_| {
        mistakes.push(format!(
            "{text:?} is not an id: an id has 26 lower-case letters and digits; `rowgate-dataplane retained` lists them"
        ));
    })
    .ok()
}

/// Namespace and name.
fn tenant(text: &str, mistakes: &mut Vec<String>) -> Option<(String, String)> {
    let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.');
    let is_name = |part: &str| !part.is_empty() && part.len() <= 253 && part.chars().all(good);
    let parts = text.split_once('/').filter(|(namespace, name)| is_name(namespace) && is_name(name));
    if parts.is_none() {
        mistakes
            .push(format!("--to: {text:?} is not a Tenant; give its namespace and its name as team-b/shop"));
    }
    parts.map(|(namespace, name)| (namespace.to_owned(), name.to_owned()))
}

impl fmt::Display for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mistake_is_told_at_once() {
        for (act, starts) in [
            (ActFlags::Drop { id: "shop".to_owned(), yes: true }, &["\"shop\" is not an id"][..]),
            (
                ActFlags::HandOver { id: String::new(), to: "team-b".to_owned() },
                &[
                    "\"\" is not an id",
                    "--to: \"team-b\" is not a Tenant",
                    "--operator-root-file: is required",
                ],
            ),
        ] {
            let target = InstallationFlags {
                root_file: (starts.len() == 3).then(|| "/nowhere".to_owned()),
                ..InstallationFlags::default()
            };
            let Mistakes(lines) = RetainedFlags { act: Some(act), target }.command().expect_err("mistakes");
            for start in starts {
                assert!(lines.iter().any(|line| line.starts_with(start)), "{start}: {lines:?}");
            }
        }
    }
}
