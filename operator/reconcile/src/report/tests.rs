//! What is told is told once, and anew when anything of it is another.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use rowgate_core::name::Ulid;
use rowgate_crds::{self as crds, Kind, Reason, ResolvedPermission};

use super::Told;
use crate::source::ObjectRef;
use crate::status::{Findings, KeyState, Replicas, TenantState, Turns};

fn object(kind: Kind, name: &str) -> ObjectRef {
    ObjectRef { kind, namespace: "n".to_owned(), name: name.to_owned(), uid: format!("uid of {name}") }
}

fn id(n: u8) -> Ulid {
    Ulid::from_parts(1, [n; 10])
}

fn read(field: &str) -> Arc<[ResolvedPermission]> {
    let fields = vec![field.to_owned()];
    Arc::new([ResolvedPermission { entity: "items".to_owned(), action: crds::Action::Read, fields }])
}

fn key() -> KeyState {
    KeyState {
        object: object(Kind::ApiKey, "k"),
        generation: 1,
        findings: Findings::default(),
        gone: false,
        id: Some(id(2)),
        role: Some("key_2".to_owned()),
        served: Some(1),
        secret_name: "k".to_owned(),
        expires_at: None,
        revoked_at: None,
        last_used_at: None,
        current_secret: Some("abc".to_owned()),
        previous_secret_expires_at: None,
        next_rotation: None,
        permissions: read("id"),
        turns: Turns::default(),
    }
}

fn tenant() -> TenantState {
    TenantState {
        object: object(Kind::Tenant, "t"),
        generation: 1,
        findings: Findings::default(),
        done: true,
        gone: false,
        replaced: false,
        id: Some(id(1)),
        slug: "t".to_owned(),
        database: "t".to_owned(),
        served: Some(1),
        entities: 1,
        shared: read("id"),
        keys: vec![key()],
        turns: Turns::default(),
        next_look: None,
    }
}

fn serving(generation: i64) -> Replicas {
    Replicas { live: vec![[(id(1), generation)].into()], silent: None }
}

/// The kinds that were told.
fn told(told: &Told, state: &TenantState, replicas: &Replicas) -> Vec<Kind> {
    told.tenant(state, replicas, false).into_iter().map(|report| report.object.kind).collect()
}

#[test]
fn whatever_is_another_in_a_status_is_told_and_nothing_else() {
    let later = Timestamp::UNIX_EPOCH + SignedDuration::from_hours(1_000_000);
    let time = move || later.to_string();
    type Change = Box<dyn Fn(&mut TenantState)>;
    let of_key = |change: fn(&mut KeyState)| -> Change { Box::new(move |it| change(&mut it.keys[0])) };
    let of_tenant = |change: fn(&mut TenantState)| -> Change { Box::new(change) };
    let cases: Vec<(&str, &[Kind], Change)> = vec![
        ("nothing", &[], of_key(|_| ())),
        ("since when", &[], of_key(|key| key.served = None)),
        ("generation", &[Kind::ApiKey], of_key(|key| key.generation = 2)),
        ("id", &[Kind::ApiKey], of_key(|key| key.id = Some(id(3)))),
        ("role", &[Kind::ApiKey], of_key(|key| key.role = None)),
        ("secret name", &[Kind::ApiKey], of_key(|key| key.secret_name.clear())),
        ("expiry", &[Kind::ApiKey], Box::new(move |it| it.keys[0].expires_at = Some(time()))),
        (
            "end",
            &[Kind::ApiKey, Kind::Tenant],
            of_key(|key| key.revoked_at = Some("2030-01-01T00:00:00Z".into())),
        ),
        ("use", &[Kind::ApiKey], Box::new(move |it| it.keys[0].last_used_at = Some(later))),
        ("secret", &[Kind::ApiKey], of_key(|key| key.current_secret = None)),
        ("overlap", &[Kind::ApiKey], Box::new(move |it| it.keys[0].previous_secret_expires_at = Some(later))),
        ("rotation", &[Kind::ApiKey], Box::new(move |it| it.keys[0].next_rotation = Some(later))),
        ("permissions", &[Kind::ApiKey], of_key(|key| key.permissions = read("name"))),
        ("warning", &[Kind::ApiKey], of_key(|key| key.findings.warnings.push("w".into()))),
        ("trouble", &[Kind::ApiKey], of_key(|key| key.findings.stalled.push((Reason::Taken, "x".into())))),
        ("retry", &[Kind::ApiKey], of_key(|key| key.findings.retry = Some((Reason::Deleting, "x".into())))),
        ("its release", &[], of_key(|key| key.gone = true)),
        ("Tenant's generation", &[Kind::Tenant], of_tenant(|it| it.generation = 2)),
        ("Tenant's id", &[Kind::ApiKey, Kind::Tenant], of_tenant(|it| it.id = None)),
        ("slug", &[Kind::Tenant], of_tenant(|it| it.slug.push('x'))),
        ("database", &[Kind::Tenant], of_tenant(|it| it.database.push('x'))),
        ("entities", &[Kind::Tenant], of_tenant(|it| it.entities = 2)),
        ("shared", &[Kind::Tenant], of_tenant(|it| it.shared = read("name"))),
        ("note", &[Kind::Tenant], of_tenant(|it| it.findings.warnings.push("w".into()))),
        ("a pass that stopped", &[Kind::ApiKey, Kind::Tenant], of_tenant(|it| it.done = false)),
        ("what is to be served", &[Kind::Tenant], of_tenant(|it| it.served = Some(2))),
    ];
    for (what, kinds, change) in cases {
        let (before, mut state) = (Told::new("http://api".to_owned()), tenant());
        assert_eq!(
            told(&before, &state, &serving(1)),
            [Kind::ApiKey, Kind::Tenant],
            "{what}: the first time"
        );
        assert_eq!(told(&before, &state, &serving(1)), [], "{what}: the same");
        change(&mut state);
        assert_eq!(told(&before, &state, &serving(1)), kinds, "{what}");
        assert_eq!(told(&before, &state, &serving(1)), [], "{what}: twice");
    }
    let (before, state) = (Told::new("http://api".to_owned()), tenant());
    let first = before.tenant(&state, &serving(1), false);
    assert_eq!(before.tenant(&state, &serving(1), true), first, "all, whether new or not");
    assert_eq!(told(&before, &state, &serving(0)), [Kind::ApiKey, Kind::Tenant], "nobody serves it");
    before.retain(&["uid of t"].into());
    assert_eq!(told(&before, &state, &serving(0)), [Kind::ApiKey], "forgotten, so told anew");
}
