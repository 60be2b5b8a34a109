//! Other passwords for the roles of a cluster that moved: they derive from its system identifier, and those of before open the old cluster.

use rowgate_core::role::TenantLogin;
use rowgate_sql::ddl::roles;
use rowgate_sql::text::Ident;
use sqlx::{Connection as _, PgConnection};

use super::{Installation, verifier};
use crate::connect::session;
use crate::failure::PgError;

/// Gives the roles of tenants and keys the verifiers that they have in the cluster of `installation`, as far as the role of `conn` may. One
/// that cannot be given it now, since somebody holds it, gets it when a reconciler or a data plane is first refused. The logins of
/// migration tools have passwords of which only their pass knows. Returns how many were given it.
pub(super) async fn renew(conn: &mut PgConnection, installation: &Installation) -> Result<usize, PgError> {
    let names = sqlx::query_scalar(
        "select rolname::text from pg_catalog.pg_roles \
         where rolcanlogin and (rolname ~ '^t[0-9a-z]{26}_' or rolname ~ '^key_[0-9a-z]{26}$') \
             and (pg_catalog.pg_has_role(oid, 'member with admin option') or \
                  (select me.rolsuper from pg_catalog.pg_roles me where me.rolname = current_user)) \
         order by 1",
    );
    let names: Vec<String> = names.fetch_all(&mut *conn).await?;
    let mut n_renewed = 0;
    for name in names {
        let Some((role, verifier)) = Ident::new(&name).zip(of(installation, &name)) else { continue };
        let mut open = conn.begin().await?;
        sqlx::query("set local lock_timeout = '1s'").execute(&mut *open).await?;
        match session::execute(&mut open, &roles::set_verifier(&role, &verifier)).await {
            Ok(_) => {
                open.commit().await?;
                n_renewed += 1;
            }
            // held by somebody, or dropped meanwhile
            Err(error) if matches!(error.code(), Some("55P03" | "42704")) => open.rollback().await?,
            Err(error) => return Err(error),
        }
    }
    Ok(n_renewed)
}

fn of(installation: &Installation, role: &str) -> Option<String> {
    let root = match TenantLogin::of_role(role) {
        Some(TenantLogin::Migrations | TenantLogin::Views) => return None,
        Some(login) => installation.root_of(login),
        None if role.starts_with("key_") => &installation.roots.dataplane,
        None => return None,
    };
    Some(verifier(root, &installation.system_identifier, role))
}
