//! Ways from rows of one entity to rows of another.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use rowgate_core::name::EntityName;

use super::{Catalog, Entity, RelationshipRecord, Scope};
use crate::text::Ident;

/// A way from a row of one entity to rows of another, as a request names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Relationship {
    /// Beside the names of the entity's fields.
    pub name: String,
    pub to: EntityName,
    pub link: Link,
    /// A row leads to one row or none, and not to a list.
    pub to_one: bool,
    /// With `to_one`, that several rows may match: the first by key is taken.
    pub takes_first: bool,
}

/// Relationships to entities that are not there now, by the entity where they start.
pub(super) type Away = BTreeMap<EntityName, Vec<RelationshipRecord>>;

/// Which rows of an entity belong to a row around them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Link {
    /// There is no row around: all rows.
    All,
    /// Positions of fields that are equal, of the entity around and of the entity inside. Never empty.
    Fields(Vec<(usize, usize)>),
    /// A row of a table between both equals both.
    Through(Arc<Through>),
}

/// A table whose rows say which rows of two entities belong together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Through {
    pub schema: Ident,
    pub object: Ident,
    /// The oids of it, first, and of all that is read for it.
    pub relations: Vec<u32>,
    /// Positions of fields of the entity around, each with the column that equals it. Never empty.
    pub around: Vec<(usize, Ident)>,
    /// Columns, each with the position of the field of the entity inside that equals it. Never empty.
    pub inside: Vec<(Ident, usize)>,
}

impl Relationship {
    /// The fields by which a row leads to the one other row there is, or none; `None`: there may be several rows, or a table between.
    #[must_use]
    pub fn one_row(&self) -> Option<&[(usize, usize)]> {
        match &self.link {
            Link::Fields(link) if self.to_one && !self.takes_first => Some(link),
            _ => None,
        }
    }
}

impl Link {
    /// The fields of the entity around that say which rows belong to a row.
    #[must_use]
    pub fn around(&self) -> Vec<usize> {
        match self {
            Link::All => Vec::new(),
            Link::Fields(pairs) => pairs.iter().map(|(around, _)| *around).collect(),
            Link::Through(through) => through.around.iter().map(|(around, _)| *around).collect(),
        }
    }

    /// The fields of the entity inside that are compared.
    #[must_use]
    pub fn inside(&self) -> Vec<usize> {
        match self {
            Link::All => Vec::new(),
            Link::Fields(pairs) => pairs.iter().map(|(_, inside)| *inside).collect(),
            Link::Through(through) => through.inside.iter().map(|(_, inside)| *inside).collect(),
        }
    }
}

impl Catalog {
    /// The relationships of an entity that `scope` may follow: it reads what they compare on both ends.
    pub fn relationships<'a>(
        &'a self,
        scope: &'a Scope,
        entity: &EntityName,
    ) -> impl Iterator<Item = &'a Relationship> {
        let of = self.entities.get(entity);
        let all = self.relationships.get(entity).map(Vec::as_slice).unwrap_or_default();
        all.iter().filter(move |it| {
            let to = self.entities.get(&it.to);
            of.is_some_and(|of| reads(scope, of, &it.link.around()))
                && to.is_some_and(|to| scope.serves(to) && reads(scope, to, &it.link.inside()))
        })
    }

    /// Where a relationship of this name leads that `scope` has the rights to follow, and which cannot be followed now because that
    /// entity is closed.
    #[must_use]
    pub fn leads_away<'a>(
        &'a self,
        scope: &Scope,
        entity: &EntityName,
        name: &str,
    ) -> Option<&'a EntityName> {
        let of = self.entities.get(entity).filter(|of| scope.serves(of))?;
        let built = || {
            let it = self.relationships.get(entity)?.iter().find(|it| it.name == name)?;
            let to = self.entities.get(&it.to)?;
            let inside = it.link.inside().into_iter().map(|field| to.fields[field].column.as_str());
            Some((&it.to, it.link.around(), inside.collect()))
        };
        let left_out = || {
            let it = self.away.get(entity)?.iter().find(|it| it.name == name)?;
            let around = it.columns.iter().map(|column| of.position(column.as_str()));
            Some((&it.to, around.collect::<Option<_>>()?, it.to_columns.iter().map(Ident::as_str).collect()))
        };
        let (to, around, inside): (_, Vec<usize>, Vec<&str>) = built().or_else(left_out)?;
        let closed = scope.closed.get(to).filter(|_| scope.is_closed(to))?;
        (reads(scope, of, &around) && closed.reads(inside.into_iter())).then_some(to)
    }

    /// What GraphQL calls those things that `scope` has a right on and that do not exist now.
    #[must_use]
    pub fn names_away(&self, scope: &Scope) -> HashSet<String> {
        let closed = scope.closed.iter().filter(|(name, _)| scope.is_closed(name));
        let mut names: HashSet<String> = closed.flat_map(|(name, closed)| closed.names(name).all()).collect();
        let built = self.relationships.iter().flat_map(|(of, all)| all.iter().map(move |it| (of, &it.name)));
        let left_out = self.away.iter().flat_map(|(of, all)| all.iter().map(move |it| (of, &it.name)));
        let leading = built.chain(left_out).filter(|(of, name)| self.leads_away(scope, of, name).is_some());
        names.extend(leading.map(|(_, name)| name.clone()));
        names
    }
}

