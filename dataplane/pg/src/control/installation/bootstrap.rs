//! Making an installation, or finding the one that is there: idempotent, and safe beside another that does the same.

use rowgate_core::derive::Root;
use rowgate_core::name::Ulid;
use rowgate_core::role::{CONTROL_DATABASE, DATAPLANE_ROLE, OPERATOR_ROLE, SHARED_ROLE};
use sqlx::{Connection as _, PgConnection};

use super::checks::{self, Me, quoted};
use super::template;
use super::{
    CONTROL_LABEL, Installation, InstallationError, Marker, Roots, derived, login_of_dataplane, read_marker,
    renew, verifier,
};
use crate::connect::login::Login;
use crate::connect::session;
use crate::control::rebinds::{self, Rebind};
use crate::control::{leader, migrate, replicas};
use crate::failure::PgError;

/// "rowgate" in ASCII: one opener at a time in a cluster.
const OPEN_LOCK: i64 = 0x0072_6f77_6761_7465;

/// Opens the installation behind `admin`, making what is missing; `new_id` is its id if there is none yet.
///
/// `admin` is a superuser (then the operator's login is made here, with a derived password), or itself the
/// operator's login: CREATEDB CREATEROLE, no superuser. Nothing is written before roots and cluster were compared
/// with the marker of an installation that is there. A cluster that is not the marker's is refused, unless its control database says that it
/// became this one.
pub async fn open(admin: Login, roots: &Roots, new_id: Ulid) -> Result<Installation, InstallationError> {
    open_as(admin, roots, new_id, None).await
}

/// `beside`: the installation's own server, and which clusters became other ones; `None`: it is that server, and its control database says it.
async fn open_as(
    admin: Login,
    roots: &Roots,
    new_id: Ulid,
    beside: Option<(&Installation, &[Rebind])>,
) -> Result<Installation, InstallationError> {
    let mut conn = session::connect(&admin).await?;
    checks::require_version(&mut conn).await?;
    sqlx::query("select pg_catalog.pg_advisory_lock($1)")
        .bind(OPEN_LOCK)
        .execute(&mut conn)
        .await
        .map_err(PgError::from)?;
    let me = checks::me(&mut conn).await?;
    if !me.superuser {
        me.require_operator()?;
    }
    let (marker, said_here) = present_marker(&admin, &mut conn, &me).await?.unzip();
    let system_identifier = match (checks::system_identifier(&mut conn).await?, &marker) {
        (Some(actual), _) => actual,
        (None, Some(marker)) => marker.system_identifier.clone(),
        (None, None) => return Err(me.too_weak(vec![grant_identifier(&me)])),
    };
    let said = beside.map_or(said_here.as_deref().unwrap_or_default(), |(_, said)| said);
    let is_other = beside.is_some_and(|(home, _)| home.system_identifier != system_identifier);
    let moved = marker
        .as_ref()
        .and_then(|marker| said.iter().find(|it| it.allows(&marker.system_identifier, &system_identifier)));
    if let Some(marker) = &marker {
        fits(marker, roots, if moved.is_some() { &marker.system_identifier } else { &system_identifier })?;
    }

    let operator = match me.superuser {
        true => make_operator(&mut conn, &admin, roots, &system_identifier).await?,
        false => admin.clone(),
    };
    make_control_database(&mut conn, &me, &operator.role).await?;
    let advice = close_databases(&mut conn, &me).await?;
    if me.superuser {
        template::make(&mut conn, &admin).await?;
    }
    let mut control =
        session::connect(&Login { database: CONTROL_DATABASE.to_owned(), ..operator.clone() }).await?;
    make_shared_roles(&mut conn, &mut control, &me, &operator, (!is_other).then_some(&roots.dataplane))
        .await?;
    migrate::control(&mut control).await?;
    let marker = make_marker(&mut control, roots, &system_identifier, new_id).await?;
    let (id, roots) = (marker.id()?, roots.clone());
    let (endpoint, actual) = (admin.endpoint, system_identifier.clone());
    let installation = Installation { endpoint, system_identifier, id, advice, operator, roots };
    match moved {
        Some(moved) => take_up(&installation, moved, beside.is_none(), &mut conn, &mut control).await?,
        None => fits(&marker, &installation.roots, &actual)?,
    }
    // The lock goes with the connection.
    conn.close().await.map_err(PgError::from)?;
    control.close().await.map_err(PgError::from)?;
    Ok(installation)
}

