//! `response.http.headers.config`: headers that go with every response. Pure.
//!
//! A comma-separated list of `[set|add|setDate|addDate] Name: value`; an element with commas in it stands in double quotes. The value of the date
//! actions is a number of milliseconds from now.

use crate::calendar::http_date;

/// One rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderRule {
    /// Replaces what is there, or adds to it.
    pub replaces: bool,
    /// The header.
    pub name: String,
    /// What it says.
    pub value: HeaderText,
}

/// A header's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeaderText {
    /// As it is.
    Fixed(String),
    /// A date that many milliseconds from now.
    FromNow(i64),
}

impl HeaderText {
    /// The text at `now_ms`.
    pub fn at(&self, now_ms: i64) -> String {
        match self {
            HeaderText::Fixed(text) => text.clone(),
            HeaderText::FromNow(milliseconds) => http_date(now_ms.saturating_add(*milliseconds)),
        }
    }
}

/// Reads the list.
///
/// # Errors
/// What is wrong with which element.
pub fn parse(config: &str) -> Result<Vec<HeaderRule>, String> {
    elements(config).iter().filter(|element| !element.is_empty()).map(|element| rule(element)).collect()
}

fn elements(config: &str) -> Vec<String> {
    let mut elements = vec![String::new()];
    let mut quoted = false;
    for character in config.chars() {
        match character {
            '"' => quoted = !quoted,
            ',' if !quoted => elements.push(String::new()),
            _ => elements.last_mut().expect("there is always one element").push(character),
        }
    }
    elements.iter().map(|element| element.trim().to_owned()).collect()
}

fn rule(element: &str) -> Result<HeaderRule, String> {
    let (action, header) = element.split_once(char::is_whitespace).ok_or_else(|| {
        format!("invalid format of header config '{element}', expected '[action] [header name]:[header value]'")
    })?;
    let (replaces, is_date) = match action {
        "set" => (true, false),
        "add" => (false, false),
        "setDate" => (true, true),
        "addDate" => (false, true),
        _ => {
            return Err(format!("invalid header config action '{action}', expected one of set, add, setDate, addDate"));
        }
    };
    let (name, value) = header.split_once(':').ok_or_else(|| {
        format!(
            "invalid format of header name and header value pair '{header}', expected '[header name]:[header value]'"
        )
    })?;
    let (name, value) = (name.trim(), value.trim());
    let is_token = |text: &str| {
        !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
    };
    if !is_token(name) {
        return Err(format!("invalid header name '{name}'"));
    }
    if value.chars().any(char::is_control) {
        return Err(format!("the value of header '{name}' has a control character"));
    }
    let value = if is_date {
        let milliseconds = value
            .parse()
            .map_err(|_| format!("the value of header '{name}' is no number of milliseconds: '{value}'"))?;
        HeaderText::FromNow(milliseconds)
    } else {
        HeaderText::Fixed(value.to_owned())
    };
    Ok(HeaderRule { replaces, name: name.to_owned(), value })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_element_in_quotes_may_have_commas() {
        let rules =
            parse(r#"add X-Frame-Options: DENY, "set Cache-Control: no-cache, no-store", setDate Expires: 1000"#)
                .expect("rules");
        assert_eq!(
            rules[0],
            HeaderRule {
                replaces: false,
                name: "X-Frame-Options".to_owned(),
                value: HeaderText::Fixed("DENY".to_owned())
            }
        );
        assert_eq!(rules[1].value, HeaderText::Fixed("no-cache, no-store".to_owned()));
        assert_eq!(rules[2].value.at(784_111_776_000), "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(parse(""), Ok(vec![]));
    }

    #[test]
    fn wrong_rules_are_refused_with_their_text() {
        for config in ["set", "set X", "put X: 1", "set X Y: 1", "set : 1", "setDate Expires: soon"] {
            assert!(parse(config).is_err(), "{config}");
        }
    }
}
