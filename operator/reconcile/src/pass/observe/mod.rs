//! A Tenant whose annotation `rowgate.dev/mode` says `Observe`: its plan is made as for every other and shown in its status, and nothing of
//! it is run. What the plan waits for is said in words.

use std::collections::BTreeMap;

use rowgate_core::name::Ulid;
use rowgate_core::role::TenantLogin;
use rowgate_crds::Reason;
use rowgate_pg::connect::session;
use rowgate_pg::control::tenants::{self, Phase};
use rowgate_pg::failure::PgError;
use rowgate_pg::introspect;
use rowgate_pg::introspect::actual::{Cluster, TenantDb};
use rowgate_pg::tenant::scripts;
use sqlx::{Connection as _, PgConnection};

use super::provision::{OLDER_REPLICAS, Recorded, database_is_taken, is_its};
use super::server::record_in;
use super::{Pass, PassError};
use crate::desired::{Desired, convert};
use crate::plan::observed::{self, HIDDEN, Shown};
use crate::plan::{self, Closed, Outcome, adopted};
use crate::source::ResourceSource;
use crate::status::TenantState;

/// Roles that are named, each with its line.
const MAX_ROLES: usize = 50;

impl<S: ResourceSource> Pass<'_, S> {
    /// Writes the plan into `state`.
    ///
    /// # Errors
    /// Nothing can be planned: PostgreSQL does not answer, or the Tenant is refused as a whole.
    pub(super) async fn observe(&self, state: &mut TenantState) -> Result<(), PassError> {
        let home = self.installation.operator();
        let mut control = self.connections.connect(&home).await?;
        let mut shown = Shown::default();
        let (id, database, phase) = self.identity(state, &mut shown, &mut control).await?;
        let operator = self.server.operator();
        let role = operator.role.clone();
        let mut conn = self.connections.connect(&operator).await?;
        let mut desired = self.desired(&id, &database)?;
        desired.verifiers.values_mut().for_each(|verifier| HIDDEN.clone_into(verifier));
        let cluster = introspect::cluster(&mut conn, &id, &database).await?;

        let asked = outside(&mut desired, &cluster, &role, &mut shown)?;
        if desired.is_adopted && phase == Phase::Creating {
            let others = introspect::others_of_owner(&mut conn, &database).await?;
            self.is_owned_apart(&desired.owner, &others, &mut control).await?;
        }
        self.connections.keep(operator, conn);
        self.connections.keep(home, control);
        if cluster.database.is_none() {
            shown.later.push(format!(
                "what stands in database {database} is planned once it is there: schema dl, the scripts of database.bootstrap, policies, privileges and keys"
            ));
        } else {
            let looked = self.look(&desired, &cluster).await;
            match looked {
                Ok((db, conn)) => self.within(&mut desired, cluster, (db, conn), &role, &mut shown).await?,
                Err(error @ PgError::Beyond { .. }) => return Err(error.into()),
                Err(error) if error.code().is_some() => shown.later.push(format!(
                    "what stands in database {database} is planned once a login of Rowgate's can look at it: {error}"
                )),
                Err(error) => return Err(error.into()),
            }
        }
        state.plan = shown.lines();
        let message = sentence(shown.n_statements(), asked.as_deref());
        state.findings.retry = Some((Reason::Observing, message));
        Ok(())
    }

    /// Identifier and database that the Tenant has or, in place of the ones that are made when the plan is run, some for the plan alone.
    async fn identity(
        &self,
        state: &mut TenantState,
        shown: &mut Shown,
        conn: &mut PgConnection,
    ) -> Result<(Ulid, String, Phase), PassError> {
        match self.recorded(state, conn).await? {
            Recorded::Own(record) => {
                record_in(state, &record);
                self.is_of_server(&record)?;
                Ok((record.id, record.database, record.phase))
            }
            Recorded::Retained(record) => {
                shown.remarks.push(format!("the retained database {} is taken up", record.database));
                state.database.clone_from(&record.database);
                Ok((record.id, record.database, record.phase))
            }
            Recorded::Nothing => {
                let id = new_id(0);
                let database = self.database_of(&id);
                state.database.clone_from(&database);
                let others = tenants::not_retained(conn).await?;
                let cluster = self.servers.cluster(&self.server);
                if others.iter().any(|it| it.database == database && it.cluster.as_deref() == cluster) {
                    return Err(database_is_taken(state));
                }
                shown.remarks.push(format!(
                    "{id} stands for the identifier that the Tenant gets, and the like for those of keys and permission sets"
                ));
                Ok((id, database, Phase::Creating))
            }
        }
    }

    /// What stands in the database, and the connection that read it: of `t<id>_dl`, or before there is one of Rowgate's login, which may
    /// connect where PUBLIC may. A password that was changed stays as it is.
    async fn look(&self, desired: &Desired, cluster: &Cluster) -> Result<(TenantDb, PgConnection), PgError> {
        let database = desired.database.as_str();
        if cluster.roles.contains_key(&TenantLogin::Records.role(&desired.tenant)) {
            let login = self.server.tenant(&desired.tenant, TenantLogin::Records, database);
            let mut conn = self.connections.connect(&login).await?;
            return Ok((introspect::tenant_db(&mut conn).await?, conn));
        }
        let mut conn = session::connect(&self.server.operator_on(database)).await?;
        Ok((introspect::untouched_db(&mut conn).await?, conn))
    }

    /// The plan for what stands in the database.
    async fn within(
        &self,
        desired: &mut Desired,
        cluster: Cluster,
        (db, mut conn): (TenantDb, PgConnection),
        operator: &str,
        shown: &mut Shown,
    ) -> Result<(), PassError> {
        self.all_are_read(&db)?;
        if db.state.is_none() {
            shown.ops.extend(plan::lending(&desired.tenant, &desired.owner, desired.database.as_str()));
            shown.later.push(
                "with the rights that are lent to the owner of schema dl, migrations of Rowgate's make that schema and its tables".to_owned(),
            );
        }
        let n_scripts = self.scripts_left(&db, &mut conn).await?;
        if 0 < n_scripts {
            shown.later.push(format!(
                "before the policies, {n_scripts} scripts of database.bootstrap run; what follows from them is planned once they have run"
            ));
        }
        let mut n_new = 0;
        let mut new = || {
            n_new += 1;
            new_id(n_new)
        };
        let ids: BTreeMap<&str, &Ulid> = db.keys.iter().map(|(id, row)| (row.uid.as_str(), id)).collect();
        for key in &self.keys {
            let known = key.metadata.uid.as_deref().and_then(|uid| ids.get(uid));
            let id = known.map_or_else(&mut new, |id| (*id).clone());
            // neither its Secret nor its password is looked at
            let mut spec = convert::key(key, id, None, &self.server);
            HIDDEN.clone_into(&mut spec.verifier);
            desired.keys.push(spec);
        }
        let cluster = observed::with_logins(cluster, &desired.tenant);
        let outcome = plan::contents(desired, &cluster, &db, &Closed::default(), operator, &mut new);
        let enabled = observed::enabled(desired, &db, &outcome);
        if desired.is_adopted && !enabled.is_empty() {
            let held = introspect::held_by_policies(&mut conn, &enabled).await?;
            let held = held.into_iter().filter(|role| !cluster.roles.contains_key(role)).collect();
            shown.remarks.extend(of_roles(held));
        }
        let _ = conn.close().await;
        shown.remarks.extend(found(desired, &outcome));
        shown.ops.extend(outcome.ops);
        self.afterwards(&db, shown);
        Ok(())
    }

    /// How many scripts have not run.
    async fn scripts_left(&self, db: &TenantDb, conn: &mut PgConnection) -> Result<usize, PgError> {
        let Some(bootstrap) = &self.tenant.spec.database.bootstrap else { return Ok(0) };
        let n_listed = bootstrap.references().count();
        let Some(state) = &db.state else { return Ok(n_listed) };
        let n_ran = scripts::ran(conn).await?.len().max(usize::from(state.bootstrapped));
        Ok(n_listed.saturating_sub(n_ran))
    }

    /// What only follows from statements that were not run.
    fn afterwards(&self, db: &TenantDb, shown: &mut Shown) {
        let has_row = |uid: &str| db.keys.values().any(|row| row.uid == uid);
        let is_new = |uid: Option<&str>| uid.is_some_and(|uid| !has_row(uid));
        if self.keys.iter().any(|key| is_new(key.metadata.uid.as_deref())) {
            shown.later.push("each new key then gets its Secret, and a row in dl.key_secrets".to_owned());
        }
        let mut statements = shown.ops.iter().flat_map(|op| &op.statements);
        if statements.any(|it| it.sql.as_str().starts_with("create policy")) {
            shown.later.push(
                "EXECUTE on functions that a policy calls is granted once PostgreSQL has the policy"
                    .to_owned(),
            );
        }
        if !self.subscriptions.is_empty() {
            shown.later.push("webhook subscriptions are written once the Tenant is served".to_owned());
        }
    }
}

