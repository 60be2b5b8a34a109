//! The PostgreSQL that standalone works with: somebody's running one, or our own, which is started again if it dies.

use std::time::Duration;

use rowgate_core::name::Ulid;
use rowgate_pg::connect::login::Login;
use rowgate_pg::connect::login_failure::LoginFailure;
use rowgate_pg::control::installation;
use rowgate_pg::control::installation::{Installation, InstallationError, Roots};
use rowgate_pg::wire::try_login;
use tokio_util::sync::CancellationToken;

use super::flags::StandaloneSettings;
use super::postgres::{Postgres, PostgresError, Wish};
use super::run::StandaloneError;
use super::{given, say};

/// How often our own server is looked after.
const LOOK: Duration = Duration::from_secs(1);

pub(super) enum Server {
    Given(Login),
    Own { wish: Wish, postgres: Postgres },
}

impl Server {
    pub(super) async fn open(settings: &StandaloneSettings) -> Result<Server, PostgresError> {
        let given = settings.database.as_ref().map(|login| &login.endpoint);
        given::write(&settings.state, given).map_err(|source| PostgresError::Io {
            doing: "write",
            path: given::file(&settings.state),
            source,
        })?;
        if let Some(login) = &settings.database {
            return Ok(Server::Given(login.clone()));
        }
        let wish = Wish {
            state: settings.state.clone(),
            bin: settings.postgres_bin.clone(),
            settings: settings.postgres_settings.clone(),
            session_memory: settings.session_memory,
        };
        let postgres = Postgres::start(&wish, &|line| say(&line)).await?;
        Ok(Server::Own { wish, postgres })
    }

    /// The login with which the installation is founded.
    pub(super) fn admin(&self) -> Login {
        match self {
            Server::Given(login) => login.clone(),
            Server::Own { postgres, .. } => postgres.superuser().clone(),
        }
    }

    /// The installation in it. One of which the data plane's login would not get in by SCRAM is refused before anything is served
    /// from it; our own asks everybody for SCRAM.
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

    /// Keeps our own server running until `done`; then ends it. Its socket stays where it is over a restart.
    pub(super) async fn look_after(self, done: CancellationToken) -> Result<(), PostgresError> {
        let Server::Own { wish, mut postgres } = self else {
            done.cancelled().await;
            return Ok(());
        };
        while tokio::time::timeout(LOOK, done.cancelled()).await.is_err() {
            if postgres.has_ended() {
                say(&format!(
                    "PostgreSQL has ended by itself (see {}); starting it again",
                    postgres.log().display()
                ));
                match Postgres::start(&wish, &|line| say(&line)).await {
                    Ok(started) => postgres = started,
                    Err(error) => say(&format!("{error}; it is tried again")),
                }
            }
        }
        say("stopping PostgreSQL");
        postgres.stop().await
    }
}
