//! The two root Secrets: made when absent, never replaced. From them every password is derived.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Secret;
use kube::Client;
use kube::api::{Api, ObjectMeta, PostParams};
use rowgate_core::derive::Root;
use rowgate_pg::control::installation::Roots;
use rowgate_reconcile::source::SourceError;

use crate::source::{MANAGED_BY, MANAGER, ask, ask_unless_refused};
use rowgate_reconcile::entropy;

/// The entry that holds the root, as 64 hexadecimal digits.
const ENTRY: &str = "root";

/// Why there are no roots.
#[derive(Debug, thiserror::Error)]
pub enum RootsError {
    #[error(transparent)]
    Source(#[from] SourceError),
    #[error(
        "Secret {0} holds no root in the entry root (64 hexadecimal digits); restore the one that this installation was created with, or name another Secret"
    )]
    Damaged(String),
}

/// Reads both, or makes them.
///
/// # Errors
/// When the API server does not let us, or one of them holds no root: it is not replaced, because what was derived from it
/// would be lost.
pub async fn load_or_make(
    client: &Client,
    namespace: &str,
    operator: &str,
    dataplane: &str,
) -> Result<Roots, RootsError> {
    let api: Api<Secret> = Api::namespaced(client.clone(), namespace);
    Ok(Roots { operator: one(&api, operator).await?, dataplane: one(&api, dataplane).await? })
}

async fn one(api: &Api<Secret>, name: &str) -> Result<Root, RootsError> {
    let attempt = || format!("read or make the root Secret {name}");
    if let Some(secret) = ask(attempt, api.get_opt(name)).await? {
        return held(&secret, name);
    }
    // created and never applied: of two operators that start at once, one gets the answer that it exists
    let made = ask_unless_refused(attempt, api.create(&PostParams::default(), &new(name))).await?;
    match made {
        Ok(made) => {
            tracing::info!(
                secret = name,
                "created a new root; keep a copy of it: every password is derived from it"
            );
            held(&made, name)
        }
        Err(status) if status.code == 409 => {
            let there = ask(attempt, api.get(name)).await?;
            held(&there, name)
        }
        Err(status) => Err(crate::source::refused(attempt(), &status).into()),
    }
}

fn held(secret: &Secret, name: &str) -> Result<Root, RootsError> {
    let entry = secret.data.as_ref().and_then(|data| data.get(ENTRY));
    let text = entry.and_then(|entry| std::str::from_utf8(&entry.0).ok());
    text.and_then(|text| Root::from_hex(text).ok()).ok_or_else(|| RootsError::Damaged(name.to_owned()))
}

fn new(name: &str) -> Secret {
    let root = Root::new(entropy::bytes());
    Secret {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            labels: Some(BTreeMap::from([(MANAGED_BY.to_owned(), MANAGER.to_owned())])),
            ..ObjectMeta::default()
        },
        immutable: Some(true),
        string_data: Some(BTreeMap::from([(ENTRY.to_owned(), format!("{}\n", root.reveal_hex()))])),
        ..Secret::default()
    }
}