/// The marker of a cluster that moved, last, after the passwords of all roles: whatever ends this before is done again.
async fn take_up(
    installation: &Installation,
    moved: &Rebind,
    is_home: bool,
    conn: &mut PgConnection,
    control: &mut PgConnection,
) -> Result<(), PgError> {
    let n_roles = renew::renew(conn, installation).await?;
    let mut open = control.begin().await?;
    rebinds::take_up_marker(&mut open, moved).await?;
    if is_home {
        leader::leap(&mut open).await?;
    }
    open.commit().await?;
    replicas::wake(control).await?;
    tracing::info!(
        from = moved.from,
        to = moved.to,
        n_roles,
        "a PostgreSQL cluster moved; its roles have other passwords"
    );
    Ok(())
}

/// Opens the installation of `home` in another cluster, whose administrator is `admin` as [`open`] says, and makes what is missing there.
/// Tenants' databases and roles are there afterwards, and the control database stays `home`'s; the one there holds the fence, asked with
/// `lead`. `said`: which clusters became other ones.
pub async fn open_beside(
    admin: Login,
    home: &Installation,
    lead: i64,
    said: &[Rebind],
) -> Result<Installation, InstallationError> {
    if is_copy(&admin, home).await? {
        return Err(InstallationError::Copy);
    }
    let beside = open_as(admin, &home.roots, home.id.clone(), Some((home, said))).await?;
    if beside.id != home.id {
        return Err(InstallationError::OtherInstallation { id: beside.id, ours: home.id.clone() });
    }
    let mut control = session::connect(&beside.operator()).await?;
    leader::copy(&mut control, lead).await?;
    control.close().await.map_err(PgError::from)?;
    Ok(beside)
}

/// Whether the server behind `admin` has the system identifier of `home`'s and is another one, as a copy of its files or a standby that was
/// promoted is: then it does not see a lock that is held at `home`.
async fn is_copy(admin: &Login, home: &Installation) -> Result<bool, InstallationError> {
    let mut conn = session::connect(admin).await?;
    let identifier = checks::system_identifier(&mut conn).await?;
    if identifier.is_some_and(|it| it != home.system_identifier) {
        return Ok(false);
    }
    let key: i64 = rand::random();
    let mut held = session::connect(&home.operator()).await?;
    let lock = sqlx::query("select pg_catalog.pg_advisory_lock($1)").bind(key);
    lock.execute(&mut held).await.map_err(PgError::from)?;
    let sees = sqlx::query_scalar(
        "select exists (select from pg_catalog.pg_locks \
                        where locktype = 'advisory' and (classid::int8 << 32 | objid::int8) = $1)",
    );
    let sees: bool = sees.bind(key).fetch_one(&mut conn).await.map_err(PgError::from)?;
    held.close().await.map_err(PgError::from)?;
    conn.close().await.map_err(PgError::from)?;
    Ok(!sees)
}

/// [`InstallationError::OtherCluster`] where the cluster behind `there` is another one than it was opened as. A login that may not
/// ask finds nothing wrong.
pub async fn still_there(there: &Installation) -> Result<(), InstallationError> {
    let mut conn = session::connect(&there.operator()).await?;
    let actual = checks::system_identifier(&mut conn).await?;
    conn.close().await.map_err(PgError::from)?;
    match actual {
        Some(actual) if actual != there.system_identifier => {
            Err(InstallationError::OtherCluster { stored: there.system_identifier.clone(), actual })
        }
        _ => Ok(()),
    }
}

