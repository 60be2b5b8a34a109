//! What the surfaces say of themselves. A new one is a file here and a line in [`add`].

mod aggregates;
mod events;
mod exports;
mod graphql;
mod rest;
mod sql;
mod tokens;
mod webhooks;

use rowgate_core::name::TenantSlug;
use rowgate_sql::catalog::{Catalog, Scope};

use crate::api::openapi::sections::Sections;
use crate::api::surface::{Surface, Surfaces};

/// Adds what the scope may do over each of them.
pub(super) fn add(
    tenant: &TenantSlug,
    catalog: &Catalog,
    scope: &Scope,
    served: Surfaces,
    sections: &mut Sections,
) {
    rest::add(tenant, catalog, scope, sections);
    graphql::add(tenant, sections);
    if served.has(Surface::Ddl) {
        aggregates::add(catalog, scope, sections);
        events::add(catalog, scope, sections);
        exports::add(catalog, scope, sections);
        webhooks::add(catalog, scope, sections);
        sql::add(sections);
    }
    if served.has(Surface::Auth) {
        tokens::add(sections);
    }
}
