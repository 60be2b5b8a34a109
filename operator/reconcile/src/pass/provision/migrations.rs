//! The login of migration tools in a pass: its password and its Secret. The role is the plan's.

use std::collections::BTreeSet;

use rowgate_core::role::TenantLogin;
use rowgate_crds::Reason;
use rowgate_pg::connect::login::Login;
use rowgate_pg::connect::session;
use rowgate_pg::control::{leader, tenants};
use rowgate_pg::failure::PgError;
use rowgate_pg::introspect::actual::Cluster;
use rowgate_sql::ddl::roles;
use rowgate_sql::text::Ident;
use sqlx::{Connection as _, PgConnection};

use crate::apply::Logins;
use crate::desired::Desired;
use crate::pass::{Pass, PassError};
use crate::plan::{self, As};
use crate::removal;
use crate::secrets::migrations;
use crate::source::{Event, ResourceSource, SourceError};
use crate::status::TenantState;

impl<S: ResourceSource> Pass<'_, S> {
    /// Gives the login its password and writes its Secret, or deletes the Secret. `cluster`: the roles as they are now.
    pub(in crate::pass) async fn migrations(
        &mut self,
        state: &mut TenantState,
        desired: &Desired,
        cluster: &Cluster,
        logins: &mut Logins<'_>,
    ) -> Result<(), PassError> {
        let present = cluster.roles.get(&TenantLogin::Migrations.role(&desired.tenant));
        let spec = plan::migrations::is_open(desired, present).filter(|_| present.is_some());
        let done = async {
            self.forget_migrations(state, spec.map(|spec| &*spec.secret_name)).await?;
            let Some(spec) = spec else { return Ok(()) };
            let (id, database) = (&desired.tenant, desired.database.as_str());
            let login = self.server.migrations(id, database, spec.generation);
            let wanted = migrations::data(&login);
            let namespace = &state.object.namespace;
            let found = self.source.read_secret(namespace, &spec.secret_name).await?;
            let is_it = found.as_ref().is_some_and(|found| found.data == wanted);
            if is_it && !(self.probe && is_refused(&login).await) {
                return Ok(());
            }
            let verifier = self.server.migrations_verifier(id, spec.generation);
            set_verifier(logins.get(As::Operator).await?, self.lead, &login.role, &verifier).await?;
            if is_it {
                return Ok(());
            }
            self.name_migrations(state, &spec.secret_name).await?;
            self.source.write_secret(&state.object, namespace, &spec.secret_name, &wanted).await?;
            let note =
                format!("Secret {} holds the login of migration tools, {}", spec.secret_name, login.role);
            let event = Event { reason: "SecretIssued".to_owned(), note, warning: false };
            Ok::<_, PassError>(self.source.event(&state.object, event).await?)
        };
        match done.await {
            Err(PassError::Source(error @ SourceError::SecretTaken { .. })) => {
                state.findings.stalled.push((Reason::SecretInvalid, format!("database.migrations: {error}")));
                Ok(())
            }
            done => done,
        }
    }

    /// Names the Secret in the status before it is written: a pass may be cut off anywhere, and what ends the login later, in this process or
    /// another, deletes what the status names.
    async fn name_migrations(&mut self, state: &TenantState, name: &str) -> Result<(), PassError> {
        if self.shown_migrations() != Some(name) && self.memory.migrations_secret.as_deref() != Some(name) {
            self.revise(state, Reason::Progressing, &format!("writing Secret {name} for migration tools"))
                .await?;
            self.memory.migrations_secret = Some(name.to_owned());
        }
        Ok(())
    }

    fn shown_migrations(&self) -> Option<&str> {
        self.tenant.status.as_ref().and_then(|status| status.migrations_secret.as_deref())
    }

    /// Deletes the Secret that the status names, or that this process has named there last, which the Tenant that was read may not show yet;
    /// where the login has another one or none: `kept`. What could not be deleted goes on being named.
    async fn forget_migrations(
        &mut self,
        state: &mut TenantState,
        kept: Option<&str>,
    ) -> Result<(), SourceError> {
        let named: BTreeSet<&str> =
            self.shown_migrations().into_iter().chain(self.memory.migrations_secret.as_deref()).collect();
        for name in named.into_iter().filter(|name| kept != Some(*name)) {
            self.source.delete_secret(&state.object, &state.object.namespace, name).await?;
        }
        self.memory.migrations_secret.take_if(|name| kept != Some(name));
        state.migrations_secret = kept.map(str::to_owned);
        Ok(())
    }

    /// Of a Tenant whose database is retained.
    pub(in crate::pass) async fn close_migrations(
        &mut self,
        state: &mut TenantState,
        record: &tenants::Record,
    ) -> Result<(), PassError> {
        removal::migrations::close(&self.server, self.connections, self.lead, record).await?;
        Ok(self.forget_migrations(state, None).await?)
    }
}

/// Whether its password was changed. What else keeps it out is the plan's to mend, or the server's.
async fn is_refused(login: &Login) -> bool {
    match session::connect(login).await {
        Ok(conn) => {
            let _ = conn.close().await;
            false
        }
        Err(error) => error.code() == Some("28P01"),
    }
}

async fn set_verifier(
    operator: &mut PgConnection,
    lead: i64,
    role: &str,
    verifier: &str,
) -> Result<(), PgError> {
    let role = Ident::new(role).expect("a role name of ours fits PostgreSQL");
    let mut open = leader::fence(operator, lead).await?;
    session::execute(&mut open, &roles::set_verifier(&role, verifier)).await?;
    Ok(open.commit().await?)
}
