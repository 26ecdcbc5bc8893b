//! Names out of record keys, with Java's rules for what cannot be told apart.

/// `<connector>-<task>` behind the prefix of a key: the connector's name, which may hold dashes, and the task's number.
///
/// Java splits the whole key at its dashes and forgets empty parts at the end, so dashes behind the number do not count.
pub(crate) fn task(rest: &str) -> Option<(&str, u32)> {
    let (connector, number) = rest.trim_end_matches('-').rsplit_once('-')?;
    // Java's limit: its task numbers are signed.
    let number = number.parse::<i32>().ok()?;
    Some((connector, u32::try_from(number).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connector_may_have_dashes_and_digits_in_its_name() {
        assert_eq!(task("c-0"), Some(("c", 0)));
        assert_eq!(task("my-c-1-12"), Some(("my-c-1", 12)));
        assert_eq!(task("c--1"), Some(("c-", 1)));
        assert_eq!(task("c-1--"), Some(("c", 1)));
    }

    #[test]
    fn what_is_no_task_is_none() {
        for rest in ["", "-", "c", "0", "c-", "c-x", "c-2147483648", "c-1.0"] {
            assert_eq!(task(rest), None, "{rest}");
        }
    }
}
