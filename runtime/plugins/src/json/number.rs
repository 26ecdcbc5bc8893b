//! Numbers as Java writes them (`Long.toString`, `Double.toString`, `Float.toString`), without an allocation.
//!
//! Floating point follows the rule of Java 19 and later: as few digits as read back as the number, but at least two, and the closest of
//! those. Earlier versions of Java wrote a digit more for some numbers (JDK-4511638).

use std::fmt::LowerExp;
use std::io::Write;
use std::str::FromStr;

/// Longest: sign, 17 digits, point, `e-324`, and room.
const DIGITS_MAX: usize = 40;

/// Writes a whole number.
pub fn write_i64(number: i64, out: &mut Vec<u8>) {
    // Writing to a Vec does not fail.
    let _ = write!(out, "{number}");
}

/// Writes a double; NaN and the infinities as text in quotes, as Jackson does.
pub fn write_f64(number: f64, out: &mut Vec<u8>) {
    if number.is_finite() {
        write_finite(number, out);
    } else {
        write_not_finite(number, out);
    }
}

/// Writes a float; NaN and the infinities as text in quotes, as Jackson does.
pub fn write_f32(number: f32, out: &mut Vec<u8>) {
    if number.is_finite() {
        write_finite(number, out);
    } else {
        write_not_finite(number.into(), out);
    }
}

fn write_not_finite(number: f64, out: &mut Vec<u8>) {
    out.push(b'"');
    out.extend_from_slice(not_finite_name(number).as_bytes());
    out.push(b'"');
}

/// Java's name of a number that is not finite.
fn not_finite_name(number: f64) -> &'static str {
    match number {
        f64::INFINITY => "Infinity",
        f64::NEG_INFINITY => "-Infinity",
        _ => "NaN",
    }
}

/// As `String.valueOf(double)`: without quotes around what is not finite.
pub(crate) fn write_f64_bare(number: f64, out: &mut Vec<u8>) {
    if number.is_finite() {
        write_finite(number, out);
    } else {
        out.extend_from_slice(not_finite_name(number).as_bytes());
    }
}

/// As `String.valueOf(float)`: without quotes around what is not finite.
pub(crate) fn write_f32_bare(number: f32, out: &mut Vec<u8>) {
    if number.is_finite() {
        write_finite(number, out);
    } else {
        out.extend_from_slice(not_finite_name(number.into()).as_bytes());
    }
}

/// A number as digits and the exponent of the first one: 1234.5 is `12345` and 3.
struct Scientific {
    negative: bool,
    digits: [u8; DIGITS_MAX],
    count: usize,
    exponent: i32,
}

impl Scientific {
    /// Takes apart what Rust writes for `{:e}`: `-1.2345e3`.
    fn read(text: &[u8]) -> Self {
        let mut parts = Self { negative: false, digits: [b'0'; DIGITS_MAX], count: 0, exponent: 0 };
        let mut exponent_negative = false;
        let mut in_exponent = false;
        for byte in text {
            match (byte, in_exponent) {
                (b'-', false) => parts.negative = true,
                (b'-', true) => exponent_negative = true,
                (b'e', _) => in_exponent = true,
                (b'0'..=b'9', true) => parts.exponent = parts.exponent * 10 + i32::from(byte - b'0'),
                (b'0'..=b'9', false) => {
                    parts.digits[parts.count] = *byte;
                    parts.count += 1;
                }
                _ => {}
            }
        }
        if exponent_negative {
            parts.exponent = -parts.exponent;
        }
        while parts.count > 1 && parts.digits[parts.count - 1] == b'0' {
            parts.count -= 1;
        }
        parts
    }

    fn digits(&self) -> &[u8] {
        &self.digits[..self.count]
    }
}

fn write_finite<T: LowerExp + FromStr + PartialEq>(number: T, out: &mut Vec<u8>) {
    let mut buffer = [0; DIGITS_MAX];
    let mut parts = Scientific::read(render(&mut buffer, format_args!("{number:e}")));
    // Java wants at least two digits, the closest ones (4.9E-324, where one digit would be 5E-324), and of two that are equally close the
    // even one, where Rust's shortest form takes the upper one.
    if parts.count == 1 || parts.digits[parts.count - 1] % 2 == 1 {
        let fraction = parts.count.max(2) - 1;
        let closest = render(&mut buffer, format_args!("{number:.fraction$e}"));
        if std::str::from_utf8(closest).ok().and_then(|text| text.parse::<T>().ok()).is_some_and(|read| read == number)
        {
            parts = Scientific::read(closest);
        }
    }
    if parts.negative {
        out.push(b'-');
    }
    match parts.exponent {
        exponent @ 0..7 => write_plain(parts.digits(), exponent.unsigned_abs() as usize + 1, out),
        exponent @ -3..0 => {
            out.extend_from_slice(&b"0.00"[..exponent.unsigned_abs() as usize + 1]);
            out.extend_from_slice(parts.digits());
        }
        exponent => {
            write_plain(parts.digits(), 1, out);
            out.push(b'E');
            write_i64(exponent.into(), out);
        }
    }
}

fn render<'a>(buffer: &'a mut [u8; DIGITS_MAX], text: std::fmt::Arguments<'_>) -> &'a [u8] {
    let mut rest = &mut buffer[..];
    // A finite number in this form is far shorter than the buffer; cut off it would still be digits.
    let _ = rest.write_fmt(text);
    let left = rest.len();
    &buffer[..DIGITS_MAX - left]
}

/// Digits with a point after `whole` of them, at least one on either side.
fn write_plain(digits: &[u8], whole: usize, out: &mut Vec<u8>) {
    for place in 0..whole {
        out.push(digits.get(place).copied().unwrap_or(b'0'));
    }
    out.push(b'.');
    match digits.get(whole..) {
        Some(fraction) if !fraction.is_empty() => out.extend_from_slice(fraction),
        _ => out.push(b'0'),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn f64_text(number: f64) -> String {
        let mut out = Vec::new();
        write_f64(number, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn doubles_look_as_in_java() {
        let cases = [
            (1.0, "1.0"),
            (1e10, "1.0E10"),
            (0.1, "0.1"),
            (1e-5, "1.0E-5"),
            (0.00123, "0.00123"),
            (100.0, "100.0"),
            (f64::MAX, "1.7976931348623157E308"),
            (1e7, "1.0E7"),
            (9_999_999.0, "9999999.0"),
            (-0.0, "-0.0"),
            (f64::from_bits(1), "4.9E-324"),
            (2e23, "2.0E23"),
            (f64::NAN, "\"NaN\""),
        ];
        for (number, text) in cases {
            assert_eq!(f64_text(number), text);
        }
    }

    #[test]
    fn floats_have_the_digits_of_a_float() {
        let mut out = Vec::new();
        write_f32(3.3, &mut out);
        assert_eq!(out, b"3.3");
    }
}
