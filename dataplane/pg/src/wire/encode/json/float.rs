//! `float4` and `float8` with the shortest digits that read back, laid out as PostgreSQL does.

/// A finite number's shortest digits and the power of ten of the first one.
struct Digits {
    digits: [u8; 17],
    len: usize,
    exponent: i32,
}

/// A float as `mantissa` times 2 to the power of `exponent`.
struct Binary {
    mantissa: u64,
    exponent: i32,
    /// The next float below is nearer than the one above.
    power_of_two: bool,
}

pub(super) fn write8(value: f64, out: &mut Vec<u8>) {
    let bits = value.to_bits();
    let binary = Binary::new(bits & ((1 << 52) - 1), (bits >> 52 & 0x7ff) as i32, 52, 1075);
    let shortest = |text: &str| text.parse() == Ok(value);
    write(value, ryu::Buffer::new().format(value), 17, 15, &binary, shortest, out);
}

pub(super) fn write4(value: f32, out: &mut Vec<u8>) {
    let bits = u64::from(value.to_bits());
    let binary = Binary::new(bits & ((1 << 23) - 1), (bits >> 23 & 0xff) as i32, 23, 150);
    let shortest = |text: &str| text.parse() == Ok(value);
    write(f64::from(value), ryu::Buffer::new().format(value), 9, 6, &binary, shortest, out);
}

/// `max_len` digits always read back; from the power `wide` of ten on the number is written with an exponent.
fn write(
    value: f64,
    ryu: &str,
    max_len: usize,
    wide: i32,
    binary: &Binary,
    reads_back: impl Fn(&str) -> bool,
    out: &mut Vec<u8>,
) {
    if value.is_nan() {
        return out.extend_from_slice(b"\"NaN\"");
    }
    if value.is_infinite() {
        return out.extend_from_slice(if value < 0.0 { b"\"-Infinity\"" } else { b"\"Infinity\"" });
    }
    if value.is_sign_negative() {
        out.push(b'-');
    }
    let mut digits = Digits::parse(ryu);
    // A decimal halfway between two floats reads back when the mantissa is even, and ryu takes it; PostgreSQL never
    // does, so that readers that round otherwise are right too.
    if binary.mantissa.is_multiple_of(2) && binary.is_halfway(&digits) {
        for len in digits.len + 1..=max_len {
            let text = format!("{:.*e}", len - 1, value);
            let longer = Digits::parse(&text);
            if reads_back(&text) && !binary.is_halfway(&longer) {
                digits = longer;
                break;
            }
        }
    }
    digits.lay_out(wide, out);
}

impl Digits {
    /// From text such as `-1.5`, `0.001`, `1e20` or `1.25e-7`.
    fn parse(text: &str) -> Digits {
        let text = text.trim_start_matches('-');
        let (number, power) = text.split_once('e').unwrap_or((text, "0"));
        let point = number.find('.').unwrap_or(number.len()) as i32;
        let power: i32 = power.parse().expect("an exponent is a number");
        let mut digits = Digits { digits: [b'0'; 17], len: 0, exponent: power + point - 1 };
        for byte in number.bytes().filter(|&byte| byte != b'.') {
            match (digits.len, byte) {
                (0, b'0') => digits.exponent -= 1,
                // What ryu writes beyond 17 digits are zeros before the point.
                (17.., _) => {}
                (len, _) => {
                    digits.digits[len] = byte;
                    digits.len += 1;
                }
            }
        }
        while 0 < digits.len && digits.digits[digits.len - 1] == b'0' {
            digits.len -= 1;
        }
        if digits.len == 0 {
            digits.len = 1;
            digits.exponent = 0;
        }
        digits
    }

    fn lay_out(&self, wide: i32, out: &mut Vec<u8>) {
        let digits = &self.digits[..self.len];
        let zeros = |n: i32, out: &mut Vec<u8>| out.resize(out.len() + n as usize, b'0');
        if !(-4..wide).contains(&self.exponent) {
            out.push(digits[0]);
            if 1 < digits.len() {
                out.push(b'.');
                out.extend_from_slice(&digits[1..]);
            }
            out.extend_from_slice(if self.exponent < 0 { b"e-" } else { b"e+" });
            super::two_digits(self.exponent.unsigned_abs(), out);
        } else if self.exponent < 0 {
            out.extend_from_slice(b"0.");
            zeros(-self.exponent - 1, out);
            out.extend_from_slice(digits);
        } else {
            let whole = self.exponent as usize + 1;
            match digits.split_at_checked(whole) {
                None | Some((_, [])) => {
                    out.extend_from_slice(digits);
                    zeros((whole - digits.len()) as i32, out);
                }
                Some((whole, fraction)) => {
                    out.extend_from_slice(whole);
                    out.push(b'.');
                    out.extend_from_slice(fraction);
                }
            }
        }
    }
}

impl Binary {
    /// From the fields of a float of `bits` stored bits of mantissa.
    fn new(fraction: u64, biased: i32, bits: u32, bias: i32) -> Binary {
        match biased {
            0 => Binary { mantissa: fraction, exponent: 1 - bias, power_of_two: false },
            _ => Binary {
                mantissa: fraction | 1 << bits,
                exponent: biased - bias,
                power_of_two: fraction == 0 && 1 < biased,
            },
        }
    }

    /// Whether `digits` lie exactly between this float and one of its neighbours.
    fn is_halfway(&self, digits: &Digits) -> bool {
        let Binary { mantissa, exponent, power_of_two } = *self;
        let below = match power_of_two {
            true => (4 * mantissa - 1, exponent - 2),
            false => (2 * mantissa.max(1) - 1, exponent - 1),
        };
        digits.equal(2 * mantissa + 1, exponent - 1) || digits.equal(below.0, below.1)
    }
}

impl Digits {
    /// Whether these digits are `odd` times 2 to the power of `exponent`: compares the odd parts and the powers of two.
    fn equal(&self, odd: u64, exponent: i32) -> bool {
        let number =
            self.digits[..self.len].iter().fold(0u64, |sum, digit| 10 * sum + u64::from(digit - b'0'));
        if number == 0 {
            return false;
        }
        let power = self.exponent + 1 - self.len as i32;
        let twos = number.trailing_zeros();
        // Beyond these powers one side has more factors of 5 than the other has bits.
        let Some(fives) = (power.abs() <= 27).then(|| 5u128.pow(power.unsigned_abs())) else { return false };
        let number = u128::from(number >> twos);
        let equal = match power {
            0.. => number.checked_mul(fives) == Some(u128::from(odd)),
            ..0 => u128::from(odd).checked_mul(fives) == Some(number),
        };
        equal && twos as i32 + power == exponent
    }
}
