//! A real API server takes all that the chart renders, judges its Pods by Pod Security `restricted`, and lets the operator
//! do what its Roles say.

use std::fs;
use std::path::Path;
use std::process::Command;

use rowgate_tests::scratch::Scratch;
use rowgate_tests::servers::cluster::{Cluster, Namespace, tool};
use serde_json::{Value, json};

use super::{RELEASE, changed_chart, chart, helm, name, objects, of_kind, rendered, text};

#[tokio::test]
async fn helm_installs_a_release_with_the_default_values() {
    let home = restricted().await;
    install(&home, &[]);
    let deployments = home.list("deployments").await;
    let mut names: Vec<&str> = deployments.iter().map(name).collect();
    names.sort_unstable();
    assert_eq!(names, ["rowgate-dataplane", "rowgate-operator"]);
    assert_eq!(home.list("roles").await.len(), 2);
}

#[tokio::test]
async fn a_release_with_two_namespaces_is_accepted_whole() {
    let (home, one, two) = (restricted().await, restricted().await, restricted().await);
    let set = format!("namespaces={{{},{}}}", one.name(), two.name());
    let yaml = rendered(&chart(), home.name(), &[&set, "database.caKey=ca.crt", "imagePullSecrets={pull}"]);
    let scratch = Scratch::new();
    let file = scratch.path().join("release.yaml");
    fs::write(&file, &yaml).expect("the folder is ours");
    let apply = ["apply", "--server-side", "--warnings-as-errors", "--filename", text(&file)];
    let said = home.cluster().kubectl(&apply).await.ok();
    let n_accepted = said.lines().filter(|line| line.ends_with("serverside-applied")).count();
    assert_eq!(n_accepted, objects(&yaml).len(), "{said}");
    for namespace in [&one, &two] {
        assert_eq!(namespace.list("roles").await.len(), 1);
        assert_eq!(namespace.list("rolebindings").await.len(), 1);
    }
}

#[tokio::test]
async fn every_pod_is_allowed_where_pod_security_is_restricted() {
    let home = restricted().await;
    let yaml = rendered(&chart(), home.name(), &["database.caKey=ca.crt"]);
    home.kubectl_with(&["apply", "--server-side", "--filename", "-"], &yaml).await.ok();
    for pod in pods(&yaml) {
        home.kubectl_with(&["create", "--dry-run=server", "--filename", "-"], &pod.to_string()).await.ok();
    }
}

/// That the test above judges: each line that Pod Security asks for is missed when it goes.
#[tokio::test]
async fn a_pod_that_asks_for_more_is_refused() {
    let home = restricted().await;
    install(&home, &[]);
    for (gone, asked_for) in [
        ("  runAsNonRoot: true\n", "runAsNonRoot"),
        ("  seccompProfile:\n    type: RuntimeDefault\n", "seccompProfile"),
        ("  allowPrivilegeEscalation: false\n", "allowPrivilegeEscalation"),
        ("  capabilities:\n    drop: [ALL]\n", "unrestricted capabilities"),
    ] {
        let scratch = Scratch::new();
        let chart = changed_chart(&scratch, "templates/_helpers.tpl", |text| text.replace(gone, ""));
        for pod in pods(&rendered(&chart, home.name(), &[])) {
            let create = ["create", "--dry-run=server", "--filename", "-"];
            let said = home.kubectl_with(&create, &pod.to_string()).await.refused();
            assert!(said.contains("violates PodSecurity") && said.contains(asked_for), "{gone}: {said}");
        }
    }
}

