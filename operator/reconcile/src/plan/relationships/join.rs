//! Which columns a relationship compares: those that it names, or those of a foreign key.

use std::collections::BTreeSet;

use rowgate_crds::Reason;
use rowgate_pg::introspect::actual::{ForeignKey, QName, Relation, RelationKind, TenantDb};
use rowgate_sql::catalog::EntityKind;
use rowgate_sql::text::Ident;

use super::comparable::Compared;
use crate::desired::{Desired, EndSpec, EntitySpec, RelationshipSpec, ThroughSpec};
use crate::plan::Finding;
use crate::plan::accept::{exposed, qname};

/// The columns of both ends, equal one by one, or each equal to columns of the table between.
pub(super) struct Join<'a> {
    pub(super) from: Columns<'a>,
    pub(super) to: Columns<'a>,
    pub(super) through: Option<Link>,
}

/// Columns of one end's table or view.
pub(super) struct Columns<'a> {
    table: QName,
    relation: &'a Relation,
    pub(super) names: Vec<String>,
    /// The same, as the entity exposes them.
    fields: Vec<String>,
}

/// A table between.
pub(super) struct Link {
    pub(super) schema: Ident,
    pub(super) object: Ident,
    pub(super) columns: Vec<String>,
    pub(super) to_columns: Vec<String>,
}

pub(super) fn of<'a>(
    spec: &RelationshipSpec,
    desired: &Desired,
    db: &'a TenantDb,
) -> Result<Join<'a>, Finding> {
    let ends = (End::find("from", &spec.from, desired, db)?, End::find("to", &spec.to, desired, db)?);
    let join = match &spec.through {
        Some(through) => linked(ends, through, db)?,
        None => direct(ends)?,
    };
    join.comparable(spec, db)?;
    Ok(join)
}

/// One end: `from` or `to`, its entity and what that stands on.
struct End<'a, 'd> {
    part: &'static str,
    entity: &'d EntitySpec,
    relation: &'a Relation,
    fields: &'d [String],
}

impl<'a, 'd> End<'a, 'd> {
    fn find(
        part: &'static str,
        end: &'d EndSpec,
        desired: &'d Desired,
        db: &'a TenantDb,
    ) -> Result<End<'a, 'd>, Finding> {
        let entity = desired.entities.iter().find(|it| it.name.as_str() == end.entity).ok_or_else(|| {
            let message = format!(
                "{part}.entity names {}, which the Tenant does not declare; correct the name, or add it to spec.entities",
                end.entity
            );
            Finding::new(Reason::EntityNotFound, message)
        })?;
        if entity.kind == EntityKind::Procedure {
            let message = format!(
                "{part}.entity names the Procedure {}; a relationship joins tables and views",
                end.entity
            );
            return Err(Finding::new(Reason::InvalidSpec, message));
        }
        let relation = db.relations.get(&qname(entity)).ok_or_else(|| {
            let message =
                format!("entity {} cannot be served; the status of the Tenant says why", end.entity);
            Finding::new(Reason::EntityNotFound, message)
        })?;
        Ok(End { part, entity, relation, fields: &end.fields })
    }

    /// The columns behind the fields that are named.
    fn named(&self) -> Result<Vec<String>, Finding> {
        let of = |field: &String| {
            let mut columns = self.relation.columns.iter().map(|column| &column.name);
            let column = columns.find(|column| exposed(&self.entity.mappings, column) == field);
            column.cloned().ok_or_else(|| {
                let message = format!(
                    "{}.fields names {field}, which is not a field of {}; correct the name",
                    self.part, self.entity.name
                );
                Finding::new(Reason::FieldNotFound, message)
            })
        };
        self.fields.iter().map(of).collect()
    }

    /// The columns of the key.
    fn key(&self) -> Result<Vec<String>, Finding> {
        let of = |field: &String| {
            let mut columns = self.relation.columns.iter().map(|column| &column.name);
            columns.find(|column| exposed(&self.entity.mappings, column) == field).cloned()
        };
        let key = match self.entity.key_fields.is_empty() {
            true => Some(self.relation.primary_key.clone()),
            false => self.entity.key_fields.iter().map(of).collect(),
        };
        key.filter(|key| !key.is_empty()).ok_or_else(|| {
            let message = format!("{} has no key; name {}.fields", self.entity.name, self.part);
            Finding::new(Reason::FieldNotFound, message)
        })
    }

    fn columns(&self, names: Vec<String>) -> Columns<'a> {
        let fields = names.iter().map(|name| exposed(&self.entity.mappings, name).to_owned()).collect();
        Columns { table: qname(self.entity), relation: self.relation, names, fields }
    }
}

