//! Loggers as Java's worker keeps them: a level set for a name holds for everything known below it, and what has changed is told.

use std::collections::BTreeMap;

use oncewire_rest::model::LoggerLevel;

const ROOT: &str = "root";

/// Levels by name, with the root.
pub(crate) struct Loggers(BTreeMap<String, LoggerLevel>);

impl Loggers {
    pub(crate) fn new(root: &str) -> Self {
        Loggers([(ROOT.to_owned(), LoggerLevel { level: Some(root.to_owned()), last_modified: None })].into())
    }

    pub(crate) fn all(&self) -> Vec<(String, LoggerLevel)> {
        self.0.clone().into_iter().collect()
    }

    pub(crate) fn one(&self, name: &str) -> Option<LoggerLevel> {
        let name = if name.eq_ignore_ascii_case(ROOT) { ROOT } else { name };
        self.0.get(name).cloned()
    }

    /// The names that changed, sorted.
    pub(crate) fn set(&mut self, namespace: &str, level: &str) -> Vec<String> {
        self.0.entry(namespace.to_owned()).or_insert(LoggerLevel { level: None, last_modified: None });
        let below =
            |name: &str| name.strip_prefix(namespace).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
        let mut changed = Vec::new();
        for (name, known) in self.0.iter_mut().filter(|(name, _)| below(name)) {
            if known.level.as_deref() != Some(level) {
                *known = LoggerLevel { level: Some(level.to_owned()), last_modified: Some(1) };
                changed.push(name.clone());
            }
        }
        changed
    }
}