/// The marker as `admin` sees it, with the owner of the control database compared to the login we shall use; and what is said there of
/// clusters that became other ones.
async fn present_marker(
    admin: &Login,
    conn: &mut PgConnection,
    me: &Me,
) -> Result<Option<(Marker, Vec<Rebind>)>, InstallationError> {
    let Some(owner) = checks::owner(conn, CONTROL_DATABASE).await? else { return Ok(None) };
    let expected = if me.superuser { OPERATOR_ROLE } else { &me.name };
    if owner != expected {
        return Err(InstallationError::OtherOwner { owner, expected: expected.to_owned() });
    }
    let mut control =
        session::connect(&Login { database: CONTROL_DATABASE.to_owned(), ..admin.clone() }).await?;
    let (marker, said) = (read_marker(&mut control).await?, rebinds::list(&mut control).await?);
    control.close().await.map_err(PgError::from)?;
    Ok(marker.map(|marker| (marker, said)))
}

fn fits(marker: &Marker, roots: &Roots, system_identifier: &str) -> Result<(), InstallationError> {
    if marker.system_identifier != system_identifier {
        let (stored, actual) = (marker.system_identifier.clone(), system_identifier.to_owned());
        return Err(InstallationError::OtherCluster { stored, actual });
    }
    marker.check("operator", &marker.operator_fingerprint, &roots.operator.fingerprint())?;
    marker.check("data plane", &marker.dataplane_fingerprint, &roots.dataplane.fingerprint())
}

/// As a superuser: the operator's login with its attributes and its derived password.
async fn make_operator(
    conn: &mut PgConnection,
    admin: &Login,
    roots: &Roots,
    system_identifier: &str,
) -> Result<Login, PgError> {
    let verifier = verifier(&roots.operator, system_identifier, OPERATOR_ROLE);
    let right: Option<bool> = sqlx::query_scalar(
        "select rolcanlogin and rolcreatedb and rolcreaterole and not rolsuper and not rolbypassrls \
                and not rolreplication and rolpassword is not distinct from $2 \
         from pg_catalog.pg_authid where rolname = $1",
    )
    .bind(OPERATOR_ROLE)
    .bind(&verifier)
    .fetch_optional(&mut *conn)
    .await?;
    let verb = match right {
        Some(true) => None,
        Some(false) => Some("alter"),
        None => Some("create"),
    };
    if let Some(verb) = verb {
        // The verifier is base 64 and punctuation of ours: it cannot end the literal.
        let attributes = "login createdb createrole noinherit nosuperuser noreplication nobypassrls";
        session::script(conn, &format!("{verb} role {OPERATOR_ROLE} {attributes} password '{verifier}'"))
            .await?;
    }
    let (root, endpoint) = (&roots.operator, &admin.endpoint);
    Ok(derived(root, endpoint, system_identifier, OPERATOR_ROLE.to_owned(), CONTROL_DATABASE))
}

/// The control database, in an encoding and collation that every cluster can have.
async fn make_control_database(conn: &mut PgConnection, me: &Me, operator: &str) -> Result<(), PgError> {
    if checks::owner(conn, CONTROL_DATABASE).await?.is_some() {
        return Ok(());
    }
    let owner = if me.superuser { format!("owner {}", quoted(operator)) } else { String::new() };
    let create = format!(
        "create database {CONTROL_DATABASE} {owner} template template0 encoding 'UTF8' locale_provider libc locale 'C'"
    );
    exists_already(session::script(conn, &create).await)
}

/// Takes CONNECT and TEMPORARY from PUBLIC where this login can, and says what is left for a DBA.
async fn close_databases(conn: &mut PgConnection, me: &Me) -> Result<Vec<String>, PgError> {
    let mut advice = Vec::new();
    for database in checks::open_databases(conn).await? {
        let revoke = format!("revoke connect, temporary on database {} from public", quoted(&database));
        let ours = database == CONTROL_DATABASE;
        let systems = me.superuser && matches!(database.as_str(), "postgres" | "template1");
        match ours || systems {
            true => session::script(conn, &revoke).await?,
            false => advice.push(format!("{revoke};")),
        }
    }
    Ok(advice)
}

