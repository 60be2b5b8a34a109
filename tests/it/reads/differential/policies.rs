//! Random policies, and their two spellings: a manifest's, and SQL with the caller written in.

use rand::RngExt as _;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;

/// A policy as the manifest has it.
#[derive(Debug)]
pub(super) struct Policy {
    pub(super) name: String,
    /// Empty: all four.
    pub(super) actions: Vec<&'static str>,
    /// Names of keys.
    pub(super) roles: Option<Vec<String>>,
    pub(super) restrictive: bool,
    pub(super) rows: Rows,
}

#[derive(Debug)]
pub(super) enum Rows {
    /// A column and the claim that it has to equal.
    Claim(&'static str, &'static str),
    /// A column and the text that it has to equal.
    Literal(&'static str, &'static str),
    /// SQL in which `{user}`, `{region}`, `{grade}` (claims), `{lookup}` (the table that everybody reads) and `{me}` (the
    /// policy's own table) stand for what differs.
    Expression(&'static str),
}

/// What any table may say.
const PLAIN: &[&str] = &[
    "true",
    "grade > 1 -- better ones",
    "region <> 'n'",
    "n % 2 = 0",
    "ok",
    "not ok or grade is null",
    "owner = 'a' and region is not null",
    "n between 3 and 17",
    "false",
];

/// What needs to know who asks.
const CALLER: &[&str] = &[
    "region = {region} or {user} = 'datalake_user'",
    "region = {region}",
    "grade::text = {grade}",
    "coalesce({grade}::int, 0) <= grade",
    "{user} like 'key%' and grade is not null",
    "case when {region} is null then owner = 'a' else region = {region} end",
    "{region} is distinct from region",
];

/// What reads another table, with the rights and rows of who asks.
const LOOKING: &[&str] = &[
    "region in (select l.region from {lookup} l where l.grade > 0)",
    "exists (select from {lookup} l where l.n = {me}.n)",
    "n = any (array(select l.n from {lookup} l where l.region = {region}))",
    "grade >= (select min(l.grade) from {lookup} l)",
    "not exists (select from {lookup} l where l.region = {me}.region)",
];

/// Which of them a policy may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// Made by the owner's script, which knows no caller.
    Script,
    /// Of the table that others look into.
    Lookup,
    Any,
}

/// At most four, `names` being those of keys that have a role of their own.
pub(super) fn draw(rng: &mut StdRng, names: &[String], reach: Reach) -> Vec<Policy> {
    let n = *[1, 1, 2, 2, 3, 4].choose(rng).expect("some");
    (0..n).map(|i| policy(rng, format!("p{i}"), names, reach)).collect()
}

fn policy(rng: &mut StdRng, name: String, names: &[String], reach: Reach) -> Policy {
    let actions = match rng.random_range(0..10) {
        0..5 => vec![],
        5..8 => vec!["read"],
        8 => vec!["read", "update"],
        _ => vec!["create", "delete"],
    };
    let roles = (reach != Reach::Script && rng.random_bool(0.35)).then(|| {
        let mut roles: Vec<String> = names.iter().filter(|_| rng.random_bool(0.5)).cloned().collect();
        if roles.is_empty() || rng.random_bool(0.3) {
            roles.push("datalake_user".to_owned());
        }
        if rng.random_bool(0.1) {
            roles.push("nobody".to_owned());
        }
        roles
    });
    let texts = match (reach, rng.random_range(0..10)) {
        (Reach::Script, _) | (_, 0..4) => PLAIN,
        (Reach::Any, 7..) => LOOKING,
        _ => CALLER,
    };
    let rows = match (reach, rng.random_range(0..10)) {
        (Reach::Script, _) | (_, 5..) => Rows::Expression(texts.choose(rng).expect("some")),
        (_, 0..3) => Rows::Claim("region", "region"),
        (_, 3) => Rows::Claim("grade", "grade"),
        _ => {
            let (column, value) =
                *[("region", "n"), ("grade", "2"), ("ok", "true"), ("owner", "b")].choose(rng).expect("some");
            Rows::Literal(column, value)
        }
    };
    Policy { name, actions, roles, restrictive: rng.random_bool(0.3), rows }
}

impl Policy {
    /// Whether it has a say in an action. The owner's script makes none for rows that are made.
    pub(super) fn says(&self, action: &str, is_scripts: bool) -> bool {
        self.actions.is_empty() || self.actions.contains(&action) && !(is_scripts && action == "create")
    }
}

/// An expression as a manifest has it.
pub(super) fn written(text: &str, table: &str) -> String {
    text.replace("{user}", "current_user")
        .replace("{region}", "dl.claim('region')")
        .replace("{grade}", "(select dl.claim('grade'))")
        .replace("{lookup}", "app.t0")
        .replace("{me}", table)
}
