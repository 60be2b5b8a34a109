//! A standby knows of a revoked key only later, so none is asked.

use std::fs;

use rowgate_pg::wire::Failure;
use rowgate_sql::shape::Encoding::Int4;
use rowgate_tests::servers::postgres::Server;
use rowgate_tests::wait::until_ok;

use crate::postgres::wire::fixture::Tenant;

/// Seen to fail without a look at what the server reports of itself, and without one behind a pooler.
#[tokio::test]
async fn a_standby_is_asked_for_nothing() {
    // What was committed must outlive a SIGKILL.
    let settings = ["synchronous_commit=on"];
    let mut servers = [Server::with(&settings).await, Server::with_pooler(&settings, 1).await];
    for server in &mut servers {
        let tenant = Tenant::found(server, "wire_standby").await;
        let pool = tenant.pool();
        assert!(pool.read(tenant.ask("a", "select 1", &[Int4]), usize::MAX).await.is_ok());
        server.kill().await;
        fs::write(server.data().join("standby.signal"), "").expect("the folder is ours");
        server.start_again().await;
        // Until sessions of before have ended, and PgBouncer has noticed, there are other reasons.
        until_ok("a word of the standby", async || {
            match pool.read(tenant.ask("a", "select 1", &[Int4]), usize::MAX).await {
                Err(Failure::Unavailable(why) | Failure::NoConnection(why))
                    if why.contains("this PostgreSQL server is a standby") =>
                {
                    Ok(())
                }
                Err(Failure::Unavailable(why) | Failure::NoConnection(why)) => Err(why),
                other => panic!("{other:?}"),
            }
        })
        .await;
    }
}
