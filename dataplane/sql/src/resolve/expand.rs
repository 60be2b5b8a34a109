//! Rows of other entities within rows: the relationships of `$expand`.

use std::sync::Arc;

use rowgate_core::nearest::nearest;

use super::refusal::{Closure, ExpandRefusal, Refusal, Unknown};
use super::visible::Visible;
use super::{find, list};
use crate::catalog::{Catalog, Relationship, Scope};
use crate::query::{Form, Selected, ToMany, ToOne};
use crate::request::{Expand, ReadRequest};

/// Members of the objects of `visible`, one for each relationship.
pub(super) fn expanded(
    (catalog, scope): (&Catalog, &Scope),
    visible: &Visible<'_>,
    items: &[Expand],
) -> Result<Vec<Selected>, Refusal> {
    let each = |Expand { name, request }: &Expand| {
        let mut relationships = catalog.relationships(scope, &visible.entity.name);
        let Some(relationship) = relationships.find(|it| it.name == *name) else {
            if let Some(to) = catalog.leads_away(scope, &visible.entity.name, name) {
                let refusal = Box::new(Refusal::Closed(Closure::Absent));
                return Err(ExpandRefusal::Within { name: name.clone(), entity: to.clone(), refusal }.into());
            }
            let names = catalog.relationships(scope, &visible.entity.name).map(|it| it.name.as_str());
            let nearest = nearest(name, names).map(str::to_owned);
            let is_field = visible.find(name).is_some();
            return Err(
                ExpandRefusal::Unknown { name: Unknown { name: name.clone(), nearest }, is_field }.into()
            );
        };
        member((catalog, scope), relationship, request).map_err(|refusal| match refusal {
            // the innermost says where it is
            Refusal::Expand(ExpandRefusal::Within { .. }) => refusal,
            refusal => {
                let (name, entity) = (name.clone(), relationship.to.clone());
                ExpandRefusal::Within { name, entity, refusal: Box::new(refusal) }.into()
            }
        })
    };
    items.iter().map(each).collect()
}

fn member(
    (catalog, scope): (&Catalog, &Scope),
    relationship: &Relationship,
    request: &ReadRequest,
) -> Result<Selected, Refusal> {
    let visible = find(catalog, scope, &relationship.to, Visible::of)?;
    let ReadRequest { select: _, filter, orderby, first, after: _, count, others: _, expand } = request;
    if relationship.to_one && (filter.is_some() || !orderby.is_empty() || first.is_some() || *count) {
        return Err(ExpandRefusal::OneRow.into());
    }
    let name = relationship.name.clone();
    let within = expanded((catalog, scope), &visible, expand)?;
    match relationship.one_row() {
        Some(link) => {
            let mut select = visible.select(request.select.as_deref())?;
            select.extend(within);
            let entity = Arc::clone(visible.entity);
            Ok(Selected::One(Box::new(ToOne { name, link: link.to_vec(), entity, select })))
        }
        None => {
            let link = &relationship.link;
            let mut query = list(catalog, &visible, request)?;
            query.select.extend(within);
            let mut lists = vec![query];
            let form = match relationship.to_one {
                true => {
                    (lists[0].take, lists[0].max_take) = (1, 1);
                    Form::Row { name }
                }
                false => {
                    lists.extend(count.then(|| lists[0].number_of_rows()));
                    Form::Array { name }
                }
            };
            Ok(Selected::Many(Box::new(ToMany { link: link.clone(), lists, form })))
        }
    }
}