/// `datalake_user` and the data plane's login. The operator makes them, so that it may grant them. `data_plane`: the root of that login's
/// password; `None`: data planes have no business in the control database of this server, and the password that opens the other one is not
/// shown to it.
async fn make_shared_roles(
    conn: &mut PgConnection,
    control: &mut PgConnection,
    me: &Me,
    operator: &Login,
    data_plane: Option<&Root>,
) -> Result<(), InstallationError> {
    let verifier = data_plane.map(|root| verifier(root, CONTROL_LABEL, DATAPLANE_ROLE));
    let closed = "nologin noinherit".to_owned();
    let open = verifier.as_ref().map(|verifier| format!("login noinherit password '{verifier}'"));
    let wanted = [(SHARED_ROLE, closed.clone()), (DATAPLANE_ROLE, open.unwrap_or(closed))];
    for (role, attributes) in wanted {
        match may_administer(control, role).await? {
            Some(true) => {}
            None => {
                exists_already(session::script(control, &format!("create role {role} {attributes}")).await)?
            }
            Some(false) => {
                let grant = format!(
                    "grant {role} to {} with admin true, inherit false, set false",
                    quoted(&operator.role)
                );
                match me.superuser {
                    true => session::script(conn, &grant).await?,
                    false => return Err(me.too_weak(vec![format!("{grant};")])),
                }
            }
        }
    }
    let Some((root, verifier)) = data_plane.zip(verifier) else { return Ok(()) };
    let can_connect = "select pg_catalog.has_database_privilege($1, $2, 'CONNECT')";
    let can_connect: bool = sqlx::query_scalar(can_connect)
        .bind(DATAPLANE_ROLE)
        .bind(CONTROL_DATABASE)
        .fetch_one(&mut *control)
        .await
        .map_err(PgError::from)?;
    if !can_connect {
        let grant = format!("grant connect on database {CONTROL_DATABASE} to {DATAPLANE_ROLE}");
        session::script(control, &grant).await?;
    }
    // The operator cannot read verifiers, so it tries the password.
    match session::connect(&login_of_dataplane(&operator.endpoint, root)).await {
        Ok(dataplane) => dataplane.close().await.map_err(PgError::from)?,
        Err(error) if matches!(error.code(), Some("28P01" | "28000")) => {
            let reset = format!("alter role {DATAPLANE_ROLE} login password '{verifier}'");
            session::script(control, &reset).await?;
        }
        Err(error) => return Err(error.into()),
    }
    Ok(())
}

/// Whether the connection's role may grant `role`; `None`: there is no such role.
async fn may_administer(control: &mut PgConnection, role: &str) -> Result<Option<bool>, PgError> {
    let admin = sqlx::query_scalar(
        "select pg_catalog.pg_has_role(oid, 'member with admin option') from pg_catalog.pg_roles where rolname = $1",
    );
    Ok(admin.bind(role).fetch_optional(control).await?)
}

async fn make_marker(
    control: &mut PgConnection,
    roots: &Roots,
    system_identifier: &str,
    new_id: Ulid,
) -> Result<Marker, PgError> {
    if let Some(marker) = read_marker(control).await? {
        return Ok(marker);
    }
    sqlx::query(
        "insert into control.installation (id, system_identifier, operator_fingerprint, dataplane_fingerprint) \
         values ($1, $2, $3, $4) on conflict do nothing",
    )
    .bind(new_id.as_str())
    .bind(system_identifier)
    .bind(roots.operator.fingerprint())
    .bind(roots.dataplane.fingerprint())
    .execute(&mut *control)
    .await?;
    read_marker(control).await?.ok_or_else(|| PgError::unexpected("control.installation has no row"))
}

fn grant_identifier(me: &Me) -> String {
    format!("grant execute on function pg_catalog.pg_control_system() to {};", quoted(&me.name))
}

/// Somebody else may have made it between our look and our statement.
fn exists_already(made: Result<(), PgError>) -> Result<(), PgError> {
    match made {
        Err(error) if matches!(error.code(), Some("42710" | "42P04" | "23505")) => Ok(()),
        made => made,
    }
}
