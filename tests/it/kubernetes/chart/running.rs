//! A container of the chart as a process: its arguments and probes as the chart writes them, with paths and ports of the
//! test in place of a container's.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rowgate_tests::scratch::Scratch;
use rowgate_tests::wait::until;
use rowgate_tests::world::free_port;
use serde_json::Value;

use super::{list, name, of_kind};

/// It ends with this value.
pub(super) struct Running {
    /// Those in the test for those in the container, such as 8080.
    ports: Vec<(u64, u16)>,
    child: Child,
    scratch: Scratch,
}

impl Running {
    /// Starts the one container of a Deployment and waits until each of its probes succeeds. `texts` are replaced in its
    /// arguments, `secrets` is what its variables are read from, by entry.
    pub(super) async fn start(
        container: &Value,
        program: &Path,
        texts: &[(&str, &str)],
        secrets: &[(&str, &str)],
        change: impl FnOnce(&mut Command),
    ) -> Running {
        let scratch = Scratch::new();
        let number = |port: &Value| port["containerPort"].as_u64().expect("a port");
        let ports: Vec<_> = list(container, "ports").iter().map(|port| (number(port), free_port())).collect();
        let mut command = Command::new(program);
        command.env_clear();
        for arg in list(container, "args") {
            let mut arg = arg.as_str().expect("arguments are texts").to_owned();
            for (inside, outside) in &ports {
                arg = arg.replace(&format!("0.0.0.0:{inside}"), &format!("127.0.0.1:{outside}"));
            }
            for (from, to) in texts {
                arg = arg.replace(from, to);
            }
            command.arg(arg);
        }
        for variable in list(container, "env") {
            let entry = &variable["valueFrom"]["secretKeyRef"]["key"];
            let of_secret = || secrets.iter().find(|(name, _)| entry == name).map(|(_, value)| *value);
            let value = variable["value"].as_str().or_else(of_secret).expect("an entry that is made");
            command.env(variable["name"].as_str().expect("a name"), value);
        }
        change(&mut command);
        let log = File::create(scratch.path().join("log")).expect("the folder is ours");
        let child = command.stdin(Stdio::null()).stderr(log).spawn().expect("the program was built");
        scratch.adopt(child.id());
        let mut running = Running { ports, child, scratch };
        for probe in ["startupProbe", "readinessProbe", "livenessProbe"] {
            if let Some(get) = container[probe].get("httpGet") {
                running.succeeds(container, get).await;
            }
        }
        running
    }

    async fn succeeds(&mut self, container: &Value, get: &Value) {
        let named = list(container, "ports").iter().find(|port| port["name"] == get["port"]);
        let port =
            self.port(named.expect("a probe's port has a name")["containerPort"].as_u64().expect("a port"));
        let path = get["path"].as_str().expect("a path");
        until(path, async || {
            let ended = self.child.try_wait().expect("it is our child");
            assert!(ended.is_none(), "it ended: {}", self.log());
            let answer = reqwest::get(format!("http://127.0.0.1:{port}{path}")).await.ok()?;
            answer.status().is_success().then_some(())
        })
        .await;
    }

    /// Where a port of the container is.
    pub(super) fn port(&self, inside: u64) -> u16 {
        self.ports.iter().find(|(port, _)| *port == inside).expect("a port of the container").1
    }

    fn log(&self) -> String {
        fs::read_to_string(self.scratch.path().join("log")).unwrap_or_default()
    }
}

/// The one container of a Deployment.
pub(super) fn container<'a>(objects: &'a [Value], deployment: &str) -> &'a Value {
    let containers = list(pod(objects, deployment), "containers");
    assert_eq!(containers.len(), 1, "{deployment} has one container");
    &containers[0]
}

/// The Pod that a Deployment makes.
pub(super) fn pod<'a>(objects: &'a [Value], deployment: &str) -> &'a Value {
    let found = of_kind(objects, "Deployment").into_iter().find(|object| name(object) == deployment);
    &found.expect("a Deployment of this name")["spec"]["template"]["spec"]
}
