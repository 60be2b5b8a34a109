//! Runs a plan: each operation on its login's connection, in one transaction, behind the fence. Idle connections wait in
//! `connection_cache` for the next pass.

use std::collections::BTreeMap;

use rowgate_core::name::Ulid;
use rowgate_core::role::{CONTROL_DATABASE, TenantLogin};
use rowgate_pg::connect::login::Login;
use rowgate_pg::connect::login_failure::{LoginCause, LoginFailure};
use rowgate_pg::connect::session;
use rowgate_pg::control::installation::Installation;
use rowgate_pg::control::{leader, tenants};
use rowgate_pg::failure::{PgError, TransactionError};
use rowgate_pg::introspect;
use rowgate_pg::introspect::actual::{Cluster, TenantDb};
use rowgate_pg::tenant::locks::{self, Held};
use rowgate_pg::tenant::staging;
use rowgate_pg::wire::try_login;
use rowgate_sql::ddl::{records, roles};
use rowgate_sql::text::{Ident, Sql};
use sqlx::{Connection as _, PgConnection};

use crate::apply::connection_cache::ConnectionCache;
use crate::entropy;
use crate::plan::{As, Of, Op};

pub(crate) mod connection_cache;
mod each;
mod of_records;

/// The connections of one pass over one tenant, opened when an operation needs them.
pub(crate) struct Logins<'a> {
    /// On the tenant's server.
    installation: &'a Installation,
    /// On the server of the control database, where that is another one.
    home: Option<&'a Installation>,
    connections: &'a ConnectionCache,
    /// Connections are opened, and none that was kept is used.
    fresh: bool,
    /// The leader's epoch: the fence of the control database is asked with it.
    lead: i64,
    tenant: &'a Ulid,
    database: &'a str,
    open: BTreeMap<&'static str, PgConnection>,
    /// Who owns schema `dl`, once that was asked.
    records_are: Option<As>,
    /// Roles whose password had been changed and was set again.
    pub(crate) reset_passwords: Vec<String>,
    /// What the operations that go one by one have left.
    pub(crate) left: Vec<Of>,
}

/// What `dl.stand` raises.
const MOVED: &str = "RG002";

/// Why a plan stopped. What stands behind the failed operation was not run; what stands before it stays.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ApplyError {
    /// What the plan was made for is gone, or another session is changing it: introspect and plan again.
    #[error("{about}: {message}")]
    Moved { about: String, message: String },
    /// Another session holds what the operation needs for longer than it waits.
    #[error("{about}: {}", locks::sentence(holders))]
    Busy { about: String, holders: Vec<Held> },
    /// `of` can be closed, and the rest go on.
    #[error("{about}: {message}")]
    Refused { of: Of, about: String, message: String },
    #[error(transparent)]
    Unavailable(PgError),
}

