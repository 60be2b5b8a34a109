//! Lets the transactions of the operator through one at a time, by PostgreSQL's own queue for a lock.

use rowgate_pg::connect::login::Login;
use rowgate_tests::servers::postgres::{connect, execute};
use rowgate_tests::wait::until;
use sqlx::{AssertSqlSafe, PgConnection};

/// Stands before a table that each of those transactions reads `for share`: `dl.state` or `control.leader`, where the fences
/// are. Whoever only reads passes by.
pub(super) struct Turnstile {
    login: Login,
    table: &'static str,
    looking: PgConnection,
    holding: PgConnection,
}

impl Turnstile {
    /// `login`: a superuser's, on the database of the table.
    pub(super) async fn close(login: Login, table: &'static str) -> Turnstile {
        let (looking, mut holding) = (enter(&login).await, enter(&login).await);
        execute(&mut holding, &lock(table)).await;
        Turnstile { login, table, looking, holding }
    }

    /// Whether anybody stands before it.
    pub(super) async fn is_met(&mut self) -> bool {
        let waits = format!(
            "select exists (select from pg_locks where relation = '{}'::regclass and not granted)",
            self.table
        );
        ask(&mut self.looking, waits).await
    }

    /// Lets whoever stands first through, and returns when that transaction has ended. The next one stands where it stood.
    pub(super) async fn turn(&mut self) {
        let mut next = enter(&self.login).await;
        let pid: i32 = ask(&mut next, "select pg_backend_pid()".to_owned()).await;
        let lock = lock(self.table);
        let queueing = tokio::spawn(async move {
            execute(&mut next, &lock).await;
            next
        });
        let queued = format!("select exists (select from pg_locks where pid = {pid} and not granted)");
        until("a place in the queue", async || {
            ask::<bool>(&mut self.looking, queued.clone()).await.then_some(())
        })
        .await;
        execute(&mut self.holding, "rollback").await;
        self.holding = queueing.await.expect("no panic");
    }

    /// Lets everybody through from now on.
    pub(super) async fn open(mut self) {
        execute(&mut self.holding, "rollback").await;
    }
}

async fn enter(login: &Login) -> PgConnection {
    connect(login).await.unwrap_or_else(|error| panic!("{}: {error}", login.database))
}

fn lock(table: &str) -> String {
    format!("begin; lock table {table} in exclusive mode")
}

#[expect(clippy::disallowed_methods, reason = "the text is the test's own; no request reaches it")]
pub(super) async fn ask<T>(conn: &mut PgConnection, text: String) -> T
where
    T: sqlx::Type<sqlx::Postgres> + for<'r> sqlx::Decode<'r, sqlx::Postgres> + Send + Unpin,
{
    let asked = sqlx::query_scalar(AssertSqlSafe(text.clone())).fetch_one(conn).await;
    asked.unwrap_or_else(|error| panic!("{error}: {text}"))
}
