//! `scan`, with times given.

use std::fs;

use tempfile::TempDir;

use super::{KEY, REVOKED, SHOP};
use crate::source::dir::folder::read;
use crate::source::dir::scan::{Scan, scan};
use crate::source::dir::*;

/// A folder, and what is remembered of it from scan to scan.
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

    /// One scan, `ms` milliseconds after the start. Gives what is in force, what was deleted, and the problems.
    fn at(&mut self, ms: u64) -> (Vec<String>, Vec<String>, Vec<String>) {
        let files = read(self.dir.path()).expect("the folder is readable");
        let now = self.start + Duration::from_millis(ms);
        let mut new_uid = || {
            self.n_uids += 1;
            format!("u{}", self.n_uids)
        };
        match scan(&self.memory, &files, now, &mut new_uid) {
            Err(Emptied(known)) => (vec![format!("emptied: {known}")], vec![], vec![]),
            Ok(Scan { memory, problems, deleted }) => {
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
    assert_eq!(desk.at(5000).1, Vec::<String>::new(), "the first scan deletes nothing, however late it is");
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
            "a.yaml: Tenant shop: slug cannot be changed: it is part of every key and address; create a new Tenant instead; \
             the last accepted version stays in force",
            "b.yaml: ApiKey k: spec: revoked cannot be taken back; create a new ApiKey; the last accepted version stays in \
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
        ["c.yaml: ApiKey k is already declared in b.yaml, which takes effect; remove one of the two"]
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
        (
            pod,
            "p: kind Pod is not one Rowgate knows; Tenant, ApiKey, Relationship, WebhookSubscription, ConfigMap, Secret",
        ),
        (&apikey, "k: kind Apikey is not one Rowgate knows; did you mean ApiKey?"),
        (&version, "ApiKey k: apiVersion must be rowgate.dev/v1alpha1"),
        (map, "line 1, ConfigMap c: data.a: must be text (put it in quotes, or use a block with |)"),
        ("just text", "holds a document that is not a mapping; a resource starts with apiVersion and kind"),
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

#[test]
fn going_back_to_the_accepted_document_mends_a_refused_one() {
    let mut desk = Desk::new(&[("a.yaml", SHOP)]);
    desk.write("a.yaml", &SHOP.replace("spec: {}", "spec: {slug: other}"));
    assert_eq!(desk.at(1).2.len(), 1);
    desk.write("a.yaml", SHOP);
    let (in_force, _, problems) = desk.at(2);
    assert_eq!((in_force, problems), (vec!["Tenant shop u1 1".to_owned()], vec![]));
}
