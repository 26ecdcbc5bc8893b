//! Levels of loggers, set over REST (KIP-495) or for all workers at once by a record in the config topic (KIP-976).
//!
//! A namespace covers everything below it. Java's namespaces (`org.apache.kafka.connect`) and ours (`oncewire_worker`) are
//! both remembered and shown; only ours change what is logged here, and `root` changes all. Bound: [`NAMESPACES_MAX`] names.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The name of the logger above all others.
pub const ROOT: &str = "root";

/// Most namespaces with a level of their own: 1,000. More are refused: each costs at every log line.
pub const NAMESPACES_MAX: usize = 1_000;

/// Puts levels in force; the program that owns the log implements it.
pub trait LevelSink: Send + Sync {
    /// `levels` by namespace, upper case, `root` among them.
    fn apply(&self, levels: &BTreeMap<String, String>);
}

/// A level and when it was set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Level {
    /// Upper case, such as `DEBUG`.
    pub level: String,
    /// Milliseconds since 1970; `None`: since the start.
    pub modified_ms: Option<i64>,
}

/// The loggers of this process.
#[derive(Clone)]
pub struct Loggers {
    levels: Arc<Mutex<BTreeMap<String, Level>>>,
    sink: Arc<dyn LevelSink>,
}

impl Loggers {
    /// With the level that the process started with.
    pub fn new(root: &str, sink: Arc<dyn LevelSink>) -> Self {
        let start = Level { level: root.to_ascii_uppercase(), modified_ms: None };
        Self { levels: Arc::new(Mutex::new(BTreeMap::from([(ROOT.to_owned(), start)]))), sink }
    }

    /// All that have a level of their own.
    pub fn all(&self) -> Vec<(String, Level)> {
        self.with(|levels| levels.iter().map(|(name, level)| (name.clone(), level.clone())).collect())
    }

    /// The level in force for `name`: its own, or its nearest ancestor's. `None`: no such logger is known.
    pub fn level(&self, name: &str) -> Option<Level> {
        let name = canonical(name);
        self.with(|levels| {
            if let Some(level) = levels.get(name) {
                return Some(level.clone());
            }
            let below = levels.keys().any(|known| is_below(known, name));
            let above = levels.iter().filter(|(known, _)| is_below(name, known)).max_by_key(|(known, _)| known.len());
            match above {
                Some((_, level)) => Some(level.clone()),
                None if below => levels.get(ROOT).cloned(),
                None => None,
            }
        })
    }

    /// Sets a level; answers with the loggers whose level changed. `None`: there are too many.
    pub fn set(&self, name: &str, level: &str, now_ms: i64) -> Option<Vec<String>> {
        let name = canonical(name);
        let set = Level { level: level.to_owned(), modified_ms: Some(now_ms) };
        let (changed, all) = self.with(|levels| {
            if !levels.contains_key(name) && levels.len() >= NAMESPACES_MAX {
                return None;
            }
            let mut changed = vec![name.to_owned()];
            changed.extend(levels.keys().filter(|known| name != ROOT && is_below(known, name)).cloned());
            changed.retain(|name| levels.get(name).is_none_or(|known| known.level != level));
            for name in &changed {
                levels.insert(name.clone(), set.clone());
            }
            changed.sort();
            Some((changed, levels.iter().map(|(name, level)| (name.clone(), level.level.clone())).collect()))
        })?;
        self.sink.apply(&all);
        Some(changed)
    }

    fn with<R>(&self, work: impl FnOnce(&mut BTreeMap<String, Level>) -> R) -> R {
        // A panic elsewhere leaves whole entries.
        work(&mut self.levels.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl std::fmt::Debug for Loggers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Loggers").finish_non_exhaustive()
    }
}

/// The root's name in any case.
fn canonical(name: &str) -> &str {
    if name.eq_ignore_ascii_case(ROOT) { ROOT } else { name }
}

fn is_below(name: &str, namespace: &str) -> bool {
    name.strip_prefix(namespace).is_some_and(|rest| rest.starts_with('.') || rest.starts_with("::"))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Silent;

    impl LevelSink for Silent {
        fn apply(&self, _levels: &BTreeMap<String, String>) {}
    }

    /// G101
    #[test]
    fn a_namespace_covers_what_is_below_it() {
        let loggers = Loggers::new("info", Arc::new(Silent));
        assert_eq!(loggers.level(ROOT).unwrap().level, "INFO");
        assert_eq!(loggers.level("a.b"), None);
        assert_eq!(loggers.set("a.b", "DEBUG", 5).unwrap(), ["a.b"]);
        assert_eq!(loggers.set("a", "TRACE", 6).unwrap(), ["a", "a.b"]);
        assert_eq!(loggers.level("a.b.c").unwrap(), Level { level: "TRACE".into(), modified_ms: Some(6) });
        assert_eq!(loggers.level("ab"), None);
        assert_eq!(loggers.set("a.b", "TRACE", 7).unwrap(), Vec::<String>::new(), "nothing changed");
        assert_eq!(loggers.level("ROOT").unwrap().level, "INFO");
    }
}