impl<'a> Logins<'a> {
    pub(crate) fn new(
        installation: &'a Installation,
        connections: &'a ConnectionCache,
        lead: i64,
        tenant: &'a Ulid,
        database: &'a str,
    ) -> Logins<'a> {
        let (open, reset_passwords, left) = (BTreeMap::new(), Vec::new(), Vec::new());
        Logins {
            installation,
            home: None,
            connections,
            fresh: false,
            lead,
            tenant,
            database,
            open,
            records_are: None,
            reset_passwords,
            left,
        }
    }

    /// With the control database on the server of `home`.
    pub(crate) fn with_home(self, home: &'a Installation) -> Logins<'a> {
        let is_other = home.system_identifier != self.installation.system_identifier;
        Logins { home: is_other.then_some(home), ..self }
    }

    /// With the passwords tried.
    pub(crate) fn fresh(self, fresh: bool) -> Logins<'a> {
        Logins { fresh, ..self }
    }

    fn login(&self, login: As) -> (&'static str, Login) {
        match login {
            As::Operator => ("operator", self.installation.operator()),
            As::Owner => ("owner", self.installation.tenant(self.tenant, TenantLogin::Owner, self.database)),
            As::Records => ("dl", self.installation.tenant(self.tenant, TenantLogin::Records, self.database)),
            As::Keys => ("keys", self.installation.tenant(self.tenant, TenantLogin::Keys, CONTROL_DATABASE)),
        }
    }

    /// The connection of `login`.
    pub(crate) async fn get(&mut self, login: As) -> Result<&mut PgConnection, PgError> {
        let (name, login) = self.login(login);
        if !self.open.contains_key(name) {
            let connected = match self.fresh && name != "operator" {
                true => self.connections.connect_fresh(&login).await,
                false => self.connections.connect(&login).await,
            };
            let conn = match connected {
                // the role's password was changed; ours is derived and can be set again
                Err(error) if error.code() == Some("28P01") && name != "operator" => {
                    self.reset_password(&login.role).await?;
                    session::connect(&login).await?
                }
                other => other?,
            };
            self.open.insert(name, conn);
        }
        Ok(self.open.get_mut(name).expect("it was put there"))
    }

    /// The control database, as the operator.
    pub(crate) async fn control(&mut self) -> Result<&mut PgConnection, PgError> {
        let Some(home) = self.home else { return self.get(As::Operator).await };
        if !self.open.contains_key("control") {
            let conn = self.connections.connect(&home.operator()).await?;
            self.open.insert("control", conn);
        }
        Ok(self.open.get_mut("control").expect("it was put there"))
    }

    /// What PostgreSQL holds: roles and database, and what is inside, read side by side.
    pub(crate) async fn introspect(&mut self) -> Result<(Cluster, TenantDb), PgError> {
        self.get(As::Operator).await?;
        self.get(As::Records).await?;
        // when one fails, neither is used again: the other was left half-way
        let taken = (self.open.remove("operator"), self.open.remove("dl"));
        let (Some(mut operator), Some(mut records)) = taken else {
            unreachable!("both were opened just now")
        };
        let (cluster, db) = tokio::try_join!(
            introspect::cluster(&mut operator, self.tenant, self.database),
            introspect::tenant_db(&mut records)
        )?;
        self.open.extend([("operator", operator), ("dl", records)]);
        Ok((cluster, db))
    }

    /// What not even a look gets past, and who holds it.
    pub(crate) async fn hidden(&mut self) -> Vec<Held> {
        let Ok(owner) = self.get(As::Owner).await else { return Vec::new() };
        let held = locks::held(owner).await.unwrap_or_default();
        held.into_iter().filter(|it| it.exclusively).collect()
    }

    /// Tries the logins that nothing else here uses: what only the data plane needs would stay broken unnoticed.
    /// The one that answers requests is tried as the data plane does; why it did not get in is given back.
    pub(crate) async fn probe(&mut self) -> Result<Option<LoginFailure>, PgError> {
        let auth = self.installation.tenant(self.tenant, TenantLogin::Auth, self.database);
        let mut failure = try_login(&auth).await.err();
        if failure.as_ref().is_some_and(|it| it.cause == LoginCause::WrongPassword) {
            self.reset_password(&auth.role).await?;
            failure = None;
        }
        for login in [TenantLogin::Keys, TenantLogin::Sql, TenantLogin::Lookups] {
            let database = if login == TenantLogin::Keys { CONTROL_DATABASE } else { self.database };
            let login = self.installation.tenant(self.tenant, login, database);
            match session::connect(&login).await {
                Ok(conn) => drop(conn.close().await),
                Err(error) if error.code() == Some("28P01") => self.reset_password(&login.role).await?,
                // a right that is missing is the plan's business, and comes after the password
                Err(_) => {}
            }
        }
        Ok(failure)
    }

    async fn reset_password(&mut self, role: &str) -> Result<(), PgError> {
        let login = TenantLogin::ALL.into_iter().find(|login| login.role(self.tenant) == role);
        let (Some(login), Some(ident)) = (login, Ident::new(role)) else { return Ok(()) };
        let verifier = self.installation.tenant_verifier(self.tenant, login);
        let mut operator = session::connect(&self.installation.operator()).await?;
        let mut open = leader::fence(&mut operator, self.lead).await?;
        // the role may be changing it at this moment, without end
        session::execute(&mut open, &roles::seldom_waiting()).await?;
        session::execute(&mut open, &roles::set_verifier(&ident, &verifier)).await?;
        open.commit().await?;
        tracing::warn!(role, "the role's password was changed and is set again");
        self.reset_passwords.push(role.to_owned());
        Ok(())
    }

    /// After a pass that came to its end: what a next one begins with is kept.
    pub(crate) async fn keep(mut self) {
        for login in [As::Operator, As::Owner, As::Records, As::Keys] {
            let (name, login) = self.login(login);
            self.open.remove(name).into_iter().for_each(|conn| self.connections.keep(login.clone(), conn));
        }
        if let Some((home, conn)) = self.home.zip(self.open.remove("control")) {
            self.connections.keep(home.operator(), conn);
        }
        self.close().await;
    }

    pub(crate) async fn close(self) {
        for conn in self.open.into_values() {
            // the work is committed; a connection that does not close well is the server's to clear
            let _ = conn.close().await;
        }
    }

    /// Runs `ops` in order and stops at the first that fails. `epoch` is what the fence is asked with; `None` before
    /// schema `dl` is there.
    pub(crate) async fn apply(&mut self, ops: &[Op], epoch: Option<i64>) -> Result<(), ApplyError> {
        for op in ops {
            self.one(op, epoch).await?;
            tracing::debug!(tenant = %self.tenant, about = %op.about, statements = op.statements.len(), "applied");
        }
        Ok(())
    }

    async fn one(&mut self, op: &Op, epoch: Option<i64>) -> Result<(), ApplyError> {
        let Some(epoch) = epoch.filter(|_| op.login == As::Keys) else {
            if op.login == As::Keys || !op.transaction || op.one_by_one {
                return self.beside(op).await;
            }
            return self.transact(op, epoch).await;
        };
        // the fence stands in the tenant's database, so another login holds it while the keys login works elsewhere
        self.get(As::Records).await.map_err(ApplyError::Unavailable)?;
        let mut records = self.open.remove("dl").expect("it was put there");
        let held = async {
            let mut fence = records.begin().await.map_err(PgError::from)?;
            session::execute(&mut fence, &records::held_fence(epoch)).await?;
            Ok::<_, PgError>(fence)
        };
        let fence = held.await.map_err(tenants::fenced);
        let fence = fence.map_err(|error| refused(op, 1, TransactionError { index: 0, error }))?;
        self.transact(op, None).await?;
        fence.rollback().await.map_err(|error| ApplyError::Unavailable(error.into()))?;
        self.open.insert("dl", records);
        Ok(())
    }

    /// What cannot ask a fence itself: a connection of the operator's holds the control database's meanwhile.
    async fn beside(&mut self, op: &Op) -> Result<(), ApplyError> {
        let unavailable = ApplyError::Unavailable;
        let operator = self.installation.operator();
        let mut holder = self.connections.connect(&operator).await.map_err(unavailable)?;
        let fence = leader::fence(&mut holder, self.lead).await.map_err(unavailable)?;
        self.transact(op, None).await?;
        fence.rollback().await.map_err(|error| ApplyError::Unavailable(error.into()))?;
        self.connections.keep(operator, holder);
        Ok(())
    }

    /// Does not wait for what another transaction or another database holds; it is left.
    async fn one_by_one(&mut self, op: &Op) -> Result<(), ApplyError> {
        let conn = self.get(op.login).await.map_err(ApplyError::Unavailable)?;
        let mut left = Vec::new();
        for statement in &op.statements {
            let statements = [roles::seldom_waiting(), statement.sql.clone()];
            let Err(failed) = session::transaction(conn, &statements).await else { continue };
            let Some(code) = failed.error.code().map(str::to_owned) else {
                return Err(refused(op, 1, failed));
            };
            tracing::debug!(about = %op.about, of = ?statement.of, code, "postponed");
            left.push(statement.of.clone());
        }
        self.left.extend(left);
        Ok(())
    }

    async fn transact(&mut self, op: &Op, epoch: Option<i64>) -> Result<(), ApplyError> {
        if op.one_by_one {
            return self.one_by_one(op).await;
        }
        let lead = self.lead;
        let mut own: Vec<Sql> = op.statements.iter().map(|statement| statement.sql.clone()).collect();
        // of each, the first statement of the operation that it stands for
        let mut first: Vec<usize> = (0..own.len()).collect();
        if op.login == As::Owner && own.iter().any(Sql::is_of_records) {
            let records = self.get(As::Records).await.map_err(ApplyError::Unavailable)?;
            let steps = staging::stage(records, own, &mut entropy::bytes).await;
            (own, first) = steps
                .map_err(ApplyError::Unavailable)?
                .into_iter()
                .map(|step| (step.sql, step.first))
                .unzip();
        }
        let conn = self.get(op.login).await.map_err(ApplyError::Unavailable)?;
        let mut statements: Vec<Sql> = Vec::with_capacity(own.len() + 2);
        match (op.login, epoch) {
            (As::Owner | As::Records, Some(epoch)) => statements.push(records::fence(epoch)),
            (As::Operator, _) if op.transaction => statements.extend([
                records::control_fence(lead),
                records::alone(),
                records::short_lock_waits(),
            ]),
            (As::Keys, _) if op.transaction => statements.push(records::short_lock_waits()),
            _ => {}
        }
        let before = statements.len();
        statements.extend(own);
        let done = match op.transaction {
            true => session::transaction(conn, &statements).await,
            false => each::each(conn, &statements).await,
        };
        match done {
            Err(TransactionError { index, error }) if error.code() == Some(locks::NOT_AVAILABLE) => {
                let statement = statements.get(index).map_or("", Sql::as_str);
                let holders = match op.login {
                    As::Owner | As::Records => holders(conn, statement).await,
                    // of roles nobody can say who holds them
                    As::Operator | As::Keys => Vec::new(),
                };
                Err(ApplyError::Busy { about: op.about.clone(), holders })
            }
            // our own signals come from our own statements alone
            Err(TransactionError { index, error }) if index < before => {
                let error =
                    if op.login == As::Operator { leader::believed(error) } else { tenants::fenced(error) };
                Err(refused(op, before, TransactionError { index, error }))
            }
            done => done.map_err(|TransactionError { index, error }| {
                let at = first
                    .get(index - before)
                    .map_or(op.statements.len(), |first| first + staging::failed(&error));
                refused(op, 0, TransactionError { index: at, error })
            }),
        }
    }
}

/// Who holds the relations that `statement` names, or all that are held where it names none of them. What cannot be read
/// is left out: it only affects the message.
async fn holders(conn: &mut PgConnection, statement: &str) -> Vec<Held> {
    let mut held = locks::held(conn).await.unwrap_or_default();
    let is_named = |it: &Held| statement.contains(&format!("\"{}\".\"{}\"", it.schema, it.relation));
    if held.iter().any(is_named) {
        held.retain(is_named);
    }
    held
}

fn refused(op: &Op, before: usize, error: TransactionError) -> ApplyError {
    let PgError::Sqlstate { message, code, .. } = &error.error else {
        return ApplyError::Unavailable(error.error);
    };
    if error.error.is_shortage() {
        return ApplyError::Unavailable(error.error);
    }
    let moved = code == MOVED || error.error.is_collision();
    let message = format!("PostgreSQL answered {code}: {message}");
    if moved {
        return ApplyError::Moved { about: op.about.clone(), message };
    }
    let statement = error.index.checked_sub(before).and_then(|index| op.statements.get(index));
    let of = statement.map_or(Of::Tenant, |statement| statement.of.clone());
    ApplyError::Refused { of, about: op.about.clone(), message }
}
