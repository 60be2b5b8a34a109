//! When a rotation is due, as tables over recorded times.

use std::collections::BTreeMap;

use rowgate_core::name::Ulid;

use super::*;
use crate::desired::{RotationSpec, Scope, SecretSpec};

const HOUR: i64 = 3600;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).expect("a time")
}

fn id(n: u8) -> Ulid {
    Ulid::from_parts(1, [n; 10])
}

fn secret(n: u8, created: i64, expires: Option<i64>) -> KeySecret {
    KeySecret {
        id: id(n),
        finder: format!("finder{n:06}"),
        digest: vec![n; 32],
        created_at: at(created),
        expires_at: expires.map(at),
        revoked_at: None,
        replaces: None,
    }
}

/// A key whose Secret holds secret 1, made at 0, with a rotation every 10 h that overlaps by 2 h.
fn key() -> (KeySpec, Key) {
    let hours = |n: u64| Duration::from_secs(n * 3600);
    let spec = KeySpec {
        id: id(9),
        uid: "uid".to_owned(),
        namespace: "default".to_owned(),
        name: "key".to_owned(),
        generation: 1,
        scope: Scope::Unscoped,
        claims: BTreeMap::new(),
        expires_at: None,
        revoked: false,
        secret: Some(SecretSpec {
            id: id(8),
            finder: "finder000001".to_owned(),
            digest: [1; 32],
            replaces: None,
        }),
        rotation: Some(RotationSpec { every: hours(10), overlap: hours(2) }),
        rotate: None,
        verifier: String::new(),
    };
    let row = Key {
        uid: "uid".to_owned(),
        namespace: "default".to_owned(),
        name: "key".to_owned(),
        role: "datalake_user".to_owned(),
        set_role: None,
        expires_at: None,
        revoked_at: None,
        resolved: serde_json::Value::Null,
        rotated_for: None,
        secrets: vec![secret(1, 0, None)],
    };
    (spec, row)
}

#[test]
fn a_secret_is_due_when_it_is_as_old_as_the_manifest_says() {
    let (mut spec, row) = key();
    for now in [0, 1, 9 * HOUR, 10 * HOUR, 100 * HOUR] {
        assert_eq!(due(&spec, &row, at(now)), Some(at(10 * HOUR)), "at {now}");
    }
    spec.rotation = None;
    assert_eq!(due(&spec, &row, at(100 * HOUR)), None, "no rotation, no annotation");
}

#[test]
fn a_rotation_of_the_manifest_waits_for_the_end_of_the_overlap_before_it() {
    let (spec, mut row) = key();
    // every was shortened meanwhile: the old secret keeps the end that it was promised
    row.secrets.push(secret(2, -50 * HOUR, Some(30 * HOUR)));
    row.secrets[0].replaces = Some(id(2));
    assert_eq!(due(&spec, &row, at(11 * HOUR)), Some(at(30 * HOUR)));
    assert_eq!(due(&spec, &row, at(30 * HOUR)), Some(at(10 * HOUR)), "it has died");
    row.secrets[1].revoked_at = Some(at(12 * HOUR));
    assert_eq!(due(&spec, &row, at(12 * HOUR)), Some(at(10 * HOUR)), "somebody revoked it");
}

#[test]
fn each_value_of_the_annotation_is_due_at_once_and_once() {
    let (mut spec, mut row) = key();
    spec.rotate = Some(digest("a"));
    assert_eq!(due(&spec, &row, at(HOUR)), Some(at(0)));
    spec.rotation = None;
    assert_eq!(due(&spec, &row, at(HOUR)), Some(at(0)), "without rotation in the manifest, too");
    row.rotated_for.clone_from(&spec.rotate);
    assert_eq!(due(&spec, &row, at(HOUR)), None);
    spec.rotate = Some(digest("b"));
    assert_eq!(due(&spec, &row, at(HOUR)), Some(at(0)));
    spec.rotate = None;
    assert_eq!(due(&spec, &row, at(HOUR)), None, "removed");
}

#[test]
fn nothing_is_due_of_a_key_that_does_not_work() {
    type Change = fn(&mut KeySpec, &mut Key);
    let changes: [(&str, Change); 6] = [
        ("revoked in the manifest", |spec, _| spec.revoked = true),
        ("revoked in the database", |_, row| row.revoked_at = Some("2026-01-01T00:00:00Z".to_owned())),
        ("expired", |spec, _| spec.expires_at = Some("2026-01-01T00:00:00Z".to_owned())),
        ("its Secret not read", |spec, _| spec.secret = None),
        ("its Secret's key not stored yet", |_, row| row.secrets.clear()),
        ("its Secret's key replaced", |_, row| row.secrets[0].expires_at = Some(at(200 * HOUR))),
    ];
    for (what, change) in changes {
        let (mut spec, mut row) = key();
        spec.rotate = Some(digest("a"));
        change(&mut spec, &mut row);
        assert_eq!(due(&spec, &row, at(100 * HOUR)), None, "{what}");
    }
}

#[test]
fn no_span_overflows() {
    let (mut spec, row) = key();
    let longest = Duration::from_secs(9_999_999 * 86_400);
    spec.rotation = Some(RotationSpec { every: longest, overlap: longest });
    assert_eq!(due(&spec, &row, at(0)), None, "beyond the year 9999");
    assert_eq!(overlap(&spec), MAX_OVERLAP);
}
