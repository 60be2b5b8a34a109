//! Schema `dl`: whose it is, and how it becomes that of its own login.

use rowgate_core::role::TenantLogin;
use rowgate_crds::Reason;
use rowgate_pg::control::migrate::{self, TakeOverError};
use rowgate_pg::control::replicas;
use rowgate_pg::failure::PgError;
use rowgate_pg::tenant::scripts;
use rowgate_sql::text::Sql;
use sqlx::{Connection as _, PgConnection};

use super::Logins;
use crate::entropy;
use crate::pass::PassError;
use crate::plan::{self, As};

const OLD_REPLICAS: &str = "the database waits until no data plane of version 0.1 runs, which would close its views once they are served by this \
                            version; upgrade the data planes (keys are revoked meanwhile, and nothing else changes)";

impl Logins<'_> {
    /// The connection of whoever owns schema `dl`: `t<id>_dl`, or in a database that an earlier version left the owner of the tables.
    pub(crate) async fn records(&mut self) -> Result<&mut PgConnection, PgError> {
        let login = match self.records_are {
            Some(login) => login,
            None => {
                if self.has_own_login().await? {
                    As::Records
                } else {
                    As::Owner
                }
            }
        };
        self.records_are = Some(login);
        self.get(login).await
    }

    /// Whether schema `dl` belongs to `t<id>_dl`. Asked by a login that is there already: most passes need no session of the owner.
    async fn has_own_login(&mut self) -> Result<bool, PgError> {
        let login = if self.open.contains_key("dl") { As::Records } else { As::Owner };
        let own = TenantLogin::Records.role(self.tenant);
        Ok(migrate::schema_owner(self.get(login).await?).await?.as_ref() == Some(&own))
    }

    /// Makes schema `dl`, gives it to `t<id>_dl`, and brings it up to date. True: something was done.
    pub(crate) async fn prepare_records(&mut self) -> Result<bool, PassError> {
        if self.has_own_login().await? {
            self.records_are = Some(As::Records);
            let records = self.get(As::Records).await?;
            let strangers = migrate::strangers(records).await?;
            if !strangers.is_empty() {
                return Err(foreign(TakeOverError::Foreign(strangers.join("; "))));
            }
            return Ok(0 < migrate::tenant(records).await?);
        }
        let owner = self.get(As::Owner).await?;
        let is_new = migrate::schema_owner(owner).await?.is_none();
        if !is_new && replicas::any_before(self.get(As::Operator).await?, 2).await? {
            return Err(PassError::Waits(OLD_REPLICAS.to_owned()));
        }
        let owner = self.get(As::Owner).await?;
        match is_new {
            true => migrate::close_database(owner).await?,
            false => _ = migrate::start_tenant(owner).await?,
        }
        let database_owner = migrate::database_owner(owner).await?;
        let [connect, lend, take_back] = plan::lending(self.tenant, &database_owner, self.database);
        self.apply(&[connect, lend], None).await?;
        let made = match self.get(As::Records).await {
            Ok(records) if is_new => migrate::make(records).await.map_err(PassError::from),
            Ok(records) => migrate::take_over(records).await.map_err(foreign),
            Err(error) => Err(error.into()),
        };
        self.apply(&[take_back], None).await?;
        made?;
        self.records_are = Some(As::Records);
        if !is_new {
            tracing::info!(tenant = %self.tenant, "schema dl belongs to a login of its own");
        }
        Ok(true)
    }

    /// Runs a script and what notes that it ran, and closes the owner's connection, in which it may have set something for the session.
    pub(crate) async fn script(&mut self, text: &str, noted: Vec<Sql>, epoch: i64) -> Result<(), PgError> {
        self.get(As::Owner).await?;
        let mut owner = self.open.remove("owner").expect("it was put there");
        let records = self.get(As::Records).await?;
        let done = scripts::run(&mut owner, records, text, noted, epoch, entropy::bytes()).await;
        let _ = owner.close().await;
        done
    }
}

/// Where the schema holds what is none of ours, it is named.
fn foreign(error: TakeOverError) -> PassError {
    match error {
        TakeOverError::Pg(error) => error.into(),
        foreign @ TakeOverError::Foreign(_) => {
            let message = format!(
                "{foreign}; as the owner of the database, drop it or undo it, so that the schema becomes that of a login as which no code of the tenant runs"
            );
            PassError::Refused(Reason::StatementRefused, message)
        }
    }
}
