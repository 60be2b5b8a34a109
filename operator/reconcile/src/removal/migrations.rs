//! The end of the login of migration tools, where the database stays.

use rowgate_pg::control::installation::Installation;
use rowgate_pg::control::tenants::Record;
use rowgate_pg::introspect;
use rowgate_sql::text::Ident;

use crate::apply::Logins;
use crate::apply::connection_cache::ConnectionCache;
use crate::pass::PassError;
use crate::plan::{self, As};

/// Closes it and ends its sessions; nothing, where it is closed or was never made.
pub(crate) async fn close(
    server: &Installation,
    connections: &ConnectionCache,
    lead: i64,
    record: &Record,
) -> Result<(), PassError> {
    let Some(database) = Ident::new(&record.database) else { return Ok(()) };
    let mut logins = Logins::new(server, connections, lead, &record.id, &record.database);
    let done = async {
        let cluster =
            introspect::cluster(logins.get(As::Operator).await?, &record.id, &record.database).await?;
        let ops = plan::migrations::closing(&record.id, &database, &cluster, &server.operator().role);
        Ok(logins.apply(&ops, None).await?)
    };
    let done = done.await;
    logins.close().await;
    done
}
