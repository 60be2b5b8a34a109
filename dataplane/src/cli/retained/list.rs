//! What is retained, as a table, with what to type next.

use std::time::Duration;

use rowgate_pg::connect::session;
use rowgate_pg::control::installation::{DataplaneInstallation, open_existing};
use rowgate_pg::control::retained::{self, Retained};
use rowgate_pg::control::servers::ServerList;
use rowgate_pg::control::tenants::Record;
use rowgate_pg::failure::PgError;
use tokio::time::timeout;

use super::RetainedError;
use crate::cli::table::table;
use crate::cli::target::{Target, TargetError};

/// How long a database may take to say how large it is.
const SIZE_TIMEOUT: Duration = Duration::from_secs(5);

const HEAD: [&str; 7] = ["ID", "SLUG", "DATABASE", "SIZE", "TENANT", "SINCE", "FOR"];

pub(super) async fn all(target: Target) -> Result<String, RetainedError> {
    let (endpoint, root) = target.look().await?;
    let (installation, mut conn) = open_existing(endpoint, &root).await.map_err(TargetError::from)?;
    let all = retained::list(&mut conn).await?;
    if all.is_empty() {
        return Ok("no database is retained".to_owned());
    }
    let places = ServerList::read(&mut conn).await?;
    let mut rows = Vec::new();
    for it in &all {
        let size = size(&installation, &places, &it.record).await;
        rows.push(row(it, size));
    }
    Ok(table(HEAD, &rows) + NEXT)
}

const NEXT: &str = "
A Tenant of the same namespace and name adopts its database when it is applied again. Another Tenant of the
namespace FOR, with the same spec.slug, adopts it with spec.database.adoptRetained: ID. To every other Tenant
the slug and the database name are taken. To change that:

  rowgate-dataplane retained hand-over ID --to NAMESPACE/NAME   for that Tenant, and no other
  rowgate-dataplane retained drop ID                            permanently, with all its data";

fn row(it: &Retained, size: String) -> [String; 7] {
    let record = &it.record;
    let whose = match &record.handed_to {
        _ if record.dropping => "none: it is being dropped".to_owned(),
        Some((namespace, name)) => format!("Tenant {namespace}/{name}, handed over"),
        None => format!("namespace {}", record.namespace),
    };
    [
        record.id.to_string(),
        record.slug.clone(),
        record.database.clone(),
        size,
        format!("{}/{}", record.namespace, record.name),
        it.since.clone().unwrap_or_else(|| "unknown".to_owned()),
        whose,
    ]
}

/// In words: only who may connect to a database may ask how large it is.
async fn size(installation: &DataplaneInstallation, places: &ServerList, record: &Record) -> String {
    let Ok(cluster) = places.of(installation, record.cluster.as_deref()) else { return "unknown".to_owned() };
    let login = installation.auth(&record.id, cluster, &record.database);
    let asked = async { retained::size(&mut session::connect(&login).await?).await };
    match timeout(SIZE_TIMEOUT, asked).await {
        Ok(Ok(size)) => size,
        Ok(Err(error)) if is_gone(&error) => "gone".to_owned(),
        _ => "unknown".to_owned(),
    }
}

fn is_gone(error: &PgError) -> bool {
    error.code() == Some("3D000")
}
