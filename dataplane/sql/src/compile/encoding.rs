//! How a column's type is read.

use std::sync::Arc;

use crate::catalog::FieldType;
use crate::shape::Encoding;

/// How values of `ty` become JSON, and how they come back in a position.
pub(crate) fn of(ty: &FieldType) -> Encoding {
    match &ty.nested {
        Some(nested) => Encoding::Nested(Arc::clone(nested)),
        None => Encoding::scalar(ty.kind, ty.base_oid),
    }
}
