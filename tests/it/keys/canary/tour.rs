//! A tour of everything that the product does, and what is heard on the way.

use std::fs;
use std::path::Path;
use std::process::Command;

use rowgate_dataplane::api::routes::routes;
use rowgate_tests::client::Client;
use rowgate_tests::servers::postgres::{Server, rows};
use rowgate_tests::world::binary;

use super::secrets::Secrets;

/// Well-formed, and of no tenant that there is.
pub(super) const STRANGER: &str = "shop:dlk_1111111111111111111111111111111111111111111111111111112W8vvr";

pub(super) struct Tour {
    pub(super) secrets: Secrets,
    /// Places and what stands there.
    pub(super) heard: Vec<(String, String)>,
}

impl Tour {
    /// A key, and the token that it is exchanged for at `url`.
    pub(super) async fn add_key_and_token(&mut self, url: &str, name: &str, key: &str) -> String {
        let url = format!("{url}/api/auth/apikeys/exchange");
        let reply = Client::new().ask("POST", &url, &[("x-api-key", key)]).await;
        let token = reply.json()["token"].as_str().expect("a text").to_owned();
        self.secrets.add_key(name, key);
        self.secrets.add_token(name, &token);
        token
    }

    pub(super) fn hear(&mut self, place: impl Into<String>, text: impl Into<String>) {
        self.heard.push((place.into(), text.into()));
    }

    /// Runs the program to its end.
    pub(super) fn run(&mut self, change: impl FnOnce(&mut Command)) {
        let mut command = Command::new(binary());
        command.env("ROWGATE_LOG", "trace");
        change(&mut command);
        let output = command.output().expect("the binary was built; `make test` builds it");
        let text = [output.stdout, output.stderr].concat();
        self.hear("what a command says", String::from_utf8_lossy(&text));
    }

    /// Every route with every kind of caller, and whatever else can be sent.
    pub(super) async fn ask_everything(&mut self, url: &str, keys: &[String], tokens: &[String]) {
        let client = Client::new();
        let typo = keys[0][..keys[0].len() - 1].to_owned() + "_";
        let cut = tokens[0][..tokens[0].len() - 4].to_owned();
        let mut callers: Vec<Vec<(&str, String)>> = vec![vec![]];
        let keyed = keys.iter().map(String::as_str).chain([STRANGER, &typo]);
        callers.extend(keyed.map(|key| vec![("x-api-key", key.to_owned())]));
        let borne = tokens.iter().map(String::as_str).chain([&*cut, &keys[0], STRANGER]);
        callers.extend(borne.map(|token| vec![("authorization", format!("Bearer {token}"))]));
        callers
            .push(vec![("x-api-key", keys[0].clone()), ("authorization", format!("Bearer {}", tokens[0]))]);
        callers.push(vec![("x-api-key", keys[0].clone()), ("x-ms-api-role", keys[0].clone())]);
        callers.push(vec![("x-api-key", keys[0].clone()), ("x-request-id", "mine".to_owned())]);
        for route in routes() {
            let path = route
                .path
                .replace("{tenant}", "shop")
                .replace("{entity}", "orders")
                .replace("{*key}", "id/1")
                // the answer to a good request never ends
                .replace("events/stream", "events/stream?ops=none");
            for caller in &callers {
                let headers: Vec<_> = caller.iter().map(|(name, value)| (*name, value.as_str())).collect();
                for method in [route.method, "HEAD", "OPTIONS", "PUT"] {
                    let mut reply = client.ask(method, &format!("{url}{path}"), &headers).await;
                    if reply.body.contains("\"expiresIn\"") {
                        reply.body.clear(); // The one answer that is a token.
                    }
                    self.hear(format!("the answer to {method} {path}"), format!("{reply:?}"));
                }
            }
        }
        // A key where it does not belong: in the path, in a filter, in a cursor.
        for path in [
            format!("/auth/{}/api", keys[0]),
            format!("/auth/shop/api/{}", tokens[0]),
            format!("/auth/shop/api/orders/id/{}", tokens[0]),
            format!("/auth/shop/api/orders?$after={}", tokens[0]),
            format!("/auth/shop/api/orders?key={}", keys[0]),
        ] {
            let reply = client.get(&format!("{url}{path}"), &[("x-api-key", &keys[0])]).await;
            self.hear("the answer to a key out of place", format!("{:?}", reply.headers));
        }
    }

    pub(super) fn hear_folder(&mut self, folder: &Path) {
        for entry in fs::read_dir(folder).expect("a folder").flatten() {
            let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
            // What is there to hold a secret, and PostgreSQL's own files.
            if name == "secrets" || name == "postgres" || name.ends_with(".root") {
                continue;
            }
            match path.is_dir() {
                true => self.hear_folder(&path),
                false => self.hear(
                    format!("the file {name}"),
                    String::from_utf8_lossy(&fs::read(&path).unwrap_or_default()),
                ),
            }
        }
    }

    pub(super) async fn hear_database(&mut self, server: &Server, database: &str) {
        let mut admin = server.connect(database).await;
        let tables = "select format('select * from %I.%I', schemaname, tablename) as q from pg_tables \
            where schemaname in ('control', 'dl')";
        for table in rows(&mut admin, tables).await {
            let found = rows(&mut admin, table["q"].as_str().expect("a text")).await;
            self.hear(format!("{} of {database}", table["q"]), format!("{found:?}"));
        }
    }
}
