//! Random lives of subscriptions against a model in plain rules: lists of what happened, and what follows.
//!
//! `ROWGATE_CASES` says how many steps there are in all, `ROWGATE_SEED` which life is the first.

use super::*;
use driver::Driver;

mod driver;
mod rules;

const STEPS_OF_A_LIFE: u64 = 500;

/// SplitMix64: the same seed gives the same life.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    fn percent(&mut self, share: u64) -> bool {
        self.below(100) < share
    }

    /// From 0 to 1.
    fn fraction(&mut self) -> f64 {
        self.below(1 << 20) as f64 / f64::from(1 << 20)
    }
}

fn given(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[test]
fn subscriptions_live_by_the_contract() {
    let (n_steps, seed) = (given("ROWGATE_CASES", 100_000), given("ROWGATE_SEED", 0));
    let mut seen = [0; rules::N_KINDS];
    for seed in seed..seed + n_steps.div_ceil(STEPS_OF_A_LIFE) {
        let mut life = Driver::new(seed);
        for i in 0..STEPS_OF_A_LIFE {
            life.happen();
            if let Err(broken) = life.rules.hold(&life.state) {
                panic!("ROWGATE_SEED={seed} ROWGATE_CASES=1, step {i}: {broken}\n{:#?}", life.state);
            }
        }
        for (n, of_life) in seen.iter_mut().zip(life.rules.seen) {
            *n += of_life;
        }
    }
    let kinds = rules::KINDS.iter().zip(seen);
    if STEPS_OF_A_LIFE * 50 <= n_steps {
        for (kind, n) in kinds {
            assert!(100 < n, "{kind} was seen {n} times only");
        }
    }
}
