//! Which media types a request may send and accept: JSON. Pure, and as wide as Java's: quality values are not looked at.

use crate::error::Failure;

/// The one media type.
pub(crate) const JSON: &str = "application/json";

/// Checks `Accept`.
///
/// # Errors
/// 406 when nothing in it covers JSON.
pub(crate) fn check_accept<'a>(accept: impl IntoIterator<Item = &'a str>) -> Result<(), Failure> {
    let mut ranges =
        accept.into_iter().flat_map(|value| value.split(',')).map(essence).filter(|range| !range.is_empty()).peekable();
    let anything = ranges.peek().is_none();
    let covered = anything || ranges.any(|range| matches!(range.as_str(), "*/*" | "application/*" | JSON));
    covered.then_some(()).ok_or_else(|| Failure::plain(406))
}

/// Checks `Content-Type`, for every method: Java's resources consume JSON alone. `takes_body` is for resources that read the body.
///
/// # Errors
/// 415 for another type; 400 for what is no type at all.
pub(crate) fn check_content_type(
    content_type: Option<&str>,
    takes_body: bool,
    body_is_empty: bool,
) -> Result<(), Failure> {
    let Some(content_type) = content_type else {
        // Without a type Java takes the bytes for a stream, which it cannot make a configuration of.
        return if takes_body && !body_is_empty { Err(Failure::plain(415)) } else { Ok(()) };
    };
    let range = essence(content_type);
    if !range.contains('/') {
        return Err(Failure::new(400, format!("Content-Type '{content_type}' is no media type")));
    }
    match range.as_str() {
        JSON => Ok(()),
        "*/*" | "application/*" if !takes_body => Ok(()),
        _ => Err(Failure::plain(415)),
    }
}

fn essence(range: &str) -> String {
    range.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_acceptable_under_every_name_that_covers_it() {
        for accept in [
            "*/*",
            "application/*",
            "application/json",
            "Application/JSON; q=0.1",
            "text/html, application/json;q=0.5",
            "",
        ] {
            assert_eq!(check_accept([accept]), Ok(()), "{accept}");
        }
        assert_eq!(check_accept([]), Ok(()));
        for accept in ["text/html", "nonsense", "application/vnd.api+json"] {
            assert_eq!(check_accept([accept]).expect_err(accept).code, 406);
        }
    }

    #[test]
    fn only_json_may_be_sent() {
        assert_eq!(check_content_type(Some("application/json; charset=utf-8"), true, false), Ok(()));
        assert_eq!(check_content_type(None, false, false), Ok(()));
        assert_eq!(check_content_type(None, true, true), Ok(()));
        assert_eq!(check_content_type(None, true, false).expect_err("no type").code, 415);
        assert_eq!(check_content_type(Some("text/plain"), false, true).expect_err("text").code, 415);
        assert_eq!(check_content_type(Some("nonsense"), true, false).expect_err("no type").code, 400);
    }
}
