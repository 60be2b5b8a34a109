//! The Secret of a WebhookSubscription: written first, so that no crash loses it; what is sealed in the database is derived
//! from what is found.

use std::collections::BTreeMap;

use rowgate_core::webhook::secret::{NONCE_LEN, SECRET_LEN, SealingKey, WebhookSecret};
use rowgate_pg::tenant::declared::{Declared, Sealed};

use crate::entropy;
use crate::source::{Event, ObjectRef, ResourceSource, SourceError};

/// What the entry of the Secret is called.
const SECRET: &str = "secret";

/// Why a subscription gets no secret.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WebhookSecretProblem {
    #[error(transparent)]
    Source(#[from] SourceError),
    #[error("Secret {0} holds no signing secret (whsec_ and base64) in secret; delete it to get a new one")]
    Foreign(String),
}

/// The secret that the Secret `name` holds, if the row does not have it as the one that signs; a missing Secret is written,
/// with a new one. A secret that was replaced through the API is replaced in the Secret, too.
pub(crate) async fn ensure<S: ResourceSource>(
    source: &S,
    object: &ObjectRef,
    name: &str,
    row: Option<&Declared>,
    key: &SealingKey,
) -> Result<Option<WebhookSecret>, WebhookSecretProblem> {
    let open = |it: &Sealed| key.open(row?.id.as_str(), &it.sealed);
    let of = |is_current: bool| {
        let sealed = row.map(|row| &row.secrets[..]).unwrap_or_default();
        sealed.iter().filter(move |it| it.is_current == is_current).filter_map(open)
    };
    let Some(found) = source.read_secret(&object.namespace, name).await? else {
        let secret = WebhookSecret::generate(&entropy::bytes::<SECRET_LEN>());
        write(source, object, name, &secret).await?;
        if row.is_some() {
            let note = format!(
                "Secret {name} was missing; a new signing secret was issued, and the old one signs for 24 hours more"
            );
            let event = Event { reason: "SecretReissued".to_owned(), note, warning: true };
            source.event(object, event).await?;
        }
        return Ok(Some(secret));
    };
    let found = found.data.get(SECRET).and_then(|text| WebhookSecret::parse(text.trim()));
    let Some(found) = found else { return Err(WebhookSecretProblem::Foreign(name.to_owned())) };
    if of(true).any(|secret| secret == found) {
        return Ok(None);
    }
    let was_replaced = of(false).any(|secret| secret == found);
    if let Some(current) = of(true).next().filter(|_| was_replaced) {
        write(source, object, name, &current).await?;
        let note = format!("Secret {name} holds a new signing secret; the old one signs for 24 hours");
        let event = Event { reason: "SecretRotated".to_owned(), note, warning: false };
        source.event(object, event).await?;
        return Ok(None);
    }
    Ok(Some(found))
}

async fn write<S: ResourceSource>(
    source: &S,
    object: &ObjectRef,
    name: &str,
    secret: &WebhookSecret,
) -> Result<(), SourceError> {
    let data = BTreeMap::from([(SECRET.to_owned(), secret.reveal().to_owned())]);
    source.write_secret(object, &object.namespace, name, &data).await?;
    Ok(())
}

/// As it is stored.
pub(crate) fn sealed(key: &SealingKey, subscription: &str, secret: &WebhookSecret) -> Vec<u8> {
    key.seal(subscription, secret, &entropy::bytes::<NONCE_LEN>())
}
