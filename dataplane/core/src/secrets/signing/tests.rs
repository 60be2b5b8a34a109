//! The schedule of signing keys, second by second, and the promises that its constants make to each other.

use super::*;

const T: i64 = 1_800_000_000;

/// Generation 2 begins to sign at `T + LEAD`; the look was at `read_at`.
fn rotating(read_at: i64) -> Schedule {
    let generations =
        vec![Generation { number: 1, signs_from: 0 }, Generation { number: 2, signs_from: T + LEAD }];
    Schedule::new(generations, read_at).expect("one signs")
}

fn quiet(read_at: i64) -> Schedule {
    Schedule::new(vec![Generation { number: 1, signs_from: 0 }], read_at).expect("one signs")
}

/// Signing generation, published ones, the one that is verified only.
fn stand(schedule: &Schedule, now: i64) -> (u32, Vec<u32>, Option<u32>) {
    let stand = schedule.at(now);
    assert!(stand.published.contains(&stand.signing), "{stand:?}");
    (stand.signing, stand.published, stand.unpublished)
}

#[test]
fn a_new_key_is_published_then_signs_and_then_the_old_one_leaves() {
    let over = T + LEAD + KEEP;
    for (now, signing, published, next) in [
        (T, 1, vec![1, 2], 3),
        (T + LEAD - 1, 1, vec![1, 2], 3),
        (T + LEAD, 2, vec![1, 2], 3),
        (over - 1, 2, vec![1, 2], 3),
        (over, 2, vec![2], 3),
    ] {
        assert_eq!(stand(&rotating(now), now), (signing, published, Some(next)), "{}", now - T);
    }
    assert_eq!(stand(&quiet(T), T), (1, vec![1], Some(2)));
}

#[test]
fn a_replica_that_is_cut_off_publishes_the_next_key_and_signs_no_more() {
    assert!(quiet(T).at(T + LEASE).may_sign);
    assert!(!quiet(T).at(T + LEASE + 1).may_sign);
    assert_eq!(stand(&quiet(T), T + LEASE + 1), (1, vec![1, 2], None));
    // what it knows of a rotation goes on by itself
    let stale = rotating(T).at(T + LEAD + 1);
    assert_eq!((stale.signing, stale.may_sign), (2, false));
}

/// For each second of a rotation that a replica misses: what the others sign it verifies, and what it signs they verify.
#[test]
fn no_token_meets_a_replica_that_does_not_know_its_key() {
    // the row of generation 2 comes right after the look of the one that is cut off
    for now in (T..T + LEAD + KEEP + 2 * LIFETIME).step_by(10) {
        let (current, behind) = (rotating(now).at(now), quiet(T).at(now));
        let verifies =
            |stand: &Stand, number| stand.published.contains(&number) || stand.unpublished == Some(number);
        assert!(verifies(&behind, current.signing), "second {}", now - T);
        // a token that was just made, and one at the end of its life
        for later in [0, LIFETIME + 3 * LEEWAY] {
            let at = now + later;
            assert!(!behind.may_sign || verifies(&rotating(at).at(at), behind.signing), "second {}", now - T);
            assert!(verifies(&rotating(at).at(at), current.signing), "second {}", now - T);
        }
        // whoever took the JWKS of either at its oldest knows what the other signs with
        let (old, older) = (quiet(T).at(now - JWKS_MAX_AGE), rotating(T).at(now - JWKS_MAX_AGE));
        let kept = if now - JWKS_MAX_AGE < T { quiet(T).at(T) } else { old };
        assert!(kept.published.contains(&current.signing), "second {}", now - T);
        assert!(now - JWKS_MAX_AGE < T || older.published.contains(&current.signing), "second {}", now - T);
    }
}

#[test]
fn the_spans_leave_room_for_each_other() {
    const { assert!(LEASE + JWKS_MAX_AGE < LEAD, "a replica cut off publishes early enough") };
    const { assert!(LIFETIME + 3 * LEEWAY < KEEP, "a token's whole life by any clock") };
}

#[test]
fn no_key_signs_where_none_is_to() {
    let later = vec![Generation { number: 1, signs_from: T + 1 }];
    assert_eq!(Schedule::new(later, T), None);
    assert_eq!(Schedule::new(Vec::new(), T), None);
}

#[test]
fn a_generation_that_is_verified_only_is_in_no_jwks() {
    let root = Root::new([1; 32]);
    let signers = quiet(T).at(T).signers(&root);
    assert!(signers.jwks().contains(r#""kid":"1-"#) && !signers.jwks().contains(r#""kid":"2-"#));
    let stale = quiet(T).at(T + LEASE + 1).signers(&root);
    assert!(stale.jwks().contains(r#""kid":"1-"#) && stale.jwks().contains(r#""kid":"2-"#));
}
