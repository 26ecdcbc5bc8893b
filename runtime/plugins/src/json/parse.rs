//! A reader of JSON (RFC 8259) that keeps numbers as they were written: a decimal loses no digit and a double none of its bits.
//!
//! For bytes of unknown origin: nesting is bounded by [`DEPTH_MAX`], nothing is reserved by a declared length, and the tree takes a small
//! multiple of the input.

use std::borrow::Cow;
use std::fmt;

/// How deep lists and objects may nest.
pub const DEPTH_MAX: usize = 128;

/// JSON as it was written; objects keep their order and their repeated members.
#[derive(Clone, Debug, PartialEq)]
pub enum Json<'a> {
    /// null.
    Null,
    /// true or false.
    Bool(bool),
    /// A number, as written.
    Number(&'a str),
    /// Text.
    Text(Cow<'a, str>),
    /// A list.
    Array(Vec<Json<'a>>),
    /// Members.
    Object(Vec<(Cow<'a, str>, Json<'a>)>),
}

impl Json<'_> {
    /// The kind in a word, for messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Number(_) => "a number",
            Self::Text(_) => "text",
            Self::Array(_) => "a list",
            Self::Object(_) => "an object",
        }
    }

    /// A member of an object; of repeated ones the last, as in Jackson.
    pub fn member(&self, name: &str) -> Option<&Self> {
        match self {
            Self::Object(members) => members.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value),
            _ => None,
        }
    }
}

/// Why bytes are no JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JsonError {
    /// What is wrong.
    pub message: &'static str,
    /// At which byte.
    pub place: usize,
}

impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not valid JSON: {} at byte {}", self.message, self.place)
    }
}

impl std::error::Error for JsonError {}

/// Reads one JSON text, with nothing but white space around it.
///
/// # Errors
/// [`JsonError`] with the place of the first mistake.
pub fn parse(bytes: &[u8]) -> Result<Json<'_>, JsonError> {
    let text = std::str::from_utf8(bytes)
        .map_err(|error| JsonError { message: "bytes that are not UTF-8", place: error.valid_up_to() })?;
    let mut reader = Reader { text, place: 0 };
    let value = reader.value(0)?;
    reader.skip_space();
    if reader.place < text.len() { Err(reader.error("more text after the value")) } else { Ok(value) }
}

struct Reader<'a> {
    text: &'a str,
    place: usize,
}

