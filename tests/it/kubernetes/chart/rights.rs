//! What the chart lets the operator do: as little as there is, and nowhere but in the namespaces that are named.

use std::collections::BTreeSet;
use std::fs;

use rowgate_tests::scratch::Scratch;
use serde_json::Value;

use super::{changed_chart, chart, name, namespace, objects, of_kind, rendered};

/// Two namespaces beside the release's own.
const TWO: &[&str] = &["namespaces={one,two}"];

/// What the operator works on. Anything else is a way to become somebody else, sooner or later.
const RESOURCES: [&str; 12] = [
    "tenants",
    "apikeys",
    "relationships",
    "webhooksubscriptions",
    "tenants/status",
    "apikeys/status",
    "relationships/status",
    "webhooksubscriptions/status",
    "secrets",
    "configmaps",
    "events",
    "leases",
];

#[test]
fn no_right_is_wide() {
    for values in [&[], TWO] {
        assert_eq!(faults(&objects(&rendered(&chart(), "home", values))), BTreeSet::new());
    }
}

/// The judge of the test above, before a chart that deserves each of its verdicts.
#[test]
fn a_wide_right_is_found() {
    let all_secrets = "apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: all}
rules: [{apiGroups: [''], resources: [secrets], verbs: [list]}]
---
apiVersion: v1";
    let admin = "apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: other, namespace: home}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: admin}
subjects: [{kind: ServiceAccount, name: rowgate-operator, namespace: home}]
---
apiVersion: v1";
    let rules = "rbac/rules.yaml";
    let (roles, accounts) = ("templates/rbac.yaml", "templates/serviceaccounts.yaml");
    for (file, from, to, fault) in [
        (rules, "verbs: [get, list, watch, create, patch, delete]", "verbs: ['*']", "a wildcard"),
        (rules, "resources: [configmaps]", "resources: ['*']", "a wildcard"),
        (rules, "resources: [configmaps]", "resources: ['*/scale']", "a wildcard"),
        (rules, "apiGroups: [events.k8s.io]", "apiGroups: ['*']", "a wildcard"),
        (rules, "verbs: [create, patch]", "verbs: [create, escalate]", "escalate"),
        (rules, "verbs: [create, patch]", "verbs: [bind]", "bind"),
        (rules, "verbs: [create, patch]", "verbs: [impersonate]", "impersonate"),
        (rules, "resources: [configmaps]", "resources: [pods/exec]", "pods/exec"),
        (rules, "resources: [configmaps]", "resources: [serviceaccounts/token]", "serviceaccounts/token"),
        (roles, "kind: Role\n", "kind: ClusterRole\n", "a ClusterRole"),
        (roles, "kind: RoleBinding\n", "kind: ClusterRoleBinding\n", "a ClusterRoleBinding"),
        (roles, "kind: ServiceAccount\n", "kind: Group\n", "another subject"),
        (accounts, "apiVersion: v1", all_secrets, "a ClusterRole"),
        (accounts, "apiVersion: v1", admin, "another role"),
    ] {
        let scratch = Scratch::new();
        let chart = changed_chart(&scratch, file, |text| text.replacen(from, to, 1));
        let found = faults(&objects(&rendered(&chart, "home", TWO)));
        assert!(found.iter().any(|found| found.starts_with(fault)), "{to}: {found:?}");
    }
}

#[test]
fn a_role_stands_in_each_namespace_that_is_named_and_in_no_other() {
    for (values, expected) in [(&[][..], &["home"][..]), (TWO, &["one", "two"])] {
        let objects = objects(&rendered(&chart(), "home", values));
        for kind in ["Role", "RoleBinding"] {
            let objects = of_kind(&objects, kind);
            let places: BTreeSet<_> =
                objects.iter().map(|object| (namespace(object), name(object))).collect();
            let mut wanted: BTreeSet<_> = expected.iter().map(|place| (*place, "rowgate-operator")).collect();
            wanted.insert(("home", "rowgate-operator-home"));
            assert_eq!(places, wanted, "{kind}");
        }
    }
}

/// The Roles hold the two lists of the file, word for word.
#[test]
fn the_roles_hold_the_rules_of_the_file() {
    let rules = fs::read_to_string(chart().join("rbac/rules.yaml")).expect("the chart has rules");
    let rules: Value = serde_yaml::from_str(&rules).expect("YAML");
    for role in of_kind(&objects(&rendered(&chart(), "home", TWO)), "Role") {
        let part = if name(role) == "rowgate-operator-home" { "home" } else { "namespaces" };
        assert_eq!(role["rules"], rules[part], "{}/{}", namespace(role), name(role));
    }
}

#[test]
fn the_data_plane_has_no_way_to_the_kubernetes_api() {
    let objects = objects(&rendered(&chart(), "home", TWO));
    for binding in of_kind(&objects, "RoleBinding") {
        let subjects: Vec<_> =
            binding["subjects"].as_array().into_iter().flatten().map(|who| &who["name"]).collect();
        assert_eq!(subjects, ["rowgate-operator"]);
    }
    for account in of_kind(&objects, "ServiceAccount") {
        assert_eq!(account["automountServiceAccountToken"], false);
    }
    for (deployment, token) in [("rowgate-dataplane", false), ("rowgate-operator", true)] {
        let found = of_kind(&objects, "Deployment").into_iter().find(|object| name(object) == deployment);
        let pod = &found.expect("a Deployment for each part")["spec"]["template"]["spec"];
        assert_eq!(pod["serviceAccountName"], deployment);
        assert_eq!(pod["automountServiceAccountToken"], token);
    }
}

/// What is wider than it has to be, in words.
fn faults(objects: &[Value]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for object in objects {
        let kind = object["kind"].as_str().expect("a kind");
        if ["ClusterRole", "ClusterRoleBinding"].contains(&kind) {
            found.insert(format!("a {kind}: {}", name(object)));
        }
        for rule in object["rules"].as_array().into_iter().flatten() {
            of_rule(rule, &mut found);
        }
        if kind.ends_with("RoleBinding") {
            let (subjects, role) = (&object["subjects"], &object["roleRef"]);
            let plain = |who: &Value| who["kind"] == "ServiceAccount" && who["namespace"] == "home";
            if !subjects.as_array().expect("subjects").iter().all(plain) {
                found.insert(format!("another subject: {subjects}"));
            }
            if role["kind"] != "Role" {
                found.insert(format!("another role: {role}"));
            }
        }
    }
    found
}

fn of_rule(rule: &Value, found: &mut BTreeSet<String>) {
    let words = |field: &str| {
        let words = rule[field].as_array().unwrap_or_else(|| panic!("{rule} has no {field}"));
        words.iter().map(|word| word.as_str().expect("a word")).collect::<Vec<_>>()
    };
    let (groups, resources, verbs) = (words("apiGroups"), words("resources"), words("verbs"));
    if [&groups, &resources, &verbs].into_iter().flatten().any(|word| word.contains('*')) {
        found.insert(format!("a wildcard: {rule}"));
    }
    for verb in verbs.into_iter().filter(|verb| ["escalate", "bind", "impersonate"].contains(verb)) {
        found.insert(format!("{verb}: {rule}"));
    }
    for stranger in resources.into_iter().filter(|resource| !RESOURCES.contains(resource)) {
        found.insert(format!("{stranger}: {rule}"));
    }
}
