//! Random manifests over two small tables, a view and two functions, as plain values, from a seed.

use std::collections::{BTreeMap, BTreeSet};

use rowgate_core::name::Ulid;
use rowgate_core::role::{DbRole, SHARED_ROLE, TenantLogin};
use rowgate_pg::control::installation::Installation;
use rowgate_reconcile::desired::{
    Desired, EntitySpec, KeySpec, Permission, PolicySpec, RowsSpec, Scope, SecretSpec, Security,
};
use rowgate_sql::catalog::{Action, EntityKind, Limits, Protection};
use rowgate_sql::text::Ident;

use super::id;

/// The tables that the manifests are about. Every table has `id` as its key; `id` and column name a cell.
pub(super) const TABLES: &str = "
    create schema app;
    create table app.a (id int primary key, region text not null, grade int not null, note text);
    create table app.b (id int primary key, region text not null, grade int not null, owner text);
    create view app.v as select a.id, a.region, a.note, b.owner from app.a a join app.b b on b.id = a.id + 1;
    create function app.f() returns bigint language sql as 'select count(*) from app.a';
    create function app.g() returns bigint language sql as 'select count(*) from app.b';
    insert into app.a select n, (array['n', 's', 'w'])[1 + n % 3], n % 4, 'note ' || n from generate_series(1, 9) n;
    insert into app.b select n, (array['s', 'w', 'n'])[1 + n % 3], n % 3, 'owner ' || n from generate_series(1, 9) n;
";

/// A generator of small numbers (xorshift), the same for one seed on every machine.
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new(seed: u64) -> Dice {
        Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as usize % n
    }

    pub(super) fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    fn pick<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())].clone()
    }

    fn some<T: Clone>(&mut self, of: &[T], percent: usize) -> Vec<T> {
        of.iter().filter(|_| self.chance(percent)).cloned().collect()
    }
}

/// The first manifest: nothing is exposed yet.
pub(super) fn first(installation: &Installation) -> Desired {
    let tenant = id(b't', 2);
    let verifier = |login: TenantLogin| (login.role(&tenant), installation.tenant_verifier(&tenant, login));
    Desired {
        slug: "pairs".parse().expect("a slug"),
        database: ident("pairs"),
        owner: TenantLogin::Owner.role(&tenant),
        is_adopted: false,
        generation: 1,
        limits: Limits::default(),
        shared: Vec::new(),
        shared_claims: BTreeMap::new(),
        entities: Vec::new(),
        keys: Vec::new(),
        relationships: Vec::new(),
        unread_relationships: BTreeSet::new(),
        verifiers: TenantLogin::ALL.into_iter().map(verifier).collect(),
        migrations: None,
        tenant,
    }
}

/// Another manifest after `old`: one thing changed, a few, or everything.
pub(super) fn next(old: &Desired, dice: &mut Dice, installation: &Installation) -> Desired {
    let mut new = old.clone();
    new.generation += 1;
    let percent = dice.pick(&[15, 40, 100]);
    if dice.chance(percent) {
        new.entities = entities(dice, &new.keys);
    }
    if dice.chance(percent) {
        protect(&mut new.entities, dice);
    }
    for entity in new.entities.iter_mut().filter(|entity| entity.kind == EntityKind::Table) {
        if dice.chance(percent) {
            entity.security = security(dice, &old.keys);
        }
    }
    if dice.chance(percent) {
        new.shared = permissions(dice);
    }
    if dice.chance(percent) {
        new.shared_claims = claims(dice);
    }
    // a revoked key is dead for good, so its slot is filled by a new one
    new.keys.retain(|key| !key.revoked && !dice.chance(percent / 6));
    for key in &mut new.keys {
        if dice.chance(percent) {
            key.generation += 1;
            key.scope = scope(dice);
        }
        if dice.chance(percent) {
            key.claims = claims(dice);
        }
        key.revoked = dice.chance(5);
        if key.revoked {
            key.secret = None;
        }
    }
    while new.keys.len() < 4 && dice.chance(70) {
        let number = u8::try_from(new.generation).expect("fewer than 256 steps");
        new.keys.push(key(number, new.keys.len(), dice, installation));
    }
    new
}

fn key(number: u8, slot: usize, dice: &mut Dice, installation: &Installation) -> KeySpec {
    let slot = u8::try_from(slot).expect("a few keys");
    let id = Ulid::from_parts(1_700_000_000_000, [b'k', number, slot, 0, 0, 0, 0, 0, 0, 0]);
    let mut digest = [number; 32];
    digest[0] = slot;
    KeySpec {
        uid: id.to_string(),
        namespace: "default".to_owned(),
        name: format!("key{number}-{slot}"),
        generation: 1,
        scope: scope(dice),
        claims: claims(dice),
        expires_at: None,
        revoked: false,
        secret: Some(SecretSpec {
            id: id.clone(),
            finder: format!("{number:06}{slot:06}"),
            digest,
            replaces: None,
        }),
        rotation: None,
        rotate: None,
        verifier: installation.key_verifier(DbRole::for_key(&id).as_str()),
        id,
    }
}

fn scope(dice: &mut Dice) -> Scope {
    match dice.below(6) {
        0 => Scope::Unscoped,
        1 => Scope::SameAsShared,
        _ => Scope::Permissions(permissions(dice)),
    }
}

fn claims(dice: &mut Dice) -> BTreeMap<String, String> {
    let mut claims = BTreeMap::new();
    if dice.chance(80) {
        claims.insert("region".to_owned(), dice.pick(&["n", "s", "w"]).to_owned());
    }
    if dice.chance(40) {
        claims.insert("grade".to_owned(), dice.pick(&["0", "1", "2"]).to_owned());
    }
    claims
}

