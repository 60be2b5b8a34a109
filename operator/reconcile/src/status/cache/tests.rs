//! A status is reported once, and again when any part of it changes.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use rowgate_core::name::Ulid;
use rowgate_crds::{self as crds, Kind, Reason, ResolvedPermission};
use rowgate_pg::connect::login_failure::LoginFailure;
use rowgate_pg::control::replicas::Serving;

use crate::public_urls::PublicUrls;
use crate::source::{ObjectRef, StatusReport};
use crate::status::{
    Findings, KeyState, RelationshipState, Replicas, StatusCache, TenantState, Transitions, awaits_replicas,
};

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
        transitions: Transitions::default(),
    }
}

fn tenant() -> TenantState {
    TenantState {
        object: object(Kind::Tenant, "t"),
        generation: 1,
        findings: Findings::default(),
        events: None,
        hardened: None,
        done: true,
        gone: false,
        replaced: false,
        id: Some(id(1)),
        slug: "t".to_owned(),
        database: "t".to_owned(),
        served: Some(1),
        entities: 1,
        shared: read("id"),
        relationships: Vec::new(),
        subscriptions: Vec::new(),
        keys: vec![key()],
        transitions: Transitions::default(),
        login_failure: None,
        next_due: None,
        migrations_secret: None,
        plan: Vec::new(),
    }
}

fn serves(generation: i64, failure: Option<&str>) -> Serving {
    Serving { generation, login_failure: failure.map(LoginFailure::parse) }
}

fn serving(generation: i64) -> Replicas {
    Replicas { live: vec![[(id(1), serves(generation, None))].into()], ..Replicas::default() }
}

/// The kinds whose status was reported.
fn reported(statuses: &StatusCache, state: &TenantState, replicas: &Replicas) -> Vec<Kind> {
    statuses.tenant(state, replicas, false).into_iter().map(|report| report.object.kind).collect()
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
        let (before, mut state) = (StatusCache::new(PublicUrls::at("http://api")), tenant());
        assert_eq!(
            reported(&before, &state, &serving(1)),
            [Kind::ApiKey, Kind::Tenant],
            "{what}: the first time"
        );
        assert_eq!(reported(&before, &state, &serving(1)), [], "{what}: the same");
        change(&mut state);
        assert_eq!(reported(&before, &state, &serving(1)), kinds, "{what}");
        assert_eq!(reported(&before, &state, &serving(1)), [], "{what}: twice");
    }
    let (before, state) = (StatusCache::new(PublicUrls::at("http://api")), tenant());
    let first = before.tenant(&state, &serving(1), false);
    assert_eq!(before.tenant(&state, &serving(1), true), first, "all, whether new or not");
    assert_eq!(reported(&before, &state, &serving(0)), [Kind::ApiKey, Kind::Tenant], "nobody serves it");
    before.retain(&["uid of t"].into());
    assert_eq!(reported(&before, &state, &serving(0)), [Kind::ApiKey], "forgotten, so told anew");
}

#[test]
fn whatever_is_another_in_the_status_of_a_relationship_is_reported() {
    type Change = fn(&mut TenantState);
    let relationship = RelationshipState {
        object: object(Kind::Relationship, "r"),
        generation: 1,
        findings: Findings::default(),
        gone: false,
        served: Some(1),
        joins: Some("a.b = c.d".to_owned()),
        transitions: Transitions::default(),
    };
    let of = || TenantState { keys: Vec::new(), relationships: vec![relationship.clone()], ..tenant() };
    let both: &[Kind] = &[Kind::Relationship, Kind::Tenant];
    let cases: [(&str, &[Kind], Change); 8] = [
        ("nothing", &[], |_| ()),
        ("generation", &both[..1], |it| it.relationships[0].generation = 2),
        ("joins", &both[..1], |it| it.relationships[0].joins = None),
        ("warning", &both[..1], |it| it.relationships[0].findings.warnings.push("w".into())),
        ("trouble", &both[..1], |it| {
            it.relationships[0].findings.stalled.push((Reason::NotUnique, "x".into()))
        }),
        ("what is to be served", &both[..1], |it| it.relationships[0].served = Some(2)),
        ("its release", &[], |it| it.relationships[0].gone = true),
        ("a pass that stopped", both, |it| it.done = false),
    ];
    for (what, kinds, change) in cases {
        let (before, mut state) = (StatusCache::new(PublicUrls::at("http://api")), of());
        assert_eq!(reported(&before, &state, &serving(1)), both, "{what}: the first time");
        change(&mut state);
        assert_eq!(reported(&before, &state, &serving(1)), kinds, "{what}");
        assert_eq!(reported(&before, &state, &serving(1)), [], "{what}: twice");
    }
}

