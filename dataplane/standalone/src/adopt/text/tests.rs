//! The text is YAML that says the values, and comments that say the rest.

use std::collections::{BTreeMap, BTreeSet};

use clap::Parser as _;
use rowgate_core::yaml::documents;
use rowgate_pg::introspect::Application;
use rowgate_pg::introspect::actual::{Column, ForeignKey, QName, Relation, RelationKind};

use super::super::AdoptFlags;
use super::super::manifest::Basics;
use super::super::tables::choose;
use super::*;

#[derive(clap::Parser)]
struct Cli {
    #[command(flatten)]
    flags: AdoptFlags,
}

fn flags(more: &[&str]) -> AdoptFlags {
    let always = ["adopt", "--database-url", "postgres://a:b@c/store", "--schema", "app"];
    Cli::parse_from(always.iter().chain(more)).flags
}

/// The first column is the key.
fn table(columns: &[&str]) -> Relation {
    let column = |name: &&str| Column { name: (*name).to_owned(), ..Column::default() };
    Relation {
        oid: 1,
        kind: RelationKind::Table,
        owner: "store".to_owned(),
        rls_enabled: false,
        rls_forced: false,
        acl: BTreeMap::new(),
        columns: columns.iter().map(column).collect(),
        policies: BTreeMap::new(),
        primary_key: columns.iter().take(1).map(|name| (*name).to_owned()).collect(),
        unique: BTreeSet::new(),
        indexes: BTreeSet::new(),
        foreign_keys: BTreeSet::new(),
        leaky: BTreeMap::new(),
        rule: None,
        reads: BTreeSet::new(),
        routines: BTreeSet::new(),
        sequences: BTreeSet::new(),
        triggers: BTreeMap::new(),
        definers: BTreeSet::new(),
        parents: BTreeSet::new(),
        is_partition: false,
        is_replicated: false,
    }
}

fn app(name: &str) -> QName {
    ("app".to_owned(), name.to_owned())
}

fn application(relations: Vec<(&str, Relation)>) -> Application {
    Application {
        database: "store".to_owned(),
        owner: "store".to_owned(),
        owner_is_superuser: false,
        has_records: false,
        schemas: BTreeSet::from(["app".to_owned()]),
        relations: relations.into_iter().map(|(name, relation)| (app(name), relation)).collect(),
    }
}

/// The text, and the documents that it is to say.
fn written(application: &Application, flags: &AdoptFlags, held: &[&str]) -> (String, Vec<Value>) {
    let basics = Basics::new(application, flags).expect("a database that can be adopted");
    let chosen = choose(application, &flags.schema).expect("a table");
    let manifest = Manifest::new(&basics, application, chosen).expect("a manifest");
    let held: Vec<String> = held.iter().map(|role| (*role).to_owned()).collect();
    let text = of(&manifest, &held, &flags.operator);
    (text, [vec![manifest.tenant], manifest.others].concat())
}

#[test]
fn the_text_says_the_values_whatever_the_names_are() {
    let odd =
        ["no", "on", "null", "1", "1_000", "it's: a \"table\" # {x}", "a\nkind: Secret", "größe", "- a"];
    let filtered = Relation { rls_enabled: true, ..table(&["id"]) };
    let of_view = Relation { kind: RelationKind::View, ..table(&["a\nb: c"]) };
    let mut relations: Vec<(&str, Relation)> =
        odd.iter().map(|it| (*it, table(&["id", "on", *it]))).collect();
    relations.extend([("filtered", filtered), ("v\nkind: Secret", of_view)]);
    let application = application(relations);
    let flags = flags(&["--name", "no", "--namespace", "on", "--operator", "o\"p\nkind: Secret"]);
    let (text, values) = written(&application, &flags, &["a\"b", "c\nkind: Secret"]);
    let read: Vec<Value> = documents(&text).map(|it| it.expect("valid YAML")).collect();
    assert_eq!(read, values, "{text}");
    assert!(
        text.contains("  - name: \"no\"\n    source:\n      schema: app\n      object: \"no\"\n"),
        "{text}"
    );
    assert!(text.contains("#   alter role \"a\"\"b\" bypassrls;\n"), "{text}");
}

#[test]
fn the_text_says_what_to_decide() {
    let key = ForeignKey {
        columns: vec!["customer_id".to_owned()],
        table: app("customers"),
        table_columns: vec!["id".to_owned()],
    };
    let orders = Relation { foreign_keys: BTreeSet::from([key]), ..table(&["id", "note", "customer_id"]) };
    let log = Relation { primary_key: Vec::new(), ..table(&["line"]) };
    let application = application(vec![
        ("customers", table(&["id", "name", "password_hash"])),
        ("log", log),
        ("orders", orders),
        ("sessions", table(&["token"])),
    ]);
    let (text, _) = written(&application, &flags(&[]), &["loader"]);
    assert_eq!(text, include_str!("first.yaml"));
    let folder = [("store.yaml".to_owned(), text)];
    let empty = tempfile::tempdir().expect("a folder");
    let problems = rowgate_reconcile::source::dir::check_with(empty.path(), &folder);
    assert!(problems.is_empty(), "{problems:?}");
}
