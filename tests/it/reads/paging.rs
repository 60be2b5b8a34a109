//! Pages, cursors and filters over every type that has an order, through HTTP, beside PostgreSQL's own answers.

pub(crate) mod columns;
mod cursors;
mod filters;
mod fixture;
mod grammar;
mod judging;
mod pages;
pub(crate) mod question;
mod spelling;
mod terms;

/// `0..n`, or the one that the environment names: `PAGING_SEED=17 cargo test -p rowgate-tests paging`.
fn seeds(variable: &str, n: u64) -> Vec<u64> {
    match std::env::var(variable) {
        Ok(seed) => vec![seed.parse().expect("a seed is a number")],
        Err(_) => (0..n).collect(),
    }
}
