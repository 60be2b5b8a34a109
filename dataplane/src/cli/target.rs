//! Which installation, and with which rights: by a state folder of standalone, or by the secrets that a cluster holds.

use std::path::{Path, PathBuf};

use clap::Args;
use rowgate_core::derive::Root;
use rowgate_pg::connect::login::{Endpoint, Login};
use rowgate_pg::control::installation::{InstallationError, Operated, Roots, operate};
use rowgate_program::database_url;
use rowgate_program::settings::{Given, Mistakes};

use crate::config::{ControlFlags, ControlSettings, root};
use rowgate_standalone::found::{self, StateError};

/// The flags that say which installation it is.
#[derive(Debug, Clone, Default, Args)]
pub(in crate::cli) struct InstallationFlags {
    /// The state folder of a standalone Rowgate, which must be running; ignored if --root-file is given
    #[arg(long, env = "ROWGATE_STATE", value_name = "FOLDER", default_value = ".rowgate", global = true)]
    pub state: PathBuf,
    /// File with the data plane's root secret, if there is no state folder: the entry `root` of the Secret
    /// rowgate-dataplane-root [example: /etc/rowgate/dataplane/root]
    #[arg(long, env = "ROWGATE_ROOT_FILE", value_name = "PATH", global = true)]
    pub root_file: Option<String>,
    /// With --root-file, to list: the PostgreSQL that holds the control database, as for `serve` [default: the one of
    /// --database-url] [example: db.internal:5432]
    #[arg(long, env = "ROWGATE_CONTROL", value_name = "HOST:PORT|FOLDER[:PORT]", global = true)]
    pub control: Option<String>,
    /// With --control: TLS to it, verify-full or disable [default: verify-full]
    #[arg(long, env = "ROWGATE_DATABASE_TLS", value_name = "MODE", global = true)]
    pub database_tls: Option<String>,
    /// With --control: PEM file of the authority that its certificate comes from [default: those that the system trusts]
    #[arg(long, env = "ROWGATE_DATABASE_CA", value_name = "PATH", global = true)]
    pub database_ca: Option<String>,
    /// With --root-file, to change something: file with the operator's root secret, the entry `root` of the Secret
    /// rowgate-operator-root
    #[arg(long, env = "ROWGATE_OPERATOR_ROOT_FILE", value_name = "PATH", global = true)]
    pub operator_root_file: Option<String>,
    /// To change something: the --database-url of the operator or of standalone; with a state folder it is needed only if
    /// the URL's user is not a superuser
    #[arg(long, env = "ROWGATE_DATABASE_URL", value_name = "URL", hide_env_values = true, global = true)]
    pub database_url: Option<String>,
}

/// Why the installation cannot be worked with.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    #[error(transparent)]
    State(#[from] StateError),
    #[error(transparent)]
    Installation(#[from] InstallationError),
}

/// The same, checked.
#[derive(Debug, Clone)]
pub(in crate::cli) enum Target {
    State {
        folder: PathBuf,
        given: Option<Login>,
    },
    /// What a data plane has; enough to list.
    Dataplane(ControlSettings),
    Operator {
        roots: Roots,
        given: Login,
    },
}

impl InstallationFlags {
    /// `acts`: something is to be changed.
    pub(in crate::cli) fn read(&self, acts: bool) -> Result<Target, Mistakes> {
        let url =
            self.database_url.as_deref().map(|url| database_url::parse(url).map_err(|it| it.to_string()));
        let Some(root_file) = &self.root_file else {
            let given = url.transpose().map_err(|why| Mistakes(vec![format!("--database-url: {why}")]))?;
            return Ok(Target::State { folder: self.state.clone(), given });
        };
        if !acts && (self.control.is_some() || url.is_none()) {
            let flags = ControlFlags {
                control: self.control.clone(),
                root_file: Some(root_file.clone()),
                database_tls: self.database_tls.clone(),
                database_ca: self.database_ca.clone(),
            };
            return flags.settings().map(Target::Dataplane);
        }
        let mut given = Given::new(None);
        let file = |path: &str| -> Result<Root, String> { root(Path::new(path)) };
        let dataplane = given.required("root-file", Some(root_file), file);
        let login = given.secret("database-url", url);
        let operator = match acts {
            true => given.required("operator-root-file", self.operator_root_file.as_deref(), file),
            false => None,
        };
        given.finish()?;
        let (dataplane, login) =
            (dataplane.expect("no mistake was noted"), login.expect("no mistake was noted"));
        Ok(match operator {
            Some(operator) => Target::Operator { roots: Roots { operator, dataplane }, given: login },
            None => Target::Dataplane(ControlSettings { endpoint: login.endpoint, root: dataplane }),
        })
    }
}

impl Target {
    /// What a data plane opens the installation with, which reads.
    pub(in crate::cli) async fn look(self) -> Result<(Endpoint, Root), TargetError> {
        Ok(match self {
            Target::State { folder, .. } => {
                let (roots, endpoint) = found::find(&folder).await?;
                (endpoint, roots.dataplane)
            }
            Target::Dataplane(control) => (control.endpoint, control.root),
            Target::Operator { roots, given } => (given.endpoint, roots.dataplane),
        })
    }

    /// As the operator.
    pub(in crate::cli) async fn operate(&self) -> Result<Operated, TargetError> {
        match self {
            Target::State { folder, given } => {
                let (roots, endpoint) = found::find(folder).await?;
                Ok(operate(endpoint, given.as_ref(), &roots).await?)
            }
            Target::Operator { roots, given } => {
                Ok(operate(given.endpoint.clone(), Some(given), roots).await?)
            }
            Target::Dataplane(_) => unreachable!("it is made where nothing is to be changed"),
        }
    }
}
