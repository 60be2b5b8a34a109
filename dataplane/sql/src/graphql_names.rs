//! What entities are called over GraphQL. What cannot be spelt there, or has the name of something else, is left out.

use std::collections::HashSet;

use rowgate_core::name::EntityName;

use crate::catalog::GraphQlNames;

/// The names of one entity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Names {
    /// The type of one row, or of what a call gives; other types begin with it.
    pub ty: String,
    /// The root field: the list of rows, or the call.
    pub root: String,
    /// What precedes `_by_pk`.
    pub singular: String,
}

impl Names {
    #[must_use]
    pub fn new(entity: &EntityName, given: &GraphQlNames) -> Names {
        let GraphQlNames { enabled: _, singular, plural } = given;
        Names {
            ty: singular.clone().unwrap_or_else(|| capital(entity.as_str())),
            root: plural.clone().unwrap_or_else(|| entity.to_string()),
            singular: singular.clone().unwrap_or_else(|| entity.to_string()),
        }
    }

    #[must_use]
    pub fn by_key(&self) -> String {
        format!("{}_by_pk", self.singular)
    }

    /// A type that begins with that of the entity.
    #[must_use]
    pub fn with(&self, suffix: &str) -> String {
        format!("{}{suffix}", self.ty)
    }

    /// A mutation, or the type of its input.
    #[must_use]
    pub fn verb(&self, verb: &str) -> String {
        format!("{verb}{}", self.ty)
    }
}

impl Names {
    /// Those of fields of the roots, and of types.
    pub fn all(&self) -> Vec<String> {
        let verbs = VERBS.iter().map(|verb| self.verb(verb));
        self.types().chain(verbs).chain([self.root.clone(), self.by_key()]).collect()
    }

    fn types(&self) -> impl Iterator<Item = String> {
        let suffixed = SUFFIXES.iter().map(|suffix| self.with(suffix));
        suffixed.chain(INPUTS.iter().map(|verb| format!("{}Input", self.verb(verb))))
    }
}

/// Suffixes of the types of an entity.
const SUFFIXES: [&str; 10] = [
    "",
    "Connection",
    "FilterInput",
    "OrderByInput",
    "Key",
    "Group",
    "GroupFields",
    "Aggregations",
    "Field",
    "NumericField",
];
const VERBS: [&str; 6] = ["create", "createMany", "update", "upsert", "delete", "execute"];
const INPUTS: [&str; 3] = ["Create", "Update", "Upsert"];

/// Scalars, each of which has an input type that filters by it.
pub const SCALARS: [&str; 14] = [
    "Short",
    "Int",
    "Long",
    "Single",
    "Float",
    "Decimal",
    "Boolean",
    "String",
    "UUID",
    "DateTime",
    "Date",
    "LocalTime",
    "Base64String",
    "JSON",
];
/// The filter of values that are compared as texts.
pub const TEXT_FORM_FILTER: &str = "TextFormFilterInput";
const RESERVED: [&str; 9] = [
    "Query",
    "Mutation",
    "Subscription",
    "RowEvent",
    "Op",
    "OrderBy",
    "HavingInput",
    "HavingValueInput",
    "ID",
];

/// The names of a schema that something has.
pub struct Taken {
    types: HashSet<String>,
    queries: HashSet<String>,
    mutations: HashSet<String>,
}

impl Default for Taken {
    fn default() -> Taken {
        let scalars =
            SCALARS.iter().flat_map(|scalar| [(*scalar).to_owned(), format!("{scalar}FilterInput")]);
        let reserved = RESERVED.into_iter().chain([TEXT_FORM_FILTER]).map(str::to_owned);
        Taken { types: scalars.chain(reserved).collect(), queries: HashSet::new(), mutations: HashSet::new() }
    }
}

impl Taken {
    /// Whether all names can be spelt and are free, which they are no more. `is_call`: of a routine.
    pub fn takes(&mut self, names: &Names, is_call: bool) -> bool {
        let types: Vec<_> = names.types().collect();
        let mut mutations: Vec<_> = VERBS.iter().map(|verb| names.verb(verb)).collect();
        let mut queries = Vec::new();
        match is_call {
            false => queries.extend([names.root.clone(), names.by_key()]),
            true => mutations.push(names.root.clone()),
        }
        let is_free = types.iter().all(|name| is_name(name) && !self.types.contains(name))
            && queries.iter().all(|name| is_name(name) && !self.queries.contains(name))
            && mutations.iter().all(|name| is_name(name) && !self.mutations.contains(name));
        if is_free {
            self.types.extend(types);
            self.queries.extend(queries);
            self.mutations.extend(mutations);
        }
        is_free
    }
}

/// Whether GraphQL can spell the name and does not keep it for itself.
#[must_use]
pub fn is_name(name: &str) -> bool {
    let mut chars = name.chars();
    let begins = chars.next().is_some_and(|c| c == '_' || c.is_ascii_alphabetic());
    begins && chars.all(|c| c == '_' || c.is_ascii_alphanumeric()) && !name.starts_with("__")
}

#[must_use]
pub fn capital(name: &str) -> String {
    let mut chars = name.chars();
    chars.next().map(|first| first.to_ascii_uppercase().to_string() + chars.as_str()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_taken_once_and_never_what_a_schema_has_itself() {
        let mut taken = Taken::default();
        let mut takes = |name: &str, singular: Option<&str>| {
            let given = GraphQlNames { singular: singular.map(str::to_owned), ..GraphQlNames::default() };
            taken.takes(&Names::new(&name.parse().expect("a name"), &given), false)
        };
        assert!(takes("orders", None) && takes("lines", Some("Line")));
        // Orders and orders have one type; the list of `orders` is not that of `order`
        assert!(!takes("Orders", None) && takes("order", None));
        assert!(!takes("int", None) && !takes("query", None) && !takes("ordersConnection", None));
        assert!(!takes("ordersGroup", None) && !takes("uUID", None));
    }
}