/// Whether it is ready, under way or stalled, with the reason and whether the message has this part.
fn verdict(state: &TenantState, replicas: &Replicas, part: &str) -> Vec<String> {
    let reports = StatusCache::new(PublicUrls::at("http://api")).tenant(state, replicas, false);
    let verdict = |report: StatusReport| {
        let conditions = report.status.conditions();
        let ready = &conditions[0];
        assert!(ready.message.contains(part), "{part} in {}", ready.message);
        let holds = conditions.iter().find(|it| it.status == "True").expect("one holds");
        format!("{} {}", holds.type_, ready.reason)
    };
    reports.into_iter().map(verdict).collect()
}

/// Seen to fail with replicas that count as serving by their generation alone, and with a reconciler that believes itself
/// more than the replicas.
#[test]
fn a_replica_that_cannot_connect_holds_ready_back_and_says_what_to_change() {
    const TRUSTS: &str = "no_password socket said";
    const FULL: &str = "too_many_connections socket sorry, too many clients already";
    let live = |each: &[(i64, Option<&str>)]| Replicas {
        live: each.iter().map(|(n, failure)| [(id(1), serves(*n, *failure))].into()).collect(),
        ..Replicas::default()
    };
    let trusted_here = || TenantState { login_failure: Some(LoginFailure::parse(TRUSTS)), ..tenant() };
    let starting = || Replicas { live: vec![[].into()], ..Replicas::default() };
    let barred =
        || Replicas { control: Some(LoginFailure::parse("certificate tls said")), ..Replicas::default() };
    for (state, replicas, expected, part) in [
        (tenant(), live(&[(1, None)]), "Ready Served", "served by 1 live replica"),
        (tenant(), live(&[(1, Some(TRUSTS))]), "Stalled LoginRefused", "1 of 1 live replicas cannot connect"),
        (tenant(), live(&[(0, Some(TRUSTS))]), "Stalled LoginRefused", "pg_hba.conf"),
        (tenant(), live(&[(1, None), (1, Some(TRUSTS))]), "Stalled LoginRefused", "1 of 2 live replicas"),
        (tenant(), live(&[(1, Some(FULL))]), "Reconciling DatabaseUnavailable", "max_connections"),
        (
            tenant(),
            live(&[(1, Some(FULL)), (1, Some(TRUSTS))]),
            "Stalled LoginRefused",
            "2 of 2 live replicas",
        ),
        // the replicas go there by another address, perhaps
        (trusted_here(), live(&[(1, None)]), "Ready Served", "served by 1"),
        (trusted_here(), live(&[(0, None)]), "Reconciling AwaitingReplicas", "served by 0 of 1"),
        (
            trusted_here(),
            starting(),
            "Stalled LoginRefused",
            "cannot log in to database t: PostgreSQL asks for no password",
        ),
        (trusted_here(), Replicas::default(), "Stalled LoginRefused", "(trust)"),
        (
            tenant(),
            barred(),
            "Stalled LoginRefused",
            "database rowgate: PostgreSQL asks for a client certificate",
        ),
        (tenant(), Replicas::default(), "Reconciling NoReplica", "start one"),
    ] {
        assert_eq!(verdict(&state, &replicas, part), [expected, expected], "{replicas:?}");
    }
    assert!(!awaits_replicas(&tenant(), &live(&[(0, Some(TRUSTS))])), "it says when it can");
    assert!(awaits_replicas(&tenant(), &live(&[(0, Some(TRUSTS)), (0, None)])));
}
