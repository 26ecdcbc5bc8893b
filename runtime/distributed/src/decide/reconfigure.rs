//! Whether the task configurations that a connector made differ from those in force.

use std::collections::BTreeMap;

/// A configuration as the config topic has it.
pub type ConfigMap = BTreeMap<String, Option<String>>;

/// What is in force.
#[derive(Debug, Clone, Copy)]
pub struct InForce<'a> {
    /// Task configurations by number.
    pub tasks: &'a [ConfigMap],
    /// The connector's configuration when they were committed, if this worker saw it.
    pub applied: Option<&'a ConfigMap>,
    /// The connector's configuration now.
    pub current: &'a ConfigMap,
}

/// Why the tasks have to be made anew; `None`: they need not.
///
/// A connector whose own configuration changed gets new tasks even when its task configurations are the same: a converter,
/// say, is set on the connector and used by the tasks (KAFKA-9228).
pub fn reason(made: &[ConfigMap], in_force: InForce<'_>) -> Option<&'static str> {
    if made.len() != in_force.tasks.len() {
        return Some("the number of tasks changed");
    }
    if made.iter().zip(in_force.tasks).any(|(made, known)| made != known) {
        return Some("a task configuration changed");
    }
    if in_force.applied.is_some_and(|applied| applied != in_force.current) {
        return Some("the connector's configuration changed");
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(pairs: &[(&str, &str)]) -> ConfigMap {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), Some((*value).to_owned()))).collect()
    }

    #[test]
    fn equal_configurations_change_nothing() {
        let tasks = [map(&[("a", "1")])];
        let config = map(&[("name", "c")]);
        let in_force = InForce { tasks: &tasks, applied: Some(&config), current: &config };
        assert_eq!(reason(&tasks, in_force), None);
        assert_eq!(reason(&tasks, InForce { applied: None, ..in_force }), None);
    }

    /// H105
    #[test]
    fn runtime_property_only_change_restarts_tasks() {
        let tasks = [map(&[("a", "1")])];
        let (before, after) = (map(&[("value.converter", "x")]), map(&[("value.converter", "y")]));
        let in_force = InForce { tasks: &tasks, applied: Some(&before), current: &after };
        assert!(reason(&tasks, in_force).is_some());
    }

    #[test]
    fn another_number_or_another_value_changes_them() {
        let tasks = [map(&[("a", "1")])];
        let config = map(&[]);
        let in_force = InForce { tasks: &tasks, applied: Some(&config), current: &config };
        assert!(reason(&[], in_force).is_some());
        assert!(reason(&[map(&[("a", "2")])], in_force).is_some());
    }
}
