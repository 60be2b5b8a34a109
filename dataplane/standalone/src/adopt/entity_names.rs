//! Names of entities, made of those of tables.

use std::collections::BTreeSet;

use rowgate_core::name::TenantSlug;

/// Bytes of an entity's name.
const MAX_NAME: usize = 63;
/// Bytes that remain of a name before its number.
const MAX_NUMBERED: usize = 56;
/// Characters of a Tenant's name.
const MAX_SLUG: usize = 40;

/// Those that are taken, in lower case: GraphQL makes types of them that differ in more than their first letter.
#[derive(Debug, Default)]
pub(super) struct EntityNames(BTreeSet<String>);

impl EntityNames {
    /// The table's name, else with its schema before it, else with a number; taken from now on.
    pub(super) fn free(&mut self, schema: &str, table: &str) -> String {
        let with_schema = spelled(&format!("{schema}_{table}"));
        let start: String = with_schema.chars().take(MAX_NUMBERED).collect();
        let numbered = (2..).map(|n| format!("{start}_{n}"));
        let wishes = [spelled(table), with_schema].into_iter().chain(numbered);
        let mut free = wishes.filter(|name| self.0.insert(name.to_ascii_lowercase()));
        free.next().expect("there are numbers enough")
    }
}

/// With an underscore for each character that no name of an entity holds.
fn spelled(text: &str) -> String {
    let name = text.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' });
    let name: String = name.collect();
    // no digit first, and not the two underscores that GraphQL keeps for itself
    let rest = name.trim_start_matches('_');
    let starts_well = name.len() == rest.len() && !rest.starts_with(|c: char| c.is_ascii_digit());
    let name = if starts_well { name } else { format!("_{rest}") };
    name.chars().take(MAX_NAME).collect()
}

/// The name of the Tenant of a database, where one can be made of the database's.
pub(super) fn tenant(database: &str) -> Option<TenantSlug> {
    let name: String = database.to_lowercase().replace('_', "-").chars().take(MAX_SLUG).collect();
    name.trim_matches('-').parse().ok()
}

#[cfg(test)]
mod tests {
    use rowgate_core::name::EntityName;

    use super::*;

    #[test]
    fn each_table_has_a_name_of_its_own() {
        let x = |n: usize| "x".repeat(n);
        let (long, accented, cut) = (x(63), x(61) + "é", x(61) + "_");
        let (with_schema, numbered) = (format!("b_{}", x(61)), format!("b_{}_2", x(54)));
        let mut names = EntityNames::default();
        for (schema, table, expected) in [
            ("app", "orders", "orders"),
            ("app", "Orders", "app_Orders"),
            ("other", "orders", "other_orders"),
            ("other_", "orders", "other__orders"),
            ("app", "order-items", "order_items"),
            ("app", "order items", "app_order_items"),
            ("app", "order.items", "app_order_items_2"),
            ("app", "2fa codes", "_2fa_codes"),
            ("app", "__migrations", "_migrations"),
            ("app", "_migrations", "app__migrations"),
            ("app", "größe", "gr__e"),
            ("app", "日本", "_"),
            ("app", "no", "no"),
            ("app", long.as_str(), long.as_str()),
            ("app", accented.as_str(), cut.as_str()),
            ("b", long.as_str(), with_schema.as_str()),
            ("b", long.as_str(), numbered.as_str()),
        ] {
            let name = names.free(schema, table);
            assert_eq!(name, expected, "{schema}.{table}");
            assert!(name.parse::<EntityName>().is_ok(), "{name}");
        }
    }

    #[test]
    fn a_database_names_its_tenant() {
        for (database, expected) in
            [("store", Some("store")), ("north_Shop_", Some("north-shop")), ("_", None), ("größe", None)]
        {
            assert_eq!(tenant(database).as_ref().map(TenantSlug::as_str), expected, "{database}");
        }
        let long = tenant(&format!("{}_yy", "x".repeat(39))).expect("a name");
        assert_eq!(long.as_str(), "x".repeat(39));
    }
}
