//! The rules of contract section 14, one by one: `look` with times given, then the folder itself.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use tempfile::TempDir;

use super::folder::read;
use super::look::{Look, look};
use super::*;

const SHOP: &str = "{apiVersion: rowgate.dev/v1alpha1, kind: Tenant, metadata: {name: shop}, spec: {}}";
const KEY: &str =
    "{apiVersion: rowgate.dev/v1alpha1, kind: ApiKey, metadata: {name: k}, spec: {tenantRef: {name: shop}}}";
const REVOKED: &str = "{apiVersion: rowgate.dev/v1alpha1, kind: ApiKey, metadata: {name: k}, spec: {tenantRef: {name: shop}, revoked: true}}";

/// A folder, and what is remembered of it from look to look.
struct Desk {
    dir: TempDir,
    memory: Memory,
    start: Instant,
    n_uids: usize,
}

impl Desk {
    fn new(files: &[(&str, &str)]) -> Desk {
        let dir = TempDir::new().expect("the machine has a temporary folder");
        let mut desk = Desk { dir, memory: Memory::default(), start: Instant::now(), n_uids: 0 };
        files.iter().for_each(|(name, text)| desk.write(name, text));
        desk.at(0);
        desk
    }

    fn write(&mut self, name: &str, text: &str) {
        fs::write(self.dir.path().join(name), text).expect("a temporary file is writable");
    }

    fn remove(&mut self, name: &str) {
        fs::remove_file(self.dir.path().join(name)).expect("the test wrote that file");
    }

    /// One look, `ms` milliseconds after the start. Gives what is in force, what was deleted, and the problems.
    fn at(&mut self, ms: u64) -> (Vec<String>, Vec<String>, Vec<String>) {
        let files = read(self.dir.path()).expect("the folder is readable");
        let now = self.start + Duration::from_millis(ms);
        let mut new_uid = || {
            self.n_uids += 1;
            format!("u{}", self.n_uids)
        };
        match look(&self.memory, &files, now, &mut new_uid) {
            Err(Emptied(known)) => (vec![format!("emptied: {known}")], vec![], vec![]),
            Ok(Look { memory, problems, deleted }) => {
                self.memory = memory;
                let shown = |it: &Stored| format!("{} {} {}", it.key, it.uid, it.generation);
                (
                    self.memory.objects.values().map(shown).collect(),
                    deleted.iter().map(|it| it.key.to_string()).collect(),
                    problems.iter().map(ToString::to_string).collect(),
                )
            }
        }
    }

    #[track_caller]
    fn in_force(&mut self, ms: u64, expected: &[&str]) {
        assert_eq!(self.at(ms).0, expected);
    }
}

#[test]
fn uids_stay_and_generations_count_changes_of_the_spec() {
    let mut desk = Desk::new(&[("a.yaml", SHOP), ("b.yml", KEY)]);
    desk.in_force(1, &["Tenant shop u1 1", "ApiKey k u2 1"]);
    desk.write("a.yaml", &SHOP.replace("spec: {}", "spec: {limits: {maxPageSize: 5}}"));
    desk.in_force(2, &["Tenant shop u1 2", "ApiKey k u2 1"]);
    desk.write(
        "a.yaml",
        &SHOP.replace("spec: {}", "spec: {database: {create: true}, limits: {maxPageSize: 5}}"),
    );
    desk.in_force(3, &["Tenant shop u1 2", "ApiKey k u2 1"]);
    desk.write("b.yml", &KEY.replace("name: k}", "name: k, annotations: {rowgate.dev/paused: 'true'}}"));
    desk.in_force(4, &["Tenant shop u1 2", "ApiKey k u2 1"]);
    let key = desk.memory.objects.values().last().expect("the key is there");
    assert_eq!(key.object["metadata"]["annotations"]["rowgate.dev/paused"], "true");
}

