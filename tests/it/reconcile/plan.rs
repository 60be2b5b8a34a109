//! Plans against a real PostgreSQL: read as text, run operation by operation, and asked for again.

mod drift;
mod golden;
mod granting;
mod manifests;
mod meaning;
mod prefixes;
mod reading;
mod routines;
mod shop;

use rowgate_core::derive::Root;
use rowgate_core::name::Ulid;
use rowgate_core::role::{CONTROL_DATABASE, OPERATOR_ROLE, TenantLogin};
use rowgate_pg::connect::session;
use rowgate_pg::control::installation::{Installation, Roots, open};
use rowgate_pg::control::{migrate, tenants};
use rowgate_pg::introspect;
use rowgate_pg::introspect::actual::{Cluster, TenantDb};
use rowgate_pg::tenant::{scripts, staging};
use rowgate_reconcile::desired::Desired;
use rowgate_reconcile::plan::{self, As, Closed, Op, Outcome};
use rowgate_sql::ddl::records;
use rowgate_sql::text::Sql;
use rowgate_tests::servers::postgres::{Server, execute};
use sqlx::PgConnection;

/// An installation with one tenant, and the connections that its plans run on.
struct World {
    server: Server,
    installation: Installation,
    tenant: Ulid,
    database: String,
    operator: PgConnection,
    owner: PgConnection,
    /// Of schema `dl`.
    records: PgConnection,
    /// Opened when it is needed: before the first plan has run it may not come in.
    keys: Option<PgConnection>,
    epoch: i64,
    n_ids: u8,
    /// What made the tenant's roles and its database.
    roles_and_database: Vec<Op>,
}

fn id(kind: u8, n: u8) -> Ulid {
    Ulid::from_parts(1_700_000_000_000, [kind, n, 0, 0, 0, 0, 0, 0, 0, n])
}

async fn installation(server: &Server) -> Installation {
    let roots = Roots { operator: Root::new([1; 32]), dataplane: Root::new([2; 32]) };
    open(server.superuser("postgres"), &roots, id(b'i', 1)).await.unwrap_or_else(|error| panic!("{error}"))
}

impl World {
    /// The roles and database of `desired`'s tenant, schema `dl` and what `bootstrap` makes: as a pass does before it plans the
    /// contents.
    async fn new(server: Server, installation: Installation, desired: &Desired, bootstrap: &str) -> World {
        let database = desired.database.as_str().to_owned();
        let mut operator = session::connect(&installation.operator()).await.expect("the operator's login");
        let cluster = introspect::cluster(&mut operator, &desired.tenant, &database).await.expect("a look");
        let roles_and_database = plan::roles_and_database(desired, &cluster, OPERATOR_ROLE);
        for op in &roles_and_database {
            apply(&mut operator, op, None).await;
        }
        let login = installation.tenant(&desired.tenant, TenantLogin::Owner, &database);
        let mut owner = session::connect(&login).await.expect("the owner's login");
        migrate::close_database(&mut owner).await.expect("its owner");
        let [connect, lend, take_back] = plan::lending(&desired.tenant, &desired.owner, &database);
        apply(&mut owner, &connect, None).await;
        apply(&mut operator, &lend, None).await;
        let login = installation.tenant(&desired.tenant, TenantLogin::Records, &database);
        let mut records = session::connect(&login).await.expect("the login of schema dl");
        migrate::make(&mut records).await.expect("the migrations");
        apply(&mut operator, &take_back, None).await;
        let epoch = tenants::claim_epoch(&mut records).await.expect("the fence");
        scripts::run(&mut owner, &mut records, bootstrap, vec![records::bootstrapped()], epoch, [1; 32])
            .await
            .expect("the bootstrap script");
        let tenant = desired.tenant.clone();
        World {
            server,
            installation,
            tenant,
            database,
            operator,
            owner,
            records,
            keys: None,
            epoch,
            n_ids: 0,
            roles_and_database,
        }
    }

    async fn look(&mut self) -> (Cluster, TenantDb) {
        let cluster = introspect::cluster(&mut self.operator, &self.tenant, &self.database).await;
        let db = introspect::tenant_db(&mut self.records).await;
        (cluster.expect("a look at the cluster"), db.expect("a look at the database"))
    }

    /// The plan for everything that is wrong now, roles and database first.
    async fn plan(&mut self, desired: &Desired) -> Outcome {
        let (cluster, db) = self.look().await;
        let mut ops = plan::roles_and_database(desired, &cluster, OPERATOR_ROLE);
        let n_ids = &mut self.n_ids;
        let mut new_id = || {
            *n_ids += 1;
            id(b's', *n_ids)
        };
        let mut outcome =
            plan::contents(desired, &cluster, &db, &Closed::default(), OPERATOR_ROLE, &mut new_id);
        ops.append(&mut outcome.ops);
        outcome.ops = ops;
        outcome
    }

    async fn apply(&mut self, op: &Op) {
        let epoch = Some(self.epoch);
        match op.login {
            As::Operator => apply(&mut self.operator, op, None).await,
            As::Owner => {
                let statements = self.staged(op).await.into_iter().map(Into::into).collect();
                apply(&mut self.owner, &Op { statements, ..op.clone() }, epoch).await;
            }
            As::Records => apply(&mut self.records, op, epoch).await,
            As::Keys => {
                let login = self.installation.tenant(&self.tenant, TenantLogin::Keys, CONTROL_DATABASE);
                if self.keys.is_none() {
                    self.keys = Some(session::connect(&login).await.expect("the keys login"));
                }
                apply(self.keys.as_mut().expect("it was just opened"), op, None).await;
            }
        }
    }

    /// What the owner's transaction says for `op`, with its records staged.
    async fn staged(&mut self, op: &Op) -> Vec<Sql> {
        let statements = op.statements.iter().map(|statement| statement.sql.clone()).collect();
        let mut n_tokens = 0;
        let mut token = || {
            n_tokens += 1;
            [n_tokens; 32]
        };
        // by an operation that failed
        execute(&mut self.records, "truncate dl.staged").await;
        let steps =
            staging::stage(&mut self.records, statements, &mut token).await.expect("records are staged");
        steps.into_iter().map(|step| step.sql).collect()
    }

    /// Plans, applies, and sees that nothing is left. Gives the plan that was applied.
    async fn settle(&mut self, desired: &Desired) -> Outcome {
        let outcome = self.plan(desired).await;
        for op in &outcome.ops {
            self.apply(op).await;
        }
        let again = self.plan(desired).await;
        assert_eq!(text(&again.ops), "", "a second plan over the same manifests does nothing");
        outcome
    }

    /// What somebody does by hand in the tenant's database.
    async fn by_hand(&mut self, script: &str) {
        let mut conn = self.server.connect(&self.database).await;
        execute(&mut conn, script).await;
    }
}

async fn apply(conn: &mut PgConnection, op: &Op, epoch: Option<i64>) {
    let fence = epoch.map(records::fence);
    let statements: Vec<Sql> =
        fence.into_iter().chain(op.statements.iter().map(|statement| statement.sql.clone())).collect();
    if op.transaction {
        if let Err(error) = session::transaction(conn, &statements).await {
            panic!("statement {} of the operation failed: {}\n{op}", error.index, error.error);
        }
        return;
    }
    for sql in &statements {
        session::execute(conn, sql).await.unwrap_or_else(|error| panic!("{error}\n{op}"));
    }
}

fn text(ops: &[Op]) -> String {
    ops.iter().map(ToString::to_string).collect()
}
