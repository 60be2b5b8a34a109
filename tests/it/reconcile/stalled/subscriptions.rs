//! Webhook subscriptions that cannot be followed.

use rowgate_crds::Reason;

use super::cases::{Case, NOTES, Object, case, key, tenant};

const SOUNDS: &str =
    "{name: sounds, source: {schema: app, object: people}, events: true, rowLevelSecurity: {none: true}}";
const LOOKS: &str = "{name: looks, kind: View, source: {schema: app, object: seen}, keyFields: [id]}";

fn of(
    name: &'static str,
    reason: Reason,
    why: &'static str,
    names: &'static str,
    (annotations, spec): (&str, &str),
) -> Case {
    let manifest = format!(
        "{}{}apiVersion: rowgate.dev/v1alpha1\nkind: WebhookSubscription\nmetadata: {{name: {name}, annotations: {{{annotations}}}}}\n\
         spec: {{tenantRef: {{name: {name}}}, {spec}}}\n---\n",
        tenant(name, "", &[NOTES, SOUNDS, LOOKS]),
        key(name, name, "")
    );
    case(Object::WebhookSubscription, (name, reason), why, names, manifest)
}

/// Of two the second by name is one too many.
fn too_many(spec: &str) -> Case {
    let name = "too-many";
    let limits = "  limits: {subscriptions: 1}\n";
    let mut manifest = format!("{}{}", tenant(name, limits, &[NOTES, SOUNDS, LOOKS]), key(name, name, ""));
    for subscription in ["the-first", name] {
        manifest += &format!(
            "apiVersion: rowgate.dev/v1alpha1\nkind: WebhookSubscription\nmetadata: {{name: {subscription}}}\n\
             spec: {{tenantRef: {{name: {name}}}, {spec}}}\n---\n"
        );
    }
    case(
        Object::WebhookSubscription,
        (name, Reason::TooManySubscriptions),
        "more webhooks than the Tenant's limits allow",
        "limits.subscriptions",
        manifest,
    )
}

pub(super) fn cases() -> Vec<Case> {
    let with = |name: &str, url: &str, more: &str| format!("ownerRef: {{name: {name}}}, url: '{url}'{more}");
    let public = "https://192.0.43.8/in";
    vec![
        of(
            "no-owner",
            Reason::OwnerNotFound,
            "a webhook of an ApiKey that is not there",
            "there is no ApiKey gone",
            ("", &with("gone", public, "")),
        ),
        of(
            "plain-http",
            Reason::InvalidSpec,
            "a webhook over plain http where the Tenant does not allow it",
            "spec.url: ",
            ("", &with("plain-http", "http://192.0.43.8/in", "")),
        ),
        of(
            "private-url",
            Reason::InvalidSpec,
            "a webhook to a private address",
            "spec.url: ",
            ("", &with("private-url", "https://10.0.0.1/in", "")),
        ),
        of(
            "hook-query",
            Reason::InvalidSpec,
            "a payload query without FOR JSON",
            "spec.payloadQuery: ",
            ("", &with("hook-query", public, ", payloadQuery: select id from app.people where id = @id")),
        ),
        too_many(&with("too-many", public, "")),
        of(
            "hook-entity",
            Reason::EntityNotFound,
            "a webhook of an entity that is not declared",
            "\"words\"",
            ("", &with("hook-entity", public, ", filter: {tables: [words]}")),
        ),
        of(
            "hook-view",
            Reason::SourceUnsupported,
            "a webhook of a view",
            "looks",
            ("", &with("hook-view", public, ", filter: {tables: [sounds, looks]}")),
        ),
        of(
            "hook-silent",
            Reason::InvalidSpec,
            "a webhook of a table without events",
            "notes has no events",
            ("", &with("hook-silent", public, ", filter: {tables: [notes]}")),
        ),
        of(
            "hook-secret",
            Reason::SecretInvalid,
            "a webhook whose Secret holds something else",
            "Secret theirs",
            ("", &with("hook-secret", public, ", secretName: theirs")),
        ),
        of(
            "hook-replay",
            Reason::InvalidSpec,
            "a replay that cannot be read",
            "yesterday",
            ("rowgate.dev/replay: yesterday", &with("hook-replay", public, "")),
        ),
    ]
}
