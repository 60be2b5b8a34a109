//! What every role and every key can reach at one moment, asked of PostgreSQL as that role.

use std::collections::{BTreeMap, BTreeSet};

use rowgate_core::role::{SHARED_ROLE, TenantLogin};
use rowgate_pg::connect::session;
use sqlx::{PgConnection, Row as _};

use super::World;

/// Cells such as `app.a.note of 3`, and rights to write such as `INSERT app.a.note`.
pub(super) type Reach = BTreeSet<String>;

/// One moment of a tenant's database.
#[derive(Debug, Default)]
pub(super) struct Moment {
    /// By role: `datalake_user` and every `key_...`.
    pub(super) roles: BTreeMap<String, Reach>,
    /// By id of every key with a live row and a live secret: the role that it acts as.
    pub(super) keys: BTreeMap<String, String>,
    /// By table: its policies as text.
    pub(super) policies: BTreeMap<String, BTreeSet<String>>,
    /// Tables on which a key's role holds something, directly or through a view, although row-level security is not
    /// enabled and forced.
    pub(super) naked: Vec<String>,
    /// Tables with all triggers of Concurrency Protection.
    pub(super) protected: BTreeSet<String>,
}

impl Moment {
    /// What the key reaches; nothing, if it does not live.
    pub(super) fn of_key(&self, id: &str) -> Reach {
        self.keys.get(id).and_then(|role| self.roles.get(role)).cloned().unwrap_or_default()
    }

    pub(super) fn of_role(&self, role: &str) -> Reach {
        self.roles.get(role).cloned().unwrap_or_default()
    }
}

impl World {
    /// Reads everything that every role can read: As the login of requests, and logged in where the role can log in.
    pub(super) async fn moment(&mut self) -> Moment {
        let mut admin = self.server.connect(&self.database).await;
        let mut moment = Moment {
            keys: sqlx::query_as::<_, (String, String)>(
                "select k.id, k.role::text from dl.keys k where k.revoked_at is null and exists \
                 (select from dl.key_secrets s where s.key_id = k.id and s.revoked_at is null)",
            )
            .fetch_all(&mut admin)
            .await
            .expect("the keys")
            .into_iter()
            .collect(),
            naked: sqlx::query_scalar(NAKED).fetch_all(&mut admin).await.expect("tables"),
            protected: sqlx::query_scalar(PROTECTED)
                .fetch_all(&mut admin)
                .await
                .expect("triggers")
                .into_iter()
                .collect(),
            ..Moment::default()
        };
        let policies: Vec<(String, String)> = sqlx::query_as(
            "select schemaname || '.' || tablename, concat_ws('|', policyname, permissive, roles, cmd, qual, with_check) \
             from pg_policies where schemaname = 'app'",
        )
        .fetch_all(&mut admin)
        .await
        .expect("the policies");
        for (table, policy) in policies {
            moment.policies.entry(table).or_default().insert(policy);
        }
        let roles: Vec<String> =
            sqlx::query_scalar("select rolname::text from pg_roles where rolname like 'key\\_%'")
                .fetch_all(&mut admin)
                .await
                .expect("the roles");
        let auth = self.installation.tenant(&self.tenant, TenantLogin::Auth, &self.database);
        let auth = session::connect(&auth).await;
        if let Ok(mut session) = auth {
            for role in roles.iter().map(String::as_str).chain([SHARED_ROLE]) {
                let set = sqlx::query("select set_config('role', $1, false)").bind(role);
                if set.execute(&mut session).await.is_ok() {
                    moment.roles.entry(role.to_owned()).or_default().extend(reach(&mut session).await);
                    sqlx::query("reset role").execute(&mut session).await.expect("back again");
                }
            }
        }
        for role in &roles {
            // a key whose role is closed, or that may not connect, reads nothing this way
            if let Ok(mut own) = session::connect(&self.installation.key(role, &self.database)).await {
                moment.roles.entry(role.clone()).or_default().extend(reach(&mut own).await);
            }
        }
        moment
    }
}

