//! Random rows, policies, permissions and claims over the tables. One seed is one tenant, on every machine.

use std::collections::BTreeMap;

use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};

use super::tables::{Field, MASTERIES, TABLES, Table, Type, VOYAGES};

pub(crate) const N_KEYS: usize = 12;
const N_ROWS: [usize; 8] = [8, 20, 26, 30, 9, 40, 12, 6];
const ZONES: [&str; 3] = ["n", "s", "w"];

pub(crate) type Claims = BTreeMap<&'static str, &'static str>;

#[derive(Debug)]
pub(crate) struct Drawn {
    pub(crate) seed: u64,
    /// By table; each as long as its fields, in PostgreSQL's own spelling.
    pub(crate) rows: Vec<Vec<Vec<Option<String>>>>,
    /// By table.
    pub(crate) policies: Vec<Vec<Policy>>,
    pub(crate) shared: Vec<Permission>,
    pub(crate) shared_claims: Claims,
    pub(crate) keys: Vec<Key>,
}

/// `{zone}` and `{serial}` stand for the columns of the table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Policy {
    /// `None`: the zone equals the claim.
    pub(crate) expression: Option<&'static str>,
    pub(crate) restrictive: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Permission {
    pub(crate) table: usize,
    pub(crate) actions: Vec<&'static str>,
    /// `None`: all.
    pub(crate) fields: Option<Vec<&'static str>>,
}

#[derive(Debug, Clone)]
pub(crate) struct Key {
    pub(crate) name: String,
    /// `None`: what is shared.
    pub(crate) permissions: Option<Vec<Permission>>,
    /// The shared role itself, with the shared claims.
    pub(crate) is_unscoped: bool,
    pub(crate) claims: Claims,
}

impl Drawn {
    pub(crate) fn permissions<'a>(&'a self, key: &'a Key) -> &'a [Permission] {
        key.permissions.as_deref().unwrap_or(&self.shared)
    }

    pub(crate) fn claims<'a>(&'a self, key: &'a Key) -> &'a Claims {
        if key.is_unscoped { &self.shared_claims } else { &key.claims }
    }

    pub(crate) fn slug(&self) -> String {
        format!("g{}", self.seed)
    }
}

pub(crate) fn draw(seed: u64) -> Drawn {
    let mut rng = StdRng::seed_from_u64(seed);
    let rng = &mut rng;
    let mut rows: Vec<Vec<Vec<Option<String>>>> = Vec::new();
    for (at, table) in TABLES.iter().enumerate() {
        let mut of_table: Vec<Vec<Option<String>>> = Vec::new();
        while of_table.len() < N_ROWS[at] {
            let row = row(rng, at, of_table.len(), &rows);
            let key = |row: &[Option<String>]| -> Vec<Option<String>> {
                let at = table.key.iter().map(|name| table.fields.iter().position(|f| f.name == *name));
                at.map(|at| row[at.expect("a field")].clone()).collect()
            };
            if of_table.iter().all(|other| key(other) != key(&row)) {
                of_table.push(row);
            }
        }
        rows.push(of_table);
    }
    let policies = TABLES.iter().enumerate().map(|(at, _)| policies(rng, at)).collect();
    let all = |table| Permission { table, actions: vec!["read"], fields: None };
    let shared = (0..TABLES.len()).map(all).collect();
    let mut keys: Vec<Key> = (0..N_KEYS).map(|i| key(rng, i)).collect();
    // of equal rights, and of other claims
    keys[3].permissions = keys[2].permissions.clone();
    keys[2].claims = Claims::from([("zone", "n")]);
    keys[3].claims = Claims::from([("zone", "s")]);
    Drawn { seed, rows, policies, shared, shared_claims: Claims::from([("zone", "every")]), keys }
}

fn key(rng: &mut StdRng, i: usize) -> Key {
    let mut claims = Claims::new();
    if rng.random_bool(0.9) {
        claims.insert("zone", ["n", "s", "w", "every"].choose(rng).expect("some"));
    }
    let permissions = (2 <= i).then(|| (0..TABLES.len()).flat_map(|table| permissions(rng, table)).collect());
    Key { name: format!("k{i}"), permissions, is_unscoped: i == 0, claims }
}

fn permissions(rng: &mut StdRng, table: usize) -> Vec<Permission> {
    let mut found = Vec::new();
    if rng.random_bool(0.2) {
        return found;
    }
    let some = |rng: &mut StdRng| -> Vec<&'static str> {
        let of: &'static Table = &TABLES[table];
        of.fields.iter().map(|field| field.name).filter(|_| rng.random_bool(0.7)).collect()
    };
    let fields = (!rng.random_bool(0.2)).then(|| some(rng));
    // a read of nothing but the key is a read
    let fields = fields.map(|fields| if fields.is_empty() { vec![TABLES[table].key[0]] } else { fields });
    found.push(Permission { table, actions: vec!["read"], fields });
    for (action, share) in [("create", 0.15), ("update", 0.2), ("delete", 0.1)] {
        if rng.random_bool(share) {
            let fields = some(rng);
            let fields = if fields.is_empty() { vec![TABLES[table].fields[1].name] } else { fields };
            found.push(Permission { table, actions: vec![action], fields: Some(fields) });
        }
    }
    found
}

