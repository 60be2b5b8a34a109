//! Decimals as PostgreSQL's `numeric` adds, divides and writes them.

/// The number times 10 to the power of `scale`; further digits are left out.
pub(super) fn scaled(text: &str, scale: u32) -> i128 {
    let (sign, digits) = text.strip_prefix('-').map_or((1, text), |digits| (-1, digits));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let fraction: String = fraction.chars().chain("0".repeat(40).chars()).take(scale as usize).collect();
    sign * format!("{whole}{fraction}").parse::<i128>().expect("digits")
}

pub(super) fn spelt(scaled: i128, scale: u32) -> String {
    let digits = format!("{:0width$}", scaled.unsigned_abs(), width = scale as usize + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale as usize);
    let sign = if scaled < 0 { "-" } else { "" };
    let point = if fraction.is_empty() { "" } else { "." };
    format!("{sign}{whole}{point}{fraction}")
}

/// A sum divided by a number of values: 16 significant digits, counted by fours.
pub(super) fn divided(sum: i128, scale: u32, n: usize) -> String {
    let n = i128::try_from(n).expect("few values");
    let ((above, first_above), (below, first_below)) = (weight(sum, scale), weight(n, 0));
    let quotient = above - below - i64::from(first_above <= first_below);
    let digits = u32::try_from((16 - 4 * quotient).max(scale.into())).expect("not negative");
    let dividend = sum.abs() * 10_i128.pow(digits - scale);
    let rounded = (2 * dividend + n) / (2 * n);
    spelt(rounded * sum.signum(), digits)
}

/// The position of the first group of four digits that is not zero, from the point on, and that group.
fn weight(scaled: i128, scale: u32) -> (i64, i128) {
    if scaled == 0 {
        return (0, 0);
    }
    let padded = scale.next_multiple_of(4);
    let mut rest = scaled.abs() * 10_i128.pow(padded - scale);
    let mut position = -i64::from(padded / 4);
    while 10_000 <= rest {
        rest /= 10_000;
        position += 1;
    }
    (position, rest)
}

#[test]
fn averages_are_those_of_postgresql() {
    for (sum, scale, n, wanted) in [
        (10, 0, 4, "2.5000000000000000"),
        (1, 0, 3, "0.33333333333333333333"),
        (0, 0, 3, "0.00000000000000000000"),
        (-200, 2, 3, "-0.66666666666666666667"),
        (1_000_000, 2, 3, "3333.3333333333333333"),
        (14_000_500_000_000_001, 0, 2, "7000250000000000.5000"),
    ] {
        assert_eq!(divided(sum, scale, n), wanted, "{sum} {scale} {n}");
    }
}
