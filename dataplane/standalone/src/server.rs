//! The PostgreSQL server that standalone works with: an existing one, or one that standalone starts and restarts.

use std::time::Duration;

use rowgate_core::name::Ulid;
use rowgate_pg::connect::login::Login;
use rowgate_pg::connect::login_failure::LoginFailure;
use rowgate_pg::control::installation::{self, Installation, InstallationError, Roots};
use rowgate_pg::wire::try_login;
use tokio_util::sync::CancellationToken;

use crate::flags::StandaloneSettings;
use crate::postgres::{Postgres, PostgresConfig, PostgresError};
use crate::prepare::{PrepareError, Script};
use crate::run::StandaloneError;
use crate::state::database;
use crate::terminal::say;

/// Interval at which standalone checks that the server it started still runs.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

pub(super) enum Server {
    Given(Login),
    Own { config: PostgresConfig, postgres: Postgres },
}

impl Server {
    pub(super) async fn open(settings: &StandaloneSettings) -> Result<Server, PostgresError> {
        let given = settings.database.as_ref().map(|login| &login.endpoint);
        database::write(&settings.state, given).map_err(|source| PostgresError::Io {
            doing: "write",
            path: database::file(&settings.state),
            source,
        })?;
        if let Some(login) = &settings.database {
            return Ok(Server::Given(login.clone()));
        }
        let config = PostgresConfig {
            state: settings.state.clone(),
            bin: settings.postgres_bin.clone(),
            settings: settings.postgres_settings.clone(),
            session_memory: settings.session_memory,
        };
        let postgres = Postgres::start(&config, &|line| say(&line)).await?;
        Ok(Server::Own { config, postgres })
    }

    /// The login that creates the installation.
    pub(super) fn admin(&self) -> Login {
        match self {
            Server::Given(login) => login.clone(),
            Server::Own { postgres, .. } => postgres.superuser().clone(),
        }
    }

    /// Opens the installation. An existing server that would not let the data plane log in with SCRAM is refused before
    /// anything is served from it; a server that standalone starts asks every login for SCRAM.
    pub(super) async fn installation(
        &self,
        roots: &Roots,
        new_id: Ulid,
    ) -> Result<Installation, StandaloneError> {
        let opened = installation::open(self.admin(), roots, new_id).await;
        let Server::Given(admin) = self else { return Ok(opened?) };
        let (refused, installation) = match opened {
            Ok(installation) => (try_login(&installation.dataplane()).await.err(), Ok(installation)),
            Err(InstallationError::Pg(error)) => {
                (LoginFailure::of(&error, &admin.endpoint), Err(InstallationError::Pg(error)))
            }
            Err(error) => (None, Err(error)),
        };
        match refused.filter(LoginFailure::needs_a_change) {
            Some(failure) => Err(StandaloneError::Login(failure.sentence())),
            None => Ok(installation?),
        }
    }

    /// Runs the file of `--prepare`, which is refused for an existing server.
    pub(super) async fn prepare(&self, script: &Script) -> Result<(), PrepareError> {
        match self {
            Server::Given(_) => Ok(()),
            Server::Own { postgres, .. } => postgres.prepare(script).await,
        }
    }

    /// Stops a server that standalone started.
    pub(super) async fn stop(self) -> Result<(), PostgresError> {
        let Server::Own { postgres, .. } = self else { return Ok(()) };
        say("stopping PostgreSQL");
        postgres.stop().await
    }

    /// Keeps a server that standalone started running until `done`, then stops it. A restart keeps the socket's path.
    pub(super) async fn look_after(self, done: CancellationToken) -> Result<(), PostgresError> {
        let Server::Own { config, mut postgres } = self else {
            done.cancelled().await;
            return Ok(());
        };
        while tokio::time::timeout(CHECK_INTERVAL, done.cancelled()).await.is_err() {
            if postgres.has_ended() {
                say(&format!(
                    "PostgreSQL has stopped unexpectedly (see {}); restarting it",
                    postgres.log().display()
                ));
                match Postgres::start(&config, &|line| say(&line)).await {
                    Ok(started) => postgres = started,
                    Err(error) => say(&format!("{error}; retrying")),
                }
            }
        }
        say("stopping PostgreSQL");
        postgres.stop().await
    }
}
