//! The same requests of databases that an application owns (`database.create: false`): keys read what the manifest means and no more,
//! and the application's roles read what they did.
//!
//! `ROWGATE_CASES` says how many cases there are, `ROWGATE_SEED` which tenant is the first. `planted.rs` opens a running tenant, and wants
//! each opening to be found.

mod fixture;
mod planted;
mod roles;

use std::time::Instant;

use fixture::{Adopted, manifest};

use super::comparing::{Difference, Kind, Tenant};
use super::given;
use super::running::{self, N_CASES, Tally};

/// One process has so many tenants at most.
const N_TENANTS: u64 = 4;

#[tokio::test]
async fn a_key_of_an_adopted_database_reads_what_the_manifest_means_and_others_read_every_row() {
    let (cases, seed) = (given("ROWGATE_CASES", 800), given("ROWGATE_SEED", 0));
    let (mut whole, began) = (Tally::new(), Instant::now());
    let mut left = cases;
    while 0 < left {
        let first = seed + (cases - left) / N_CASES;
        let seeds: Vec<u64> = (first..first + left.div_ceil(N_CASES).min(N_TENANTS)).collect();
        let mut adopted = Adopted::start(&seeds).await;
        let Adopted { world, tenants, .. } = &mut adopted;
        for (tenant, seed) in tenants.iter_mut().zip(seeds) {
            let n = left.min(N_CASES);
            left -= n;
            let login = fixture::login(world, &tenant.drawn.slug);
            match asked(tenant, n, &login).await {
                Ok(tally) => tally.into_iter().for_each(|(kind, n)| *whole.entry(kind).or_default() += n),
                Err(difference) => panic!(
                    "{}\n\nmake soak SEED={seed} CASES={N_CASES}\n{difference}\n",
                    manifest(&tenant.drawn)
                ),
            }
        }
        assert!(world.stop().await.success());
        println!("{} of {cases} cases agree after {} s: {whole:?}", cases - left, began.elapsed().as_secs());
    }
    // cases that find nothing would agree with anything
    let n = |kinds: [Kind; 2]| kinds.iter().filter_map(|kind| whole.get(kind)).sum::<usize>();
    let (found, hidden) = (n([Kind::Rows, Kind::OneRow]), n([Kind::NoRow, Kind::HiddenRow]));
    let all: usize = whole.values().sum();
    assert!(cases < 500 || (all < 6 * found && all < 15 * hidden), "{whole:?}");
}

/// What came of the cases, where nothing differs.
async fn asked(tenant: &mut Tenant, n: u64, login: &str) -> Result<Tally, Difference> {
    let tally = running::ask(tenant, n).await?;
    roles::of_keys(tenant).await?;
    roles::of_the_application(tenant).await?;
    roles::of_the_login(tenant, login).await?;
    Ok(tally)
}
