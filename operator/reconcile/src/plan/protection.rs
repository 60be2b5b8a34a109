//! Concurrency Protection: what the manifests ask of a table.

use rowgate_crds::Reason;
use rowgate_pg::actual::Relation;

use super::Finding;
use crate::desired::EntitySpec;

/// The column that marks rows as deleted where nobody names one.
const SOFT_DELETE: &str = "is_deleted";

/// It belongs to the table, so all entities over it say the same. `over`: they, `spec` among them.
pub(super) fn agreed<'a>(
    spec: &EntitySpec,
    mut over: impl Iterator<Item = &'a EntitySpec>,
) -> Result<(), Finding> {
    let Some(other) = over.find(|other| other.protection != spec.protection) else { return Ok(()) };
    let message = format!(
        "entity {} over the same table says something else of concurrencyProtection, which belongs to the table; say the same in both",
        other.name
    );
    Err(Finding::new(Reason::InvalidSpec, message))
}

/// The column by which rows are hidden, if they are.
pub(super) fn hides_by(spec: &EntitySpec, relation: &Relation) -> Result<Option<String>, Finding> {
    if !spec.hide_soft_deleted {
        return Ok(None);
    }
    let name = spec.protection.as_ref().map_or(SOFT_DELETE, |protection| protection.soft_delete.as_str());
    match relation.columns.iter().find(|column| column.name == name) {
        Some(column) if column.type_name == "boolean" => Ok(Some(name.to_owned())),
        _ => {
            let message = format!(
                "hideSoftDeleted hides rows by a boolean column {name}, which it does not have; add it"
            );
            Err(Finding::new(Reason::FieldNotFound, message))
        }
    }
}
