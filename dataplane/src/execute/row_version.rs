//! The version of the one row that a statement gives, where its table keeps versions.

use rowgate_core::cursor::Position;
use rowgate_core::entity_tag::{Basis, Version};
use rowgate_sql::catalog::Entity;
use rowgate_sql::shape::Shape;

use crate::auth::key_context::KeyContext;

/// The version of the one row that an answer shows, and what else the answer depends on, its encoding apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowVersion {
    pub(crate) version: Version,
    pub(crate) basis: Basis,
}

impl RowVersion {
    /// `last`: the position of the one row of an answer, as [`CompiledWrite::is_tagged`] has it. `None`: there is no row, or
    /// one that reads hide.
    ///
    /// [`CompiledWrite::is_tagged`]: rowgate_sql::compile::CompiledWrite::is_tagged
    #[must_use]
    pub fn new(
        context: &KeyContext,
        entity: &Entity,
        shape: &Shape,
        last: Option<&Position>,
    ) -> Option<RowVersion> {
        let (version, flags) = last?.split_first()?;
        if flags.iter().any(|flag| flag.as_deref() == Some(&[1])) {
            return None;
        }
        let columns =
            format!("{:?}", shape.columns.iter().filter(|it| it.label.is_some()).collect::<Vec<_>>());
        let set = context.key.set_role.as_deref().unwrap_or_default();
        let basis = Basis::new([set, entity.name.as_str(), &columns].map(str::as_bytes));
        Some(RowVersion { version: Version::from_binary(version.as_deref()?)?, basis })
    }
}
