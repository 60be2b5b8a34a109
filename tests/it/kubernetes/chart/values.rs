//! values.yaml, its schema and the templates know the same values.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use rowgate_tests::scratch::Scratch;
use serde_json::Value;

use super::{RELEASE, changed_chart, chart, helm, rendered, template, text};

/// Every value with another one that the schema takes, in JSON.
const OTHERS: &[(&str, &str)] = &[
    ("namespaces", r#"["one", "two"]"#),
    ("database.secretName", r#""other""#),
    ("database.caKey", r#""ca.crt""#),
    ("imagePullSecrets", r#"["one"]"#),
    ("operator.replicas", "1"),
    ("operator.image.repository", r#""localhost/other""#),
    ("operator.image.tag", r#""other""#),
    ("operator.image.pullPolicy", r#""Never""#),
    ("operator.apiUrl", r#""https://api.example.com""#),
    ("operator.authUrl", r#""https://auth.example.com""#),
    ("operator.ddlUrl", r#""https://ddl.example.com""#),
    ("operator.resources.requests", r#"{"cpu": "1"}"#),
    ("operator.resources.limits", r#"{"memory": "2Gi"}"#),
    ("operator.nodeSelector", r#"{"disk": "fast"}"#),
    ("operator.tolerations", r#"[{"key": "own", "operator": "Exists"}]"#),
    ("dataplane.replicas", "3"),
    ("dataplane.image.repository", r#""localhost/other""#),
    ("dataplane.image.tag", r#""other""#),
    ("dataplane.image.pullPolicy", r#""Never""#),
    ("dataplane.connectionsPerTenant", "9"),
    ("dataplane.connectionsPerServer", "9"),
    ("dataplane.queuePerTenant", "9"),
    ("dataplane.callsPerTenant", "9"),
    ("dataplane.bodyMemoryMib", "99"),
    ("dataplane.surfaces", r#"["data"]"#),
    ("dataplane.trustedProxies", r#"["10.0.0.0/8", "fd00::/8"]"#),
    ("dataplane.clientTimeoutSeconds", "9"),
    ("dataplane.drainSeconds", "9"),
    ("dataplane.lastUsedSeconds", "9"),
    ("dataplane.serviceAccount.annotations", r#"{"who": "team"}"#),
    ("dataplane.service.type", r#""NodePort""#),
    ("dataplane.service.port", "80"),
    ("dataplane.service.annotations", r#"{"who": "team"}"#),
    ("dataplane.resources.requests", r#"{"cpu": "1"}"#),
    ("dataplane.resources.limits", r#"{"memory": "2Gi"}"#),
    ("dataplane.nodeSelector", r#"{"disk": "fast"}"#),
    ("dataplane.tolerations", r#"[{"key": "own", "operator": "Exists"}]"#),
    ("exports.enabled", "true"),
    ("exports.url", r#""s3://exports/rowgate""#),
    ("exports.secretName", r#""storage""#),
    ("exports.existingClaim", r#""files""#),
    ("exports.sizeLimit", r#""1Gi""#),
    ("exports.maxRows", "1000000"),
    ("servers.namespaces", r#"["platform"]"#),
    ("webhooks.allowedRanges", r#"["10.20.0.0/16", "fd00:1::/32"]"#),
    ("networkPolicy.enabled", "true"),
    ("networkPolicy.postgres.port", "6432"),
    ("networkPolicy.postgres.to", r#"[{"ipBlock": {"cidr": "10.0.5.7/32"}}]"#),
    ("networkPolicy.objectStorage", r#"[{"ipBlock": {"cidr": "10.0.6.0/24"}}]"#),
];

/// Switches the policy on, without which its other values change nothing.
const POLICY: &str = "networkPolicy.enabled=true";

/// What the value at this path needs to mean something.
fn needs(path: &str) -> &'static [&'static str] {
    match path {
        "exports.enabled" => &["dataplane.replicas=1"],
        path if path.starts_with("exports.") => &["dataplane.replicas=1", "exports.enabled=true"],
        "networkPolicy.enabled" => &[],
        path if path.starts_with("networkPolicy.") => &[POLICY],
        _ => &[],
    }
}

#[test]
fn helm_lint_is_clean() {
    for values in ["operator.replicas=1", "namespaces={one,two}"] {
        let output = helm(&["lint", "--strict", "--set", values, text(&chart())]);
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && !said.contains("[WARNING]"), "{said}");
    }
}

#[test]
fn every_value_stands_in_the_schema() {
    let read = |file: &str| fs::read_to_string(chart().join(file)).expect("the chart has it");
    let values: Value = serde_yaml::from_str(&read("values.yaml")).expect("YAML");
    let schema: Value = serde_json::from_str(&read("values.schema.json")).expect("JSON");
    let (mut given, mut described) = (BTreeSet::new(), BTreeSet::new());
    leaves("", &values, &mut given);
    properties("", &schema, &schema, &mut described);
    assert_eq!(given, described, "values.yaml and values.schema.json name different values");
    let listed = OTHERS.iter().map(|(path, _)| (*path).to_owned()).collect();
    assert_eq!(given, listed, "OTHERS names other values than values.yaml");
}

#[test]
fn every_value_changes_what_is_rendered() {
    let mut rendered_before: BTreeMap<&[&str], String> = BTreeMap::new();
    for (path, other) in OTHERS {
        let needs = needs(path);
        let before = rendered_before.entry(needs).or_insert_with(|| rendered(&chart(), "home", needs));
        assert_ne!(&with(&chart(), path, other), before, "{path} changes nothing");
    }
}

/// The judge of the test above, before a template that forgets a value.
#[test]
fn a_value_that_no_template_reads_is_noticed() {
    let scratch = Scratch::new();
    let forgetful = changed_chart(&scratch, "templates/dataplane.yaml", |text| {
        text.replace("{{ $of.queuePerTenant }}", "256")
    });
    let before = rendered(&forgetful, "home", &[]);
    assert_eq!(with(&forgetful, "dataplane.queuePerTenant", "9"), before);
}

#[test]
fn an_unknown_value_is_refused_by_its_name() {
    for (set, place, name) in [
        ("namespace=one", "", "namespace"),
        ("database.url=postgres://u:p@h/d", "/database", "url"),
        ("operator.replica=1", "/operator", "replica"),
        ("operator.image.digest=x", "/operator/image", "digest"),
        ("dataplane.rootFile=x", "/dataplane", "rootFile"),
        ("dataplane.service.ports=x", "/dataplane/service", "ports"),
        ("dataplane.resources.limit.memory=1Gi", "/dataplane/resources", "limit"),
    ] {
        let said = refusal(set);
        let expected = format!("at '{place}': additional properties '{name}' not allowed");
        assert!(said.contains(&expected), "{set}: {said}");
    }
}

#[test]
fn a_value_that_cannot_work_is_refused_with_its_place() {
    for (set, place) in [
        ("namespaces={One}", "/namespaces/0"),
        ("namespaces={one,one}", "/namespaces"),
        ("database.secretName=", "/database/secretName"),
        ("operator.replicas=3", "/operator/replicas"),
        ("operator.apiUrl=api.example.com", "/operator/apiUrl"),
        ("operator.authUrl=auth.example.com", "/operator/authUrl"),
        ("dataplane.surfaces={rest}", "/dataplane/surfaces/0"),
        ("dataplane.connectionsPerTenant=0", "/dataplane/connectionsPerTenant"),
        ("dataplane.connectionsPerServer=3", "/dataplane/connectionsPerServer"),
        ("dataplane.drainSeconds=soon", "/dataplane/drainSeconds"),
        ("dataplane.trustedProxies={everybody}", "/dataplane/trustedProxies/0"),
        ("dataplane.service.type=ExternalName", "/dataplane/service/type"),
    ] {
        let said = refusal(set);
        assert!(said.contains(&format!("at '{place}'")), "{set}: {said}");
    }
}

/// The same networks reach the data plane's flag, the operator's and the policy; link-local ones, and everything, are
/// refused.
#[test]
fn the_networks_that_webhooks_may_reach_stand_in_the_flags_and_in_the_policy() {
    let all = super::objects(&rendered(
        &chart(),
        "home",
        &[POLICY, "webhooks.allowedRanges={10.20.0.0/16,fd00:1::/32}"],
    ));
    let policies = super::of_kind(&all, "NetworkPolicy");
    let [policy] = policies[..] else { panic!("{} policies", policies.len()) };
    assert_eq!(policy["spec"]["policyTypes"], serde_json::json!(["Egress"]));
    let peers = super::list(&policy["spec"], "egress")
        .iter()
        .flat_map(|rule| rule["to"].as_array().cloned().unwrap_or_default());
    let blocks: Vec<Value> = peers.map(|peer| peer["ipBlock"].clone()).collect();
    let cidrs: Vec<&str> = blocks.iter().filter_map(|block| block["cidr"].as_str()).collect();
    assert_eq!(cidrs, ["0.0.0.0/0", "2000::/3", "10.20.0.0/16", "fd00:1::/32"]);
    let except = super::list(&blocks[0], "except");
    for network in [
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "168.63.129.16/32",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.168.0.0/16",
    ] {
        assert!(except.iter().any(|it| it == network), "{network}");
    }
    for deployment in ["rowgate-dataplane", "rowgate-operator"] {
        let container = super::running::container(&all, deployment);
        let given =
            super::list(container, "args").iter().any(|it| it == "--webhook-ranges=10.20.0.0/16,fd00:1::/32");
        assert!(given, "{deployment}");
    }
    let without = super::objects(&rendered(&chart(), "home", &[]));
    let has_policy = without.iter().any(|object| object["kind"] == "NetworkPolicy");
    assert!(!has_policy, "off unless it is asked for");
    for range in [
        "169.254.0.0/16",
        "169.254.169.254/32",
        "fe80::/10",
        "FE80::/64",
        "169.0.0.0/8",
        "160.0.0.0/4",
        "fe00::/8",
        "fc00::/6",
        "::ffff:169.254.0.0/112",
        "0:0:0:0:0:ffff:a9fe:0/112",
        "2002:a9fe::/32",
        "0.0.0.0/0",
        "::/0",
        "10.0.0.1",
        "private",
    ] {
        let said = refusal(&format!("webhooks.allowedRanges={{{range}}}"));
        assert!(said.contains("at '/webhooks/allowedRanges/0'"), "{range}: {said}");
    }
}

/// Two pods would not share the folder, not even while one replaces the other.
#[test]
fn exports_are_refused_with_several_replicas_and_mount_what_the_data_plane_writes_to() {
    let said = refusal("exports.enabled=true");
    assert!(
        said.contains(
            "exports.enabled needs exports.url, which names object storage, or dataplane.replicas: 1"
        ),
        "{said}"
    );
    let on = ["exports.enabled=true", "dataplane.replicas=1", "exports.existingClaim=files"];
    let all = super::objects(&rendered(&chart(), "home", &on));
    let container = super::running::container(&all, "rowgate-dataplane");
    let flag = "--exports-dir=/var/lib/rowgate/exports";
    assert!(super::list(container, "args").iter().any(|it| it == flag), "{container}");
    assert!(
        super::list(container, "args").iter().any(|it| it == "--exports-max-rows=50000000"),
        "{container}"
    );
    let is_mounted = |it: &Value| it["name"] == "exports" && it["mountPath"] == "/var/lib/rowgate/exports";
    assert!(super::list(container, "volumeMounts").iter().any(is_mounted), "{container}");
    let volumes = super::list(super::running::pod(&all, "rowgate-dataplane"), "volumes");
    assert!(volumes.iter().any(|it| it["persistentVolumeClaim"]["claimName"] == "files"), "{volumes:?}");
}

#[test]
fn exports_into_object_storage_run_on_several_replicas_without_a_folder() {
    let on = ["exports.enabled=true", "exports.url=s3://exports/rowgate", "exports.secretName=storage"];
    let all = super::objects(&rendered(&chart(), "home", &on));
    let container = super::running::container(&all, "rowgate-dataplane");
    let args = super::list(container, "args");
    assert!(args.iter().any(|it| it == "--exports-url=s3://exports/rowgate"), "{container}");
    assert!(
        !args.iter().any(|it| it.as_str().is_some_and(|it| it.starts_with("--exports-dir"))),
        "{container}"
    );
    assert_eq!(container["envFrom"][0]["secretRef"]["name"], "storage");
    let volumes = super::list(super::running::pod(&all, "rowgate-dataplane"), "volumes");
    assert!(volumes.iter().all(|it| it["name"] != "exports"), "{volumes:?}");
    for url in ["http://storage/exports", "s3://", "s3://exports?secret=x", "/files"] {
        let said = refusal(&format!("exports.url={url}"));
        assert!(said.contains("at '/exports/url'"), "{url}: {said}");
    }
}

/// What is rendered when the value at `path` is `other`, in JSON.
fn with(chart: &Path, path: &str, other: &str) -> String {
    let set = format!("{path}={other}");
    let mut args = vec!["template", RELEASE, text(chart), "--include-crds", "--namespace", "home"];
    needs(path).iter().for_each(|value| args.extend(["--set", value]));
    args.extend(["--set-json", &set]);
    let output = helm(&args);
    assert!(output.status.success(), "{set}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("helm prints UTF-8")
}

#[track_caller]
fn refusal(set: &str) -> String {
    let output = template(&chart(), "home", &[set]);
    assert!(!output.status.success(), "{set} was not refused");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The paths of all values that are no map, or an empty one; what stands in a map of quantities is the user's.
fn leaves(path: &str, value: &Value, found: &mut BTreeSet<String>) {
    let quantities = path.ends_with(".resources.requests") || path.ends_with(".resources.limits");
    match value.as_object().filter(|map| !map.is_empty() && !quantities) {
        None => _ = found.insert(path.to_owned()),
        Some(map) => map.iter().for_each(|(name, value)| leaves(&below(path, name), value, found)),
    }
}

/// The paths of all properties that have none themselves; each object above them has to refuse unknown ones.
fn properties(path: &str, schema: &Value, whole: &Value, found: &mut BTreeSet<String>) {
    let schema = match schema["$ref"].as_str() {
        Some(place) => whole.pointer(place.trim_start_matches('#')).expect("a definition that is there"),
        None => schema,
    };
    match schema["properties"].as_object() {
        None => _ = found.insert(path.to_owned()),
        Some(map) => {
            assert_eq!(schema["additionalProperties"], false, "{path:?} takes unknown values");
            map.iter().for_each(|(name, schema)| properties(&below(path, name), schema, whole, found));
        }
    }
}

fn below(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}
