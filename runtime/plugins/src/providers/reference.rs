//! References in a text: `${provider:key}` and `${provider:path:key}`.
//!
//! Java finds them with `\$\{([^}]*?):(([^}]*?):)?([^}]*?)\}`: everything up to the first colon is the provider, up to the second the
//! path, the rest the key. What stands in place of a reference is not looked at again.

/// One reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reference<'a> {
    /// The alias of the provider.
    pub(super) provider: &'a str,
    /// Empty when none is given.
    pub(super) path: &'a str,
    pub(super) key: &'a str,
}

/// A piece of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    /// To be taken as it is.
    Text(&'a str),
    /// A reference, and how it is written.
    Reference(Reference<'a>, &'a str),
}

/// Whether the text holds a reference.
pub(super) fn has_reference(text: &str) -> bool {
    pieces(text).iter().any(|piece| matches!(piece, Piece::Reference(..)))
}

/// The text in pieces, which together are the text.
pub(super) fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut out = Vec::new();
    let (mut done, mut from) = (0, 0);
    while let Some(start) = text[from..].find("${").map(|at| from + at) {
        let Some(end) = text[start..].find('}').map(|at| start + at) else { break };
        match reference(&text[start + 2..end]) {
            Some(reference) => {
                if start > done {
                    out.push(Piece::Text(&text[done..start]));
                }
                out.push(Piece::Reference(reference, &text[start..=end]));
                (done, from) = (end + 1, end + 1);
            }
            None => from = start + 2,
        }
    }
    if done < text.len() {
        out.push(Piece::Text(&text[done..]));
    }
    out
}

fn reference(inner: &str) -> Option<Reference<'_>> {
    let (provider, rest) = inner.split_once(':')?;
    let (path, key) = rest.split_once(':').unwrap_or(("", rest));
    Some(Reference { provider, path, key })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(&str, &str, &str)> {
        pieces(text)
            .into_iter()
            .filter_map(|piece| match piece {
                Piece::Reference(one, _) => Some((one.provider, one.path, one.key)),
                Piece::Text(_) => None,
            })
            .collect()
    }

    #[test]
    fn a_reference_has_a_provider_a_key_and_maybe_a_path() {
        assert_eq!(found("${env:HOME}"), [("env", "", "HOME")]);
        assert_eq!(found("a${file:/x/y:pw}b${env:Z}"), [("file", "/x/y", "pw"), ("env", "", "Z")]);
        assert_eq!(found("${a:b:c:d}"), [("a", "b", "c:d")]);
        assert_eq!(found("${a::c}"), [("a", "", "c")]);
        assert_eq!(found("${ab${c:d}"), [("ab${c", "", "d")]);
        assert_eq!(found("${x} ${a:b}"), [("a", "", "b")]);
    }

    #[test]
    fn other_text_is_none() {
        for text in ["", "${", "${}", "${abc}", "$ {a:b}", "${a:b", "{a:b}"] {
            assert!(!has_reference(text), "{text}");
        }
    }

    #[test]
    fn the_pieces_together_are_the_text() {
        for text in ["", "x", "${a:b}", "x${a:b}y${c}z${", "ä${a:ö}ü"] {
            let whole: String = pieces(text)
                .into_iter()
                .map(|piece| match piece {
                    Piece::Text(text) | Piece::Reference(_, text) => text,
                })
                .collect();
            assert_eq!(whole, text);
        }
    }
}