#[test]
fn a_missing_object_is_deleted_on_the_second_look_a_second_later() {
    let mut desk = Desk::new(&[("a.yaml", SHOP), ("b.yaml", KEY)]);
    desk.remove("b.yaml");
    assert_eq!(desk.at(5000).1, Vec::<String>::new(), "the first look deletes nothing, however late it is");
    assert_eq!(desk.at(5999).1, Vec::<String>::new());
    assert_eq!(desk.at(6000).1, ["ApiKey k"]);
    desk.in_force(6001, &["Tenant shop u1 1"]);
    desk.write("b.yaml", KEY);
    desk.in_force(6002, &["Tenant shop u1 1", "ApiKey k u3 1"]);
}

#[test]
fn a_rename_within_the_second_changes_nothing() {
    let mut desk = Desk::new(&[("a.yaml", SHOP), ("b.yaml", KEY)]);
    desk.remove("b.yaml");
    desk.in_force(100, &["Tenant shop u1 1", "ApiKey k u2 1"]);
    desk.write("c.yaml", KEY);
    desk.in_force(200, &["Tenant shop u1 1", "ApiKey k u2 1"]);
    desk.remove("c.yaml");
    assert_eq!(desk.at(1150).1, Vec::<String>::new(), "the second counts from anew");
}

#[test]
fn a_file_that_does_not_parse_keeps_its_objects() {
    let mut desk = Desk::new(&[("a.yaml", SHOP), ("b.yaml", KEY)]);
    desk.write("b.yaml", "kind: [");
    for ms in [1, 2000, 4000] {
        let (in_force, deleted, problems) = desk.at(ms);
        assert_eq!((in_force.len(), deleted.len(), problems.len()), (2, 0, 1));
        assert!(
            problems[0].starts_with("b.yaml: is not valid YAML") && problems[0].contains("line 2"),
            "{problems:?}"
        );
    }
}

#[test]
fn an_object_that_moved_into_a_broken_file_is_kept() {
    let mut desk = Desk::new(&[("a.yaml", SHOP), ("keys.yaml", KEY)]);
    desk.remove("keys.yaml");
    desk.write("all.yaml", &format!("{KEY}\n---\nkind: ["));
    desk.at(1);
    assert_eq!(desk.at(3000).1, Vec::<String>::new());
    desk.write("all.yaml", "other: [");
    desk.at(4000);
    assert_eq!(desk.at(6000).1, ["ApiKey k"], "a broken file that does not mention it keeps nothing");
}

#[test]
fn a_refused_document_keeps_the_last_accepted_one_and_names_the_line() {
    let mut desk = Desk::new(&[("a.yaml", SHOP)]);
    let broken =
        "apiVersion: rowgate.dev/v1alpha1\nkind: Tenant\nmetadata:\n  name: shop\nspec:\n  entites: []\n";
    desk.write("a.yaml", broken);
    let (in_force, _, problems) = desk.at(1);
    assert_eq!(in_force, ["Tenant shop u1 1"]);
    assert_eq!(
        problems,
        [
            "a.yaml: line 6, Tenant shop: spec.entites: unknown field; did you mean entities?; the last accepted version \
          stays in force"
        ]
    );
}

#[test]
fn one_way_rules_hold_against_the_last_accepted_object() {
    let mut desk = Desk::new(&[("a.yaml", SHOP), ("b.yaml", REVOKED)]);
    desk.write("b.yaml", KEY);
    desk.write("a.yaml", &SHOP.replace("spec: {}", "spec: {slug: other}"));
    let (in_force, _, problems) = desk.at(1);
    assert_eq!(in_force, ["Tenant shop u1 1", "ApiKey k u2 1"]);
    assert_eq!(
        problems,
        [
            "a.yaml: Tenant shop: slug cannot be changed: it is part of every key and address; make a new Tenant instead; \
             the last accepted version stays in force",
            "b.yaml: ApiKey k: spec: revoked cannot be taken back; make a new ApiKey; the last accepted version stays in \
             force",
        ]
    );
    let key = desk.memory.objects.values().last().expect("the key is there");
    assert_eq!(key.object["spec"]["revoked"], true);
}

