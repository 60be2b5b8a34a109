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
use super::target::Target;

/// How long a database may take to say how large it is.
const SIZE_TIMEOUT: Duration = Duration::from_secs(5);

const HEAD: [&str; 7] = ["ID", "SLUG", "DATABASE", "SIZE", "TENANT", "SINCE", "FOR"];

pub(super) async fn all(target: Target) -> Result<String, RetainedError> {
    let (endpoint, root) = target.look().await?;
    let (installation, mut conn) = open_existing(endpoint, &root).await?;
    let all = retained::list(&mut conn).await?;
    if all.is_empty() {
        return Ok("no database is retained".to_owned());
    }
    let places = ServerList::read(&mut conn).await?;
    let mut rows = vec![HEAD.map(str::to_owned)];
    for it in &all {
        let size = size(&installation, &places, &it.record).await;
        rows.push(row(it, size));
    }
    Ok(table(&rows) + NEXT)
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
    let Ok(cluster) = places.of(record.cluster.as_deref()) else { return "unknown".to_owned() };
    let login = installation.auth(&record.id, cluster.map(|it| &**it), &record.database);
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

/// Columns as wide as what stands in them, two spaces between.
fn table(rows: &[[String; 7]]) -> String {
    let width = |i: usize| rows.iter().map(|row| row[i].chars().count()).max().unwrap_or_default();
    let widths: [usize; 7] = std::array::from_fn(width);
    let line = |row: &[String; 7]| {
        let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_stand_below_each_other() {
        let row = |a: &str, g: &str| {
            let mut row = HEAD.map(|_| "x".to_owned());
            (row[0], row[6]) = (a.to_owned(), g.to_owned());
            row
        };
        let text = table(&[row("ID", "FOR"), row("long", "a")]);
        assert_eq!(text, "ID    x  x  x  x  x  FOR\nlong  x  x  x  x  x  a\n");
    }
}
