//! WebhookSubscriptions.

use rowgate_crds::Kind;

use super::{Case, change, table};

/// `more` follows the references and the URL.
fn spec(more: &str) -> String {
    format!("{{tenantRef: {{name: t}}, ownerRef: {{name: k}}, url: 'https://hooks.example/in'{more}}}")
}

pub(super) fn cases() -> Vec<Case> {
    let url = "spec.url: url starts with https:// (or http:// where the Tenant has webhooks.allowHttp: true)";
    let reserved = "spec.headers: host, content-length, content-type, webhook-..., rowgate-... and the headers of a connection are set by the delivery itself; use other names";
    let name = "spec.headers: a header's name holds letters, digits and hyphens, at most 128";
    let delay = |text: &str| {
        format!(
            "spec.retry.initialDelay: \"{text}\" does not match ^([1-9][0-9]{{0,4}}s|[1-9][0-9]{{0,2}}m|([1-9]|1[0-9]|2[0-4])h)$"
        )
    };
    let of = |(more, refusal): (&str, &str)| table(Kind::WebhookSubscription, &[(&spec(more), refusal)]);
    let all = [
        ("", ""),
        (
            ", filter: {tables: [orders, app.customers], ops: [insert, truncate]}, suspend: true, payloadQuery: ''",
            "",
        ),
        (", filter: {}, batch: {}, retry: {}, headers: {}", ""),
        (
            ", filter: {ops: [upsert]}",
            "spec.filter.ops[0]: \"upsert\" is not one of insert, update, delete, truncate (did you mean insert?)",
        ),
        (", filter: {ops: [insert, insert]}", "spec.filter.ops: holds \"insert\" twice"),
        (", filter: {tables: []}", "spec.filter.tables: must have at least 1 entries, not 0"),
        (", batch: {maxEvents: 100, maxBytes: 262144}", ""),
        (", batch: {maxEvents: 101}", "spec.batch.maxEvents: must be at most 100"),
        (", batch: {maxEvents: 0}", "spec.batch.maxEvents: must be at least 1"),
        (", batch: {maxBytes: 262145}", "spec.batch.maxBytes: must be at most 262144"),
        (", retry: {maxAttempts: 10, initialDelay: 5s, maxDelay: 1h, disableOnGone: true}", ""),
        (", retry: {maxAttempts: 0}", "spec.retry.maxAttempts: must be at least 1"),
        (
            ", retry: {initialDelay: 2h, maxDelay: 60m}",
            "spec.retry: initialDelay is longer than maxDelay; make initialDelay shorter or maxDelay longer",
        ),
        (", retry: {initialDelay: 60m, maxDelay: 1h}", ""),
        (", retry: {initialDelay: 5d}", &delay("5d")),
        (", retry: {initialDelay: 0s}", &delay("0s")),
        (", headers: {X-Team: shop, authorization: 'Bearer a'}", ""),
        (", headers: {Host: a}", reserved),
        (", headers: {content-type: text/plain}", reserved),
        (", headers: {Webhook-Id: a}", reserved),
        (", headers: {rowgate-signature: a}", reserved),
        (", headers: {Transfer-Encoding: chunked}", reserved),
        (", headers: {'a b': c}", name),
        (
            ", headers: {a: \"b\\r\\nc: d\"}",
            "spec.headers.a: \"b\\r\\nc: d\" does not match ^([\\x21-\\x7e]([\\x20-\\x7e]*[\\x21-\\x7e])?)?$",
        ),
        (", secretName: hook-secret", ""),
        (
            ", secretName: No",
            "spec.secretName: secretName consists of lower-case letters, digits, hyphens and dots, and starts and ends with a letter or digit",
        ),
        (
            ", state: enabled",
            "spec.state: unknown field; known fields: batch, filter, headers, ownerRef, payloadQuery, retry, secretName, suspend, tenantRef, url",
        ),
    ];
    let urls = [
        ("{tenantRef: {name: t}, ownerRef: {name: k}, url: 'ftp://a'}", url),
        ("{tenantRef: {name: t}, ownerRef: {name: k}, url: 'http://a'}", ""),
        ("{tenantRef: {name: t}, ownerRef: {name: k}}", "spec.url: is required"),
        ("{tenantRef: {name: t}, url: 'https://a'}", "spec.ownerRef: is required"),
    ];
    let moved = change(
        Kind::WebhookSubscription,
        &[
            (
                &spec(""),
                &spec("").replace("{name: t}", "{name: u}"),
                "spec.tenantRef: tenantRef cannot be changed; create a new WebhookSubscription",
            ),
            (&spec(""), &spec(", suspend: true").replace("{name: k}", "{name: l}"), ""),
        ],
    );
    let mut cases: Vec<Case> = all.into_iter().flat_map(of).collect();
    cases.extend(table(Kind::WebhookSubscription, &urls));
    cases.extend(moved);
    cases
}