#[test]
fn an_emptied_folder_deletes_nothing() {
    let mut desk = Desk::new(&[("a.yaml", SHOP), ("b.yaml", KEY)]);
    desk.remove("a.yaml");
    desk.remove("b.yaml");
    for ms in [1, 2000, 4000] {
        desk.in_force(ms, &["emptied: 2"]);
    }
    desk.write("notes.yaml", "# nothing\n");
    desk.in_force(5000, &["emptied: 2"]);
    desk.write("a.yaml", SHOP);
    desk.in_force(6000, &["Tenant shop u1 1", "ApiKey k u2 1"]);
    assert_eq!(desk.at(7000).1, ["ApiKey k"]);
}

#[test]
fn the_first_of_two_declarations_counts() {
    let other = KEY.replace("revoked", "x").replace("shop}}", "shop}, secretName: other}");
    let mut desk = Desk::new(&[("a.yaml", SHOP), ("b.yaml", KEY), ("c.yaml", &other)]);
    let (in_force, _, problems) = desk.at(1);
    assert_eq!(in_force, ["Tenant shop u1 1", "ApiKey k u2 1"]);
    assert_eq!(
        problems,
        ["c.yaml: ApiKey k is declared in b.yaml already, which counts; remove one of the two"]
    );
}

#[test]
fn documents_that_are_no_resource_of_ours_are_named() {
    let pod = "{apiVersion: v1, kind: Pod, metadata: {name: p}}";
    let apikey = KEY.replace("ApiKey", "Apikey");
    let version = KEY.replace("v1alpha1", "v1");
    let map = "{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {a: 1}}";
    let mut desk = Desk::new(&[]);
    for (text, expected) in [
        (pod, "p: kind Pod is not one Rowgate knows; Tenant, ApiKey, ConfigMap"),
        (&apikey, "k: kind Apikey is not one Rowgate knows; did you mean ApiKey?"),
        (&version, "ApiKey k: apiVersion must be rowgate.dev/v1alpha1"),
        (map, "line 1, ConfigMap c: data.a: must be text (put it in quotes, or use a block with |)"),
        ("just text", "holds a document that is no mapping; a resource starts with apiVersion and kind"),
        ("{kind: Tenant, apiVersion: rowgate.dev/v1alpha1}", "a Tenant has no metadata.name"),
        ("{metadata: {name: x}}", "x: kind is missing"),
        ("{1: a}", "document 1: the name Number(1) is not text; put it in quotes"),
    ] {
        desk.write("x.yaml", text);
        let problems = desk.at(1).2;
        assert_eq!(problems, [format!("x.yaml: {expected}")], "{text}");
    }
    desk.write("x.yaml", "");
    desk.write(".hidden.yaml", pod);
    desk.write("notes.txt", pod);
    assert_eq!(desk.at(2).2, Vec::<String>::new());
}

/// A source over two temporary folders.
struct Rig {
    manifests: TempDir,
    state: TempDir,
    source: DirSource,
}

impl Rig {
    fn new(files: &[(&str, &str)]) -> Rig {
        let (manifests, state) = (TempDir::new(), TempDir::new());
        let (manifests, state) = (manifests.expect("temporary folder"), state.expect("temporary folder"));
        for (name, text) in files {
            fs::write(manifests.path().join(name), text).expect("a temporary file is writable");
        }
        let source = open(&manifests, &state);
        Rig { manifests, state, source }
    }

    async fn snapshot(&self) -> Snapshot {
        self.source.snapshot().await.expect("the folder is readable")
    }

    /// Waits for `changed` with a deadline.
    async fn wakes(&self) {
        let woken = tokio::time::timeout(Duration::from_secs(20), self.source.changed()).await;
        woken.expect("a change is noticed");
    }
}

fn open(manifests: &TempDir, state: &TempDir) -> DirSource {
    DirSource::open(manifests.path().to_owned(), state.path().to_owned()).expect("both folders are good")
}

