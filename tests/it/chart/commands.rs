//! The commands and probes of the Pods are ones that the programs know: they are run as the chart writes them, with paths
//! and ports of the test in place of a container's.

use std::fs::{self, File};
use std::process::{Command, Stdio};

use rowgate_tests::scratch::Scratch;
use rowgate_tests::wait::until;
use rowgate_tests::world::{World, binary, free_port};
use serde_json::Value;

use super::{chart, name, objects, of_kind, rendered};

/// A tenant and a key, without which standalone has nobody to greet.
const GUEST: &str = "apiVersion: rowgate.dev/v1alpha1
kind: Tenant
metadata: {name: guest}
spec: {database: {}}
---
apiVersion: rowgate.dev/v1alpha1
kind: ApiKey
metadata: {name: guest-key}
spec: {tenantRef: {name: guest}}
";

#[tokio::test]
async fn the_data_plane_takes_its_arguments_and_answers_its_probes() {
    let mut world = World::new(&[("guest.yaml", GUEST)]).await;
    world.start().await;
    let control = world.socket().display().to_string();
    let root = world.state().join("dataplane.root").display().to_string();
    for values in [&[][..], &["dataplane.trustedProxies={10.0.0.0/8,fd00::/8}", "dataplane.queuePerTenant=0"]]
    {
        let objects = objects(&rendered(&chart(), "home", values));
        let container = container(&objects, "rowgate-dataplane");
        let (api, probes) = (free_port(), free_port());
        let mut command = Command::new(binary());
        command.env_clear();
        for arg in list(container, "args") {
            let arg = arg.as_str().expect("arguments are texts");
            let arg = arg.replace("0.0.0.0:8080", &format!("127.0.0.1:{api}"));
            let arg = arg.replace("0.0.0.0:8081", &format!("127.0.0.1:{probes}"));
            command.arg(arg.replace("/etc/rowgate/dataplane/root", &root));
        }
        for variable in list(container, "env") {
            assert_eq!(
                variable["valueFrom"]["secretKeyRef"]["key"], "address",
                "the only value from a Secret"
            );
            command.env(variable["name"].as_str().expect("a name"), &control);
        }
        let scratch = Scratch::new();
        let log = scratch.path().join("log");
        let file = File::create(&log).expect("the folder is ours");
        let mut child = command.stdin(Stdio::null()).stderr(file).spawn().expect("the binary was built");
        scratch.adopt(child.id());
        for probe in ["startupProbe", "readinessProbe", "livenessProbe"] {
            assert_eq!(container[probe]["httpGet"]["port"], "probes");
            let path = container[probe]["httpGet"]["path"].as_str().expect("a path");
            until(probe, async || {
                let ended = child.try_wait().expect("it is our child");
                assert!(ended.is_none(), "it ended: {}", fs::read_to_string(&log).unwrap_or_default());
                let answer = reqwest::get(format!("http://127.0.0.1:{probes}{path}")).await.ok()?;
                answer.status().is_success().then_some(())
            })
            .await;
        }
        let answer = reqwest::get(format!("http://127.0.0.1:{api}/api/auth/apikeys/exchange")).await;
        assert!(answer.is_ok(), "the API is where the Service sends requests");
    }
}

/// A Service finds its Pods by label, and their ports by name.
#[test]
fn every_service_finds_its_pods_and_ports() {
    let objects = objects(&rendered(&chart(), "home", &[]));
    for service in of_kind(&objects, "Service") {
        let selector = service["spec"]["selector"].as_object().expect("labels");
        let found: Vec<&Value> = of_kind(&objects, "Deployment")
            .into_iter()
            .map(|deployment| &deployment["spec"]["template"])
            .filter(|pod| selector.iter().all(|(label, value)| pod["metadata"]["labels"][label] == *value))
            .collect();
        assert_eq!(found.len(), 1, "{} selects Pods of one Deployment", name(service));
        for port in list(&service["spec"], "ports") {
            let ports = list(&found[0]["spec"]["containers"][0], "ports");
            assert!(ports.iter().any(|has| has["name"] == port["targetPort"]), "{}: {port}", name(service));
        }
    }
}

/// What is in flight ends before the Pod is killed: the pause before SIGTERM and the drain fit into the grace.
#[test]
fn a_pod_has_the_time_to_drain() {
    for drain in [0, 30, 3600] {
        let value = format!("dataplane.drainSeconds={drain}");
        let objects = objects(&rendered(&chart(), "home", &[&value]));
        let pause =
            container(&objects, "rowgate-dataplane")["lifecycle"]["preStop"]["sleep"]["seconds"].as_i64();
        let grace = pod(&objects, "rowgate-dataplane")["terminationGracePeriodSeconds"].as_i64();
        assert!(pause.expect("a pause") + drain < grace.expect("a grace"), "{drain}");
    }
}

fn pod<'a>(objects: &'a [Value], deployment: &str) -> &'a Value {
    let found = of_kind(objects, "Deployment").into_iter().find(|object| name(object) == deployment);
    &found.expect("a Deployment of this name")["spec"]["template"]["spec"]
}

fn container<'a>(objects: &'a [Value], deployment: &str) -> &'a Value {
    let containers = list(pod(objects, deployment), "containers");
    assert_eq!(containers.len(), 1, "{deployment} has one container");
    &containers[0]
}

fn list<'a>(of: &'a Value, name: &str) -> &'a Vec<Value> {
    of[name].as_array().unwrap_or_else(|| panic!("{name} is no list in {of}"))
}
