//! Fields that the kinds have and this version does not serve. Set, they stall the resource; nothing is ignored.

use crate::api_key::ApiKeySpec;
use crate::tenant::TenantSpec;

/// One field, set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotServed {
    pub part: Part,
    /// Its path and what to do.
    pub message: String,
}

/// What cannot be served while the field is set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// Which database is the tenant's, so nothing at all.
    Database,
    /// What the field asks for.
    Field,
}

/// A spec that may ask for what this version does not serve.
pub trait NotServedYet {
    /// One for each such field. `false` for a switch whose feature is absent asks for
    /// what happens anyway and gives no message.
    fn not_served_yet(&self) -> Vec<NotServed>;
}

impl NotServedYet for TenantSpec {
    fn not_served_yet(&self) -> Vec<NotServed> {
        let mut found = Found::new();
        let database = &self.database;
        found.part = Part::Database;
        found.leave_out(database.server_secret_ref.is_some(), "database.serverSecretRef");
        found.say(
            !database.create,
            "database.create: false",
            "leave it out and let Rowgate make the database",
        );
        found.part = Part::Field;
        if let Some(limits) = &self.limits {
            found.leave_out(limits.max_export_rows.is_some(), "limits.maxExportRows");
        }
        found.list
    }
}

impl NotServedYet for ApiKeySpec {
    fn not_served_yet(&self) -> Vec<NotServed> {
        Vec::new()
    }
}

struct Found {
    list: Vec<NotServed>,
    /// What the fields that are looked at now belong to.
    part: Part,
}

impl Found {
    fn new() -> Found {
        Found { list: Vec::new(), part: Part::Field }
    }

    fn say(&mut self, found: bool, path: &str, remedy: &str) {
        if found {
            let message = format!("not served yet: {path}; {remedy}");
            self.list.push(NotServed { part: self.part.clone(), message });
        }
    }

    fn leave_out(&mut self, found: bool, path: &str) {
        self.say(found, path, "leave it out");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tenant(yaml: &str) -> Vec<String> {
        let spec = serde_yaml::from_str::<TenantSpec>(yaml).expect("the test's spec parses");
        spec.not_served_yet().into_iter().map(|found| found.message).collect()
    }

    #[test]
    fn later_fields_are_named_with_a_remedy() {
        for (yaml, message) in [
            ("{database: {serverSecretRef: {name: s}}}", "database.serverSecretRef; leave it out"),
            (
                "{database: {create: false}}",
                "database.create: false; leave it out and let Rowgate make the database",
            ),
            ("{limits: {maxExportRows: 5}}", "limits.maxExportRows; leave it out"),
        ] {
            assert_eq!(tenant(yaml), [format!("not served yet: {message}")], "{yaml}");
        }
        let key: ApiKeySpec =
            serde_yaml::from_str("{tenantRef: {name: t}, rotation: {every: 30d, overlap: 1d}}")
                .expect("parses");
        assert_eq!(key.not_served_yet(), []);
    }

    #[test]
    fn what_falls_with_a_field_is_told_as_a_value() {
        let parts = |yaml: &str| -> Vec<Part> {
            let spec = serde_yaml::from_str::<TenantSpec>(yaml).expect("the test's spec parses");
            spec.not_served_yet().into_iter().map(|found| found.part).collect()
        };
        assert_eq!(
            parts("{database: {create: false}, limits: {maxExportRows: 5}}"),
            [Part::Database, Part::Field]
        );
    }

    #[test]
    fn defaults_and_served_fields_are_silent() {
        let served = "{slug: a, database: {name: b, deletionPolicy: Delete, bootstrap: {configMapRef: {name: c}}},
            limits: {maxPageSize: 5, statementTimeout: 5s, requestsPerSecond: 5}, shared: {permissions: [{entity: o, actions: [read, delete]}, {entity: p, actions: [execute]}]},
            cors: {origins: ['https://a']}, webhooks: {allowHttp: true},
            entities: [{name: o, source: {object: o}, rest: {enabled: false}, events: true, graphql: {enabled: false},
                concurrencyProtection: {softDeleteColumn: gone}, hideSoftDeleted: true},
                {name: p, kind: Procedure, source: {object: p}, allowDefiner: true}]}";
        assert_eq!(tenant(served), Vec::<String>::new());
        assert_eq!(tenant("{}"), Vec::<String>::new());
    }
}
