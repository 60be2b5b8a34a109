//! Roles that cannot be dropped: what of this tenant's database holds those of others, and who holds its own.

use rowgate_pg::introspect;

use super::{Pass, PassError};
use crate::apply::Logins;
use crate::plan::As;
use crate::removal::remains;
use crate::source::ResourceSource;
use crate::status::TenantState;

impl<S: ResourceSource> Pass<'_, S> {
    /// Says it, in the status of whose database it is, and in the log once. It is looked for as often as the logins are tried:
    /// a tenant may have many objects. `before`: the tenant's own roles that were held after the last pass.
    pub(super) async fn report_held(
        &mut self,
        state: &mut TenantState,
        logins: &mut Logins<'_>,
        before: Vec<String>,
    ) -> Result<(), PassError> {
        if self.probe || self.memory.named.is_none() {
            let known = self.memory.named.take().unwrap_or_default();
            let named = introspect::named(logins.get(As::Owner).await?).await?;
            let notes = named.iter().map(|named| {
                format!(
                    "{} names role {}, which belongs to no live key of this tenant and cannot be dropped because of it; in database {}, {}",
                    named.object,
                    named.role,
                    state.database,
                    named.remedy()
                )
            });
            let notes: Vec<String> = notes.collect();
            for note in notes.iter().filter(|note| !known.contains(note)) {
                tracing::warn!(tenant = %state.slug, "{note}");
            }
            self.memory.named = Some(notes);
        }
        state.findings.warnings.extend(self.memory.named.iter().flatten().cloned());
        if self.memory.held != before {
            remains::log_holders(logins.get(As::Operator).await?, &self.memory.held).await?;
        }
        Ok(())
    }
}