#[tokio::test]
async fn a_restart_keeps_uids_and_the_last_good_objects() {
    let rig = Rig::new(&[("a.yaml", SHOP), ("b.yaml", KEY)]);
    let before = rig.snapshot().await;
    fs::write(rig.manifests.path().join("b.yaml"), "kind: [").expect("writable");
    let after = open(&rig.manifests, &rig.state).snapshot().await.expect("readable");
    assert_eq!(before.tenants, after.tenants);
    assert_eq!(before.api_keys, after.api_keys);
    assert_eq!(after.problems.len(), 1);
    let metadata = &after.api_keys[0].metadata;
    assert_eq!(metadata.namespace.as_deref(), Some("default"));
    assert_eq!(metadata.generation, Some(1));
    assert_eq!(metadata.uid.as_ref().map(String::len), Some(36));
}

#[tokio::test]
async fn edits_and_due_deletions_wake() {
    let rig = Rig::new(&[("a.yaml", SHOP), ("b.yaml", KEY)]);
    rig.wakes().await;
    assert_eq!(rig.snapshot().await.api_keys.len(), 1);
    fs::write(rig.manifests.path().join("b.yaml"), REVOKED).expect("writable");
    rig.wakes().await;
    assert!(rig.snapshot().await.api_keys[0].spec.revoked);
    fs::remove_file(rig.manifests.path().join("b.yaml")).expect("there");
    rig.wakes().await;
    assert_eq!(rig.snapshot().await.api_keys.len(), 1, "missing once is not deleted");
    rig.wakes().await;
    assert_eq!(rig.snapshot().await.api_keys.len(), 0);
    let quiet = tokio::time::timeout(POLL * 3, rig.source.changed()).await;
    assert!(quiet.is_err(), "nothing changed any more");
}

#[tokio::test]
async fn an_unreadable_folder_is_an_error_and_no_deletion() {
    let rig = Rig::new(&[("a.yaml", SHOP)]);
    rig.snapshot().await;
    let away = rig.state.path().join("away");
    fs::rename(rig.manifests.path(), &away).expect("same file system");
    rig.wakes().await;
    for _ in 0..2 {
        let error = rig.source.snapshot().await.expect_err("the folder is gone");
        assert!(matches!(error, SourceError::Unreadable { .. }), "{error}");
    }
    fs::rename(&away, rig.manifests.path()).expect("same file system");
    rig.wakes().await;
    assert_eq!(rig.snapshot().await.tenants.len(), 1);
    assert!(
        DirSource::open(away, rig.state.path().to_owned()).is_err(),
        "a missing folder is said at the start"
    );
}

