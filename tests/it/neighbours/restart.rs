//! A folder that holds every hostile manifest, and the process begins again.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rowgate_tests::stage::{DONE, On, Stage};
use rowgate_tests::wait::{until, until_ok};

use super::hostile::HOSTILE;
use crate::reconcile::acme::{SPEC, key, one, reader, tenant};
use crate::reconcile::scenarios::{NOTES, acme};

/// After which a neighbour is served again.
const RESTART_LIMIT: Duration = Duration::from_secs(10);

/// Kind, name and reason of each hostile object that needs more than a script: a Tenant of another namespace that wants the
/// retained database `past`, by its slug, by its id or by its name, and ApiKeys whose Secrets hold strings that are not theirs.
const FOREIGN: [(&str, &str, &str); 5] = [
    ("Tenant", "other/takes", "SlugTaken"),
    ("Tenant", "other/adopts", "NotRetained"),
    ("Tenant", "other/based", "Taken"),
    ("ApiKey", "borrowed", "SecretInvalid"),
    ("ApiKey", "restored", "SecretInvalid"),
];

/// Retains `past`, revokes `south`, and puts all of [`FOREIGN`].
async fn put_foreign(stage: &mut Stage) {
    stage.put(&format!("{}{}", tenant("past", SPEC), key("past", "past", ""))).await;
    stage.told("ApiKey", "past", 1, DONE).await;
    let past = stage.told("Tenant", "past", 1, DONE).await;
    let [id, database] =
        ["tenantId", "database"].map(|field| past[field].as_str().expect("a text").to_owned());
    for kind in ["ApiKey", "Tenant"] {
        stage.remove(kind, "past").await;
        stage.gone(kind, "past").await;
    }
    let (alive, dead) = (stage.key("web").await, stage.key("south").await);
    stage.put(&key("south", "acme", &format!("{}, revoked: true", reader("south", "[id, body]")))).await;
    stage.told("ApiKey", "south", 2, "Revoked").await;
    for (name, string) in [("borrowed", alive), ("restored", dead)] {
        stage.set_secret(name, &BTreeMap::from([("apiKey".to_owned(), string)])).await;
        stage.put(&key(name, "acme", "")).await;
    }
    for (name, spec) in [
        ("takes", "{slug: past, database: {deletionPolicy: Delete}}".to_owned()),
        ("adopts", format!("{{slug: past, database: {{deletionPolicy: Delete, adoptRetained: {id}}}}}")),
        ("based", format!("{{database: {{name: {database}, deletionPolicy: Delete}}}}")),
    ] {
        let metadata = format!("metadata: {{namespace: other, name: {name}}}");
        stage
            .put(&format!("apiVersion: rowgate.dev/v1alpha1\nkind: Tenant\n{metadata}\nspec: {spec}\n"))
            .await;
    }
}

async fn foreign_are_told(stage: &Stage) {
    for (kind, name, reason) in FOREIGN {
        stage.told(kind, name, 1, reason).await;
    }
}

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
    assert!(began.elapsed() < RESTART_LIMIT, "the neighbour was served after {:?}", began.elapsed());
    stage.put(&key(new, "acme", "")).await;
    stage.told("ApiKey", new, 1, DONE).await;
    assert!(
        began.elapsed() < RESTART_LIMIT * 2,
        "the neighbour's new key was served after {:?}",
        began.elapsed()
    );
}

/// Seen to fail with a fence of the tenant's own that is believed.
#[tokio::test]
async fn every_hostile_manifest_is_in_the_folder_and_then_gone() {
    let mut stage = acme(On::Folder).await;
    put_foreign(&mut stage).await;
    for hostile in HOSTILE {
        stage.put(&hostile.manifests()).await;
    }
    for hostile in HOSTILE {
        hostile.is_told(&stage).await;
    }
    foreign_are_told(&stage).await;
    stage.stop().await;
    begin_again(&mut stage, "with-them").await;
    foreign_are_told(&stage).await;
    stage.stop().await;
    // the last look at them is written down, and the first pass goes by that
    for hostile in HOSTILE {
        stage.remove("Tenant", hostile.name).await;
        stage.remove("ApiKey", hostile.name).await;
    }
    for (kind, name, _) in FOREIGN {
        let (_, name) = name.rsplit_once('/').unwrap_or(("", name));
        stage.remove(kind, name).await;
    }
    begin_again(&mut stage, "without-them").await;
    for hostile in HOSTILE {
        stage.gone("Tenant", hostile.name).await;
    }
    for (kind, name, _) in FOREIGN {
        stage.gone(kind, name).await;
    }
    stage.told("Tenant", "acme", 1, DONE).await;
    let mut control = stage.server.connect("rowgate").await;
    let phase = "select phase from control.tenants where slug = 'past'";
    until("the database of past", async || {
        (one::<String>(&mut control, phase).await == "retained").then_some(())
    })
    .await;
}
