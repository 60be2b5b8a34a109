//! The parts of a document while it is made: JSON text, so that what a tenant of many entities takes is its text and no more.

use serde_json::{Value, json};

use crate::api::openapi::schemas::Composites;

/// What the surfaces add to.
#[derive(Default)]
pub(super) struct Sections {
    pub(super) paths: Members,
    pub(super) schemas: Members,
    pub(super) parameters: Members,
    pub(super) responses: Members,
    pub(super) composites: Composites,
}

/// The members of an object, as JSON.
#[derive(Default)]
pub(super) struct Members(String);

impl Members {
    /// Adds a member; no name may be added twice.
    pub(super) fn add(&mut self, name: &str, value: &Value) {
        if !self.0.is_empty() {
            self.0.push(',');
        }
        self.0.push_str(&json!(name).to_string());
        self.0.push(':');
        self.0.push_str(&value.to_string());
    }

    /// The object.
    pub(super) fn object(&self) -> String {
        format!("{{{}}}", self.0)
    }
}
