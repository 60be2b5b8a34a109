//! PostgreSQL's own work in a database.

use rowgate_tests::servers::postgres::{Server, execute, rows};
use rowgate_tests::wait::until;

/// Until autovacuum is at work in the database, with a table for which it needs minutes.
pub(super) async fn begins(server: &Server, database: &str) {
    let mut superuser = server.connect(database).await;
    execute(&mut superuser, "alter system set autovacuum_naptime = '1s'").await;
    execute(&mut superuser, "select pg_reload_conf()").await;
    execute(
        &mut superuser,
        "create table public.slow with (autovacuum_vacuum_cost_delay = 100, autovacuum_vacuum_cost_limit = 1, \
             autovacuum_vacuum_insert_threshold = 1, autovacuum_vacuum_insert_scale_factor = 0) \
         as select repeat('x', 500) from generate_series(1, 20000)",
    )
    .await;
    let worker = format!(
        "select from pg_stat_activity where backend_type = 'autovacuum worker' and datname = '{database}' and query ~ 'slow'"
    );
    until("autovacuum", async || (!rows(&mut superuser, &worker).await.is_empty()).then_some(())).await;
}
