//! Which versions of a plug-in a connector accepts (`*.plugin.version`, KIP-891).
//!
//! A requirement is a version, which must be there exactly, or ranges as Maven writes them: `[1.0,2.0)`, `(,1.5]`, `[1.0],[1.2,)`.
//! Each plug-in here has one version, so a requirement only accepts or refuses.

use std::cmp::Ordering;
use std::fmt;

/// How long a requirement may be.
const LENGTH_MAX: usize = 512;

/// What is wrong with a requirement (`*.plugin.version`), or with a plug-in of this version under it: half a sentence, to follow the
/// property's name; `None` when the plug-in will do.
pub fn refused_version(requirement: &str, version: &str) -> Option<String> {
    match VersionRequirement::parse(requirement) {
        Ok(Some(required)) if !required.accepts(version) => {
            Some(format!("asks for {requirement}; this worker has {version}, remove the property or change it"))
        }
        Ok(_) => None,
        Err(error) => Some(format!("makes no sense: {error}")),
    }
}

/// A lower or upper end of a range.
#[derive(Clone, Debug, PartialEq, Eq)]
struct End {
    version: String,
    included: bool,
}

/// One range; a missing end is open.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Range {
    lower: Option<End>,
    upper: Option<End>,
}

/// A requirement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct VersionRequirement(Vec<Range>);

impl VersionRequirement {
    /// Reads a requirement; `None` when any version will do.
    ///
    /// # Errors
    /// What Maven says of it.
    pub(crate) fn parse(text: &str) -> Result<Option<Self>, String> {
        let text = text.trim();
        if text.is_empty() || text == "latest" {
            return Ok(None);
        }
        if text.len() > LENGTH_MAX {
            return Err(format!("Version range of more than {LENGTH_MAX} bytes"));
        }
        if !text.starts_with(['[', '(']) {
            let end = || Some(End { version: text.into(), included: true });
            return Ok(Some(Self(vec![Range { lower: end(), upper: end() }])));
        }
        let mut ranges = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            if !rest.starts_with(['[', '(']) {
                return Err(format!("Only fully-qualified sets allowed in multiple set scenario: {text}"));
            }
            let close = rest.find([']', ')']).ok_or_else(|| format!("Unbounded range: {text}"))?;
            ranges.push(Range::parse(&rest[..=close])?);
            rest = rest[close + 1..].trim_start();
            rest = rest.strip_prefix(',').unwrap_or(rest).trim_start();
        }
        Ok(Some(Self(ranges)))
    }

    /// Whether it accepts a version.
    pub(crate) fn accepts(&self, version: &str) -> bool {
        self.0.iter().any(|range| range.accepts(version))
    }
}

impl fmt::Display for VersionRequirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, range) in self.0.iter().enumerate() {
            let version = |end: &Option<End>| end.as_ref().map(|end| end.version.clone()).unwrap_or_default();
            let included = |end: &Option<End>| end.as_ref().is_some_and(|end| end.included);
            let comma = if n == 0 { "" } else { "," };
            let (open, close) =
                (if included(&range.lower) { '[' } else { '(' }, if included(&range.upper) { ']' } else { ')' });
            write!(f, "{comma}{open}{},{}{close}", version(&range.lower), version(&range.upper))?;
        }
        Ok(())
    }
}

impl Range {
    /// Reads one range with its brackets.
    fn parse(text: &str) -> Result<Self, String> {
        let (lower_included, upper_included) = (text.starts_with('['), text.ends_with(']'));
        let inner = text[1..text.len() - 1].trim();
        let Some((lower, upper)) = inner.split_once(',') else {
            if !(lower_included && upper_included) || inner.is_empty() {
                return Err(format!("Single version must be surrounded by []: {text}"));
            }
            let end = || Some(End { version: inner.into(), included: true });
            return Ok(Self { lower: end(), upper: end() });
        };
        let end =
            |version: &str, included| (!version.is_empty()).then(|| End { version: version.to_owned(), included });
        let (lower, upper) = (end(lower.trim(), lower_included), end(upper.trim(), upper_included));
        if let (Some(lower), Some(upper)) = (&lower, &upper)
            && compare(&upper.version, &lower.version) == Ordering::Less
        {
            return Err(format!("Range defies version ordering: {text}"));
        }
        Ok(Self { lower, upper })
    }

