//! What Parquet cannot hold is refused in words that say what to change, and never altered.

use rowgate_sql::shape::Encoding;

use super::{array, array_of, column, decimal, numeric, parquet};
use crate::{Column, EncodeError, Reason};

fn reason(column: Column, value: &[u8]) -> Reason {
    match parquet(column, &[None, Some(value)]) {
        Err(EncodeError::Unfit { reason, .. }) => reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn moments_that_parquet_does_not_know_are_refused() {
    for (encoding, value, expected) in [
        (Encoding::Date, &i32::MAX.to_be_bytes()[..], Reason::InfiniteDate),
        (Encoding::Date, &i32::MIN.to_be_bytes(), Reason::InfiniteDate),
        (Encoding::Date, &(i32::MAX - 1).to_be_bytes(), Reason::DateOutOfRange),
        (Encoding::Timestamp, &i64::MAX.to_be_bytes(), Reason::InfiniteTimestamp),
        (Encoding::TimestampTz, &i64::MIN.to_be_bytes(), Reason::InfiniteTimestamp),
        (Encoding::Timestamp, &9_223_371_331_199_999_999i64.to_be_bytes(), Reason::TimestampOutOfRange),
        (Encoding::Time, &86_400_000_000i64.to_be_bytes(), Reason::EndOfDay),
    ] {
        assert_eq!(reason(column("a", encoding), value), expected);
    }
}

#[test]
fn decimals_are_never_rounded() {
    for (precision, scale, value) in [
        (5, 2, "1000"),
        (5, 2, "-1000.00"),
        (5, 2, "0.001"),
        (5, 2, "0.00001"),
        (5, 2, "0.000000001"),
        (9, 0, "1000000000"),
        (18, 0, "1000000000000000000"),
        (38, 0, "100000000000000000000000000000000000000"),
        (38, 0, "999999999999999999999999999999999999999999999999"),
        (38, 38, "1"),
    ] {
        assert_eq!(reason(decimal(precision, scale), &numeric(value)), Reason::TooManyDigits, "{value}");
    }
    let huge = [1, 0x7fff, 0, 0, 1].into_iter().flat_map(u16::to_be_bytes).collect::<Vec<u8>>();
    assert_eq!(reason(decimal(38, 0), &huge), Reason::TooManyDigits);
    for (sign, expected) in
        [(0xc000, Reason::NotANumber), (0xd000, Reason::InfiniteNumber), (0xf000, Reason::InfiniteNumber)]
    {
        let value = [0, 0, sign, 0].into_iter().flat_map(u16::to_be_bytes).collect::<Vec<u8>>();
        for precision in [5, 15, 30] {
            assert_eq!(reason(decimal(precision, 2), &value), expected);
        }
    }
}

#[test]
fn lists_have_one_dimension() {
    let mut matrix =
        [2u32, 0, 23, 1, 1, 1, 1, 4, 7].into_iter().flat_map(u32::to_be_bytes).collect::<Vec<u8>>();
    assert_eq!(reason(column("a", array_of(23, Encoding::Int4)), &matrix), Reason::Dimensions);
    matrix[3] = 7;
    let refused = parquet(column("a", array_of(23, Encoding::Int4)), &[Some(&matrix)]);
    assert!(matches!(refused, Err(EncodeError::Malformed(_))));
    let dates = array(1082, &[Some(&i32::MAX.to_be_bytes())]);
    assert_eq!(reason(column("a", array_of(1082, Encoding::Date)), &dates), Reason::InfiniteDate);
}

#[test]
fn the_refusal_says_what_to_change() {
    let until = column("until", Encoding::TimestampTz);
    let refused = parquet(until, &[Some(&i64::MAX.to_be_bytes())]).expect_err("it does not fit");
    assert_eq!(
        refused.to_string(),
        "the column \"until\" holds infinity, which a Parquet timestamp cannot hold; export a query that casts it to \
         text, or use another format"
    );
}
