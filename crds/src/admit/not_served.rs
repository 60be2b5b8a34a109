//! Fields that the kinds have and this version does not serve. Set, they stall the resource; nothing is ignored.

use crate::tenant::TenantSpec;

impl TenantSpec {
    /// One message for each such field that is set: its path and what to do. Each names a database that is not ours, so that nothing can be
    /// served while it stands.
    #[must_use]
    pub fn not_served_yet(&self) -> Vec<String> {
        let database = &self.database;
        let found = [
            (database.server_secret_ref.is_some(), "database.serverSecretRef; leave it out"),
            (!database.create, "database.create: false; leave it out and let Rowgate make the database"),
        ];
        let found = found.into_iter().filter(|(is_set, _)| *is_set);
        found.map(|(_, message)| format!("not served yet: {message}")).collect()
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
        for (yaml, message) in [
            ("{database: {serverSecretRef: {name: s}}}", "database.serverSecretRef; leave it out"),
            (
                "{database: {create: false}}",
                "database.create: false; leave it out and let Rowgate make the database",
            ),
        ] {
            assert_eq!(tenant(yaml), [format!("not served yet: {message}")], "{yaml}");
        }
    }

    #[test]
    fn defaults_and_served_fields_are_silent() {
        let served = "{slug: a, database: {name: b, deletionPolicy: Delete, bootstrap: {configMapRef: {name: c}}},
            limits: {maxPageSize: 5, statementTimeout: 5s, requestsPerSecond: 5, maxExportRows: 5}, shared: {permissions: [{entity: o, actions: [read, delete]}, {entity: p, actions: [execute]}]},
            cors: {origins: ['https://a']}, webhooks: {allowHttp: true},
            entities: [{name: o, source: {object: o}, rest: {enabled: false}, events: true, graphql: {enabled: false},
                concurrencyProtection: {softDeleteColumn: gone}, hideSoftDeleted: true},
                {name: p, kind: Procedure, source: {object: p}, allowDefiner: true}]}";
        assert_eq!(tenant(served), Vec::<String>::new());
        assert_eq!(tenant("{}"), Vec::<String>::new());
    }
}
