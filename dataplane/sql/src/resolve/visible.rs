//! One entity as one scope sees it: the only way from a field's name to a field.

use std::sync::Arc;

use rowgate_core::problem::{Code, Problem};

use crate::catalog::{Entity, Field, Rights, Scope};

pub(super) struct Visible<'a> {
    pub(super) entity: &'a Arc<Entity>,
    rights: &'a Rights,
}

impl<'a> Visible<'a> {
    /// `None` when the scope may read nothing of it, or when it is not served over REST.
    pub(super) fn of(entity: &'a Arc<Entity>, scope: &'a Scope) -> Option<Visible<'a>> {
        let rights = scope.entities.get(&entity.name)?;
        let visible = Visible { entity, rights };
        (entity.rest && visible.fields().next().is_some()).then_some(visible)
    }

    /// The readable fields with their positions, in declared order.
    pub(super) fn fields(&self) -> impl Iterator<Item = (usize, &'a Field)> {
        self.entity
            .fields
            .iter()
            .enumerate()
            .zip(&self.rights.read)
            .filter_map(|(field, read)| read.then_some(field))
    }

    pub(super) fn find(&self, name: &str) -> Option<usize> {
        self.fields().find(|(_, field)| field.name == name).map(|(i, _)| i)
    }

    pub(super) fn field(&self, name: &str) -> Result<usize, Problem> {
        self.find(name).ok_or_else(|| self.unknown(name))
    }

    /// Positions of the fields asked for, each once, in the order asked.
    pub(super) fn select(&self, names: Option<&[String]>) -> Result<Vec<usize>, Problem> {
        let all = || self.fields().map(|(i, _)| i);
        let Some(names) = names else { return Ok(all().collect()) };
        let mut select = Vec::new();
        let mut wanted = vec![false; self.entity.fields.len()];
        let mut add = |field: usize| {
            if !std::mem::replace(&mut wanted[field], true) {
                select.push(field);
            }
        };
        for name in names {
            match self.find(name) {
                Some(field) => add(field),
                None if name == "*" => all().for_each(&mut add),
                None => return Err(self.unknown(name)),
            }
        }
        Ok(select)
    }

    fn unknown(&self, name: &str) -> Problem {
        let shown: String = name.chars().take(64).collect();
        let problem = Problem::new(
            Code::UnknownField,
            format!("{} has no field {shown:?} for this key", self.entity.name),
        );
        match nearest(name, self.fields().map(|(_, field)| field.name.as_str())) {
            Some(near) => problem.detail(format!("did you mean {near:?}?")),
            None => problem,
        }
    }
}

/// The candidate that differs least: in case only, or in at most a third of its letters.
fn nearest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let wanted: Vec<char> = name.chars().take(65).flat_map(char::to_lowercase).collect();
    if 64 < wanted.len() {
        return None;
    }
    candidates
        .map(|candidate| (distance(&wanted, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= (candidate.chars().count() / 3).max(1))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Insertions, deletions and replacements from one to the other, in lower case.
fn distance(wanted: &[char], candidate: &str) -> usize {
    let mut row: Vec<usize> = (0..=wanted.len()).collect();
    for (i, letter) in candidate.chars().flat_map(char::to_lowercase).enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, other) in wanted.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *other);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[wanted.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_a_typing_error_away() {
        let names = ["id", "customer_id", "status", "ID Number"];
        for (name, near) in [
            ("staus", Some("status")),
            ("Status", Some("status")),
            ("customer", Some("customer_id")),
            ("ide", Some("id")),
            ("id_number", Some("ID Number")),
            ("total", None),
            ("", None),
        ] {
            assert_eq!(nearest(name, names.into_iter()), near, "{name}");
        }
        assert_eq!(nearest(&"x".repeat(100_000), names.into_iter()), None);
    }
}
