//! Random tenants. One seed is one tenant, on every machine.

use std::collections::BTreeMap;

use rand::rngs::StdRng;
use rand::seq::{IndexedRandom as _, SliceRandom as _};
use rand::{RngExt as _, SeedableRng as _};

use super::policies::{self, Reach};
use super::world::{Body, Claims, Drawn, Entity, Key, Permission, Relation, Scope, Security, Shape};
use crate::reads::paging::columns::{COLUMNS, Column, Writing, column};

const N_TABLES: usize = 22;
const N_VIEWS: usize = 8;

/// In every table. Policies are about these.
pub(super) const BASE: [Column; 5] = [
    column("n", "int not null unique", "int4", Writing::Number, b'n', &["0", "3", "7", "12", "99"]),
    column("region", "text", "text", Writing::Quoted, b't', REGIONS),
    column("grade", "int", "int4", Writing::Number, b'n', GRADES),
    column("owner", "text not null", "text", Writing::Quoted, b't', &["a", "b"]),
    column("ok", "bool", "bool", Writing::Bare, 0, &["true", "false"]),
];
const REGIONS: &[&str] = &["n", "s", "w"];
const GRADES: &[&str] = &["0", "1", "2", "3"];

/// What keys are made of.
const KEYS: [Column; 4] = [
    column("id", "bigint", "int8", Writing::Number, b'n', &["0", "5", "9007199254740993"]),
    column("code", "text collate \"C\"", "text", Writing::Quoted, b'C', &["", "c1", "c/2", "\u{e4} & 3"]),
    column("part", "int2", "int2", Writing::Number, b'n', &["0", "1", "2"]),
    column("uid2", "uuid", "uuid", Writing::Bare, 0, &["00000000-0000-0000-0000-000000000007"]),
];

/// What views have of their own.
const VIEWED: [Column; 4] = [
    column("other_owner", "", "text", Writing::Quoted, b't', &["a", "b"]),
    column("other_grade", "", "int4", Writing::Number, b'n', GRADES),
    column("amount", "", "int8", Writing::Number, b'n', &["1", "3", "7"]),
    column("total", "", "int8", Writing::Number, b'n', &["1", "9"]),
];

/// Types whose JSON the test can spell in SQL by itself.
const MORE: &[&str] = &[
    "i2",
    "i4",
    "i8",
    "num",
    "money_like",
    "f4",
    "f8",
    "flag",
    "txt",
    "txt_c",
    "txt_icu",
    "txt_blind",
    "vc",
    "bp",
    "folded",
    "positive",
    "mood",
    "uid",
    "day",
    "ts",
    "tstz",
    "tm",
    "span",
    "raw",
    "rng",
    "ints",
    "texts",
    "doc",
];

pub(super) fn draw(seed: u64) -> Drawn {
    let mut rng = StdRng::seed_from_u64(seed);
    let rng = &mut rng;
    let mut keys: Vec<Key> = (0..10).map(|i| key(rng, i)).collect();
    // Those that a policy may name.
    let names: Vec<String> =
        keys.iter().filter(|key| !matches!(key.scope, Scope::Unscoped)).map(|key| key.name.clone()).collect();
    let mut relations: Vec<Relation> = (0..N_TABLES).map(|i| table(rng, i, &names)).collect();
    for i in 0..N_VIEWS {
        relations.push(view(rng, i, &relations));
    }
    let mut entities: Vec<Entity> =
        (0..relations.len()).map(|i| entity(rng, i, &relations[i], None)).collect();
    for i in 0..3 {
        let relation = rng.random_range(1..N_TABLES);
        entities.push(entity(rng, relation, &relations[relation], Some(i)));
    }
    for key in &mut keys {
        if let Scope::Permissions(permissions) = &mut key.scope {
            *permissions = granted(rng, &relations, &entities, false);
        }
    }
    let shared = granted(rng, &relations, &entities, true);
    Drawn {
        slug: format!("d{seed}"),
        relations,
        entities,
        shared,
        shared_claims: claims(rng),
        keys,
        captures: false,
    }
}

fn key(rng: &mut StdRng, i: usize) -> Key {
    let scope = match i {
        0 | 1 => Scope::Unscoped,
        2 | 3 => Scope::SameAsShared,
        _ => Scope::Permissions(Vec::new()),
    };
    let claims = if i < 2 { Claims::new() } else { claims(rng) };
    Key { name: format!("k{i}"), scope, claims }
}

fn claims(rng: &mut StdRng) -> Claims {
    let mut claims = Claims::new();
    if rng.random_bool(0.8) {
        claims.insert("region", REGIONS.choose(rng).expect("some"));
    }
    if rng.random_bool(0.6) {
        claims.insert("grade", GRADES.choose(rng).expect("some"));
    }
    if rng.random_bool(0.2) {
        claims.insert("unused", "it's \"quoted\"");
    }
    claims
}

