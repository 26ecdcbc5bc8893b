//! Text and base64 in quotes, escaped as Jackson escapes in Kafka.
//!
//! Control characters get a short escape or `\u` with upper-case digits; a character beyond the basic plane becomes a pair of escaped
//! surrogates (Jackson's default, `COMBINE_UNICODE_SURROGATES_IN_UTF8` off); everything else is UTF-8.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// What a byte of valid UTF-8 needs: nothing, an escape of its own, or the first of four bytes beyond the basic plane.
const fn is_plain(byte: u8) -> bool {
    byte >= 0x20 && byte != b'"' && byte != b'\\' && byte < 0xf0
}

const PLAIN: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        #[expect(clippy::cast_possible_truncation, reason = "below 256")]
        let value = byte as u8;
        table[byte] = is_plain(value);
        byte += 1;
    }
    table
};

/// Writes text in quotes.
pub fn write_text(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    write_escaped(text, out);
    out.push(b'"');
}

/// Writes bytes that are normally UTF-8 in quotes; what is not becomes U+FFFD.
pub fn write_text_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    for chunk in bytes.utf8_chunks() {
        write_escaped(chunk.valid(), out);
        if !chunk.invalid().is_empty() {
            out.extend_from_slice("\u{fffd}".as_bytes());
        }
    }
    out.push(b'"');
}

fn write_escaped(text: &str, out: &mut Vec<u8>) {
    let mut rest = text;
    while let Some(place) = rest.bytes().position(|byte| !PLAIN[usize::from(byte)]) {
        // A byte that is not plain starts a character, so the text may be cut before it.
        let (plain, special) = rest.split_at(place);
        out.extend_from_slice(plain.as_bytes());
        let mut characters = special.chars();
        if let Some(character) = characters.next() {
            write_escape(character, out);
        }
        rest = characters.as_str();
    }
    out.extend_from_slice(rest.as_bytes());
}

fn write_escape(character: char, out: &mut Vec<u8>) {
    let short = match character {
        '"' => b'"',
        '\\' => b'\\',
        '\u{8}' => b'b',
        '\t' => b't',
        '\n' => b'n',
        '\u{c}' => b'f',
        '\r' => b'r',
        _ => {
            for unit in character.encode_utf16(&mut [0; 2]) {
                write_unicode_escape(*unit, out);
            }
            return;
        }
    };
    out.extend_from_slice(&[b'\\', short]);
}

fn write_unicode_escape(unit: u16, out: &mut Vec<u8>) {
    out.extend_from_slice(b"\\u");
    for shift in [12, 8, 4, 0] {
        out.push(b"0123456789ABCDEF"[usize::from(unit >> shift & 0xf)]);
    }
}

/// Writes bytes as base64 in quotes: the standard alphabet, padded, in one line.
pub fn write_base64(bytes: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    let start = out.len();
    out.resize(start + bytes.len().div_ceil(3) * 4, 0);
    let written = STANDARD.encode_slice(bytes, &mut out[start..]).expect("four bytes were made for every three");
    out.truncate(start + written);
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: &[u8]) -> String {
        let mut out = Vec::new();
        write_text_bytes(bytes, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn escapes_are_jacksons() {
        assert_eq!(text("é\"\u{1}/\u{7f}\u{1f}".as_bytes()), "\"é\\\"\\u0001/\u{7f}\\u001F\"");
        assert_eq!(text("a😀b".as_bytes()), r#""a\uD83D\uDE00b""#);
        assert_eq!(text(b""), "\"\"");
    }

    #[test]
    fn what_is_not_utf_8_becomes_the_replacement_character() {
        assert_eq!(text(b"a\xff\xfeb\xe2\x82"), "\"a\u{fffd}\u{fffd}b\u{fffd}\"");
    }

    #[test]
    fn base64_is_standard_and_padded() {
        let mut out = Vec::new();
        write_base64(&[0xfb, 0xff, 0xfe, 1], &mut out);
        assert_eq!(out, b"\"+//+AQ==\"");
    }
}
