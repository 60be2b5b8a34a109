//! The commands, probes and ports of the Pods are ones that the programs know, and together they serve the shop: the lines
//! of README.md, with processes for Pods.

use std::fs;

use rowgate_pg::connect::login::Endpoint;
use rowgate_tests::scratch::Scratch;
use rowgate_tests::servers::cluster::Cluster;
use rowgate_tests::servers::postgres::Server;
use rowgate_tests::sweep;
use rowgate_tests::wait::until;
use rowgate_tests::world::{GUEST, World, binary, examples, get};
use serde_json::Value;

use super::accepted::install;
use super::running::{Running, container, pod};
use super::{chart, list, name, objects, of_kind, rendered, text};

/// Where the data plane's root is in its container.
const ROOT: &str = "/etc/rowgate/dataplane/root";

#[tokio::test]
async fn the_shop_is_served_by_what_the_chart_runs_under_the_rights_that_it_gives() {
    let server = Server::own().await;
    let login = server.superuser("postgres");
    let Endpoint::Unix { directory, port } = &login.endpoint else { panic!("test servers have no TCP") };
    let (role, password, folder) = (&login.role, login.password.reveal(), text(directory));
    let url = format!("postgres://{role}:{password}@/postgres?host={folder}&port={port}");

    let cluster = Cluster::shared().await;
    let (home, shop) = (cluster.namespace().await, cluster.namespace().await);
    let set = format!("namespaces={{{}}}", shop.name());
    install(&home, &[&set]);
    let objects = objects(&rendered(&chart(), home.name(), &[&set]));

    let kubeconfig = home.kubeconfig_for("rowgate-operator").await;
    let operator = container(&objects, "rowgate-operator");
    let program = binary().with_file_name("rowgate-operator");
    let _operator = Running::start(operator, &program, &[], &[("url", &url)], |command| {
        command.env("KUBECONFIG", &kubeconfig);
    })
    .await;

    let mounted = pod(&objects, "rowgate-dataplane")["volumes"][0]["secret"]["secretName"].as_str();
    let mounted = mounted.expect("the root is mounted");
    let root = until("the data plane's root", async || home.secret(mounted).await).await;
    sweep::remember(root["root"].trim());
    let scratch = Scratch::new();
    let file = scratch.path().join("state/dataplane.root");
    fs::create_dir(scratch.path().join("state")).expect("the folder is ours");
    fs::write(&file, &root["root"]).expect("the folder is ours");
    let dataplane = container(&objects, "rowgate-dataplane");
    let texts = [(ROOT, text(&file))];
    let dataplane = Running::start(dataplane, &binary(), &texts, &[("address", folder)], |_| ()).await;

    let shops = examples().join("shop");
    shop.kubectl(&["apply", "--server-side", "--filename", text(&shops)]).await.ok();
    shop.kubectl(&["wait", "--for=condition=Ready", "--timeout=60s", "rowgate", "--all"]).await.ok();
    let key = shop.secret("north").await.expect("a Secret for each key")["apiKey"].clone();
    let customers = format!("http://127.0.0.1:{}/auth/shop/api/customers", dataplane.port(8080));
    let answer = get(&customers, &key).await;
    assert_eq!(answer.body["value"].as_array().expect("rows").len(), 40, "the half that is in the north");
}

#[tokio::test]
async fn the_data_plane_takes_every_argument_that_the_chart_gives() {
    let mut world = World::new(&[("guest.yaml", GUEST)]).await;
    world.start().await;
    let root = world.state().join("dataplane.root");
    let values = ["dataplane.trustedProxies={10.0.0.0/8,fd00::/8}", "dataplane.queuePerTenant=0"];
    let objects = objects(&rendered(&chart(), "home", &values));
    let (texts, socket) = ([(ROOT, text(&root))], world.socket());
    let secrets = [("address", text(&socket))];
    Running::start(container(&objects, "rowgate-dataplane"), &binary(), &texts, &secrets, |_| ()).await;
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