    fn accepts(&self, version: &str) -> bool {
        let above = self.lower.as_ref().is_none_or(|end| match compare(version, &end.version) {
            Ordering::Greater => true,
            Ordering::Equal => end.included,
            Ordering::Less => false,
        });
        let below = self.upper.as_ref().is_none_or(|end| match compare(version, &end.version) {
            Ordering::Less => true,
            Ordering::Equal => end.included,
            Ordering::Greater => false,
        });
        above && below
    }
}

/// Numbers part by part; a word, such as `-rc1`, comes before the version without it.
fn compare(a: &str, b: &str) -> Ordering {
    let parts = |text: &str| -> Vec<String> { text.to_ascii_lowercase().split(['.', '-']).map(Into::into).collect() };
    let (a, b) = (parts(a), parts(b));
    let missing = String::from("0");
    (0..a.len().max(b.len()))
        .map(|n| {
            let (a, b) = (a.get(n).unwrap_or(&missing), b.get(n).unwrap_or(&missing));
            match (a.parse::<u64>(), b.parse::<u64>()) {
                (Ok(a), Ok(b)) => a.cmp(&b),
                (Ok(_), Err(_)) => Ordering::Greater,
                (Err(_), Ok(_)) => Ordering::Less,
                (Err(_), Err(_)) => a.cmp(b),
            }
        })
        .find(|ordering| ordering.is_ne())
        .unwrap_or(Ordering::Equal)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepts(requirement: &str, version: &str) -> bool {
        VersionRequirement::parse(requirement).unwrap().is_none_or(|requirement| requirement.accepts(version))
    }

    #[test]
    fn a_version_alone_must_be_there_exactly() {
        assert!(accepts("0.1.0", "0.1.0"));
        assert!(accepts("0.1", "0.1.0"));
        assert!(!accepts("0.1.1", "0.1.0"));
        assert!(accepts("latest", "0.1.0"));
        assert_eq!(VersionRequirement::parse("99.0").unwrap().unwrap().to_string(), "[99.0,99.0]");
    }

    #[test]
    fn ranges_have_open_and_closed_ends() {
        assert!(accepts("[0.1,)", "0.1.0"));
        assert!(!accepts("(0.1,)", "0.1.0"));
        assert!(accepts("(,0.2)", "0.1.0"));
        assert!(!accepts("(,0.1.0)", "0.1.0"));
        assert!(accepts("[0.0.1],[0.1,0.2]", "0.1.0"));
        assert!(accepts("(,1.0)", "1.0-rc1"));
        assert!(accepts("[1.9,)", "1.10"));
    }

    #[test]
    fn a_refusal_says_what_there_is() {
        assert_eq!(refused_version("[0.1,)", "0.1.0"), None);
        assert_eq!(refused_version("", "0.1.0"), None);
        let other = refused_version("4.3.1", "0.1.0").unwrap();
        assert!(other.contains("4.3.1") && other.contains("0.1.0"), "{other}");
        assert_eq!(refused_version("[1", "0.1.0").unwrap(), "makes no sense: Unbounded range: [1");
    }

    #[test]
    fn nonsense_is_refused() {
        for bad in ["[1", "(", "[1,2", "(1)", "[]", "[2,1]", "[1]x", &"9".repeat(513)] {
            assert!(VersionRequirement::parse(bad).is_err(), "{bad}");
        }
        assert_eq!(VersionRequirement::parse("[1").unwrap_err(), "Unbounded range: [1");
    }
}
