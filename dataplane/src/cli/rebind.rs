//! `rebind`: a PostgreSQL cluster of the installation became another one, by `pg_upgrade` or a restore. Whoever reconciles takes it up.

use std::fmt;

use clap::Args;
use rowgate_pg::control::installation::{Operated, open_existing, system_identifier};
use rowgate_pg::control::rebinds::{self, Rebind};
use rowgate_pg::control::{leader, replicas, servers};
use rowgate_pg::failure::PgError;
use rowgate_pg::tenant::lookups::PgConnection;
use rowgate_program::settings::Mistakes;

use super::table::table;
use super::target::{InstallationFlags, Target, TargetError};

/// The flags of `rebind`.
#[derive(Debug, Clone, Args)]
#[command(
    after_help = "A PostgreSQL cluster is known by its system identifier, which pg_upgrade and a restore into a new cluster change.
Rowgate refuses such a cluster (ServerRefused), because it might be a copy beside the one that is in use. Stop the
old cluster, then run this command with the two identifiers that the message names. The operator, or standalone,
gives all roles other passwords and continues at its next look. Readers of row-change events are told that events
may be missing.

Examples:
  rowgate-dataplane rebind
  rowgate-dataplane rebind 7461234567890123456 --to 7469876543210987654"
)]
pub struct RebindFlags {
    /// The cluster as it is known; without it, all are listed [example: 7461234567890123456]
    #[arg(value_name = "CLUSTER", requires = "to")]
    from: Option<String>,
    /// The cluster that it became [example: 7469876543210987654]
    #[arg(long, value_name = "CLUSTER", requires = "from")]
    to: Option<String>,
    #[command(flatten)]
    target: InstallationFlags,
}

/// What is asked for, checked.
#[derive(Debug, Clone)]
pub struct RebindCommand {
    rebind: Option<Rebind>,
    target: Target,
}

/// Why it was not said.
#[derive(Debug, thiserror::Error)]
pub enum RebindError {
    #[error("the installation has no cluster {0}; `rowgate-dataplane rebind` lists those that it has")]
    Unknown(String),
    #[error(
        "the control database is in cluster {actual}, not in {to}; give --to {actual}, or another --database-url"
    )]
    OtherCluster { actual: String, to: String },
    #[error("the control database is still in cluster {0}; nothing has moved")]
    NotMoved(String),
    #[error(
        "both clusters have databases of tenants with these names: {}; move the databases to a cluster of their own",
        .0.join(", ")
    )]
    NamesTaken(Vec<String>),
    #[error(transparent)]
    Target(#[from] TargetError),
    #[error("the control database refused: {0}")]
    Control(#[from] PgError),
}

/// What was done, to be read by people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said(String);

impl RebindFlags {
    /// Checks all flags; all mistakes are reported together.
    pub fn command(&self) -> Result<RebindCommand, Mistakes> {
        let mut mistakes = Vec::new();
        let rebind = self.from.as_deref().zip(self.to.as_deref()).map(|(from, to)| {
            for (name, text) in [("CLUSTER", from), ("--to", to)] {
                if text.parse::<u64>().is_err() {
                    mistakes.push(format!(
                        "{name}: {text:?} is not a system identifier; give its number of about 19 digits"
                    ));
                }
            }
            if from == to {
                mistakes.push("--to: it is the same cluster; give the one that it became".to_owned());
            }
            Rebind { from: from.to_owned(), to: to.to_owned() }
        });
        let target = self.target.read(rebind.is_some());
        let target = target.map_err(|Mistakes(more)| mistakes.extend(more)).ok();
        match target {
            Some(target) if mistakes.is_empty() => Ok(RebindCommand { rebind, target }),
            _ => Err(Mistakes(mistakes)),
        }
    }
}

/// Does what is asked for.
pub async fn run(command: RebindCommand) -> Result<Said, RebindError> {
    match command.rebind {
        None => list(command.target).await.map(Said),
        Some(rebind) => say(&command.target, &rebind).await.map(Said),
    }
}

const HEAD: [&str; 4] = ["CLUSTER", "ADDRESS", "SECRET", "TENANTS"];

async fn list(target: Target) -> Result<String, RebindError> {
    let (endpoint, root) = target.look().await?;
    let (installation, mut conn) = open_existing(endpoint, &root).await.map_err(TargetError::from)?;
    let (home, none) = (&installation.home, String::new);
    let n_home = servers::n_tenants(&mut conn, None).await?;
    let mut rows =
        vec![[home.system_identifier.clone(), home.endpoint.to_string(), none(), n_home.to_string()]];
    for row in servers::list(&mut conn).await? {
        let n = servers::n_tenants(&mut conn, Some(&row.system_identifier)).await?;
        let address = row.place().map_or_else(|_| "unknown".to_owned(), |place| place.endpoint.to_string());
        let (namespace, secret) = row.secret;
        rows.push([row.system_identifier, address, format!("{namespace}/{secret}"), n.to_string()]);
    }
    Ok(table(HEAD, &rows) + "\nAfter pg_upgrade or a restore: rowgate-dataplane rebind CLUSTER --to CLUSTER")
}

async fn say(target: &Target, rebind: &Rebind) -> Result<String, RebindError> {
    let Operated { installation, mut control } = target.operate().await?;
    let home = &installation.system_identifier;
    let is_home = rebind.from == *home;
    if !is_home && servers::find(&mut control, &rebind.from).await?.is_none() {
        return Err(RebindError::Unknown(rebind.from.clone()));
    }
    if is_home {
        is_in(&mut control, rebind).await?;
    }
    let known = |cluster: &str| (cluster != home).then(|| cluster.to_owned());
    let (from, to) = (known(&rebind.from), known(&rebind.to));
    let taken = rebinds::taken(&mut control, from.as_deref(), to.as_deref()).await?;
    if !taken.is_empty() {
        return Err(RebindError::NamesTaken(taken));
    }
    let n_tenants = servers::n_tenants(&mut control, from.as_deref()).await?;
    let epoch = leader::look(&mut control).await?.epoch;
    let mut open = leader::fence(&mut control, epoch).await?;
    rebinds::say(&mut open, rebind).await?;
    open.commit().await.map_err(PgError::from)?;
    // a lost wake costs one interval of looks
    replicas::wake_reconciler(&mut control).await?;
    let next = match is_home {
        true => "Start the operator, or standalone, with the new cluster's --database-url.",
        false => "The operator, or standalone, continues at its next look, once the Secret leads there.",
    };
    let Rebind { from, to } = rebind;
    Ok(format!(
        "cluster {from} is cluster {to} from now on, with the databases of {n_tenants} tenants. {next}"
    ))
}

/// Whether the control database is in the cluster that is named. A login that may not ask finds nothing wrong.
async fn is_in(control: &mut PgConnection, rebind: &Rebind) -> Result<(), RebindError> {
    match system_identifier(control).await? {
        Some(actual) if actual == rebind.from => Err(RebindError::NotMoved(actual)),
        Some(actual) if actual != rebind.to => {
            Err(RebindError::OtherCluster { actual, to: rebind.to.clone() })
        }
        _ => Ok(()),
    }
}

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