/// Whether `scope` may read these fields, and anything of the entity at all.
fn reads(scope: &Scope, entity: &Entity, fields: &[usize]) -> bool {
    let Some(rights) = scope.entities.get(&entity.name) else { return false };
    rights.read.contains(&true) && fields.iter().all(|field| rights.read.get(*field) == Some(&true))
}

/// [`Catalog::relationships`] and [`Catalog::away`] of records, each with the relations of the table between, if there is one. What starts
/// at an entity that is not there or has the name of a field is in neither, and neither is what compares a column or goes through a
/// table that is not there, or through a relation of `unguarded` entities.
#[must_use]
pub(super) fn build(
    entities: &BTreeMap<EntityName, Arc<Entity>>,
    unguarded: &HashSet<EntityName>,
    records: Vec<(RelationshipRecord, Vec<u32>)>,
) -> (BTreeMap<EntityName, Vec<Relationship>>, Away) {
    let mut built: BTreeMap<EntityName, Vec<Relationship>> = BTreeMap::new();
    let mut away = Away::new();
    for (record, read) in records {
        let Some(of) = entities.get(&record.entity) else { continue };
        if of.fields.iter().any(|field| field.name == record.name) {
            continue;
        }
        let Some(to) = entities.get(&record.to) else {
            away.entry(record.entity.clone()).or_default().push(record);
            continue;
        };
        if record.through.is_some() && read.is_empty() {
            continue;
        }
        let closed = record.through.as_ref().is_some_and(|through| {
            let is_it = |it: &Arc<Entity>| it.schema == through.schema && it.object == through.object;
            entities.values().any(|it| is_it(it) && unguarded.contains(&it.name))
        });
        let Some(link) = link(&record, read, of, to).filter(|_| !closed) else { continue };
        let RelationshipRecord { name, entity, to, to_one, takes_first, .. } = record;
        built.entry(entity).or_default().push(Relationship { name, to, link, to_one, takes_first });
    }
    (built, away)
}

fn link(record: &RelationshipRecord, relations: Vec<u32>, of: &Entity, to: &Entity) -> Option<Link> {
    let fields = |entity: &Entity, columns: &[Ident]| {
        columns.iter().map(|column| entity.position(column.as_str())).collect::<Option<Vec<_>>>()
    };
    let (around, inside) = (fields(of, &record.columns)?, fields(to, &record.to_columns)?);
    if around.is_empty() || inside.is_empty() {
        return None;
    }
    match &record.through {
        None if around.len() == inside.len() => Some(Link::Fields(around.into_iter().zip(inside).collect())),
        None => None,
        Some(it) if it.columns.len() == around.len() && it.to_columns.len() == inside.len() => {
            Some(Link::Through(Arc::new(Through {
                schema: it.schema.clone(),
                object: it.object.clone(),
                relations,
                around: around.into_iter().zip(it.columns.iter().cloned()).collect(),
                inside: it.to_columns.iter().cloned().zip(inside).collect(),
            })))
        }
        Some(_) => None,
    }
}
