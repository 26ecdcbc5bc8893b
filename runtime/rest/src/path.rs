//! Paths and queries as they are on the wire: taken apart, decoded once, and put together. Pure.

/// Why a path or a query cannot be read; answered with 400, as Java's server does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PathError {
    /// `//` inside the path.
    EmptySegment,
    /// `%` without two hexadecimal digits.
    Percent,
    /// The decoded bytes are no UTF-8.
    Utf8,
    /// A control character, plain or encoded.
    Control,
}

impl PathError {
    /// For the error body.
    pub(crate) fn message(self) -> &'static str {
        match self {
            PathError::EmptySegment => "the path has an empty segment",
            PathError::Percent => "the path has a percent sign without two hexadecimal digits; write it as %25",
            PathError::Utf8 => "the path is no UTF-8",
            PathError::Control => "the path has a control character",
        }
    }
}

/// The decoded segments of a raw path; none for `/`. One trailing slash is ignored, and so is what follows a plain `;` in a segment.
///
/// # Errors
/// See [`PathError`].
pub(crate) fn segments(path: &str) -> Result<Vec<String>, PathError> {
    let path = path.strip_prefix('/').unwrap_or(path);
    let path = path.strip_suffix('/').unwrap_or(path);
    if path.is_empty() {
        return Ok(Vec::new());
    }
    path.split('/').map(segment).collect()
}

fn segment(raw: &str) -> Result<String, PathError> {
    let raw = raw.split(';').next().unwrap_or_default();
    if raw.is_empty() {
        return Err(PathError::EmptySegment);
    }
    let decoded = decode(raw)?;
    if decoded.chars().any(|character| character.is_ascii_control()) {
        return Err(PathError::Control);
    }
    Ok(decoded)
}

fn decode(raw: &str) -> Result<String, PathError> {
    let mut bytes = Vec::with_capacity(raw.len());
    let mut rest = raw.as_bytes();
    while let [first, after @ ..] = rest {
        if *first != b'%' {
            bytes.push(*first);
            rest = after;
            continue;
        }
        let [high, low, after @ ..] = after else { return Err(PathError::Percent) };
        bytes.push(hexadecimal(*high)? << 4 | hexadecimal(*low)?);
        rest = after;
    }
    String::from_utf8(bytes).map_err(|_| PathError::Utf8)
}

fn hexadecimal(digit: u8) -> Result<u8, PathError> {
    match digit {
        b'0'..=b'9' => Ok(digit - b'0'),
        b'a'..=b'f' => Ok(digit - b'a' + 10),
        b'A'..=b'F' => Ok(digit - b'A' + 10),
        _ => Err(PathError::Percent),
    }
}

/// Writes a name as one path segment: what RFC 3986 allows in a segment stays, everything else (with `/` and `%`) is encoded.
/// Dots stay even where they make a dot segment: Java's server refuses them encoded, and serves them plain.
pub(crate) fn encode_segment(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => out.push(char::from(byte)),
            _ if b"-._~!$&'()*+,:=@".contains(&byte) => out.push(char::from(byte)),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

/// A query's pairs, decoded, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    /// Takes a raw query apart. What cannot be decoded is taken as it is.
    pub(crate) fn parse(raw: Option<&str>) -> Self {
        let pairs = raw.unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
        let plain = |text: &str| {
            let text = text.replace('+', " ");
            decode(&text).unwrap_or(text)
        };
        Query(
            pairs
                .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
                .map(|(name, value)| (plain(name), plain(value)))
                .collect(),
        )
    }

    /// The first value of that name.
    pub(crate) fn first(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }

    /// All values of that name.
    pub(crate) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |(other, _)| other == name).map(|(_, value)| value.as_str())
    }

    /// As Java reads a boolean: `true` in any case is true, anything else is false.
    pub(crate) fn flag(&self, name: &str) -> Option<bool> {
        self.first(name).map(|value| value.eq_ignore_ascii_case("true"))
    }
}

/// A raw query with `forward` replaced.
pub(crate) fn with_forward(raw: Option<&str>, forward: bool) -> String {
    let others =
        raw.unwrap_or_default().split('&').filter(|pair| !pair.is_empty() && pair.split('=').next() != Some("forward"));
    others.map(str::to_owned).chain([format!("forward={forward}")]).collect::<Vec<_>>().join("&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_encoded_segment_is_decoded_to_the_name() {
        for name in
            ["a b", "a/b", "50%", "a%2Fb", "..", ".", "þ-ሴ😀", "ta/b&c=d//\\rx=1þ.1>< `'\" x%y+z!ሴ#$&'()*+,:;=?ñ@[]ÿ"]
        {
            assert_eq!(segments(&format!("/{}", encode_segment(name))), Ok(vec![name.to_owned()]), "{name}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_told() {
        assert_eq!(segments("//connectors"), Err(PathError::EmptySegment));
        assert_eq!(segments("/a/%"), Err(PathError::Percent));
        assert_eq!(segments("/a/%zz"), Err(PathError::Percent));
        assert_eq!(segments("/a/%ff%fe"), Err(PathError::Utf8));
        assert_eq!(segments("/a/%00"), Err(PathError::Control));
        assert_eq!(segments("/"), Ok(vec![]));
    }

    #[test]
    fn flags_are_read_as_java_reads_them() {
        let query = Query::parse(Some("a=TRUE&b=yes&c=&d&a=false&e=x+y%20z"));
        assert_eq!(query.flag("a"), Some(true));
        assert_eq!(query.flag("b"), Some(false));
        assert_eq!(query.flag("c"), Some(false));
        assert_eq!(query.flag("d"), Some(false));
        assert_eq!(query.flag("z"), None);
        assert_eq!(query.first("e"), Some("x y z"));
    }

    #[test]
    fn forward_is_replaced_and_the_rest_kept() {
        assert_eq!(with_forward(None, true), "forward=true");
        assert_eq!(with_forward(Some("includeTasks=true&forward=true&x"), false), "includeTasks=true&x&forward=false");
    }
}
