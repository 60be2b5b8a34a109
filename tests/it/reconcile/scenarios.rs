//! Scenarios of reconciling, as statuses, Secrets, keys and rows tell them. Each is written once and runs on both sources:
//! `on_folder` in a standalone process, `on_cluster` in the operator under the chart's rights.

use rowgate_tests::stage::{DONE, On, Stage, Wish};

use super::acme::{SPEC, keys, tenant};

/// Two tests of each scenario, named by their source.
macro_rules! scenarios {
    ($($scenario:ident),* $(,)?) => {
        mod on_folder {
            $(#[tokio::test]
            async fn $scenario() {
                Box::pin(super::$scenario(rowgate_tests::stage::On::Folder)).await;
            })*
        }

        mod on_cluster {
            $(#[tokio::test]
            async fn $scenario() {
                Box::pin(super::$scenario(rowgate_tests::stage::On::Cluster)).await;
            })*
        }
    };
}

pub(crate) use scenarios;

mod deleting;
mod edits;
pub(crate) mod failures;
mod fairness;
pub(crate) mod keys;
mod protection;
pub(crate) mod quiet;
mod reading;
mod relationships;
mod routines;
mod scripts;
mod serving;
mod shop;
mod subscriptions;

/// What every key of `acme` may read.
pub(crate) const NOTES: &str = "/auth/acme/api/notes?$first=1";

/// Tenant `acme` with the keys `web` (unscoped), `north` and `south`, done.
pub(crate) async fn acme(on: On) -> Stage {
    acme_with(on, Wish::default()).await
}

pub(crate) async fn acme_with(on: On, wish: Wish<'_>) -> Stage {
    let stage = Stage::with(on, wish, &format!("{}{}", tenant("acme", SPEC), keys())).await;
    done(&stage).await;
    stage
}

/// Waits until all of [`acme`] is done.
pub(crate) async fn done(stage: &Stage) {
    stage.told("Tenant", "acme", 1, DONE).await;
    for key in ["web", "north", "south"] {
        stage.told("ApiKey", key, 1, DONE).await;
    }
}
