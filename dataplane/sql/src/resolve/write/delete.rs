//! Which row is to be deleted.

use std::sync::Arc;

use rowgate_core::name::EntityName;

use super::is_guarded;
use crate::catalog::{Catalog, Scope, WriteMethod};
use crate::query::{Delete, Guard};
use crate::resolve::refusal::{Refusal, Right, RowWrite, WriteRefusal};
use crate::resolve::visible::Visible;
use crate::resolve::{by_key, find};

/// One row to be deleted.
pub fn delete(
    catalog: &Catalog,
    scope: &Scope,
    entity: &EntityName,
    key_path: &[(String, String)],
) -> Result<Delete, Refusal> {
    let visible = find(catalog, scope, entity, Visible::for_write)?;
    if let Some(protection) = &visible.entity.protection {
        return Err(kept(&visible, &protection.soft_delete).into());
    }
    if visible.entity.shows_version || visible.entity.keeps_rows {
        return Err(WriteRefusal::KeptBelow.into());
    }
    if !visible.rights().delete {
        return Err(WriteRefusal::MayNot(Right::Delete).into());
    }
    if visible.entity.write_support.delete == WriteMethod::Unsupported {
        return Err(WriteRefusal::Unwritable(RowWrite::Delete).into());
    }
    // what looks tells a row that a trigger has passed over
    let looks = visible.entity.write_support.delete == WriteMethod::Trigger;
    let guard = if !looks && is_guarded(&visible) { Guard::Unseen } else { Guard::None };
    Ok(Delete { entity: Arc::clone(visible.entity), key: by_key(&visible, key_path)?, looks, guard })
}

fn kept(visible: &Visible<'_>, flag: &str) -> WriteRefusal {
    let fields = &visible.entity.fields;
    let at = fields.iter().position(|field| field.column.as_str() == flag).filter(|at| visible.knows(*at));
    WriteRefusal::Kept { flag: at.map(|at| fields[at].name.clone()) }
}
