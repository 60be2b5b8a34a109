//! The example shop with a second tenant beside it, and a caller of both.

use std::fs;
use std::process::{Command, Output};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use reqwest::{Method, StatusCode};
use rowgate_core::derive::Root;
use rowgate_core::jwt::{Claims, LIFETIME, Signers};
use rowgate_tests::world::{World, binary};
use serde_json::Value;

const SPA: &str = "apiVersion: rowgate.dev/v1alpha1
kind: Tenant
metadata: {name: spa}
spec:
  database: {bootstrap: {configMapRef: {name: shop-bootstrap, key: schema.sql}}}
  shared: {permissions: [{entity: products, actions: [read]}]}
  entities: [{name: products, source: {schema: shop, object: products}, rowLevelSecurity: {none: true}}]
---
apiVersion: rowgate.dev/v1alpha1
kind: ApiKey
metadata: {name: guest}
spec: {tenantRef: {name: spa}}
";

/// Three paths of the shop: a listing, a collection, a row.
pub(crate) const PATHS: [&str; 3] =
    ["/auth/shop/api", "/auth/shop/api/orders?$first=3", "/auth/shop/api/customers/id/1"];

pub(crate) struct Shop {
    pub(crate) world: World,
    client: reqwest::Client,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) cache: String,
    pub(crate) challenge: Option<String>,
    pub(crate) body: String,
}

/// A token and for how many seconds it was said to live.
#[derive(Debug, Clone)]
pub(crate) struct Token {
    pub(crate) bearer: String,
    pub(crate) expires_in: i64,
}

impl Shop {
    pub(crate) async fn open() -> Shop {
        let mut world = World::founded_shop_with(|world| world.write("spa.yaml", SPA)).await;
        world.start().await;
        Shop { world, client: reqwest::Client::new() }
    }

    /// A request to standalone.
    pub(crate) async fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> Reply {
        self.ask_at(&self.world.url(), method, path, headers).await
    }

    pub(crate) async fn ask_at(
        &self,
        origin: &str,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
    ) -> Reply {
        let method = Method::from_bytes(method.as_bytes()).expect("a method");
        // One id for all, so that bodies can be compared.
        let mut request = self.client.request(method, format!("{origin}{path}")).header("x-request-id", "it");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let answer = request.send().await.unwrap_or_else(|error| panic!("{path}: {error:?}"));
        let header =
            |name: &str| answer.headers().get(name).map(|value| value.to_str().expect("ASCII").to_owned());
        let (cache, challenge) =
            (header("cache-control").expect("each answer has it"), header("www-authenticate"));
        let status = answer.status();
        Reply { status, cache, challenge, body: answer.text().await.expect("a body") }
    }

    pub(crate) async fn get(&self, path: &str, token: &Token) -> Reply {
        self.ask("GET", path, &[("authorization", &token.bearer)]).await
    }

    /// The answer to a dead token, or to anything that is none.
    pub(crate) async fn stranger(&self) -> Reply {
        let reply = self.ask("GET", PATHS[0], &[]).await;
        assert_eq!(reply.status, 401, "{reply:?}");
        reply
    }

    pub(crate) async fn exchange(&self, key: &str) -> Token {
        let reply = self.ask("POST", EXCHANGE, &[("x-api-key", key)]).await;
        assert_eq!(reply.status, 200, "{reply:?}");
        let body = reply.json();
        assert_eq!(body.as_object().map(serde_json::Map::len), Some(2), "{body}");
        let token = body["token"].as_str().expect("a text");
        let expires_in = body["expiresIn"].as_i64().expect("a number");
        Token { bearer: format!("Bearer {token}"), expires_in }
    }

    /// The token of a key that standalone wrote.
    pub(crate) async fn token(&self, name: &str) -> Token {
        self.exchange(&self.world.key(name)).await
    }

    /// What the data plane signs with: its root lies in the state folder.
    pub(crate) fn signers(&self) -> Signers {
        let text = fs::read_to_string(self.world.state().join("dataplane.root")).expect("it was made");
        Signers::new(Root::from_hex(&text).expect("a root").signing_key(1), Vec::new())
    }

    /// A token of this data plane's own key, whatever it claims.
    pub(crate) fn sign(&self, claims: &Claims) -> Token {
        Token { bearer: format!("Bearer {}", self.signers().sign(claims)), expires_in: LIFETIME }
    }

    pub(crate) fn revoke(&self, key_id: &str) -> Output {
        let root = self.world.state().join("dataplane.root");
        let mut command = Command::new(binary());
        command.args(["revoke", key_id, "--control"]).arg(self.world.socket()).arg("--root-file").arg(root);
        command.output().expect("the binary was built; `make test` builds it")
    }

    pub(crate) fn key_id(&self, name: &str) -> String {
        self.world.status("ApiKey", name)["apiKeyId"].as_str().expect("it has one").to_owned()
    }
}

pub(crate) const EXCHANGE: &str = "/api/auth/apikeys/exchange";

impl Reply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

impl Token {
    pub(crate) fn text(&self) -> &str {
        self.bearer.strip_prefix("Bearer ").expect("it was made so")
    }

    /// The token's first (0) or second (1) part.
    pub(crate) fn part(&self, i: usize) -> Value {
        let part = self.text().split('.').nth(i).expect("three parts");
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).expect("base64url")).expect("JSON")
    }

    pub(crate) fn claims(&self) -> Claims {
        let payload = self.part(1);
        let text = |name: &str| payload[name].as_str().expect("a text").to_owned();
        let number = |name: &str| payload[name].as_i64().expect("a number");
        Claims {
            key: text("sub").parse().expect("a ULID"),
            secret: text("sid").parse().expect("a ULID"),
            tenant: text("tenant").parse().expect("a slug"),
            issued: number("iat"),
            expires: number("exp"),
        }
    }
}