fn table(rng: &mut StdRng, i: usize, names: &[String]) -> Relation {
    // The first one is what others look into: it is simple, and everybody reads it.
    let is_lookup = i == 0;
    let key = match rng.random_range(0..5) {
        _ if is_lookup => vec!["id"],
        0 => vec!["code"],
        1 => vec!["id", "part"],
        2 => vec!["uid2"],
        _ => vec!["id"],
    };
    let mut columns: Vec<&Column> =
        key.iter().map(|name| KEYS.iter().find(|c| c.name == *name).expect("listed")).collect();
    columns.extend(&BASE);
    let more: Vec<&&str> = MORE.sample(rng, rng_len(i)).collect();
    columns.extend(more.into_iter().map(|name| COLUMNS.iter().find(|c| c.name == *name).expect("listed")));
    columns.shuffle(rng);
    let reach = if is_lookup { Reach::Lookup } else { Reach::Any };
    let security = match rng.random_range(0..20) {
        0 if !is_lookup => Security::LeftOut,
        1..3 if !is_lookup => Security::None,
        3..5 if !is_lookup => Security::Existing(policies::draw(rng, names, Reach::Script)),
        _ => Security::Policies(policies::draw(rng, names, reach)),
    };
    let name = format!("t{i}");
    let mut handmade = Vec::new();
    if rng.random_bool(0.3) {
        handmade.push(format!("grant select on app.{name} to public"));
    }
    if rng.random_bool(0.2) {
        handmade.push(format!("grant select (owner) on app.{name} to datalake_user"));
    }
    if !matches!(security, Security::Existing(_)) && rng.random_bool(0.3) {
        handmade.push(format!("create policy handmade on app.{name} using (true)"));
    }
    Relation { name, columns, key, body: Body::Table { n_rows: rng.random_range(8..36), security, handmade } }
}

/// How many further columns a table has.
fn rng_len(i: usize) -> usize {
    if i == 0 { 1 } else { 2 + i % 6 }
}

fn view(rng: &mut StdRng, i: usize, relations: &[Relation]) -> Relation {
    let of = rng.random_range(0..relations.len());
    let has_base = |of: usize| relations[of].columns.iter().any(|c| c.name == "n");
    let of = if has_base(of) { of } else { i };
    let viewed = |name: &str| VIEWED.iter().find(|c| c.name == name).expect("listed");
    let base = relations[of].columns.clone();
    let key = relations[of].key.clone();
    let (columns, key, shape) = match rng.random_range(0..4) {
        0 => {
            let region = base.iter().find(|c| c.name == "region").expect("in every table");
            (vec![*region, viewed("amount"), viewed("total")], vec!["region"], Shape::Groups { of })
        }
        1 | 2 if !base.iter().any(|c| c.name == "other_owner") => {
            let mut columns = base;
            columns.extend([viewed("other_owner"), viewed("other_grade")]);
            (columns, key, Shape::Join { left: of, right: rng.random_range(0..N_TABLES) })
        }
        _ => {
            let keep = ["true", "grade < 3", "n % 3 <> 0"].choose(rng).expect("some");
            (base, key, Shape::Part { of, keep })
        }
    };
    Relation { name: format!("v{i}"), columns, key, body: Body::View(shape) }
}

fn entity(rng: &mut StdRng, relation: usize, of: &Relation, twin: Option<usize>) -> Entity {
    let mut mappings = BTreeMap::new();
    if rng.random_bool(0.4) {
        for column in of.columns.iter().filter(|_| rng.random_bool(0.3)) {
            mappings.insert(column.name, format!("{}_x", column.name));
        }
        // An exposed name that is another column's.
        if twin.is_some() {
            mappings.insert("region", "owner".to_owned());
            mappings.insert("owner", "region".to_owned());
        }
    }
    let name = match twin {
        Some(i) => format!("twin{i}"),
        None => of.name.to_uppercase(),
    };
    Entity { name, relation, mappings, rest: rng.random_bool(0.95), declares: twin.is_none() }
}

fn granted(rng: &mut StdRng, relations: &[Relation], entities: &[Entity], shared: bool) -> Vec<Permission> {
    let lookup = Permission {
        entity: 0,
        actions: vec!["read"],
        include: Some(vec!["id", "n", "region", "grade"]),
        exclude: Vec::new(),
        bare: false,
    };
    let mut permissions = vec![lookup];
    for (i, entity) in entities.iter().enumerate() {
        let relation = &relations[entity.relation];
        let n = *[0, 0, 1, 1, 1, 1, 2].choose(rng).expect("some");
        permissions.extend((0..n).map(|_| permission(rng, i, relation, shared)));
        if rng.random_bool(0.05) && matches!(relation.body, Body::Table { .. }) {
            let actions = vec!["delete"];
            permissions.push(Permission {
                entity: i,
                actions,
                include: None,
                exclude: Vec::new(),
                bare: true,
            });
        }
    }
    permissions
}

fn permission(rng: &mut StdRng, entity: usize, relation: &Relation, shared: bool) -> Permission {
    let writes = matches!(relation.body, Body::Table { .. });
    let actions: &[&str] = match rng.random_range(0..12) {
        0 if writes => &["create"],
        1 if writes => &["update"],
        2 if writes => &["read", "create", "update"],
        _ => &["read"],
    };
    let (mut include, mut exclude, mut bare) = (None, Vec::new(), false);
    let others = relation.columns.iter().map(|c| c.name).filter(|name| !relation.key.contains(name));
    match rng.random_range(0..10) {
        0..3 if shared => bare = true,
        0..4 => {}
        4..6 => exclude = others.filter(|_| rng.random_bool(0.3)).collect(),
        _ => {
            let names: Vec<&str> =
                relation.columns.iter().map(|c| c.name).filter(|_| rng.random_bool(0.5)).collect();
            include = Some(if names.is_empty() { relation.key.clone() } else { names });
            if rng.random_bool(0.2) {
                exclude = others.filter(|_| rng.random_bool(0.3)).collect();
            }
        }
    }
    // Creating without a single column would be no permission.
    if let (Some(include), false) = (&mut include, actions.contains(&"read")) {
        include.retain(|name| *name != "grade");
        include.push("grade");
        exclude.retain(|name| *name != "grade");
    }
    Permission { entity, actions: actions.to_vec(), include, exclude, bare }
}
