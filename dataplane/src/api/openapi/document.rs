//! The document of one permission set: a function of the catalog and the scope, and of nothing else.

use rowgate_core::name::TenantSlug;
use rowgate_sql::catalog::{Catalog, Scope};
use serde_json::json;

use crate::api::openapi::operation::{Operation, json_response};
use crate::api::openapi::sections::Sections;
use crate::api::openapi::{errors, parameters, surfaces};
use crate::api::surface::Surfaces;

const DESCRIPTION: &str = "What the API key that asked for this document may do, and nothing else. HEAD answers as GET does, and \
                           OPTIONS lists the methods of a URL. The header X-MS-API-ROLE may name the role of the key, which \
                           is compared.";

/// Everything of the document that follows its first member, `openapi`, and its second, `servers`, which depend on the request.
pub(super) fn rest_of(tenant: &TenantSlug, catalog: &Catalog, scope: &Scope, served: Surfaces) -> String {
    let mut sections = Sections::default();
    errors::add(&mut sections);
    surfaces::add(tenant, catalog, scope, served, &mut sections);
    add_itself(tenant, &mut sections);
    let info = json!({"title": tenant, "version": "1", "description": DESCRIPTION});
    let schemes = json!({
        "apiKey": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
        "token": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"},
    });
    format!(
        r#""info":{info},"security":[{{"apiKey":[]}},{{"token":[]}}],"paths":{},"components":{{"schemas":{},"parameters":{},"responses":{},"securitySchemes":{schemes}}}}}"#,
        sections.paths.object(),
        sections.schemas.object(),
        sections.parameters.object(),
        sections.responses.object(),
    )
}

/// What stands before that, for a server at `origin`, a URL without a path.
pub(super) fn beginning(origin: &str) -> String {
    format!(r#"{{"openapi":"3.1.0","servers":[{}],"#, json!({"url": origin}))
}

fn add_itself(tenant: &TenantSlug, sections: &mut Sections) {
    let what = "This document";
    let operation = Operation::new("openapi", "rowgate", what)
        .takes(vec![parameters::reference("if-none-match")])
        .responds("200", json_response(what, &json!({"type": "object"})))
        .responds("304", json!({"description": "The document is as it was"}))
        .refuses(errors::OF_ANY);
    sections.paths.add(&format!("/auth/{tenant}/openapi.json"), &json!({"get": operation.value()}));
}
