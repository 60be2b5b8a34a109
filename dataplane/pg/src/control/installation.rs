//! One installation of Rowgate in one PostgreSQL cluster: its logins, its control database and its marker.

use rowgate_core::derive::Root;
use rowgate_core::name::Ulid;
use rowgate_core::role::{CONTROL_DATABASE, OPERATOR_ROLE, TenantLogin};
use sqlx::PgConnection;

use crate::connect::login::{Endpoint, Login};
use crate::control::servers::ClusterPlace;
use crate::failure::PgError;

mod bootstrap;
mod checks;
mod dataplane;
mod operate;
mod renew;
mod template;

pub use bootstrap::{open, open_beside, still_there};
pub use checks::system_identifier;
use dataplane::{CONTROL_LABEL, login_of_dataplane};
pub use dataplane::{DataplaneInstallation, control_login, open_existing};
pub use operate::{Operated, operate};

/// The two roots from which everything is derived (architecture, section 3).
#[derive(Debug, Clone)]
pub struct Roots {
    pub operator: Root,
    pub dataplane: Root,
}

/// What the operator's side of Rowgate knows: every login of the installation.
#[derive(Debug, Clone)]
pub struct Installation {
    pub endpoint: Endpoint,
    /// Of the PostgreSQL cluster; part of every derived password.
    pub system_identifier: String,
    pub id: Ulid,
    /// Lines that a DBA may run to close what this login cannot close itself. Empty with a superuser.
    pub advice: Vec<String>,
    operator: Login,
    roots: Roots,
}

/// Why Rowgate cannot work with this PostgreSQL. Each message says what to change.
#[derive(Debug, thiserror::Error)]
pub enum InstallationError {
    #[error(transparent)]
    Pg(#[from] PgError),
    #[error(
        "this is PostgreSQL {version}; Rowgate needs 16 or newer: upgrade the server, or name another one"
    )]
    TooOld { version: String },
    #[error("role {role:?} lacks privileges that Rowgate needs; a DBA can run:\n{}", lines.join("\n"))]
    LoginTooWeak { role: String, lines: Vec<String> },
    #[error(
        "this PostgreSQL belongs to installation {id}, made with another {which} root (fingerprint {stored}, given \
         {given}); start with that installation's state folder or Secret, or use another PostgreSQL"
    )]
    OtherRoots { id: String, which: &'static str, stored: String, given: String },
    #[error(
        "database {CONTROL_DATABASE} was created in PostgreSQL cluster {stored}, and this is cluster {actual}; if pg_upgrade or a restore \
         moved that cluster here, stop the old one and run `rowgate-dataplane rebind {stored} --to {actual}`; else use another \
         PostgreSQL, or drop the copied database {CONTROL_DATABASE}"
    )]
    OtherCluster { stored: String, actual: String },
    #[error(
        "database {CONTROL_DATABASE} belongs to {owner:?}, not to {expected:?}; log in as {owner:?} if it is the \
         operator's login, else rename that database or use another PostgreSQL"
    )]
    OtherOwner { owner: String, expected: String },
    #[error(
        "the operator's login of this installation is {owner:?}; give --database-url with that role and its password, as \
         the operator or standalone has it"
    )]
    OtherOperator { owner: String },
    #[error(
        "this PostgreSQL belongs to installation {id}, and this is installation {ours}; a PostgreSQL cluster serves one installation: name another \
         server, or drop the database {CONTROL_DATABASE} there if that installation is gone"
    )]
    OtherInstallation { id: Ulid, ours: Ulid },
    #[error(
        "this PostgreSQL is a copy of the installation's own server, with the same system identifier; name a server that was initialised \
         by itself, or leave serverSecretRef out to use the installation's own"
    )]
    Copy,
    #[error("there is no installation in this PostgreSQL yet; start the operator, or standalone, first")]
    NotInstalled,
}

impl Installation {
    /// The same installation in another cluster whose operator's login Rowgate made itself, without a look at it.
    #[must_use]
    pub fn beside(&self, place: ClusterPlace) -> Installation {
        let ClusterPlace { system_identifier, endpoint } = place;
        let role = OPERATOR_ROLE.to_owned();
        let operator = derived(&self.roots.operator, &endpoint, &system_identifier, role, CONTROL_DATABASE);
        let (id, roots) = (self.id.clone(), self.roots.clone());
        Installation { endpoint, system_identifier, id, advice: Vec::new(), operator, roots }
    }

    /// Where it is.
    #[must_use]
    pub fn place(&self) -> ClusterPlace {
        ClusterPlace { system_identifier: self.system_identifier.clone(), endpoint: self.endpoint.clone() }
    }