fn direct<'a>((from, to): (End<'a, '_>, End<'a, '_>)) -> Result<Join<'a>, Finding> {
    let (names, to_names) = match from.fields.is_empty() {
        false => (from.named()?, to.named()?),
        true => {
            let mut found: BTreeSet<(Vec<String>, Vec<String>)> = BTreeSet::new();
            found.extend(
                keys_to(from.relation, &qname(to.entity))
                    .map(|it| (it.columns.clone(), it.table_columns.clone())),
            );
            found.extend(
                keys_to(to.relation, &qname(from.entity))
                    .map(|it| (it.table_columns.clone(), it.columns.clone())),
            );
            one(found, &from.entity.name, &to.entity.name, "from.fields and to.fields")?
        }
    };
    Ok(Join { from: from.columns(names), to: to.columns(to_names), through: None })
}

fn keys_to<'r>(relation: &'r Relation, table: &QName) -> impl Iterator<Item = &'r ForeignKey> + use<'r> {
    let table = table.clone();
    relation.foreign_keys.iter().filter(move |key| key.table == table)
}

/// The only one.
fn one<T>(
    found: BTreeSet<T>,
    from: &dyn std::fmt::Display,
    to: &dyn std::fmt::Display,
    fields: &str,
) -> Result<T, Finding> {
    let n_found = found.len();
    match (found.into_iter().next(), n_found) {
        (Some(only), 1) => Ok(only),
        (_, n_found) => {
            let several = match n_found {
                0 => format!("there is no foreign key between {from} and {to}"),
                _ => format!("foreign keys join {from} and {to} in {n_found} ways"),
            };
            Err(Finding::new(Reason::ForeignKeyNotFound, format!("{several}; name {fields}")))
        }
    }
}

fn linked<'a>(
    (from, to): (End<'a, '_>, End<'a, '_>),
    through: &ThroughSpec,
    db: &'a TenantDb,
) -> Result<Join<'a>, Finding> {
    let table = (through.schema.as_str().to_owned(), through.object.as_str().to_owned());
    let text = format!("{}.{}", table.0, table.1);
    let relation = db.relations.get(&table).filter(|_| table.0 != "dl").ok_or_else(|| {
        let message = format!("through names {text}, which does not exist; create it or correct through");
        Finding::new(Reason::SourceNotFound, message)
    })?;
    if !matches!(relation.kind, RelationKind::Table | RelationKind::PartitionedTable) {
        let message = format!("through names {text}, which is not a table; name a table");
        return Err(Finding::new(Reason::SourceUnsupported, message));
    }
    let side = |end: &End<'a, '_>, named: &[String]| -> Result<(Vec<String>, Vec<String>), Finding> {
        let part = if end.part == "from" { "through.fromFields" } else { "through.toFields" };
        if let Some(missing) = named.iter().find(|name| relation.columns.iter().all(|it| it.name != **name)) {
            let message =
                format!("{part} names {missing}, which is not a column of {text}; correct the name");
            return Err(Finding::new(Reason::FieldNotFound, message));
        }
        let fields = if end.fields.is_empty() { None } else { Some(end.named()?) };
        let (columns, own) = match (named.is_empty(), fields) {
            (false, Some(fields)) => (named.to_vec(), fields),
            (false, None) => (named.to_vec(), end.key()?),
            (true, fields) => {
                let keys = keys_to(relation, &qname(end.entity)).filter(|key| {
                    let its: BTreeSet<&String> = key.table_columns.iter().collect();
                    fields.as_ref().is_none_or(|fields| fields.iter().collect::<BTreeSet<_>>() == its)
                });
                let keys = keys.map(|key| (key.columns.clone(), key.table_columns.clone())).collect();
                one(keys, &text, &end.entity.name, part)?
            }
        };
        if columns.len() != own.len() {
            let message = format!(
                "{part} holds {} columns and {} has {} fields here; name equally many",
                columns.len(),
                end.entity.name,
                own.len()
            );
            return Err(Finding::new(Reason::InvalidSpec, message));
        }
        Ok((columns, own))
    };
    let (columns, names) = side(&from, &through.from)?;
    let (to_columns, to_names) = side(&to, &through.to)?;
    let link = Link { schema: through.schema.clone(), object: through.object.clone(), columns, to_columns };
    Ok(Join { from: from.columns(names), to: to.columns(to_names), through: Some(link) })
}

