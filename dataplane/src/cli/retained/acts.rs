//! What is done with a retained database.

use std::io::{self, Write as _};

use rowgate_core::name::Ulid;
use rowgate_pg::control::installation::Operated;
use rowgate_pg::control::tenants::{self, Phase, Record};
use rowgate_pg::control::{leader, retained};
use rowgate_reconcile::removal::retained::{Removal, drop_retained};

use super::RetainedError;
use crate::cli::target::Target;

pub(super) async fn hand_over(
    target: Target,
    id: &Ulid,
    namespace: &str,
    name: &str,
) -> Result<String, RetainedError> {
    let mut operated = target.operate().await?;
    let old = find(&mut operated, id).await?;
    let epoch = leader::look(&mut operated.control).await?.epoch;
    let mut open = leader::fence(&mut operated.control, epoch).await?;
    let handed = retained::hand_over(&mut open, id, namespace, name).await?;
    open.commit().await.map_err(|error| RetainedError::Control(error.into()))?;
    let record = handed.ok_or_else(|| match old.dropping {
        true => RetainedError::Dropping(old.database),
        false => RetainedError::Unknown(id.clone()),
    })?;
    let (slug, database) = (&record.slug, &record.database);
    Ok(format!(
        "database {database} is reserved for Tenant {namespace}/{name}, which adopts it when you apply:\n\n\
         apiVersion: rowgate.dev/v1alpha1\nkind: Tenant\nmetadata: {{namespace: {namespace}, name: {name}}}\nspec:\n  \
         slug: {slug}\n  database: {{adoptRetained: {id}}}\n\n\
         with the entities and permissions that the Tenant should have; its earlier keys stay revoked"
    ))
}

pub(super) async fn drop(target: Target, id: &Ulid, yes: bool) -> Result<String, RetainedError> {
    let mut operated = target.operate().await?;
    let record = find(&mut operated, id).await?;
    if !yes && !is_confirmed(&record) {
        return Err(RetainedError::NotConfirmed(id.clone()));
    }
    match drop_retained(&operated.installation, &mut operated.control, id).await? {
        Removal::Dropped { n_closed: 0 } => Ok(format!(
            "database {} and its roles were dropped; the slug {} is free",
            record.database, record.slug
        )),
        Removal::Dropped { n_closed } => Ok(format!(
            "database {} was dropped; the slug {} is free; {n_closed} of its roles are closed and will be dropped when no other database names them",
            record.database, record.slug
        )),
        Removal::Foreign => Err(RetainedError::Foreign(record.database)),
        Removal::Gone => Err(RetainedError::Unknown(id.clone())),
    }
}

async fn find(operated: &mut Operated, id: &Ulid) -> Result<Record, RetainedError> {
    let record = tenants::find_by_id(&mut operated.control, id).await?;
    record.filter(|it| it.phase == Phase::Retained).ok_or_else(|| RetainedError::Unknown(id.clone()))
}

/// Whether who is asked types the id once more.
fn is_confirmed(record: &Record) -> bool {
    let (namespace, name) = (&record.namespace, &record.name);
    let question = format!(
        "This drops database {} (slug {}, retained from Tenant {namespace}/{name}) with all its data, permanently.\n\
         Type its id to continue: ",
        record.database, record.slug
    );
    let mut stderr = io::stderr().lock();
    // without a terminal there is no one to type the id
    let _asked = stderr.write_all(question.as_bytes()).and_then(|()| stderr.flush());
    let mut typed = String::new();
    io::stdin().read_line(&mut typed).is_ok() && typed.trim() == record.id.as_str()
}
