//! A rotation cut off at each step: no key is lost, none lives on, and the next pass finishes what was begun.

use std::collections::BTreeMap;
use std::future::pending;
use std::time::Duration;

use rowgate_pg::login::Endpoint;
use rowgate_reconcile::dir_source::DirSource;
use rowgate_reconcile::source::{Event, ObjectRef, ResourceSource, Snapshot, SourceError, StatusReport};
use rowgate_tests::data_plane::DataPlane;
use rowgate_tests::postgres::{execute, rows};
use rowgate_tests::reconciler::{DONE, Reconciler};
use rowgate_tests::wait::until;
use rowgate_tests::world;
use tokio_util::sync::CancellationToken;

const ACME: &str = "apiVersion: v1
kind: ConfigMap
metadata: {name: acme-bootstrap}
data: {schema.sql: 'create table notes (id int primary key); insert into notes values (1)'}
---
apiVersion: rowgate.dev/v1alpha1
kind: Tenant
metadata: {name: acme}
spec:
  database: {bootstrap: {configMapRef: {name: acme-bootstrap}}}
  shared: {permissions: [{entity: notes, actions: [read]}]}
  entities: [{name: notes, source: {object: notes}, rowLevelSecurity: {none: true}}]
---
apiVersion: rowgate.dev/v1alpha1
kind: ApiKey
metadata: {name: turning}
spec: {tenantRef: {name: acme}, rotation: {every: EVERY, overlap: OVERLAP}}
";

fn acme(every: &str, overlap: &str) -> String {
    ACME.replace("EVERY", every).replace("OVERLAP", overlap)
}

const A_MONTH_LATER: &str =
    "update dl.key_secrets set created_at = created_at - interval '30 days' where expires_at is null";

/// Where the process ends.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Step {
    /// A rotation was decided; nothing was done.
    BeforeTheSecret,
    /// The Secret holds the new key, and no database knows it.
    AfterTheSecret,
    /// The digest is stored; nobody was told.
    BeforeTheEvent,
    /// Everything but the status.
    AfterTheEvent,
}

/// Ends the process that reads it at one step of the first rotation.
struct Crashing {
    source: DirSource,
    step: Step,
    end: CancellationToken,
}

impl Crashing {
    /// What follows is never run: the loop drops it where it waits.
    async fn at(&self, step: Step) {
        if step == self.step {
            self.end.cancel();
            pending().await
        }
    }
}

impl ResourceSource for Crashing {
    async fn changed(&self) {
        self.source.changed().await;
    }

    async fn snapshot(&self) -> Result<Snapshot, SourceError> {
        self.source.snapshot().await
    }