#[tokio::test]
async fn secrets_are_private_files_with_an_owner() {
    let rig = Rig::new(&[("a.yaml", SHOP), ("b.yaml", KEY)]);
    let snapshot = rig.snapshot().await;
    let owner = ObjectRef::from(&snapshot.api_keys[0]);
    let data = BTreeMap::from([("apiKey".to_owned(), "shop:dlk_x".to_owned())]);
    assert_eq!(rig.source.read_secret("default", "k").await.expect("readable"), None);
    rig.source.write_secret(&owner, "default", "k", &data).await.expect("writable");
    assert_eq!(rig.source.read_secret("default", "k").await.expect("readable"), Some(data.clone()));

    let path = rig.state.path().join("secrets/default/k.yaml");
    let mode = fs::metadata(&path).expect("there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let text = fs::read_to_string(&path).expect("readable");
    assert!(
        text.starts_with("apiVersion: v1\nkind: Secret\n")
            && text.contains("stringData:\n  apiKey: shop:dlk_x")
    );

    let other = ObjectRef::from(&snapshot.tenants[0]);
    let taken = rig.source.write_secret(&other, "default", "k", &data).await.expect_err("it has an owner");
    assert!(matches!(taken, SourceError::SecretTaken { .. }), "{taken}");
    let bad = rig.source.read_secret("..", "k").await.expect_err("a path is no name");
    assert!(matches!(bad, SourceError::BadName(_)), "{bad}");

    fs::remove_file(&path).expect("there");
    rig.wakes().await;
    rig.source.write_secret(&owner, "default", "k", &data).await.expect("writable");
    rig.source.delete_secret("default", "k").await.expect("writable");
    assert!(!path.exists());

    rig.source.write_secret(&owner, "default", "k", &data).await.expect("writable");
    fs::remove_file(rig.manifests.path().join("b.yaml")).expect("there");
    while !rig.snapshot().await.api_keys.is_empty() {
        rig.wakes().await;
    }
    assert!(!path.exists(), "a deleted owner takes its Secret along");
}

#[tokio::test]
async fn status_is_written_when_more_than_a_time_changed() {
    let rig = Rig::new(&[("a.yaml", SHOP)]);
    let tenant = ObjectRef::from(&rig.snapshot().await.tenants[0]);
    let path = rig.state.path().join("status/tenant-default-shop.yaml");
    let report = async |ready: &str, at: &str| {
        let condition = json!({
            "type": "Ready", "status": ready, "reason": "Served", "message": "", "lastTransitionTime": at,
        });
        let status = json!({ "observedGeneration": 1, "conditions": [condition] });
        let report = StatusReport { object: tenant.clone(), status };
        rig.source.report(&[report]).await.expect("writable");
        fs::read_to_string(&path).expect("the status file is there")
    };
    let first = report("True", "2026-01-01T00:00:00Z").await;
    assert_eq!(first, report("True", "2027-01-01T00:00:00Z").await);
    let flipped = report("False", "2028-01-01T00:00:00Z").await;
    assert!(flipped.contains("2028-01-01T00:00:00Z"), "{flipped}");
    let status = rig.snapshot().await.tenants[0].status.clone().expect("reported");
    assert_eq!((status.observed_generation, status.conditions.len()), (1, 1));

    for i in 0..25 {
        let note = format!("note {}", i / 2 * 2);
        let event = Event { reason: "Test".to_owned(), note, warning: false };
        rig.source.event(&tenant, event).await.expect("writable");
    }
    for i in 0..30 {
        let event = Event { reason: "Many".to_owned(), note: i.to_string(), warning: true };
        rig.source.event(&tenant, event).await.expect("writable");
    }
    let text = fs::read_to_string(&path).expect("the status file is there");
    assert_eq!(text.matches("reason: Many").count(), 20);
    let reopened = open(&rig.manifests, &rig.state).snapshot().await.expect("readable");
    assert_eq!(reopened.tenants[0].status.as_ref().map(|it| it.observed_generation), Some(1));
}

#[tokio::test]
async fn config_maps_come_along() {
    let map =
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c\ndata:\n  schema.sql: |\n    select 1;\n";
    let rig = Rig::new(&[("a.yaml", &format!("{SHOP}\n---\n{map}"))]);
    let snapshot = rig.snapshot().await;
    let data = &snapshot.config_maps[&("default".to_owned(), "c".to_owned())];
    assert_eq!(data["schema.sql"], "select 1;\n");
}

#[test]
fn check_says_what_can_be_known_without_a_database() {
    let dir = TempDir::new().expect("temporary folder");
    let problems = |text: &str| {
        fs::write(dir.path().join("x.yaml"), text).expect("writable");
        check(dir.path()).iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(problems(&format!("{SHOP}\n---\n{KEY}")), Vec::<String>::new());
    assert_eq!(
        problems(KEY),
        ["x.yaml: ApiKey k: spec.tenantRef: there is no Tenant shop in namespace default"]
    );
    let tenant = SHOP.replace(
        "spec: {}",
        "spec: {database: {bootstrap: {configMapRef: {name: c}}}, cors: {origins: [a]},
           shared: {permissions: [{entity: order, actions: [read]}]}, entities: [{name: orders, source: {object: o}}]}",
    );
    assert_eq!(
        problems(&tenant),
        [
            "x.yaml: Tenant shop: a permission names the entity order, which Tenant shop does not have; did you mean orders?",
            "x.yaml: Tenant shop: not served yet: cors.origins; leave it out",
            "x.yaml: Tenant shop: spec.database.bootstrap: there is no ConfigMap c in namespace default",
        ]
    );
    let missing = check(&dir.path().join("nowhere"));
    assert!(missing[0].message.starts_with("cannot read the folder"), "{missing:?}");
}
