//! Fields that the kinds have and this version does not serve. Set, they stall the resource; nothing is ignored.

use crate::tenant::TenantSpec;

impl TenantSpec {
    /// One message for each such field that is set: its path and what to do. Each names a database that is not ours, so that nothing can be
    /// served while it stands.
    #[must_use]
    pub fn not_served_yet(&self) -> Vec<String> {
        let database = &self.database;
        let refused = database.server_secret_ref.is_some();
        refused
            .then(|| "not served yet: database.serverSecretRef; leave it out".to_owned())
            .into_iter()
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tenant(yaml: &str) -> Vec<String> {
        serde_yaml::from_str::<TenantSpec>(yaml).expect("the test's spec parses").not_served_yet()
    }

    #[test]
    fn later_fields_are_named_with_a_remedy() {
        let yaml = "{database: {serverSecretRef: {name: s}}}";
        assert_eq!(tenant(yaml), ["not served yet: database.serverSecretRef; leave it out"], "{yaml}");
    }

    #[test]
    fn defaults_and_served_fields_are_silent() {
        let served = "{slug: a, database: {name: b, create: true, deletionPolicy: Delete, bootstrap: {configMapRef: {name: c}}},
            limits: {maxPageSize: 5, statementTimeout: 5s, requestsPerSecond: 5, maxExportRows: 5}, shared: {permissions: [{entity: o, actions: [read, delete]}, {entity: p, actions: [execute]}]},
            cors: {origins: ['https://a']}, webhooks: {allowHttp: true},
            entities: [{name: o, source: {object: o}, rest: {enabled: false}, events: true, graphql: {enabled: false},
                concurrencyProtection: {softDeleteColumn: gone}, hideSoftDeleted: true},
                {name: p, kind: Procedure, source: {object: p}, allowDefiner: true}]}";
        assert_eq!(tenant(served), Vec::<String>::new());
        assert_eq!(tenant("{}"), Vec::<String>::new());
    }
}
