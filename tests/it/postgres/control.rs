//! Rowgate in PostgreSQL, apart from the hot path: installation, migrations, introspection, keys, replicas.

mod installing;
mod looking;
mod serving;
mod sessions;
mod taking_over;

use rowgate_core::derive::{Password, Root};
use rowgate_core::name::Ulid;
use rowgate_core::role::TenantLogin;
use rowgate_pg::connect::session;
use rowgate_pg::control::installation::{Installation, Roots, open};
use rowgate_pg::control::migrate;
use rowgate_tests::servers::postgres::{Server, execute};
use sqlx::PgConnection;

fn id(n: u8) -> Ulid {
    Ulid::from_parts(1_700_000_000_000, [n; 10])
}

fn roots(n: u8) -> Roots {
    Roots { operator: Root::new([n; 32]), dataplane: Root::new([n + 100; 32]) }
}

async fn installed(server: &Server) -> Installation {
    open(server.superuser("postgres"), &roots(1), id(1)).await.unwrap_or_else(|error| panic!("{error}"))
}

/// A tenant as architecture section 3 makes it, without entities: roles, database, schema `dl`. Returns the connections of the owner of its
/// tables, and of that of schema `dl`.
async fn tenant(installation: &Installation, tenant: &Ulid, database: &str) -> (PgConnection, PgConnection) {
    let mut operator = session::connect(&installation.operator()).await.expect("the operator's login");
    for (login, attributes) in [
        (TenantLogin::Owner, "login noinherit"),
        (TenantLogin::Keys, "login createrole noinherit"),
        (TenantLogin::Auth, "login noinherit"),
        (TenantLogin::Sql, "login noinherit"),
        (TenantLogin::Records, "login noinherit"),
        (TenantLogin::Lookups, "login noinherit"),
    ] {
        let (role, verifier) = (login.role(tenant), installation.tenant_verifier(tenant, login));
        execute(&mut operator, &format!("create role {role} {attributes} password '{verifier}'")).await;
    }
    let logins = [TenantLogin::Owner, TenantLogin::Auth, TenantLogin::Records, TenantLogin::Lookups];
    let [owner, auth, dl, lookups] = logins.map(|login| login.role(tenant));
    execute(&mut operator, &format!("grant datalake_user to {auth} with inherit false, set true")).await;
    execute(&mut operator, &format!("grant {owner} to rowgate_operator with inherit false, set true")).await;
    execute(&mut operator, &format!("create database {database} owner {owner}")).await;
    execute(&mut operator, &format!("revoke {owner} from rowgate_operator")).await;
    let login = installation.tenant(tenant, TenantLogin::Owner, database);
    let mut conn = session::connect(&login).await.expect("the owner's login");
    execute(&mut conn, &format!("grant connect on database {database} to {auth}, {dl}, {lookups}")).await;
    migrate::close_database(&mut conn).await.expect("its owner");
    execute(&mut operator, &format!("grant {owner} to {dl} with inherit true, set false")).await;
    let login = installation.tenant(tenant, TenantLogin::Records, database);
    let mut records = session::connect(&login).await.expect("the login of schema dl");
    migrate::make(&mut records).await.expect("a database without the schema");
    execute(&mut operator, &format!("revoke {owner} from {dl}")).await;
    assert_eq!(migrate::tenant(&mut records).await.expect("a migrated database"), 0);
    execute(
        &mut records,
        &format!(
            "grant usage on schema dl to {lookups}; grant select on all tables in schema dl to {lookups}; \
                  grant execute on function dl.revoke(text) to {lookups}"
        ),
    )
    .await;
    (conn, records)
}

fn login(server: &Server, role: &str, password: &str) -> rowgate_pg::connect::login::Login {
    let mut login = server.superuser("postgres");
    (login.role, login.password) = (role.to_owned(), Password::given(password));
    login
}
