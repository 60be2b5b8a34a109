//! A folder that holds every hostile manifest, and the process begins again.

use std::time::{Duration, Instant};

use rowgate_tests::stage::{DONE, On, Stage};
use rowgate_tests::wait::until_ok;

use super::hostile::HOSTILE;
use crate::acme::key;
use crate::scenarios::{NOTES, acme};

/// After which a neighbour is served again.
const SOON: Duration = Duration::from_secs(10);

/// Begins again, and has the neighbour's old key served and a new one made.
async fn begin_again(stage: &mut Stage, new: &str) {
    let began = Instant::now();
    stage.start().await;
    let (url, web, client) =
        (format!("{}{NOTES}", stage.url()), stage.key("web").await, reqwest::Client::new());
    until_ok("an answer to the neighbour", async || {
        let answer =
            client.get(&url).header("X-API-Key", &web).send().await.map_err(|error| error.to_string())?;
        if answer.status() == 200 { Ok(()) } else { Err(answer.status().to_string()) }
    })
    .await;
    assert!(began.elapsed() < SOON, "the neighbour was served after {:?}", began.elapsed());
    stage.put(&key(new, "acme", "")).await;
    stage.told("ApiKey", new, 1, DONE).await;
    assert!(began.elapsed() < SOON * 2, "the neighbour's new key was served after {:?}", began.elapsed());
}

/// Seen to fail with a fence of the tenant's own that is believed.
#[tokio::test]
async fn every_hostile_manifest_is_in_the_folder_and_then_gone() {
    let mut stage = acme(On::Folder).await;
    for hostile in HOSTILE {
        stage.put(&hostile.manifests()).await;
    }
    for hostile in HOSTILE {
        hostile.is_told(&stage).await;
    }
    stage.stop().await;
    begin_again(&mut stage, "with-them").await;
    stage.stop().await;
    // the last look at them is written down, and the first pass goes by that
    for hostile in HOSTILE {
        stage.remove("Tenant", hostile.name).await;
        stage.remove("ApiKey", hostile.name).await;
    }
    begin_again(&mut stage, "without-them").await;
    for hostile in HOSTILE {
        stage.gone("Tenant", hostile.name).await;
    }
    stage.told("Tenant", "acme", 1, DONE).await;
}