impl<'a> Reader<'a> {
    fn error(&self, message: &'static str) -> JsonError {
        JsonError { message, place: self.place }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.place).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.place += usize::from(found);
        found
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.place += 1;
        }
    }

    fn value(&mut self, depth: usize) -> Result<Json<'a>, JsonError> {
        if depth > DEPTH_MAX {
            return Err(self.error("nested too deep"));
        }
        self.skip_space();
        match self.peek() {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'"') => self.string().map(Json::Text),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b'n') => self.word("null", Json::Null),
            Some(b't') => self.word("true", Json::Bool(true)),
            Some(b'f') => self.word("false", Json::Bool(false)),
            Some(_) => Err(self.error("unexpected character")),
            None => Err(self.error("the text ends too early")),
        }
    }

    fn word(&mut self, word: &str, value: Json<'a>) -> Result<Json<'a>, JsonError> {
        if !self.text[self.place..].starts_with(word) {
            return Err(self.error("unexpected word"));
        }
        self.place += word.len();
        Ok(value)
    }

    fn array(&mut self, depth: usize) -> Result<Json<'a>, JsonError> {
        self.place += 1;
        let mut items = Vec::new();
        self.skip_space();
        if self.take(b']') {
            return Ok(Json::Array(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            self.skip_space();
            if self.take(b']') {
                return Ok(Json::Array(items));
            }
            if !self.take(b',') {
                return Err(self.error("a list needs ',' or ']'"));
            }
        }
    }

    fn object(&mut self, depth: usize) -> Result<Json<'a>, JsonError> {
        self.place += 1;
        let mut members = Vec::new();
        self.skip_space();
        if self.take(b'}') {
            return Ok(Json::Object(members));
        }
        loop {
            self.skip_space();
            if self.peek() != Some(b'"') {
                return Err(self.error("an object needs a name in quotes"));
            }
            let name = self.string()?;
            self.skip_space();
            if !self.take(b':') {
                return Err(self.error("a name needs ':' after it"));
            }
            members.push((name, self.value(depth + 1)?));
            self.skip_space();
            if self.take(b'}') {
                return Ok(Json::Object(members));
            }
            if !self.take(b',') {
                return Err(self.error("an object needs ',' or '}'"));
            }
        }
    }

    fn digits(&mut self) -> Result<(), JsonError> {
        let start = self.place;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.place += 1;
        }
        if self.place == start { Err(self.error("a digit is missing")) } else { Ok(()) }
    }

    fn number(&mut self) -> Result<Json<'a>, JsonError> {
        let start = self.place;
        self.take(b'-');
        if self.take(b'0') {
            if matches!(self.peek(), Some(b'0'..=b'9')) {
                return Err(self.error("a number starts with a needless 0"));
            }
        } else {
            self.digits()?;
        }
        if self.take(b'.') {
            self.digits()?;
        }
        if self.take(b'e') || self.take(b'E') {
            if !self.take(b'+') {
                self.take(b'-');
            }
            self.digits()?;
        }
        Ok(Json::Number(&self.text[start..self.place]))
    }

    fn string(&mut self) -> Result<Cow<'a, str>, JsonError> {
        self.place += 1;
        let mut owned: Option<String> = None;
        loop {
            let start = self.place;
            while !matches!(self.peek(), Some(b'"' | b'\\' | ..0x20) | None) {
                self.place += 1;
            }
            // All three stops are ASCII, so the text may be cut there.
            let plain = &self.text[start..self.place];
            match self.peek() {
                Some(b'"') => {
                    self.place += 1;
                    return Ok(match owned {
                        None => Cow::Borrowed(plain),
                        Some(text) => Cow::Owned(text + plain),
                    });
                }
                Some(b'\\') => {
                    self.place += 1;
                    let text = owned.get_or_insert_default();
                    text.push_str(plain);
                    let character = self.escape()?;
                    text.push(character);
                }
                Some(_) => return Err(self.error("a control character in text")),
                None => return Err(self.error("text without its closing quote")),
            }
        }
    }

    fn escape(&mut self) -> Result<char, JsonError> {
        let byte = self.peek().ok_or_else(|| self.error("text without its closing quote"))?;
        self.place += 1;
        Ok(match byte {
            b'"' => '"',
            b'\\' => '\\',
            b'/' => '/',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => return self.unicode_escape(),
            _ => {
                self.place -= 1;
                return Err(self.error("unknown escape"));
            }
        })
    }

    fn unicode_escape(&mut self) -> Result<char, JsonError> {
        let first = self.four_digits()?;
        let units = if (0xd800..0xdc00).contains(&first) && self.text[self.place..].starts_with("\\u") {
            self.place += 2;
            vec![first, self.four_digits()?]
        } else {
            vec![first]
        };
        let mut characters = char::decode_utf16(units);
        match (characters.next(), characters.next()) {
            (Some(Ok(character)), None) => Ok(character),
            _ => Err(self.error("half a surrogate pair")),
        }
    }

    fn four_digits(&mut self) -> Result<u16, JsonError> {
        let digits =
            self.text.get(self.place..self.place + 4).filter(|text| text.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let unit = digits.and_then(|text| u16::from_str_radix(text, 16).ok());
        let unit = unit.ok_or_else(|| self.error("'\\u' needs four hexadecimal digits"))?;
        self.place += 4;
        Ok(unit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_order_are_kept() {
        let json = parse(br#" {"b": [1.50, -0, 1E+3], "a": {"x": null}, "b2": true} "#).unwrap();
        let Json::Object(members) = &json else { panic!("{json:?}") };
        assert_eq!(members.iter().map(|(name, _)| &**name).collect::<Vec<_>>(), ["b", "a", "b2"]);
        assert_eq!(members[0].1, Json::Array(vec![Json::Number("1.50"), Json::Number("-0"), Json::Number("1E+3")]));
    }

    #[test]
    fn escapes_are_undone() {
        let json = parse(br#""a\"\\\/\b\f\n\r\t\u00e9\uD83D\ude00z""#).unwrap();
        assert_eq!(json, Json::Text("a\"\\/\u{8}\u{c}\n\r\té😀z".into()));
        assert!(matches!(parse(b"\"plain\"").unwrap(), Json::Text(Cow::Borrowed("plain"))));
    }

    #[test]
    fn what_is_no_json_is_refused_with_its_place() {
        let bad: [&[u8]; 24] = [
            b"",
            b" ",
            b"{",
            b"[",
            b"[1",
            b"[1,",
            b"[1,]",
            b"{\"a\"",
            b"{\"a\":",
            b"{\"a\":1,}",
            b"{a:1}",
            b"01",
            b"1.",
            b"1e",
            b"-",
            b"+1",
            b"nul",
            b"\"a",
            b"\"\\x\"",
            b"\"\\uD83D\"",
            b"\"\\u12G4\"",
            b"\"\x01\"",
            b"1 2",
            b"\"\xff\"",
        ];
        for bytes in bad {
            assert!(parse(bytes).is_err(), "{}", String::from_utf8_lossy(bytes));
        }
        assert_eq!(parse(b"[1 2]").unwrap_err().place, 3);
        assert!(parse("\"\\u12é\"".as_bytes()).is_err());
    }

    #[test]
    fn nesting_is_bounded() {
        let deep = "[".repeat(100_000);
        assert_eq!(parse(deep.as_bytes()).unwrap_err().message, "nested too deep");
        let fits = "[".repeat(DEPTH_MAX) + &"]".repeat(DEPTH_MAX);
        assert!(parse(fits.as_bytes()).is_ok());
    }

    #[test]
    fn no_cut_and_no_changed_byte_makes_it_panic() {
        let sample = "[\"c\",{\"k\\u00e9\":-1.5e3,\"é\":[true,null,\"\\uD83D\\uDE00\"]}]".as_bytes();
        assert!(parse(sample).is_ok());
        for place in 0..sample.len() {
            assert!(parse(&sample[..place]).is_err(), "cut at {place}");
            for byte in 0..=255 {
                let mut changed = sample.to_vec();
                changed[place] = byte;
                // Right or wrong does not matter here, only that there is an answer.
                let _ = parse(&changed);
            }
        }
    }
}