    /// The operator on the control database.
    #[must_use]
    pub fn operator(&self) -> Login {
        self.operator_on(CONTROL_DATABASE)
    }

    /// The operator on `database`. It can connect to none that Rowgate made; in one of an application it reads catalogs before that is adopted.
    #[must_use]
    pub fn operator_on(&self, database: &str) -> Login {
        Login { database: database.to_owned(), ..self.operator.clone() }
    }

    /// One of a tenant's login roles.
    #[must_use]
    pub fn tenant(&self, tenant: &Ulid, login: TenantLogin, database: &str) -> Login {
        let root = self.root_of(login);
        derived(root, &self.endpoint, &self.system_identifier, login.role(tenant), database)
    }

    /// The login of migration tools, whose password is another one for each `generation`.
    #[must_use]
    pub fn migrations(&self, tenant: &Ulid, database: &str, generation: u32) -> Login {
        let login = self.tenant(tenant, TenantLogin::Migrations, database);
        let password = self.roots.operator.password(&self.system_identifier, &login.role, generation);
        Login { password, ..login }
    }

    /// The SCRAM verifier that belongs to [`Installation::migrations`].
    #[must_use]
    pub fn migrations_verifier(&self, tenant: &Ulid, generation: u32) -> String {
        let (root, role) = (&self.roots.operator, TenantLogin::Migrations.role(tenant));
        let password = root.password(&self.system_identifier, &role, generation);
        rowgate_core::scram::verifier(&password, &root.salt(&self.system_identifier, &role, generation))
    }

    /// The role of a scoped key.
    #[must_use]
    pub fn key(&self, role: &str, database: &str) -> Login {
        derived(&self.roots.dataplane, &self.endpoint, &self.system_identifier, role.to_owned(), database)
    }

    /// The data plane on the control database.
    #[must_use]
    pub fn dataplane(&self) -> Login {
        login_of_dataplane(&self.endpoint, &self.roots.dataplane)
    }

    /// The SCRAM verifier that belongs to [`Installation::tenant`].
    #[must_use]
    pub fn tenant_verifier(&self, tenant: &Ulid, login: TenantLogin) -> String {
        verifier(self.root_of(login), &self.system_identifier, &login.role(tenant))
    }

    /// The SCRAM verifier that belongs to [`Installation::key`].
    #[must_use]
    pub fn key_verifier(&self, role: &str) -> String {
        verifier(&self.roots.dataplane, &self.system_identifier, role)
    }

    #[must_use]
    pub fn roots(&self) -> &Roots {
        &self.roots
    }

    fn root_of(&self, login: TenantLogin) -> &Root {
        match login {
            TenantLogin::Owner
            | TenantLogin::Keys
            | TenantLogin::Records
            | TenantLogin::Views
            | TenantLogin::Migrations => &self.roots.operator,
            TenantLogin::Auth | TenantLogin::Sql | TenantLogin::Lookups => &self.roots.dataplane,
        }
    }
}

/// The one row of `control.installation`.
#[derive(sqlx::FromRow)]
struct Marker {
    id: String,
    system_identifier: String,
    operator_fingerprint: String,
    dataplane_fingerprint: String,
}

impl Marker {
    fn id(&self) -> Result<Ulid, PgError> {
        self.id.parse().map_err(|_| PgError::unexpected("control.installation does not hold a ULID"))
    }

    fn check(&self, which: &'static str, stored: &str, given: &str) -> Result<(), InstallationError> {
        if stored == given {
            return Ok(());
        }
        let (id, stored, given) = (self.id.clone(), stored.to_owned(), given.to_owned());
        Err(InstallationError::OtherRoots { id, which, stored, given })
    }
}

async fn read_marker(conn: &mut PgConnection) -> Result<Option<Marker>, PgError> {
    let there = sqlx::query_scalar("select to_regclass('control.installation') is not null");
    if !there.fetch_one(&mut *conn).await? {
        return Ok(None);
    }
    let row = sqlx::query_as(
        "select id, system_identifier, operator_fingerprint, dataplane_fingerprint from control.installation",
    );
    Ok(row.fetch_optional(conn).await?)
}

fn derived(root: &Root, endpoint: &Endpoint, label: &str, role: String, database: &str) -> Login {
    let password = root.password(label, &role, 1);
    Login { endpoint: endpoint.clone(), database: database.to_owned(), role, password }
}

fn verifier(root: &Root, label: &str, role: &str) -> String {
    rowgate_core::scram::verifier(&root.password(label, role, 1), &root.salt(label, role, 1))
}
