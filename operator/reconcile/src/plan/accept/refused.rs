//! Why entities are not served, and which of them may be again without a change of a manifest.

use std::collections::BTreeMap;

use rowgate_core::name::EntityName;
use rowgate_crds::Reason;
use rowgate_pg::introspect::actual::{QName, RelationKind, TenantDb};
use rowgate_sql::catalog::{EntityKind, EntityRecord};

use super::{Accepted, qname, source};
use crate::desired::EntitySpec;
use crate::plan::Finding;
use crate::plan::access::views::with_read;
use crate::plan::relationships::is_link;

/// Why entities cannot be served.
#[derive(Debug, Default)]
pub(in crate::plan) struct Refused {
    /// A sentence for each that the Tenant declares, and for the database as a whole.
    pub(in crate::plan) problems: Vec<Finding>,
    /// Of tables that only link others: the Relationships report those.
    pub(in crate::plan) links: BTreeMap<EntityName, Finding>,
    /// Those that were served and may be again as they were: a migration may be replacing what they stand for. Nothing is granted
    /// on one, and its records stay, so that it is unavailable and not absent.
    pub(in crate::plan) away: Away,
}

/// With `schema.object` of each.
pub(in crate::plan) type Away = BTreeMap<EntityName, String>;

impl Refused {
    /// `may_return`: it is away, if it was served.
    pub(super) fn add(&mut self, spec: &EntitySpec, finding: Finding, db: &TenantDb, may_return: bool) {
        if is_link(&spec.name) {
            self.links.insert(spec.name.clone(), finding);
            return;
        }
        self.problems.push(finding.of(spec.name.as_str()));
        if may_return && was_served(spec, db) {
            self.away.insert(spec.name.clone(), source(spec));
        }
    }

    /// Whether a view shows a table that no entity stands for, such as one that was renamed, or only those that are away. What is
    /// recorded of another one was refused, or taken out of the manifest.
    pub(super) fn shows_unserved(
        &self,
        spec: &EntitySpec,
        accepted: &BTreeMap<EntityName, Accepted<'_>>,
        db: &TenantDb,
    ) -> bool {
        let is_unserved = |name: &QName| {
            let is_it = |it: &&EntityRecord| it.schema.as_str() == name.0 && it.object.as_str() == name.1;
            let mut recorded = db.entities.values().filter(is_it);
            !accepted.values().any(|entity| entity.is_over(name))
                && recorded.all(|it| self.away.contains_key(&it.name))
        };
        let shown = with_read(db, [qname(spec)]);
        let mut tables = shown.into_iter().filter(|(_, relation)| relation.kind != RelationKind::View);
        tables.any(|(name, _)| is_unserved(name))
    }
}

/// Whether it was served as this object: of another one, keys have other rights.
fn was_served(spec: &EntitySpec, db: &TenantDb) -> bool {
    let record = db.entities.get(spec.name.as_str());
    record.is_some_and(|it| (it.kind, &it.schema, &it.object) == (spec.kind, &spec.schema, &spec.object))
}

/// Whether it is refused for what a migration does: its table or view does not exist, or was replaced while statements about it ran.
pub(super) fn may_return(spec: &EntitySpec, finding: &Finding, db: &TenantDb) -> bool {
    let is_refused = matches!(finding.reason, Reason::StatementRefused | Reason::PolicyRefused);
    spec.kind != EntityKind::Procedure && (is_refused || !db.relations.contains_key(&qname(spec)))
}

#[cfg(test)]
mod tests {
    use rowgate_sql::catalog::GraphQlNames;
    use rowgate_sql::text::Ident;

    use super::*;
    use crate::desired::Security;

    fn ident(text: &str) -> Ident {
        Ident::new(text).expect("a name")
    }

    fn spec(object: &str, kind: EntityKind) -> EntitySpec {
        let name: EntityName = "orders".parse().expect("a name");
        EntitySpec {
            name,
            kind,
            schema: ident("shop"),
            object: ident(object),
            key_fields: Vec::new(),
            mappings: BTreeMap::new(),
            rest: true,
            graphql: GraphQlNames::default(),
            protection: None,
            writers: Default::default(),
            hide_soft_deleted: false,
            events: false,
            allow_definer: false,
            security: Security::Open,
            replaces_policies: false,
        }
    }

    fn served(spec: &EntitySpec) -> TenantDb {
        let record = EntityRecord {
            name: spec.name.clone(),
            kind: spec.kind,
            schema: spec.schema.clone(),
            object: spec.object.clone(),
            key_columns: vec![ident("id")],
            mappings: BTreeMap::new(),
            rest: true,
            graphql: GraphQlNames::default(),
            protection: None,
            hide_soft_deleted: None,
            shows_version: false,
            events: false,
            allow_definer: false,
        };
        let entities = BTreeMap::from([(spec.name.to_string(), record)]);
        TenantDb { entities, ..TenantDb::default() }
    }

    #[test]
    fn what_was_served_as_the_same_object_is_away_while_it_does_not_exist() {
        let orders = spec("orders", EntityKind::Table);
        let db = served(&orders);
        for (spec, db, is_away) in [
            (&orders, &db, true),
            (&orders, &TenantDb::default(), false),
            (&spec("mistyped", EntityKind::Table), &db, false),
            (&spec("orders", EntityKind::View), &db, false),
            (&spec("orders", EntityKind::Procedure), &db, false),
        ] {
            let finding = Finding::new(Reason::SourceNotFound, "it does not exist");
            let may_return = may_return(spec, &finding, db);
            let mut refused = Refused::default();
            refused.add(spec, finding, db, may_return);
            assert_eq!(refused.away.get(&spec.name).map(String::as_str), is_away.then_some("shop.orders"));
            assert_eq!(refused.problems.len(), 1);
        }
    }
}