/// The plan for roles and database. What a DBA has to run before, if that is found.
fn outside(
    desired: &mut Desired,
    cluster: &Cluster,
    operator: &str,
    shown: &mut Shown,
) -> Result<Option<String>, PassError> {
    let mut asked: Vec<String> = Vec::new();
    if desired.is_adopted {
        match (adopted::judge(desired, cluster, operator), &cluster.database) {
            (Ok(owner), _) => desired.owner = owner,
            (Err(finding), Some(there)) if finding.reason == Reason::RightsMissing => {
                desired.owner.clone_from(&there.owner);
                asked.push(finding.message);
            }
            (Err(finding), _) => return Err(finding.into()),
        }
        asked.extend(adopted::enters(desired, cluster).err().map(|finding| finding.message));
        shown.remarks.extend(asked.iter().cloned());
        shown.remarks.extend(cluster.has_older_replicas.then(|| OLDER_REPLICAS.to_owned()));
    }
    is_its(desired, cluster)?;
    shown.ops.extend(plan::roles_and_database(desired, cluster, operator));
    Ok((!asked.is_empty()).then(|| asked.join("; ")))
}

/// The line for each role that PostgreSQL would keep from COPY FROM and dumps.
fn of_roles(held: Vec<String>) -> Vec<String> {
    let n_more = held.len().saturating_sub(MAX_ROLES);
    let line = |role: &String| {
        let role = adopted::quoted(role);
        format!(
            "for COPY FROM or pg_dump as {role}, which PostgreSQL refuses under any policy: alter role {role} bypassrls;"
        )
    };
    let mut lines: Vec<String> = held.iter().take(MAX_ROLES).map(line).collect();
    lines.extend((0 < n_more).then(|| format!("the same is true of {n_more} more roles")));
    lines
}

/// What the plan leaves out, and why.
fn found(desired: &Desired, outcome: &Outcome) -> Vec<String> {
    let problems = outcome.problems.iter().map(|finding| finding.message.clone());
    let of_keys = desired.keys.iter().flat_map(|key| {
        let findings = outcome.key_problems.get(&key.id).into_iter().flatten();
        findings.map(move |finding| format!("ApiKey {}: {}", key.name, finding.message))
    });
    problems.chain(of_keys).chain(outcome.notes.iter().cloned()).collect()
}

/// The same number gives the same identifier: a plan that did not change reads as before.
fn new_id(number: u64) -> Ulid {
    Ulid::from_parts(number, [0; 10])
}

fn sentence(n_statements: usize, asked: Option<&str>) -> String {
    let statements = match n_statements {
        0 => "status.plan holds no statement".to_owned(),
        1 => "1 statement is in status.plan".to_owned(),
        n => format!("{n} statements are in status.plan"),
    };
    let asked = asked.map(|asked| format!("; {asked}")).unwrap_or_default();
    format!(
        "Rowgate changes nothing while the annotation rowgate.dev/mode says Observe; {statements}; remove the annotation to run them{asked}"
    )
}
