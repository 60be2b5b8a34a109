//! One entity as one scope sees it: the only way from a field's name to a field.

use std::sync::Arc;

use rowgate_core::nearest::nearest;

use super::refusal::{Refusal, Unknown, WriteRefusal};
use super::value::family;
use crate::catalog::{Catalog, Entity, EntityKind, Field, Rights, Scope};
use crate::query::Selected;

/// Columns that every table has, and of which no table has another by that name: where a row stands and its version.
const SYSTEM: [&str; 6] = ["ctid", "xmin", "cmin", "xmax", "cmax", "tableoid"];

pub(crate) struct Visible<'a> {
    pub(crate) entity: &'a Arc<Entity>,
    rights: &'a Rights,
    pub(crate) scope: &'a Scope,
    /// Where relationships lead; `None`: none is followed from here.
    pub(crate) catalog: Option<&'a Catalog>,
}

impl<'a> Visible<'a> {
    /// `None` when the scope may read nothing of it, or when it is not served so.
    pub(crate) fn of(entity: &'a Arc<Entity>, scope: &'a Scope) -> Option<Visible<'a>> {
        let rights = scope.entities.get(&entity.name)?;
        let visible = Visible { entity, rights, scope, catalog: None };
        (scope.serves(entity) && visible.fields().next().is_some()).then_some(visible)
    }

    /// The same, with the catalog whose relationships are followed.
    pub(super) fn within(self, catalog: &'a Catalog) -> Visible<'a> {
        Visible { catalog: Some(catalog), ..self }
    }

    /// The readable fields with their positions, in declared order.
    pub(crate) fn fields(&self) -> impl Iterator<Item = (usize, &'a Field)> {
        self.entity
            .fields
            .iter()
            .enumerate()
            .zip(&self.rights.read)
            .filter_map(|(field, read)| read.then_some(field))
    }

    /// `None` when the scope may do nothing at all with it, or when it is not served so.
    pub(crate) fn for_write(entity: &'a Arc<Entity>, scope: &'a Scope) -> Option<Visible<'a>> {
        let rights = scope.entities.get(&entity.name)?;
        let any = |list: &[bool]| list.contains(&true);
        let may = any(&rights.read) || any(&rights.create) || any(&rights.update) || rights.delete;
        (scope.serves(entity) && may).then_some(Visible { entity, rights, scope, catalog: None })
    }

    pub(crate) fn rights(&self) -> &'a Rights {
        self.rights
    }

    /// The field with the row's version, where it tells all states of the row apart and may be read.
    pub(crate) fn tag(&self) -> Option<usize> {
        self.entity.tag().filter(|at| self.rights.read.get(*at) == Some(&true))
    }

    /// What tells, beside rows that were written, of which version they are and whether reads show them; empty where this
    /// key may not know both.
    pub(crate) fn marks(&self) -> Vec<usize> {
        let Some(version) = self.tag() else { return Vec::new() };
        match self.entity.hidden_by() {
            None => vec![version],
            Some(flag) if self.rights.read.get(flag) == Some(&true) => vec![version, flag],
            Some(_) => Vec::new(),
        }
    }

    /// The fields that a body may name: those that are read, created or updated.
    fn named(&self) -> impl Iterator<Item = (usize, &'a Field)> {
        let Rights { read, create, update, .. } = self.rights;
        let may = move |i: usize| [read, create, update].iter().any(|list| list.get(i) == Some(&true));
        self.entity.fields.iter().enumerate().filter(move |(i, _)| may(*i))
    }

    /// Whether the field is one of those: no message names another.
    pub(crate) fn knows(&self, field: usize) -> bool {
        self.named().any(|(at, _)| at == field)
    }

    /// A field that a body names.
    pub(crate) fn written(&self, name: &str) -> Result<usize, WriteRefusal> {
        let found = self.named().find(|(_, field)| field.name == name).map(|(i, _)| i);
        found.ok_or_else(|| match self.entity.kind == EntityKind::Table && SYSTEM.contains(&name) {
            true => WriteRefusal::FilledIn(name.to_owned()),
            false => WriteRefusal::NoField(unknown_among(name, self.named())),
        })
    }

    pub(crate) fn find(&self, name: &str) -> Option<usize> {
        self.fields().find(|(_, field)| field.name == name).map(|(i, _)| i)
    }

    /// The fields asked for, each once, in the order asked.
    pub(crate) fn select(&self, names: Option<&[String]>) -> Result<Vec<Selected>, Refusal> {
        let all = || self.fields().map(|(i, _)| i);
        let Some(names) = names else { return Ok(all().map(Selected::Field).collect()) };
        let mut select = Vec::new();
        let mut wanted = vec![false; self.entity.fields.len()];
        let mut add = |field: usize| {
            if !std::mem::replace(&mut wanted[field], true) {
                select.push(Selected::Field(field));
            }
        };
        for name in names {
            match self.find(name) {
                Some(field) => add(field),
                None if name == "*" => all().for_each(&mut add),
                None => return Err(Refusal::NoField(self.unknown(name))),
            }
        }
        Ok(select)
    }

    /// The name of a field that is read, however its letters are cased, and whether its constants are texts.
    pub(crate) fn readable(&self, name: &str) -> Option<(&'a str, bool)> {
        let exact = self.fields().find(|(_, field)| field.name == name);
        let found = exact.or_else(|| self.fields().find(|(_, field)| field.name.eq_ignore_ascii_case(name)));
        found.map(|(_, Field { name, ty, .. })| (name.as_str(), family::is_quoted(ty)))
    }

    pub(crate) fn unknown(&self, name: &str) -> Unknown {
        unknown_among(name, self.fields())
    }
}

fn unknown_among<'b>(name: &str, fields: impl Iterator<Item = (usize, &'b Field)>) -> Unknown {
    let nearest = nearest(name, fields.map(|(_, field)| field.name.as_str()));
    Unknown { name: name.to_owned(), nearest: nearest.map(str::to_owned) }
}