    async fn read_secret(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<Option<BTreeMap<String, String>>, SourceError> {
        self.source.read_secret(namespace, name).await
    }

    async fn write_secret(
        &self,
        owner: &ObjectRef,
        namespace: &str,
        name: &str,
        data: &BTreeMap<String, String>,
    ) -> Result<(), SourceError> {
        self.at(Step::BeforeTheSecret).await;
        self.source.write_secret(owner, namespace, name, data).await?;
        self.at(Step::AfterTheSecret).await;
        Ok(())
    }

    async fn delete_secret(&self, owner: &ObjectRef, namespace: &str, name: &str) -> Result<(), SourceError> {
        self.source.delete_secret(owner, namespace, name).await
    }

    fn holds_deleted(&self) -> bool {
        self.source.holds_deleted()
    }

    async fn report(&self, reports: &[StatusReport]) -> Result<(), SourceError> {
        self.source.report(reports).await
    }

    async fn release(&self, object: &ObjectRef) -> Result<(), SourceError> {
        self.source.release(object).await
    }

    async fn event(&self, object: &ObjectRef, event: Event) -> Result<(), SourceError> {
        self.at(Step::BeforeTheEvent).await;
        self.source.event(object, event).await?;
        self.at(Step::AfterTheEvent).await;
        Ok(())
    }
}

async fn data_plane(reconciler: &Reconciler) -> DataPlane {
    let Endpoint::Unix { directory, .. } = reconciler.server.endpoint() else {
        panic!("test servers have no TCP")
    };
    DataPlane::start(directory, &reconciler.state().join("dataplane.root")).await
}

fn key(reconciler: &Reconciler) -> String {
    reconciler.secret("turning").expect("a Secret")["apiKey"].clone()
}

/// Seen to fail with a digest that is stored before its key is in the Secret, and with a Secret that does not say what
/// its key replaces.
#[tokio::test]
async fn a_rotation_cut_off_at_any_step_loses_no_key_and_is_finished_once() {
    let mut reconciler = Reconciler::new(&[("acme.yaml", &acme("30d", "1d"))]).await;
    reconciler.told("apikey", "turning", 1, DONE).await;
    let plane = data_plane(&reconciler).await;
    let opens = async |key: &str| {
        let answer = world::get(&format!("{}/auth/acme/api/notes", plane.url()), key).await;
        assert!([200, 401].contains(&answer.status.as_u16()), "{answer:?}");
        answer.status == 200
    };
    let mut sql = reconciler.server.connect("acme").await;
    let mut n_secrets = 1;
    for step in [Step::BeforeTheSecret, Step::AfterTheSecret, Step::BeforeTheEvent, Step::AfterTheEvent] {
        let old = key(&reconciler);
        until("the key to work", async || opens(&old).await.then_some(())).await;
        reconciler.stop().await;
        // what the round before left in its overlap has died meanwhile
        execute(&mut sql, "update dl.key_secrets set expires_at = created_at where expires_at is not null")
            .await;
        execute(&mut sql, A_MONTH_LATER).await;
        reconciler.start_with(Duration::from_secs(1), |source, end| Crashing { source, step, end });
        reconciler.ended().await;

        let between = key(&reconciler);
        assert!(opens(&old).await, "{step:?}: whoever did not read the Secret again goes on");
        assert_eq!(between == old, step == Step::BeforeTheSecret, "{step:?}");
        let n_stored = rows(&mut sql, "select 1 from dl.key_secrets").await.len();
        let is_stored = [Step::BeforeTheEvent, Step::AfterTheEvent].contains(&step);
        assert_eq!(n_stored, n_secrets + usize::from(is_stored), "{step:?}");

        reconciler.start();
        let new = until("a new key that works", async || {
            let new = key(&reconciler);
            (new != old && opens(&new).await).then_some(new)
        })
        .await;
        assert!(between == old || between == new, "{step:?}: what was written once is not replaced");
        n_secrets += 1;
        assert!(opens(&old).await, "{step:?}");
        let live = "select expires_at from dl.key_secrets where revoked_at is null and coalesce(expires_at > now(), true)";
        let live = rows(&mut sql, live).await;
        let n_ending = live.iter().filter(|secret| secret["expires_at"].is_string()).count();
        assert_eq!((live.len(), n_ending), (2, 1), "{step:?}: {live:?}");
        assert_eq!(rows(&mut sql, "select 1 from dl.key_secrets").await.len(), n_secrets, "{step:?}");
    }
}

/// Nothing but time passes here, and the look that finds changes by hand is an hour away.
#[tokio::test]
async fn a_rotation_needs_no_change_of_a_file_to_begin() {
    let mut reconciler = Reconciler::new(&[("acme.yaml", &acme("2s", "1s"))]).await;
    reconciler.stop().await;
    reconciler.start_with(Duration::from_secs(3600), |source, _| source);
    let mut keys = Vec::new();
    until("three rotations", async || {
        let key = reconciler.secret("turning")?["apiKey"].clone();
        if keys.last() != Some(&key) {
            keys.push(key);
        }
        (3 < keys.len()).then_some(())
    })
    .await;
    let mut sql = reconciler.server.connect("acme").await;
    let live = "select 1 from dl.key_secrets where revoked_at is null and coalesce(expires_at > clock_timestamp(), true)";
    assert!(rows(&mut sql, live).await.len() <= 2);
}