/// Tables with grants to a key's roles, those under such a view included, whose policies do not count: row-level security is off, or a view of the
/// owner of the tables leads there.
const NAKED: &str = "
    with recursive granted as (
        select c.oid from pg_class c, pg_roles r
        where c.relnamespace = 'app'::regnamespace and c.relkind in ('r', 'v')
          and (r.rolname = 'datalake_user' or r.rolname like 'set\\_%' or r.rolname like 'key\\_%')
          and (has_table_privilege(r.oid, c.oid, 'SELECT, INSERT, UPDATE, DELETE')
               or has_any_column_privilege(r.oid, c.oid, 'SELECT, INSERT, UPDATE'))
        union
        select d.refobjid from granted g join pg_rewrite w on w.ev_class = g.oid
        join pg_depend d on d.classid = 'pg_rewrite'::regclass and d.objid = w.oid and d.refclassid = 'pg_class'::regclass
    )
    select c.oid::regclass::text from granted join pg_class c using (oid)
    where c.relkind = 'r' and not c.relrowsecurity
       or c.relkind = 'v' and c.relowner = (select datdba from pg_database where datname = current_database())
          and exists (select from granted u join pg_class t on t.oid = u.oid where t.relkind = 'r' and not t.relforcerowsecurity)";

const PROTECTED: &str = "
    select tgrelid::regclass::text from pg_trigger
    where tgname like '~dl%' and tgenabled = 'A' group by tgrelid having count(*) = 4";

/// As the role that the connection has: rows by key, times the columns that it may read.
async fn reach(conn: &mut PgConnection) -> Reach {
    let columns: Vec<(String, String, Vec<String>)> = sqlx::query_as(
        "select c.oid::regclass::text, a.attname::text, \
                array(select p from unnest(array['SELECT', 'INSERT', 'UPDATE']) p \
                      where has_column_privilege(c.oid, a.attnum, p)) \
         from pg_class c join pg_attribute a on a.attrelid = c.oid \
         where c.relnamespace = (select oid from pg_namespace where nspname = 'app') and c.relkind in ('r', 'v') \
           and a.attnum > 0 and has_schema_privilege(c.relnamespace, 'USAGE')",
    )
    .fetch_all(&mut *conn)
    .await
    .expect("the system's tables are open to everybody");
    let mut reach = Reach::new();
    let mut readable: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (table, column, privileges) in &columns {
        for privilege in privileges {
            match privilege.as_str() {
                "SELECT" => readable.entry(table).or_default().push(column),
                other => _ = reach.insert(format!("{other} {table}.{column}")),
            }
        }
    }
    let routines: Vec<String> = sqlx::query_scalar(
        "select 'EXECUTE ' || p.oid::regprocedure from pg_proc p \
         where p.pronamespace = (select oid from pg_namespace where nspname = 'app') \
           and has_function_privilege(p.oid, 'EXECUTE') and has_schema_privilege(p.pronamespace, 'USAGE')",
    )
    .fetch_all(&mut *conn)
    .await
    .expect("the system's tables are open to everybody");
    reach.extend(routines);
    for (table, columns) in readable {
        assert!(columns.contains(&"id"), "whoever reads {table} reads its key: {columns:?}");
        // a policy may look into a table that the role may not read, or into its own: then it reads nothing
        for row in rows(conn, table, &columns).await.unwrap_or_default() {
            reach.extend(columns.iter().map(|column| format!("{table}.{column} of {row}")));
        }
    }
    reach
}

#[expect(clippy::disallowed_methods, reason = "names of the test's own tables")]
async fn rows(conn: &mut PgConnection, table: &str, columns: &[&str]) -> Result<Vec<i32>, sqlx::Error> {
    let text = format!("select id, row({}) is null from {table}", columns.join(", "));
    let rows = sqlx::query(sqlx::AssertSqlSafe(text)).fetch_all(conn).await;
    match rows {
        Ok(rows) => rows.iter().map(|row| row.try_get(0)).collect(),
        Err(sqlx::Error::Database(error)) if matches!(error.code().as_deref(), Some("42501" | "42P17")) => {
            Ok(Vec::new())
        }
        Err(error) => panic!("{error} on {table} ({columns:?})"),
    }
}
