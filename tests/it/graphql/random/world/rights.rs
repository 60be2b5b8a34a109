//! What a key may name, worked out from the drawn permissions alone.

use std::collections::BTreeSet;

use super::drawn::{Drawn, Key};
use super::tables::{Field, RELATIONSHIPS, Relationship, TABLES, names};

/// Of one key, over GraphQL.
#[derive(Debug)]
pub(crate) struct Rights {
    /// By table: names of fields that it reads.
    pub(crate) reads: Vec<BTreeSet<&'static str>>,
    /// Names that its schema may hold.
    pub(crate) names: BTreeSet<&'static str>,
}

impl Rights {
    pub(crate) fn of(drawn: &Drawn, key: &Key) -> Rights {
        let mut rights = Rights { reads: vec![BTreeSet::new(); TABLES.len()], names: BTreeSet::new() };
        let mut written = BTreeSet::new();
        for permission in drawn.permissions(key) {
            let table = &TABLES[permission.table];
            let all = || table.fields.iter().map(|field| field.name).collect();
            let fields: Vec<&'static str> = permission.fields.clone().unwrap_or_else(all);
            match permission.actions[..] {
                ["read"] => rights.reads[permission.table].extend(fields.iter().chain(table.key)),
                ["update"] => {
                    rights.reads[permission.table].extend(table.key);
                    written.extend(fields);
                }
                ["create"] => written.extend(fields),
                _ => rights.reads[permission.table].extend(table.key),
            }
        }
        for (at, table) in TABLES.iter().enumerate() {
            if !table.in_graphql {
                // no name of it stands anywhere
                rights.reads[at].clear();
                written.retain(|name| table.fields.iter().all(|field| field.name != *name));
            }
            if !rights.reads[at].is_empty() {
                rights.names.insert(table.entity);
                rights
                    .names
                    .extend(table.renamed.into_iter().flat_map(|(singular, plural)| [singular, plural]));
                rights.names.extend(&rights.reads[at]);
            }
        }
        rights.names.extend(written);
        let followed: Vec<_> =
            RELATIONSHIPS.iter().filter(|it| rights.follows(it)).map(|it| it.name).collect();
        rights.names.extend(followed);
        rights
    }

    /// It reads what is compared on both ends.
    pub(crate) fn follows(&self, it: &Relationship) -> bool {
        it.pairs.iter().all(|(from, to)| self.reads[it.from].contains(from) && self.reads[it.to].contains(to))
    }

    pub(crate) fn fields(&self, table: usize) -> Vec<&'static Field> {
        TABLES[table].fields.iter().filter(|field| self.reads[table].contains(field.name)).collect()
    }

    pub(crate) fn relationships(&self, table: usize) -> Vec<&'static Relationship> {
        RELATIONSHIPS.iter().filter(|it| it.from == table && self.follows(it)).collect()
    }

    /// The tables that it reads.
    pub(crate) fn tables(&self) -> Vec<usize> {
        (0..TABLES.len()).filter(|at| !self.reads[*at].is_empty()).collect()
    }

    /// Names of the tenant that no answer to it may hold.
    pub(crate) fn hidden(&self) -> Vec<&'static str> {
        names().into_iter().filter(|name| !self.names.contains(name)).collect()
    }
}
