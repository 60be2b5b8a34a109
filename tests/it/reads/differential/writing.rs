//! Random writes of a key, as requests and as SQL, in tenants whose keys may write.

use rand::rngs::StdRng;
use rand::seq::{IndexedRandom as _, SliceRandom as _};
use rand::{RngExt as _, SeedableRng as _};
use serde_json::{Map, Value};

use super::draw::draw;
use super::world::{Body, Drawn, Entity, Permission, Relation, Scope, Shape};
use crate::reads::paging::columns::Column;

/// A tenant of the same seed, whose permissions write too.
pub(super) fn draw_writers(seed: u64) -> Drawn {
    let mut drawn = draw(seed);
    drawn.slug = format!("w{seed}");
    let mut rng = StdRng::seed_from_u64(!seed);
    let Drawn { relations, entities, shared, keys, .. } = &mut drawn;
    let of_keys = keys.iter_mut().filter_map(|key| match &mut key.scope {
        Scope::Permissions(permissions) => Some(permissions),
        Scope::Unscoped | Scope::SameAsShared => None,
    });
    for (is_shared, permissions) in [(true, shared)].into_iter().chain(of_keys.map(|it| (false, it))) {
        // The table that policies look into stays as it is: what one write changes there would move the rows of others.
        let mut deletes = Vec::new();
        for permission in permissions.iter_mut().filter(|it| it.entity != 0) {
            let takes_fields = !permission.actions.contains(&"delete") && (is_shared || !permission.bare);
            for action in ["create", "update"] {
                if takes_fields && rng.random_bool(0.6) && !permission.actions.contains(&action) {
                    permission.actions.push(action);
                }
            }
            let relation = &relations[entities[permission.entity].relation];
            let makes = permission.actions.contains(&"create") && rng.random_bool(0.9);
            if let (true, Some(include)) = (makes, &mut permission.include) {
                let needed = needed(relation).map(|column| column.name);
                let missing: Vec<_> = needed.filter(|name| !include.contains(name)).collect();
                permission.exclude.retain(|name| !missing.contains(name));
                include.extend(missing);
            }
            if rng.random_bool(0.4) {
                let (include, exclude) = (None, Vec::new());
                let entity = permission.entity;
                deletes.push(Permission { entity, actions: vec!["delete"], include, exclude, bare: true });
            }
        }
        permissions.extend(deletes);
    }
    drawn
}

/// One case.
#[derive(Debug)]
pub(super) struct Write {
    pub(super) key: usize,
    pub(super) entity: usize,
    pub(super) verb: Verb,
    /// What is sent; nothing for a row that is deleted. `None` is NULL.
    pub(super) values: Vec<(&'static Column, Option<String>)>,
    /// `Prefer: return=minimal`
    pub(super) is_minimal: bool,
    /// Which row, among all there are, seen or not.
    pub(super) nth: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verb {
    Post,
    /// With `If-Match: *`: a row that is not there is not made.
    Patch,
    /// Likewise. What is not sent is NULL: no column has a default.
    Put,
    Delete,
}

/// Columns whose values look the same in a body and in SQL.
const SETTABLE: &[&str] =
    &["region", "grade", "owner", "ok", "i2", "i4", "i8", "flag", "txt", "vc", "positive", "mood", "uid"];

/// Without these no row can be made.
pub(super) fn needed(relation: &Relation) -> impl Iterator<Item = &'static Column> {
    let is_needed = |column: &&Column| {
        relation.key.contains(&column.name) || column.name == "n" || column.name == "owner"
    };
    relation.columns.iter().copied().filter(is_needed)
}

impl Write {
    /// The case with this number, which makes its new values unlike those of others.
    pub(super) fn draw(drawn: &Drawn, seed: u64, number: u64) -> Write {
        let mut rng = StdRng::seed_from_u64(seed);
        let rng = &mut rng;
        // few keys have the rights that a PUT needs
        let verbs = [(Verb::Post, 3), (Verb::Patch, 6), (Verb::Put, 1), (Verb::Delete, 2)];
        let (verb, _) = *verbs.choose_weighted(rng, |(_, weight)| *weight).expect("some");
        let all = (0..drawn.keys.len()).flat_map(|key| (0..drawn.entities.len()).map(move |it| (key, it)));
        let may = |(key, entity): &(usize, usize)| {
            let key = &drawn.keys[*key];
            drawn
                .permissions(key)
                .iter()
                .any(|it| it.entity == *entity && it.actions.contains(&verb.action()))
        };
        let permitted: Vec<_> = all.clone().filter(may).collect();
        let pairs = if rng.random_bool(0.85) { permitted } else { all.collect() };
        let (key, entity) = *pairs.choose(rng).expect("some key writes");
        let relation = drawn.relation(&drawn.entities[entity]);
        let may_set = drawn.settable(&drawn.keys[key], entity, verb.action());
        let is_strict = rng.random_bool(0.85);
        let settable = |column: &&&Column| {
            let is_free = verb == Verb::Patch || needed(relation).all(|it| it.name != column.name);
            is_free && SETTABLE.contains(&column.name) && (!is_strict || may_set.contains(column.name))
        };
        let mut some: Vec<&Column> = relation.columns.iter().filter(settable).copied().collect();
        some.shuffle(rng);
        let mut values = Vec::new();
        match verb {
            Verb::Delete => some.clear(),
            Verb::Patch if some.is_empty() => {
                some.extend(relation.columns.iter().find(|column| SETTABLE.contains(&column.name)));
            }
            Verb::Patch => some.truncate(rng.random_range(1..4)),
            Verb::Put => {
                some.truncate(rng.random_range(0..8));
                let given = needed(relation).filter(|column| !relation.key.contains(&column.name));
                values.extend(given.map(|column| (column, Some(fresh(column, number)))));
            }
            Verb::Post => {
                some.truncate(rng.random_range(0..5));
                values.extend(needed(relation).map(|column| (column, Some(fresh(column, number)))));
            }
        }
        for column in some {
            let is_null = !column.declared.contains("not null") && rng.random_bool(0.15);
            let value = column.values.choose(rng).expect("every column has some");
            values.push((column, (!is_null).then(|| (*value).to_owned())));
        }
        Write { key, entity, verb, values, is_minimal: rng.random_bool(0.4), nth: rng.random_range(0..1000) }
    }

