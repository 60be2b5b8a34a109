//! PostgreSQL's `numeric` to an integer that counts units of a decimal's scale.

use rowgate_pg::wire::{Fields, Malformed};

use super::column::Fault;
use crate::error::Reason;

const NEGATIVE: u16 = 0x4000;
/// Parquet's decimals have no more digits.
const MAX_PRECISION: u8 = 38;
/// `numeric` keeps four digits in each of its own.
const BASE: i128 = 10_000;
/// Of ten.
const POWERS: [i128; MAX_PRECISION as usize + 1] = {
    let mut powers = [1; MAX_PRECISION as usize + 1];
    let mut i = 1;
    while i < powers.len() {
        powers[i] = powers[i - 1] * 10;
        i += 1;
    }
    powers
};

/// A decimal of so many digits, so many of them behind the point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Decimal {
    pub(super) precision: u8,
    pub(super) scale: u8,
}

impl Decimal {
    /// Of a column whose `atttypmod` is `modifier`; `None`: its values have any number of digits, or too many.
    pub(super) fn of(modifier: i32) -> Option<Decimal> {
        let packed = modifier.checked_sub(4).filter(|packed| 0 <= *packed)?;
        let precision = u8::try_from(packed >> 16).ok()?;
        // eleven bits with a sign: scales of PostgreSQL may be negative, or greater than the precision
        let scale = ((packed & 0x7ff) ^ 0x400) - 0x400;
        let scale = u8::try_from(scale).ok()?;
        ((1..=MAX_PRECISION).contains(&precision) && scale <= precision)
            .then_some(Decimal { precision, scale })
    }

    /// How many bytes hold it.
    pub(super) fn n_bytes(self) -> usize {
        /// Of each precision; one bit is the sign.
        const N_BYTES: [usize; MAX_PRECISION as usize + 1] = {
            let mut n_bytes = [1; MAX_PRECISION as usize + 1];
            let mut precision = 1;
            while precision < n_bytes.len() {
                n_bytes[precision] = n_bytes[precision - 1];
                while n_bytes[precision] < 16 && 1 << (8 * n_bytes[precision] - 1) < POWERS[precision] {
                    n_bytes[precision] += 1;
                }
                precision += 1;
            }
            n_bytes
        };
        N_BYTES[usize::from(self.precision)]
    }

    /// The `numeric` in its binary form: four 16-bit numbers (how many digits, weight of the first, sign, digits shown after
    /// the point), then the digits in base 10,000.
    pub(super) fn read(self, value: &[u8]) -> Result<i128, Fault> {
        const BROKEN: Malformed = Malformed("a numeric in an invalid format");
        const LONG: Fault = Fault::Unfit(Reason::TooManyDigits);
        let mut fields = Fields::new(value);
        let n_digits = usize::from(u16::from_be_bytes(fields.bytes()?));
        let weight = i32::from(i16::from_be_bytes(fields.bytes()?));
        let sign = u16::from_be_bytes(fields.bytes()?);
        let _shown: [u8; 2] = fields.bytes()?;
        let (digits, odd) = fields.rest().as_chunks::<2>();
        if digits.len() != n_digits || !odd.is_empty() {
            return Err(BROKEN.into());
        }
        match sign {
            0 | NEGATIVE => {}
            0xc000 => return Err(Fault::Unfit(Reason::NotANumber)),
            0xd000 | 0xf000 => return Err(Fault::Unfit(Reason::InfiniteNumber)),
            _ => return Err(Malformed("a numeric with an unknown sign").into()),
        }
        // the power of ten of a digit's unit, as far as the decimal's unit is the first
        let mut power = 4 * (weight + 1) + i32::from(self.scale);
        let mut units = 0i128;
        for digit in digits {
            let digit = i128::from(u16::from_be_bytes(*digit));
            if BASE <= digit {
                return Err(BROKEN.into());
            }
            power -= 4;
            let (shift, digit) = match power {
                0.. => (BASE, digit),
                -3..0 => {
                    let cut = ten_to(-power);
                    if digit % cut != 0 {
                        return Err(LONG);
                    }
                    (BASE / cut, digit / cut)
                }
                _ if digit == 0 => continue,
                _ => return Err(LONG),
            };
            units = units.checked_mul(shift).and_then(|units| units.checked_add(digit)).ok_or(LONG)?;
        }
        if 0 < power && units != 0 {
            if i32::from(MAX_PRECISION) < power {
                return Err(LONG);
            }
            units = units.checked_mul(ten_to(power)).ok_or(LONG)?;
        }
        if self.limit() <= units {
            return Err(LONG);
        }
        Ok(if sign == NEGATIVE { -units } else { units })
    }

    /// One more than the greatest number of units.
    fn limit(self) -> i128 {
        ten_to(i32::from(self.precision))
    }
}

/// `power`: 0 to 38, which 128 bits hold.
fn ten_to(power: i32) -> i128 {
    POWERS[power as usize]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::tests::numeric;

    #[test]
    fn modifiers_give_precision_and_scale() {
        let of = |precision: i32, scale: i32| Decimal::of((precision << 16 | scale & 0x7ff) + 4);
        for (precision, scale) in [(1, 0), (1, 1), (9, 2), (18, 18), (38, 0), (38, 38)] {
            let decimal = Decimal { precision: precision as u8, scale: scale as u8 };
            assert_eq!(of(precision, scale), Some(decimal));
        }
        for (precision, scale) in [(39, 0), (1000, 2), (2, 3), (5, -2), (0, 0)] {
            assert_eq!(of(precision, scale), None, "{precision} {scale}");
        }
        for modifier in [-1, 0, 3, i32::MIN, i32::MAX] {
            assert_eq!(Decimal::of(modifier), None, "{modifier}");
        }
    }

    #[test]
    fn a_decimal_takes_as_few_bytes_as_hold_it() {
        for (precision, n_bytes) in
            [(1, 1), (2, 1), (3, 2), (9, 4), (18, 8), (19, 9), (20, 9), (37, 16), (38, 16)]
        {
            assert_eq!(Decimal { precision, scale: 0 }.n_bytes(), n_bytes, "{precision}");
        }
    }
    #[test]
    fn every_number_of_units_is_read() {
        let decimals = (1..=MAX_PRECISION).prop_flat_map(|precision| (Just(precision), 0..=precision));
        proptest!(ProptestConfig::with_cases(5_000), |((precision, scale) in decimals, any in any::<i128>(), cut in 0..38i32)| {
            let decimal = Decimal { precision, scale };
            let units = any % decimal.limit() / ten_to(cut) * ten_to(cut % 7);
            prop_assume!(units.abs() < decimal.limit());
            let one = ten_to(scale.into()).unsigned_abs();
            let sign = if units < 0 { "-" } else { "" };
            let (whole, part) = (units.unsigned_abs() / one, units.unsigned_abs() % one);
            let text = match scale {
                0 => format!("{sign}{whole}"),
                _ => format!("{sign}{whole}.{part:0width$}", width = usize::from(scale)),
            };
            prop_assert_eq!(decimal.read(&numeric(&text)), Ok(units), "{}", text);
            // with one digit less it fits only if that digit is not needed
            if scale < precision {
                let fewer = Decimal { precision: precision - 1, scale };
                let expected = if units.abs() < fewer.limit() { Ok(units) } else { Err(Fault::Unfit(Reason::TooManyDigits)) };
                prop_assume!(0 < fewer.precision);
                prop_assert_eq!(fewer.read(&numeric(&text)), expected, "{}", text);
            }
        });
    }
}