impl Join<'_> {
    /// Whether at most one row of `to` matches.
    pub(super) fn leads_to_one(&self, db: &TenantDb) -> bool {
        self.through.is_none() && self.to.is_unique(db)
    }

    /// PostgreSQL has to compare each pair, whatever stands in them.
    fn comparable(&self, spec: &RelationshipSpec, db: &TenantDb) -> Result<(), Finding> {
        let of = |relation: &Relation, name: &String| Compared {
            name: name.clone(),
            column: relation.columns.iter().find(|column| column.name == *name).cloned(),
        };
        let end = |end: &Columns<'_>, entity: &str| {
            let columns = end.names.iter().zip(&end.fields);
            let named =
                |(name, field)| Compared { name: format!("{entity}.{field}"), ..of(end.relation, name) };
            columns.map(named).collect::<Vec<_>>()
        };
        let (from, to) = (end(&self.from, &spec.from.entity), end(&self.to, &spec.to.entity));
        let pairs: Vec<_> = match &self.through {
            None => from.into_iter().zip(to).collect(),
            Some(link) => {
                let table = (link.schema.as_str().to_owned(), link.object.as_str().to_owned());
                let Some(relation) = db.relations.get(&table) else { return Ok(()) };
                let its = |names: &[String]| {
                    let named = |name| Compared { name: format!("{}.{name}", table.1), ..of(relation, name) };
                    names.iter().map(named).collect::<Vec<_>>()
                };
                let (ours, theirs) = (its(&link.columns), its(&link.to_columns));
                from.into_iter().zip(ours).chain(to.into_iter().zip(theirs)).collect()
            }
        };
        let refusal = pairs.iter().find_map(|(one, other)| one.refusal(other));
        refusal.map_or(Ok(()), |message| Err(Finding::new(Reason::InvalidSpec, message)))
    }

    /// `orders.customer_id = customers.id`
    pub(super) fn text(&self, spec: &RelationshipSpec) -> String {
        let pairs = |left: &str, ours: &[String], right: &str, theirs: &[String]| {
            let pairs = ours.iter().zip(theirs).map(|(a, b)| format!("{left}.{a} = {right}.{b}"));
            pairs.collect::<Vec<_>>().join(" and ")
        };
        let (from, to) = (&spec.from.entity, &spec.to.entity);
        match &self.through {
            None => pairs(from, &self.from.fields, to, &self.to.fields),
            Some(link) => {
                let table = link.object.as_str();
                let first = pairs(from, &self.from.fields, table, &link.columns);
                format!("{first} and {}", pairs(table, &link.to_columns, to, &self.to.fields))
            }
        }
    }

    /// A sentence for each way that reads a whole table, with the index that it lacks.
    pub(super) fn slow_ways(&self, spec: &RelationshipSpec, db: &TenantDb) -> Vec<String> {
        let mut lacking: Vec<(String, &QName, &Relation, &[String])> = Vec::new();
        let link = self
            .through
            .as_ref()
            .map(|link| (link.schema.as_str().to_owned(), link.object.as_str().to_owned()));
        let between = link.as_ref().and_then(|table| Some((table, db.relations.get(table)?)));
        lacking.push((spec.name.clone(), &self.to.table, self.to.relation, &self.to.names));
        if let (Some((table, relation)), Some(link)) = (between, &self.through) {
            lacking.push((spec.name.clone(), table, relation, &link.columns));
        }
        if let Some(inverse) = &spec.inverse {
            lacking.push((inverse.clone(), &self.from.table, self.from.relation, &self.from.names));
            if let (Some((table, relation)), Some(link)) = (between, &self.through) {
                lacking.push((inverse.clone(), table, relation, &link.to_columns));
            }
        }
        let lacking = lacking.into_iter().filter(|(_, _, relation, columns)| {
            relation.kind != RelationKind::View && !is_led(relation, columns)
        });
        let sentence = |(name, (schema, table), _, columns): (String, &QName, &Relation, &[String])| {
            format!(
                "following {name} reads all of {schema}.{table}, which has no index on {columns}; create index on {schema}.{table} ({columns})",
                columns = columns.join(", ")
            )
        };
        lacking.map(sentence).collect()
    }
}

/// Whether an index begins with these columns, in whatever order.
fn is_led(relation: &Relation, columns: &[String]) -> bool {
    let wanted: BTreeSet<&String> = columns.iter().collect();
    relation.indexes.iter().any(|index| index.iter().take(wanted.len()).collect::<BTreeSet<_>>() == wanted)
}

impl Columns<'_> {
    /// Whether at most one row has given values in these columns.
    pub(super) fn is_unique(&self, _db: &TenantDb) -> bool {
        self.relation.unique.iter().any(|index| index.iter().all(|column| self.names.contains(column)))
    }

    /// `customers (id)`
    pub(super) fn with_entity(&self, entity: &str) -> String {
        format!("{entity} ({})", self.fields.join(", "))
    }

    /// The statement that would prove uniqueness.
    pub(super) fn unique_index(&self) -> String {
        format!("create unique index on {}.{} ({})", self.table.0, self.table.1, self.names.join(", "))
    }
}

pub(super) fn idents(names: &[String]) -> Vec<Ident> {
    names.iter().map(|name| Ident::new(name).expect("columns of PostgreSQL have names")).collect()
}