#[tokio::test]
async fn the_operator_may_do_its_work_and_nothing_beside_it() {
    let (home, one, stranger) = (restricted().await, restricted().await, restricted().await);
    install(&home, &[&format!("namespaces={{{}}}", one.name())]);
    let kubeconfig = home.kubeconfig_for("rowgate-operator").await;
    let may = |namespace: &Namespace<'_>, question: &str| can(&kubeconfig, namespace.name(), question);
    for question in [
        "list tenants.rowgate.dev",
        "watch apikeys.rowgate.dev",
        "patch tenants.rowgate.dev",
        "create webhooksubscriptions.rowgate.dev",
        "delete webhooksubscriptions.rowgate.dev",
        "patch webhooksubscriptions.rowgate.dev --subresource=status",
        "patch apikeys.rowgate.dev --subresource=status",
        "get secrets",
        "list secrets",
        "watch secrets",
        "create secrets",
        "patch secrets",
        "delete secrets",
        "get configmaps",
        "create events.events.k8s.io",
    ] {
        assert!(may(&one, question), "{question}, where it works");
        assert!(!may(&stranger, question), "{question}, in a namespace that nobody named");
    }
    for question in [
        "create tenants.rowgate.dev",
        "delete tenants.rowgate.dev",
        "delete apikeys.rowgate.dev",
        "update secrets",
        "deletecollection secrets",
        "list configmaps",
        "patch configmaps",
        "create pods",
        "get pods --subresource=log",
        "create serviceaccounts --subresource=token",
        "create rolebindings.rbac.authorization.k8s.io",
        "escalate roles.rbac.authorization.k8s.io",
        "bind roles.rbac.authorization.k8s.io",
        "impersonate serviceaccounts",
        "* *",
    ] {
        assert!(!may(&one, question) && !may(&home, question), "{question}");
    }
    for (question, expected) in [
        ("get secrets/rowgate-operator-root", true),
        ("get secrets/rowgate-dataplane-root", true),
        ("create secrets", true),
        ("get secrets/rowgate-database", false),
        ("list secrets", false),
        ("watch secrets", false),
        ("patch secrets/rowgate-operator-root", false),
        ("delete secrets/rowgate-dataplane-root", false),
        ("create leases.coordination.k8s.io", true),
        ("update leases.coordination.k8s.io/rowgate-operator", true),
        ("update leases.coordination.k8s.io/kube-scheduler", false),
        ("list tenants.rowgate.dev", false),
    ] {
        assert_eq!(may(&home, question), expected, "{question}, in its own namespace");
    }
    for question in ["list secrets", "list tenants.rowgate.dev", "list namespaces", "get nodes"] {
        assert!(!can(&kubeconfig, "--all-namespaces", question), "{question}, everywhere");
    }
}

/// A namespace that only takes Pods of the strictest kind, and warns of objects that would make others.
async fn restricted() -> Namespace<'static> {
    let namespace = Cluster::shared().await.namespace().await;
    let labels = ["enforce", "warn"].map(|mode| format!("pod-security.kubernetes.io/{mode}=restricted"));
    let args = ["label", "namespace", namespace.name(), &labels[0], &labels[1]];
    namespace.kubectl(&args).await.ok();
    namespace
}

/// `helm install` by `admin`.
pub(super) fn install(home: &Namespace<'_>, values: &[&str]) {
    let (chart, kubeconfig) = (chart(), home.cluster().kubeconfig());
    let mut args = vec!["install", RELEASE, text(&chart), "--namespace", home.name()];
    args.extend(["--kubeconfig", text(&kubeconfig)]);
    values.iter().for_each(|value| args.extend(["--set", value]));
    let output = helm(&args);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !said.contains("would violate"), "{said}");
}

/// What the Deployments would make. A Deployment is only warned of, a Pod is refused.
fn pods(yaml: &str) -> Vec<Value> {
    let objects = objects(yaml);
    let deployments = of_kind(&objects, "Deployment");
    assert_eq!(deployments.len(), 2, "one for each part");
    let pods = deployments.into_iter().map(|deployment| {
        let template = &deployment["spec"]["template"];
        let metadata = json!({
            "name": name(deployment),
            "namespace": deployment["metadata"]["namespace"],
            "labels": template["metadata"]["labels"],
        });
        json!({ "apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"] })
    });
    pods.collect()
}

/// `kubectl auth can-i`, by the ServiceAccount itself.
fn can(kubeconfig: &Path, namespace: &str, question: &str) -> bool {
    let place = match namespace {
        "--all-namespaces" => namespace.to_owned(),
        name => format!("--namespace={name}"),
    };
    let mut command = Command::new(tool("kubectl"));
    command.env("KUBERC", "off").arg("--kubeconfig").arg(kubeconfig);
    command.arg("--cache-dir").arg(kubeconfig.with_extension("cache"));
    let output = command
        .args(["auth", "can-i", &place])
        .args(question.split(' '))
        .output()
        .expect("kubectl was built");
    match String::from_utf8_lossy(&output.stdout).trim() {
        "yes" => true,
        "no" => false,
        _ => panic!("can-i {question}: {}", String::from_utf8_lossy(&output.stderr)),
    }
}
