//! The shop of `examples/shop` as plain values, under fixed identifiers.

use rowgate_core::name::Ulid;
use rowgate_core::yaml;
use rowgate_crds::{ApiKey, Kind, Tenant, admit};
use rowgate_pg::control::installation::Installation;
use rowgate_reconcile::desired::{Desired, SecretSpec, from_resources};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::id;

const TENANT: &str = include_str!("../../../../examples/shop/tenant.yaml");
const KEYS: &str = include_str!("../../../../examples/shop/keys.yaml");
const BOOTSTRAP: &str = include_str!("../../../../examples/shop/bootstrap.yaml");

/// The manifests, to be edited before they are planned.
pub(super) struct Shop {
    pub(super) tenant: Value,
    pub(super) keys: Vec<Value>,
}

impl Shop {
    pub(super) fn new() -> Shop {
        let tenant = documents(TENANT).remove(0);
        Shop { tenant, keys: documents(KEYS) }
    }

    pub(super) fn desired(&self, installation: &Installation) -> Desired {
        let tenant: Tenant = typed(Kind::Tenant, &self.tenant);
        let keys: Vec<ApiKey> = self.keys.iter().map(|key| typed(Kind::ApiKey, key)).collect();
        let keys = keys.iter().map(|key| {
            let name = key.metadata.name.as_deref().expect("a key has a name");
            (key, key_id(name), (!key.spec.revoked).then(|| secret(number(name))))
        });
        from_resources(&tenant, (&id(b't', 1), "shop"), keys, [], installation).expect("the shop is right")
    }

    /// The key called `name`.
    pub(super) fn key(&mut self, name: &str) -> &mut Value {
        self.keys.iter_mut().find(|key| key["metadata"]["name"] == name).expect("it is the shop's")
    }

    /// The entity called `name`.
    pub(super) fn entity(&mut self, name: &str) -> &mut Value {
        let entities = self.tenant["spec"]["entities"].as_array_mut().expect("a list");
        entities.iter_mut().find(|entity| entity["name"] == name).expect("it is the shop's")
    }
}

pub(super) fn key_id(name: &str) -> Ulid {
    id(b'k', number(name))
}

/// Another one for each key of the shop.
fn number(name: &str) -> u8 {
    name.bytes().fold(0, u8::wrapping_add)
}

pub(super) fn secret(n: u8) -> SecretSpec {
    SecretSpec { id: id(b'x', n), finder: format!("finder{n:06}"), digest: [n; 32], replaces: None }
}

/// The script that makes the shop's tables and rows.
pub(super) fn bootstrap() -> String {
    let map = documents(BOOTSTRAP).remove(0);
    map["data"]["schema.sql"].as_str().expect("a script").to_owned()
}

fn documents(text: &str) -> Vec<Value> {
    yaml::documents(text).map(|document| document.expect("YAML")).collect()
}

fn typed<T: DeserializeOwned>(kind: Kind, object: &Value) -> T {
    let mut object = object.clone();
    let name = object["metadata"]["name"].as_str().expect("an object has a name");
    object["metadata"]["uid"] = json!(format!("uid-{name}"));
    object["metadata"]["namespace"] = json!("default");
    if object["metadata"].get("generation").is_none() {
        object["metadata"]["generation"] = json!(1);
    }
    let object = admit(kind, object, None).unwrap_or_else(|errors| panic!("{errors:?}"));
    serde_json::from_value(object).expect("what was admitted fits the type")
}
