//! What Kafka takes for the name of a topic, so that a slip is found where it was made and not by the first task that writes.
//!
//! Source: Kafka's documentation of topics, and the brokers' answer INVALID_TOPIC_EXCEPTION. Left out: names that differ only in `.`
//! and `_`, which brokers refuse beside each other.

/// Kafka's limit.
const LENGTH_MAX: usize = 249;

/// So many characters that do not belong there are shown.
const SHOWN_MAX: usize = 5;

/// What a name is made of, in words.
pub(super) const CHARACTERS: &str = "1 to 249 of the characters a-z, A-Z, 0-9, '.', '_' and '-'";

/// Why no topic can have this name; `None` when one can. An empty text is refused in Kafka's words.
pub fn refusal(name: &str) -> Option<String> {
    if name.is_empty() {
        return Some("String must be non-empty".into());
    }
    let mut foreign: Vec<char> = name.chars().filter(|letter| !is_legal(*letter)).collect();
    foreign.sort_unstable();
    foreign.dedup();
    if !foreign.is_empty() {
        let shown: Vec<String> = foreign.iter().take(SHOWN_MAX).map(|letter| format!("{letter:?}")).collect();
        let more = if foreign.len() > SHOWN_MAX { " and others" } else { "" };
        return Some(format!("The name of a topic cannot contain {}{more}; it has {CHARACTERS}", shown.join(", ")));
    }
    if name.len() > LENGTH_MAX {
        return Some(format!("The name of a topic cannot have {} characters; it has {CHARACTERS}", name.len()));
    }
    (name == "." || name == "..").then(|| format!("'{name}' cannot be the name of a topic"))
}

fn is_legal(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '.' | '_' | '-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_of_topics_are_kafkas() {
        for name in ["t", "a.b_c-1", "...", &"x".repeat(249)] {
            assert_eq!(refusal(name), None, "{name}");
        }
        for (name, told) in [
            ("", "non-empty"),
            ("bad topic!", "' ', '!'"),
            ("\u{fc}", "'\u{fc}'"),
            ("a\nb", "'\\n'"),
            ("..", "'..'"),
            ("!\"#$%&/", "and others"),
            (&"x".repeat(250), "250"),
        ] {
            assert!(refusal(name).is_some_and(|refusal| refusal.contains(told)), "{name}: {:?}", refusal(name));
        }
    }
}
