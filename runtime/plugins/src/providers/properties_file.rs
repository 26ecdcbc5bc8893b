//! Java's `.properties` syntax in UTF-8, as `java.util.Properties.load(Reader)` reads it.
//!
//! Of its own and not the `java-properties` crate, because that decodes ISO-8859-1, and a password with an umlaut must arrive whole.

use std::collections::BTreeMap;

/// The properties in a text. A `\u` that no four hexadecimal digits follow is an error, in Java too.
///
/// # Errors
/// What is wrong, without any of the text: it holds secrets.
pub(super) fn parse(text: &str) -> Result<BTreeMap<String, String>, String> {
    let mut out = BTreeMap::new();
    for line in logical_lines(text) {
        let end = key_end(&line);
        let value = line[end..].trim_start_matches(is_blank);
        let value = value.strip_prefix(['=', ':']).map_or(value, |value| value.trim_start_matches(is_blank));
        out.insert(unescaped(&line[..end])?, unescaped(value)?);
    }
    Ok(out)
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\u{c}')
}

/// Lines without comments, those that end with a lone backslash joined with the next.
fn logical_lines(text: &str) -> Vec<String> {
    let mut out = Vec::new();
    let mut open: Option<String> = None;
    for line in text.replace("\r\n", "\n").split(['\n', '\r']) {
        let line = line.trim_start_matches(is_blank);
        if open.is_none() && (line.is_empty() || line.starts_with(['#', '!'])) {
            continue;
        }
        let goes_on = line.chars().rev().take_while(|c| *c == '\\').count() % 2 == 1;
        let whole = open.take().unwrap_or_default() + if goes_on { &line[..line.len() - 1] } else { line };
        if goes_on {
            open = Some(whole);
        } else {
            out.push(whole);
        }
    }
    out.extend(open);
    out
}

/// Where the key ends: at the first blank, `=` or `:` without a backslash.
fn key_end(line: &str) -> usize {
    let mut is_escaped = false;
    for (at, c) in line.char_indices() {
        match c {
            '\\' => is_escaped = !is_escaped,
            c if !is_escaped && (is_blank(c) || c == '=' || c == ':') => return at,
            _ => is_escaped = false,
        }
    }
    line.len()
}

fn unescaped(text: &str) -> Result<String, String> {
    let mut units: Vec<u16> = Vec::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        let c = if c == '\\' {
            match chars.next() {
                None => break,
                Some('t') => '\t',
                Some('n') => '\n',
                Some('r') => '\r',
                Some('f') => '\u{c}',
                Some('u') => {
                    let digits: String = chars.by_ref().take(4).collect();
                    let unit = (digits.len() == 4).then(|| u16::from_str_radix(&digits, 16).ok()).flatten();
                    units.push(unit.ok_or("a \\u is not followed by four hexadecimal digits")?);
                    continue;
                }
                Some(c) => c,
            }
        } else {
            c
        };
        units.extend_from_slice(c.encode_utf16(&mut [0; 2]));
    }
    Ok(String::from_utf16_lossy(&units))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_values_are_read_as_java_reads_them() {
        let text = "# comment\n ! too\n\na=1\nb : 2\nc 3\n  d\t=  x y  \ne\\ f=g\\:h\nlong=one \\\n   two\nempty\nü=\\u00e4\\ud83d\\ude00ö\r\nback=a\\\\\n";
        let read = parse(text).unwrap();
        let expected = [
            ("a", "1"),
            ("b", "2"),
            ("back", "a\\"),
            ("c", "3"),
            ("d", "x y  "),
            ("e f", "g:h"),
            ("empty", ""),
            ("long", "one two"),
            ("ü", "ä😀ö"),
        ];
        assert_eq!(read, expected.map(|(key, value)| (key.to_string(), value.to_string())).into());
    }

    #[test]
    fn any_text_is_read_or_refused() {
        for text in ["\\", "\\\n", "=", ":", "a\\", "a=\\u12", "a=\\uzzzz", "\\u", "\u{0}", "a=\\ud800"] {
            let _ = parse(text); // must not panic
        }
        assert!(parse("a=\\u12").is_err());
        assert_eq!(parse("a=\\ud800").unwrap()["a"], "\u{fffd}");
    }
}
