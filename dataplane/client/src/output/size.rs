//! Sizes for people.

/// `1,234,567`.
#[must_use]
pub(crate) fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut shown = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i != 0 && (digits.len() - i).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

/// `1.5 MB`: powers of 1000, as `ls --si` and storage vendors count.
#[must_use]
pub(crate) fn bytes(n: u64) -> String {
    const UNITS: [&str; 5] = ["kB", "MB", "GB", "TB", "PB"];
    if n < 1000 {
        return format!("{n} B");
    }
    let (mut unit, mut tenths) = (0, u128::from(n) / 100);
    while 9_999 < tenths && unit + 1 < UNITS.len() {
        tenths /= 1000;
        unit += 1;
    }
    format!("{}.{} {}", tenths / 10, tenths % 10, UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_short() {
        for (n, shown) in [(0, "0"), (999, "999"), (1000, "1,000"), (12_345_678, "12,345,678")] {
            assert_eq!(count(n), shown);
        }
        for (n, shown) in [
            (0, "0 B"),
            (999, "999 B"),
            (1000, "1.0 kB"),
            (999_999, "999.9 kB"),
            (1_000_000, "1.0 MB"),
            (12_345_678_901, "12.3 GB"),
        ] {
            assert_eq!(bytes(n), shown);
        }
    }
}
