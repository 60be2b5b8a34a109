//! Which row a DELETE means.

use std::sync::Arc;

use rowgate_core::name::EntityName;
use rowgate_core::problem::Problem;

use super::{able, is_guarded};
use crate::catalog::{Catalog, Scope, Way};
use crate::query::{Delete, Guard};
use crate::resolve::told::{delete_blocked, forbidden};
use crate::resolve::visible::Visible;
use crate::resolve::{by_key, find};

/// `DELETE /{entity}/{pk}/{value}...`
pub fn delete(
    catalog: &Catalog,
    scope: &Scope,
    entity: &EntityName,
    key_path: &[(String, String)],
) -> Result<Delete, Problem> {
    let visible = find(catalog, scope, entity, Visible::for_write)?;
    if let Some(protection) = &visible.entity.protection {
        return Err(delete_blocked(&visible, &protection.soft_delete));
    }
    if visible.entity.shows_version || visible.entity.keeps_rows {
        let what =
            "rows of the table under this view are not deleted; set their flag for that with PATCH instead";
        return Err(Problem::delete_blocked(what));
    }
    if !visible.rights().delete {
        return Err(forbidden(format!("this key may not delete rows of {entity}")));
    }
    if visible.entity.ways.delete == Way::Never {
        return Err(able::not_deleted(visible.entity));
    }
    // what looks tells a row that a trigger has passed over
    let looks = visible.entity.ways.delete == Way::Trigger;
    let guard = if !looks && is_guarded(&visible) { Guard::Unseen } else { Guard::None };
    Ok(Delete { entity: Arc::clone(visible.entity), key: by_key(&visible, key_path)?, looks, guard })
}