    /// By the names of requests.
    pub(super) fn body(&self, entity: &Entity) -> String {
        if self.verb == Verb::Delete {
            return String::new();
        }
        self.object(|name| entity.exposed(name)).to_string()
    }

    /// By the names of columns, with all that a PUT makes NULL.
    pub(super) fn row(&self) -> String {
        self.object(|name| name).to_string().replace('\'', "''")
    }

    /// The same write with everything written out that it sets.
    pub(super) fn meant(&self, relation: &Relation) -> Write {
        let mut values = self.values.clone();
        let is_given = |column: &Column| self.values.iter().any(|(it, _)| it.name == column.name);
        if self.verb == Verb::Put {
            let absent = relation
                .columns
                .iter()
                .copied()
                .filter(|it| !relation.key.contains(&it.name) && !is_given(it));
            values.extend(absent.map(|column| (column, None)));
        }
        Write { values, ..*self }
    }

    fn object<'a>(&self, name: impl Fn(&'static str) -> &'a str) -> Value {
        let pair = |(column, value): &(&'static Column, Option<String>)| {
            (name(column.name).to_owned(), value.clone().map_or(Value::Null, Value::String))
        };
        Value::Object(self.values.iter().map(pair).collect::<Map<_, _>>())
    }

    /// The statement that a client of the database would send; `named` is the condition of the row's key.
    pub(super) fn sql(&self, relation: &Relation, named: &str, returning: &[&Column]) -> String {
        let names: Vec<&str> = self.values.iter().map(|(column, _)| column.name).collect();
        let text = |value: &Option<String>| match value {
            Some(text) => format!("'{}'", text.replace('\'', "''")),
            None => "null".to_owned(),
        };
        let texts: Vec<String> = self.values.iter().map(|(_, value)| text(value)).collect();
        let name = &relation.name;
        let mut sql = match self.verb {
            Verb::Post => {
                format!("insert into app.{name} ({}) values ({})", names.join(", "), texts.join(", "))
            }
            Verb::Patch | Verb::Put => {
                let set: Vec<_> =
                    names.iter().zip(texts).map(|(name, text)| format!("{name} = {text}")).collect();
                format!("update app.{name} r set {} {named}", set.join(", "))
            }
            Verb::Delete => format!("delete from app.{name} r {named}"),
        };
        if !self.is_minimal && !returning.is_empty() {
            let names: Vec<&str> = returning.iter().map(|column| column.name).collect();
            sql += &format!(" returning {}", names.join(", "));
        }
        sql
    }
}

impl Verb {
    pub(super) fn action(self) -> &'static str {
        match self {
            Verb::Post => "create",
            Verb::Patch | Verb::Put => "update",
            Verb::Delete => "delete",
        }
    }

    pub(super) fn method(self) -> &'static str {
        match self {
            Verb::Post => "POST",
            Verb::Patch => "PATCH",
            Verb::Put => "PUT",
            Verb::Delete => "DELETE",
        }
    }
}

/// A value that no other row has, where that matters.
fn fresh(column: &Column, number: u64) -> String {
    match column.name {
        "n" | "id" => (1_000_000 + number).to_string(),
        "code" => format!("new/{number}"),
        "uid2" => format!("00000000-0000-4000-8000-{number:012}"),
        _ => column.values[usize::try_from(number).unwrap_or(0) % column.values.len()].to_owned(),
    }
}

impl Drawn {
    /// The table whose rows a write to this relation would change.
    pub(super) fn base(&self, relation: usize) -> &Relation {
        match &self.relations[relation].body {
            Body::Table { .. } => &self.relations[relation],
            Body::View(Shape::Part { of, .. } | Shape::Groups { of } | Shape::Join { left: of, .. }) => {
                self.base(*of)
            }
        }
    }
}
