//! Decimals as text (Java's `BigDecimal.toString`) and back.
//!
//! The conversion takes time that grows with the square of the digits, so their number is bounded.

use oncewire_api::Decimal;
use oncewire_api::converter::ConvertError;

/// The greatest unscaled number, in bytes (about 9,800 digits).
const UNSCALED_BYTES_MAX: usize = 4096;

/// The most digits of a number that is read.
const DIGITS_MAX: usize = 9800;

/// One limb in the conversion to decimal.
const LIMB: u64 = 1_000_000_000;

/// Appends a decimal as Java writes it: `1.20`, `1E-7`, `1.2E+4`.
pub(super) fn write_decimal(decimal: &Decimal, out: &mut Vec<u8>) -> Result<(), ConvertError> {
    let (negative, digits) = digits(decimal)?;
    if negative {
        out.push(b'-');
    }
    let digits = digits.as_bytes();
    let scale = i64::from(decimal.scale);
    let count = i64::try_from(digits.len()).unwrap_or(i64::MAX);
    let adjusted = count - 1 - scale;
    if scale == 0 {
        out.extend_from_slice(digits);
    } else if scale > 0 && adjusted >= -6 {
        match usize::try_from(count - scale) {
            Ok(whole @ 1..) => {
                out.extend_from_slice(&digits[..whole]);
                out.push(b'.');
                out.extend_from_slice(&digits[whole..]);
            }
            _ => {
                out.extend_from_slice(b"0.");
                out.extend((count..scale).map(|_| b'0'));
                out.extend_from_slice(digits);
            }
        }
    } else {
        out.push(digits[0]);
        if digits.len() > 1 {
            out.push(b'.');
            out.extend_from_slice(&digits[1..]);
        }
        if adjusted != 0 {
            out.extend_from_slice(format!("E{adjusted:+}").as_bytes());
        }
    }
    Ok(())
}

/// The sign and the decimal digits of the unscaled number.
fn digits(decimal: &Decimal) -> Result<(bool, String), ConvertError> {
    let bytes = decimal.unscaled_bytes();
    if bytes.len() > UNSCALED_BYTES_MAX {
        let message = format!("a decimal of {} bytes is written as text up to {UNSCALED_BYTES_MAX}", bytes.len());
        return Err(ConvertError::Value(message));
    }
    let negative = bytes.first().is_some_and(|byte| byte & 0x80 != 0);
    let mut magnitude = bytes.to_vec();
    if negative {
        negate(&mut magnitude);
    }
    let mut limbs: Vec<u64> = vec![0]; // least significant first
    for byte in magnitude {
        let mut carry = u64::from(byte);
        for limb in &mut limbs {
            let value = *limb * 256 + carry;
            *limb = value % LIMB;
            carry = value / LIMB;
        }
        if carry > 0 {
            limbs.push(carry);
        }
    }
    let mut text = limbs.pop().unwrap_or(0).to_string();
    for limb in limbs.iter().rev() {
        text.push_str(&format!("{limb:09}"));
    }
    Ok((negative, text))
}

/// Two's complement, big-endian. The smallest number of a length stays as it is, which read without a sign is its magnitude.
fn negate(bytes: &mut [u8]) {
    let mut carry = true;
    for byte in bytes.iter_mut().rev() {
        let (value, overflow) = (!*byte).overflowing_add(u8::from(carry));
        *byte = value;
        carry = overflow;
    }
}

/// Reads a JSON number without loss; `None` when it has more than [`DIGITS_MAX`] digits or an exponent beyond 32 bits.
pub(super) fn read_decimal(text: &str) -> Option<Decimal> {
    let (number, exponent) = match text.split_once(['e', 'E']) {
        Some((number, exponent)) => (number, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let (negative, whole) = whole.strip_prefix('-').map_or((false, whole), |whole| (true, whole));
    if whole.len() + fraction.len() > DIGITS_MAX {
        return None;
    }
    let mut magnitude: Vec<u8> = vec![0]; // least significant first
    for digit in whole.bytes().chain(fraction.bytes()) {
        let mut carry = u16::from(digit.checked_sub(b'0').filter(|digit| *digit < 10)?);
        for byte in &mut magnitude {
            let [high, low] = (u16::from(*byte) * 10 + carry).to_be_bytes();
            (carry, *byte) = (u16::from(high), low);
        }
        if carry > 0 {
            magnitude.push(u8::try_from(carry).ok()?);
        }
    }
    magnitude.push(0); // room for the sign
    magnitude.reverse();
    if negative {
        negate(&mut magnitude);
    }
    let scale = i32::try_from(fraction.len()).ok()?.checked_sub(exponent)?;
    Some(Decimal::from_unscaled_bytes(&magnitude, scale))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(unscaled: i128, scale: i32) -> String {
        let mut out = Vec::new();
        write_decimal(&Decimal::new(unscaled, scale), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn decimals_look_as_in_java() {
        let cases = [
            (123, 2, "1.23"),
            (-1, 2, "-0.01"),
            (0, 2, "0.00"),
            (12, -3, "1.2E+4"),
            (1, 7, "1E-7"),
            (1, 6, "0.000001"),
            (-12345, 12, "-1.2345E-8"),
            (-128, 0, "-128"),
            (i128::MIN, 0, "-170141183460469231731687303715884105728"),
            (100, 2, "1.00"),
            (0, 8, "0E-8"),
            (1, -1, "1E+1"),
        ];
        for (unscaled, scale, expected) in cases {
            assert_eq!(text(unscaled, scale), expected);
        }
    }

    #[test]
    fn decimals_are_read_without_loss() {
        let cases = [
            ("1.23", 123, 2),
            ("-0.01", -1, 2),
            ("1.2E+4", 12, -3),
            ("1E-7", 1, 7),
            ("0", 0, 0),
            ("-128", -128, 0),
            ("65536", 65536, 0),
        ];
        for (written, unscaled, scale) in cases {
            assert_eq!(read_decimal(written), Some(Decimal::new(unscaled, scale)), "{written}");
        }
        assert_eq!(read_decimal(&"9".repeat(DIGITS_MAX + 1)), None);
        assert_eq!(read_decimal("1e99999999999"), None);
    }

    #[test]
    fn a_decimal_too_long_for_text_is_refused() {
        let huge = Decimal::from_unscaled_bytes(&[0x7f; UNSCALED_BYTES_MAX + 1], 0);
        assert!(write_decimal(&huge, &mut Vec::new()).is_err());
    }
}
