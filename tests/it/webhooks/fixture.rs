//! A tenant whose changes are captured, keys that subscribe, and a receiver.

use std::process::Command;

use rowgate_tests::client::{Client, Reply};
use rowgate_tests::servers::postgres::{Server, execute};
use rowgate_tests::world::World;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

const TENANT: &str = "apiVersion: v1
kind: ConfigMap
metadata: {name: mill-script}
data:
  schema.sql: |
    create schema mill;
    create table mill.orders (id bigint primary key, note text);
    create table mill.bags (id bigint primary key, note text);
    create table mill.quiet (id bigint primary key);
---
apiVersion: rowgate.dev/v1alpha1
kind: Tenant
metadata: {name: mill}
spec:
  database: {bootstrap: {configMapRef: {name: mill-script}}}
  webhooks: {allowHttp: true}
  limits: {subscriptions: 3}
  entities:
    - name: orders
      source: {schema: mill, object: orders}
      events: true
      rowLevelSecurity: {none: true}
    - name: bags
      source: {schema: mill, object: bags}
      events: true
      rowLevelSecurity: {none: true}
    - name: quiet
      source: {schema: mill, object: quiet}
      rowLevelSecurity: {none: true}
  shared:
    permissions:
      - {entity: orders, actions: [read], fields: {include: ['*']}}
      - {entity: bags, actions: [read], fields: {include: ['*']}}
      - {entity: quiet, actions: [read], fields: {include: ['*']}}
---
apiVersion: rowgate.dev/v1alpha1
kind: ApiKey
metadata: {name: one}
spec: {tenantRef: {name: mill}}
---
apiVersion: rowgate.dev/v1alpha1
kind: ApiKey
metadata: {name: two}
spec: {tenantRef: {name: mill}}
---
apiVersion: rowgate.dev/v1alpha1
kind: ApiKey
metadata: {name: narrow}
spec:
  tenantRef: {name: mill}
  scope:
    permissions:
      - {entity: orders, actions: [read], fields: {include: [id]}}
";

pub(in crate::webhooks) struct Mill {
    pub(in crate::webhooks) world: World,
    client: Client,
}

impl Mill {
    /// Webhooks may go to this machine.
    pub(in crate::webhooks) async fn open() -> Mill {
        Mill::open_with(|command| {
            command.env("ROWGATE_WEBHOOK_RANGES", "127.0.0.0/8");
        })
        .await
    }

    pub(in crate::webhooks) async fn open_with(change: impl FnOnce(&mut Command)) -> Mill {
        let mut world = World::founded(&[("mill.yaml", TENANT)]).await;
        world.start_with(change).await;
        Mill { world, client: Client::new() }
    }

    /// As [`Mill::open`], on a server of the test's own, with other limits.
    pub(in crate::webhooks) async fn on(server: &Server, limits: &str) -> Mill {
        let tenant = TENANT.replace("limits: {subscriptions: 3}", limits);
        let mut world = World::on(server, &[("mill.yaml", &tenant)]);
        world
            .start_with(|command| {
                command.env("ROWGATE_WEBHOOK_RANGES", "127.0.0.0/8");
            })
            .await;
        Mill { world, client: Client::new() }
    }

    pub(in crate::webhooks) async fn sql(&self, script: &str) {
        execute(&mut self.world.superuser("mill").await, script).await;
    }

    /// Below the address of subscriptions. `Value::Null`: no body.
    pub(in crate::webhooks) async fn ask(&self, key: &str, method: &str, path: &str, body: &Value) -> Reply {
        let url = format!("{}/api/ddl/events/webhooks{path}", self.world.url());
        let key = self.world.key(key);
        let headers = [("X-API-Key", key.as_str()), ("Content-Type", "application/json")];
        match body {
            Value::Null => self.client.ask(method, &url, &headers[..1]).await,
            body => self.client.send(method, &url, &headers, &body.to_string()).await,
        }
    }

    /// What is answered with that status.
    pub(in crate::webhooks) async fn told(
        &self,
        key: &str,
        method: &str,
        path: &str,
        body: Value,
        status: u16,
    ) -> Value {
        let reply = self.ask(key, method, path, &body).await;
        assert_eq!(reply.status, status, "{method} {path} {body}: {reply:?}");
        if reply.body.is_empty() { Value::Null } else { reply.json() }
    }

    /// A subscription to what happens to orders, suspended, so that nothing is sent.
    pub(in crate::webhooks) async fn subscribed(&self, key: &str, url: &str) -> Value {
        let body = json!({"name": "orders", "url": url, "filter": {"tables": ["orders"]}, "suspend": true});
        self.told(key, "POST", "", body, 201).await
    }
}

pub(in crate::webhooks) fn id(subscription: &Value) -> String {
    subscription["id"].as_str().expect("an id").to_owned()
}

/// A server that answers every request with 200, and what it got: head and body.
pub(in crate::webhooks) async fn receiver() -> (String, UnboundedReceiver<(String, String)>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}/hooks", listener.local_addr().expect("an address"));
    let (sender, got) = unbounded_channel();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut bytes = Vec::new();
            let request = loop {
                let n = stream.read_buf(&mut bytes).await.unwrap_or_default();
                if let Some(request) = whole(&bytes) {
                    break Some(request);
                }
                if n == 0 {
                    break None;
                }
            };
            let answer = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
            if let Some(request) = request {
                let _gone = stream.write_all(answer.as_bytes()).await;
                let _unread = sender.send(request);
            }
        }
    });
    (url, got)
}

/// Head and body, once all of it is there.
fn whole(bytes: &[u8]) -> Option<(String, String)> {
    let text = std::str::from_utf8(bytes).ok()?;
    let (head, body) = text.split_once("\r\n\r\n")?;
    let length = head
        .lines()
        .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length:")?.trim().parse().ok());
    (length.unwrap_or(0) <= body.len()).then(|| (head.to_owned(), body.to_owned()))
}
