//! `charts/rowgate`, as helm renders it: its values, what it lets the operator do, and what a real API server says to it.

mod accepted;
mod commands;
mod rights;
mod running;
mod values;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use rowgate_tests::scratch::Scratch;
use rowgate_tests::servers::cluster::tool;
use serde::Deserialize as _;
use serde_json::Value;

/// The operator's and the data plane's parts are named after it.
const RELEASE: &str = "rowgate";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the tests stand in the workspace")
}

fn chart() -> PathBuf {
    root().join("charts/rowgate")
}

/// A copy of the chart in a folder of the test, in which a file was changed.
fn changed_chart(scratch: &Scratch, file: &str, change: impl FnOnce(&str) -> String) -> PathBuf {
    let copy = scratch.path().join("chart");
    let copied = Command::new("cp").arg("-r").arg(chart()).arg(&copy).status().expect("cp runs");
    assert!(copied.success(), "cp failed");
    let path = copy.join(file);
    let text = fs::read_to_string(&path).expect("the chart has this file");
    let changed = change(&text);
    assert_ne!(text, changed, "nothing was changed in {file}");
    fs::write(path, changed).expect("the folder is ours");
    copy
}

/// Runs helm without anything of the person who runs the tests.
fn helm(args: &[&str]) -> Output {
    let nowhere = "/nonexistent";
    Command::new(tool("helm"))
        .args(args)
        .env_remove("KUBECONFIG")
        .env("HELM_CONFIG_HOME", nowhere)
        .env("HELM_DATA_HOME", nowhere)
        .env("HELM_CACHE_HOME", nowhere)
        .output()
        .expect("helm was built")
}

/// What `helm template` prints for a release in `namespace` with these `--set` values; the test fails when it fails.
#[track_caller]
fn rendered(chart: &Path, namespace: &str, values: &[&str]) -> String {
    let output = template(chart, namespace, values);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("helm prints UTF-8")
}

fn template(chart: &Path, namespace: &str, values: &[&str]) -> Output {
    let mut args = vec!["template", RELEASE, text(chart), "--include-crds", "--namespace", namespace];
    values.iter().for_each(|value| args.extend(["--set", value]));
    helm(&args)
}

/// The documents of a YAML text.
fn objects(yaml: &str) -> Vec<Value> {
    let documents = serde_yaml::Deserializer::from_str(yaml);
    let objects = documents.map(|document| Value::deserialize(document).expect("helm prints YAML"));
    objects.filter(|object| !object.is_null()).collect()
}

fn of_kind<'a>(objects: &'a [Value], kind: &str) -> Vec<&'a Value> {
    let found: Vec<&Value> = objects.iter().filter(|object| object["kind"] == kind).collect();
    assert!(!found.is_empty(), "the chart renders no {kind}");
    found
}

fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().expect("a name")
}

fn namespace(object: &Value) -> &str {
    object["metadata"]["namespace"].as_str().expect("a namespace")
}

fn text(path: &Path) -> &str {
    path.to_str().expect("the path is UTF-8")
}

fn list<'a>(of: &'a Value, name: &str) -> &'a Vec<Value> {
    of[name].as_array().unwrap_or_else(|| panic!("{name} is no list in {of}"))
}