fn policies(rng: &mut StdRng, table: usize) -> Vec<Policy> {
    let own = Policy { expression: None, restrictive: false };
    let says = |expression| Policy { expression: Some(expression), restrictive: false };
    let only = |expression| Policy { expression: Some(expression), restrictive: true };
    let zone = "{zone} = dl.claim('zone') or dl.claim('zone') = 'every'";
    let drawn = match rng.random_range(0..6) {
        0 => vec![own],
        1 => vec![says("true"), only("{serial} % 3 <> 0")],
        2 => vec![own, says("{serial} % 4 = 0")],
        3 => vec![says(zone)],
        4 => vec![says(zone), only("{serial} % 5 <> 1")],
        _ => vec![says("true")],
    };
    // what the tables between link is there for most
    if table == MASTERIES && drawn.len() == 1 { vec![says("{serial} % 6 <> 2")] } else { drawn }
}

/// `before`: rows of the tables that this one refers to.
fn row(
    rng: &mut StdRng,
    at: usize,
    number: usize,
    before: &[Vec<Vec<Option<String>>>],
) -> Vec<Option<String>> {
    let mut values: Vec<Option<String>> =
        TABLES[at].fields.iter().map(|field| value(rng, field, number)).collect();
    let mut refers = |to: usize, pairs: &[(usize, usize)]| {
        let Some(row) = before[to].choose(rng) else { return };
        for (from, into) in pairs {
            if values[*from].is_some() || !number.is_multiple_of(4) {
                values[*from].clone_from(&row[*into]);
            }
        }
    };
    match at {
        1 => refers(0, &[(3, 0)]),
        2 | 5 => refers(1, &[(0, 0)]),
        3 => {
            refers(VOYAGES, &[(1, 0), (2, 1)]);
            refers(1, &[(3, 0)]);
        }
        _ => {}
    }
    if at == MASTERIES {
        let knot = before[4].choose(rng).expect("some");
        values[1].clone_from(&knot[0]);
    }
    if at == 6 {
        // one at most of a sailor
        values[1].clone_from(&before[1][number][0]);
    }
    values
}

const WORDS: [&str; 8] = ["Ada", "ada lee", "it's 50%", "\u{c4}rger", "", "b_b", "Zed \"q\"", "a\\b"];

fn value(rng: &mut StdRng, field: &Field, number: usize) -> Option<String> {
    if field.is_null_at_times && rng.random_bool(0.2) {
        return None;
    }
    let name = field.name;
    let some = |rng: &mut StdRng, values: &[&str]| (*values.choose(rng).expect("some")).to_owned();
    Some(match field.ty {
        _ if name.ends_with("zone") => some(rng, &ZONES),
        Type::Text if name.ends_with("note") => format!("zq{:08x}", rng.random::<u32>()),
        Type::Long if name.ends_with("serial") => {
            format!("{}", 7_000_000_000_000_000_u64 + rng.random_range(0..1_000_000_000_000))
        }
        Type::Text if name == "wharf_code" => format!("{}{number}", some(rng, &["W/", "w ", "\u{df}%"])),
        Type::Text => some(rng, &WORDS),
        Type::Long if name == "sailor_id" => match number {
            0 => "9007199254740993".to_owned(),
            _ => (number * 7 % 101).to_string(),
        },
        // a boss, an owner, a captain: of which there are some
        Type::Long => (rng.random_range(1..20_usize) * 7 % 101).to_string(),
        Type::Int if name.ends_with("_id") => (number + 1).to_string(),
        Type::Int => rng.random_range(-2..6_i32).to_string(),
        Type::Decimal => {
            let cents = rng.random_range(-3000..9000_i32);
            format!("{}{}.{:02}", if cents < 0 { "-" } else { "" }, cents.abs() / 100, cents.abs() % 100)
        }
        Type::Bool => some(rng, &["true", "false"]),
        Type::Mood => some(rng, &["glad", "calm", "angry"]),
        Type::Uuid => {
            format!("{:08x}-1111-4222-8333-{:012x}", rng.random::<u32>(), rng.random_range(0..1_u64 << 48))
        }
        Type::Instant => {
            let (day, hour) = (rng.random_range(1..29), rng.random_range(0..4));
            format!("2025-0{}-{day:02}T{hour:02}:30:00{}Z", 1 + day % 3, some(rng, &["", ".5"]))
        }
        Type::Date => format!("2024-02-{:02}", rng.random_range(1..9)),
        Type::Json => some(rng, &["{\"a\": 1.50}", "[1, null]", "\"text\"", "{}", "null"]),
        Type::Texts => some(rng, &["{}", "{x,y}", "{\"a b\",NULL}"]),
    })
}