fn entities(dice: &mut Dice, keys: &[KeySpec]) -> Vec<EntitySpec> {
    let mut entities = Vec::new();
    // the name `a` may come to stand for the other table
    let source = if dice.chance(12) { "b" } else { "a" };
    if dice.chance(90) {
        entities.push(entity("a", EntityKind::Table, source, security(dice, keys)));
    }
    if source == "a" && dice.chance(85) {
        entities.push(entity("b", EntityKind::Table, "b", security(dice, keys)));
    }
    if dice.chance(20) {
        entities.push(entity("twin", EntityKind::Table, source, Security::LeftOut));
    }
    if dice.chance(75) {
        entities.push(entity("v", EntityKind::View, "v", Security::LeftOut));
    }
    protect(&mut entities, dice);
    if dice.chance(60) {
        let function = entity("f", EntityKind::Procedure, dice.pick(&["f", "f", "g"]), Security::LeftOut);
        entities.push(EntitySpec { key_fields: Vec::new(), ..function });
    }
    entities
}

/// Some tables are protected. Now and then the entities over one do not agree.
fn protect(entities: &mut [EntitySpec], dice: &mut Dice) {
    let protection = |dice: &mut Dice| {
        dice.chance(40).then(|| Protection { soft_delete: dice.pick(&["is_deleted", "gone"]).to_owned() })
    };
    let of = [protection(dice), protection(dice)];
    for entity in entities.iter_mut().filter(|entity| entity.kind == EntityKind::Table) {
        let of = of[usize::from(entity.object.as_str() == "b")].clone();
        entity.protection = if dice.chance(5) { protection(dice) } else { of };
        entity.hide_soft_deleted = entity.protection.is_some() && dice.chance(30);
    }
}

fn entity(name: &str, kind: EntityKind, object: &str, security: Security) -> EntitySpec {
    EntitySpec {
        name: name.parse().expect("an entity's name"),
        kind,
        schema: ident("app"),
        object: ident(object),
        key_fields: vec!["id".to_owned()],
        mappings: BTreeMap::new(),
        rest: true,
        graphql: Default::default(),
        protection: None,
        writers: Default::default(),
        hide_soft_deleted: false,
        events: false,
        allow_definer: false,
        security,
        replaces_policies: false,
    }
}

fn security(dice: &mut Dice, keys: &[KeySpec]) -> Security {
    match dice.below(12) {
        0 => Security::LeftOut,
        1 | 2 => Security::Open,
        3 => Security::Existing,
        _ => {
            let names = dice.some(&["p1", "p2", "p3"], 60);
            Security::Policies(names.into_iter().map(|name| policy(name, dice, keys)).collect())
        }
    }
}

fn policy(name: &str, dice: &mut Dice, keys: &[KeySpec]) -> PolicySpec {
    let every = [Action::Read, Action::Create, Action::Update, Action::Delete];
    let mut actions = if dice.chance(50) { every.to_vec() } else { dice.some(&every, 50) };
    if actions.is_empty() {
        actions.push(Action::Read);
    }
    // an unscoped key has no role of its own to be named; one that becomes so closes the entity
    let named = keys.iter().filter(|key| key.scope != Scope::Unscoped).map(|key| key.name.clone());
    let names: Vec<String> = named.chain([SHARED_ROLE.to_owned(), "nobody".to_owned()]).collect();
    let rows = match dice.below(8) {
        0 | 1 => RowsSpec::Claim { field: "region".to_owned(), claim: "region".to_owned() },
        2 => RowsSpec::Claim { field: "grade".to_owned(), claim: "grade".to_owned() },
        3 => RowsSpec::Literal { field: "region".to_owned(), value: dice.pick(&["n", "s", "w"]).to_owned() },
        _ => RowsSpec::Expression(
            dice.pick(&[
                "true",
                "grade > 1 -- better ones",
                "region <> 'n'",
                "id % 2 = 0",
                "region = dl.claim('region') or current_user = 'datalake_user'",
                "id in (select id from app.b)",
            ])
            .to_owned(),
        ),
    };
    PolicySpec {
        name: ident(name),
        actions,
        roles: dice.chance(35).then(|| dice.some(&names, 50)),
        rows,
        check: dice.chance(15).then(|| "id > 0".to_owned()),
        restrictive: dice.chance(25),
    }
}

fn permissions(dice: &mut Dice) -> Vec<Permission> {
    let columns = ["id", "region", "grade", "note", "owner"].map(str::to_owned);
    let names = dice.some(&["a", "b", "twin", "v"], 70);
    let mut permissions = Vec::new();
    for name in names {
        let mut actions = dice.some(&[Action::Create, Action::Update, Action::Delete], 15);
        if dice.chance(90) || actions.is_empty() {
            actions.push(Action::Read);
        }
        permissions.push(Permission {
            entity: name.parse().expect("an entity's name"),
            actions,
            include: dice.chance(50).then(|| dice.some(&columns, 70)),
            exclude: dice.some(&columns, 8),
        });
    }
    if dice.chance(50) {
        let entity = "f".parse().expect("an entity's name");
        permissions.push(Permission {
            entity,
            actions: vec![Action::Execute],
            include: None,
            exclude: Vec::new(),
        });
    }
    permissions
}

fn ident(name: &str) -> Ident {
    Ident::new(name).expect("a name")
}
