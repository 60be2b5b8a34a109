//! What the API server does with an object before it stores it: defaults, the schema, the rules.

mod metadata;
mod structural;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::LazyLock;

use kube_core::cel::{CompiledSchema, ErrorKind, RootContext, Validator, compile_schema};
use serde_json::Value;

use crate::definition::definition;

/// The kinds of this version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    Tenant,
    ApiKey,
    Relationship,
    WebhookSubscription,
}

impl Kind {
    pub const ALL: [Kind; 4] = [Kind::Tenant, Kind::ApiKey, Kind::Relationship, Kind::WebhookSubscription];

    /// The word after `kind:`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Tenant => "Tenant",
            Kind::ApiKey => "ApiKey",
            Kind::Relationship => "Relationship",
            Kind::WebhookSubscription => "WebhookSubscription",
        }
    }
}

/// One thing that is wrong with an object: where, and what to change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldError {
    /// Such as `spec.entities[0].name`; empty: the object as a whole.
    pub path: String,
    pub message: String,
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path.is_empty() {
            true => f.write_str(&self.message),
            false => write!(f, "{}: {}", self.path, self.message),
        }
    }
}

/// Judges an object as the API server would: fills in defaults, refuses unknown fields (as `kubectl` does), checks the
/// schema and then the rules, with `old`, the stored object, for rules about changes.
///
/// # Errors
///
/// Everything that is wrong, in the object's order. Rules run only on an object that fits the schema.
pub fn admit(kind: Kind, mut object: Value, old: Option<&Value>) -> Result<Value, Vec<FieldError>> {
    let schema = &SCHEMAS[&kind];
    structural::apply_defaults(schema, &mut object);
    let mut errors = Vec::new();
    metadata::check(&object, &mut errors);
    structural::check(schema, &object, "", &mut errors);
    if errors.is_empty() {
        errors = broken_rules(kind, &object, old);
    }
    match errors.is_empty() {
        true => Ok(object),
        false => Err(errors),
    }
}

static SCHEMAS: LazyLock<BTreeMap<Kind, Value>> = LazyLock::new(|| {
    let schema = |kind: Kind| {
        let mut crd = definition(kind);
        crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"].take()
    };
    Kind::ALL.into_iter().map(|kind| (kind, schema(kind))).collect()
});

static RULES: LazyLock<BTreeMap<Kind, CompiledSchema>> =
    LazyLock::new(|| SCHEMAS.iter().map(|(kind, schema)| (*kind, compile_schema(schema))).collect());

fn broken_rules(kind: Kind, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let context = RootContext {
        api_version: "v1alpha1".to_owned(),
        api_group: "rowgate.dev".to_owned(),
        kind: kind.as_str().to_owned(),
    };
    let broken =
        match Validator::new().validate_compiled_with_context(&RULES[&kind], object, old, Some(&context)) {
            Ok(()) => return Vec::new(),
            Err(broken) => broken.into_vec(),
        };
    broken
        .into_iter()
        .map(|error| {
            let message = match error.kind {
                ErrorKind::ValidationFailure => error.message,
                // Closed, not open: a rule that cannot be judged refuses.
                _ => format!("the rule `{}` cannot be evaluated: {}", error.rule, error.message),
            };
            FieldError { path: error.field_path, message }
        })
        .collect()
}
