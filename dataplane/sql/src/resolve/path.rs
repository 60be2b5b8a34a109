//! Paths such as `customer/region/name`: from a row to fields of the rows that it refers to.

use std::sync::Arc;

use rowgate_core::name::EntityName;
use rowgate_core::nearest::nearest;

use super::refusal::{Closure, Refusal, Unknown};
use super::visible::Visible;
use crate::catalog::Relationship;
use crate::query::Reference;

/// Each is a join, or a look-up for each row.
const MAX_REFERENCES: usize = 12;

#[derive(Debug, Clone, PartialEq)]
pub enum PathRefusal {
    /// The scope may follow no such relationship from this entity.
    NoRelationship { entity: EntityName, unknown: Unknown },
    /// The entity where a relationship leads is closed now.
    Closed(Closure),
    /// This relationship may lead to several rows.
    ManyRows(String),
    /// Paths lead to more rows than this.
    TooMany { max: usize },
    /// Of the entity where the path leads.
    NoField { entity: EntityName, unknown: Unknown },
}

/// The relationship of this name that the scope may follow, and the entity where it leads.
pub(super) fn follow<'a>(
    visible: &Visible<'a>,
    name: &str,
) -> Result<(&'a Relationship, Visible<'a>), PathRefusal> {
    let entity = &visible.entity.name;
    let all = || visible.catalog.into_iter().flat_map(|catalog| catalog.relationships(visible.scope, entity));
    let unknown = || {
        let nearest = nearest(name, all().map(|it| it.name.as_str())).map(str::to_owned);
        let unknown = Unknown { name: name.to_owned(), nearest };
        PathRefusal::NoRelationship { entity: entity.clone(), unknown }
    };
    let catalog = visible.catalog.ok_or_else(unknown)?;
    let Some(relationship) = all().find(|it| it.name == name) else {
        let away = catalog.leads_away(visible.scope, entity, name);
        return Err(away.map_or_else(unknown, |_| PathRefusal::Closed(Closure::Absent)));
    };
    match super::find(catalog, visible.scope, &relationship.to, Visible::of) {
        Ok(inside) => Ok((relationship, inside)),
        Err(Refusal::Closed(closure)) => Err(PathRefusal::Closed(closure)),
        Err(_) => Err(unknown()),
    }
}

/// The rows that paths lead to, each path once.
#[derive(Default)]
pub(super) struct Paths {
    known: Vec<String>,
    references: Vec<Reference>,
}

impl Paths {
    pub(super) fn references(&self) -> &[Reference] {
        &self.references
    }

    pub(super) fn into_references(self) -> Vec<Reference> {
        self.references
    }

    /// The field `name` of the row that `path` leads to: the number of the reference, and the position.
    pub(super) fn field(
        &mut self,
        visible: &Visible<'_>,
        path: &str,
        name: &str,
    ) -> Result<(Option<usize>, usize), PathRefusal> {
        let mut reference = None;
        let mut reached: Option<Visible<'_>> = None;
        let mut end = 0;
        for hop in path.split('/') {
            end += hop.len();
            let (relationship, next) = follow(reached.as_ref().unwrap_or(visible), hop)?;
            let link = relationship.one_row().ok_or_else(|| PathRefusal::ManyRows(hop.to_owned()))?;
            reference = Some(self.number(&path[..end], reference, link, &next)?);
            reached = Some(next);
            end += 1;
        }
        let inside = reached.as_ref().unwrap_or(visible);
        let field = inside.find(name).ok_or_else(|| PathRefusal::NoField {
            entity: inside.entity.name.clone(),
            unknown: inside.unknown(name),
        })?;
        Ok((reference, field))
    }

    /// The number of the row that `path` leads to.
    fn number(
        &mut self,
        path: &str,
        from: Option<usize>,
        link: &[(usize, usize)],
        inside: &Visible<'_>,
    ) -> Result<usize, PathRefusal> {
        if let Some(number) = self.known.iter().position(|known| known == path) {
            return Ok(number);
        }
        if MAX_REFERENCES <= self.references.len() {
            return Err(PathRefusal::TooMany { max: MAX_REFERENCES });
        }
        self.known.push(path.to_owned());
        self.references.push(Reference { from, link: link.to_vec(), entity: Arc::clone(inside.entity) });
        Ok(self.references.len() - 1)
    }
}
