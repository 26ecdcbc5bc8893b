//! Levels of loggers, as `/admin/loggers` shows and sets them. Pure; a herder keeps one and turns it into its logger's filter.
//!
//! A logger is a name with `.` or `::` between its parts; a level set for a name holds for everything below it. As in Java, setting a name again
//! also changes the loggers below it that are known.

use std::collections::BTreeMap;

use crate::model::LoggerLevel;

/// The levels that can be set, as Java's Log4j knows them, most silent first.
pub const LEVELS: [&str; 8] = ["OFF", "FATAL", "ERROR", "WARN", "INFO", "DEBUG", "TRACE", "ALL"];

/// The root's name.
pub const ROOT: &str = "root";

/// How many loggers can be given a level of their own; each one is a name that a person made up.
pub const LOGGERS_MAX: usize = 1_000;

/// The known loggers.
#[derive(Clone, Debug)]
pub struct Loggers {
    root: Level,
    named: BTreeMap<String, Level>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Level {
    level: &'static str,
    last_modified: Option<i64>,
}

impl Level {
    fn shown(&self) -> LoggerLevel {
        LoggerLevel { level: Some(self.level.to_owned()), last_modified: self.last_modified }
    }

    fn set(&mut self, level: &'static str, now_ms: i64) -> bool {
        let changes = self.level != level;
        if changes {
            *self = Level { level, last_modified: Some(now_ms) };
        }
        changes
    }
}

/// The level of that name in any case, blanks around it ignored.
pub fn level(name: &str) -> Option<&'static str> {
    LEVELS.into_iter().find(|known| known.eq_ignore_ascii_case(name.trim()))
}

impl Loggers {
    /// Nothing but the root.
    pub fn new(root: &'static str) -> Self {
        Loggers { root: Level { level: root, last_modified: None }, named: BTreeMap::new() }
    }

    /// Every logger with a level of its own, the root last.
    pub fn all(&self) -> Vec<(String, LoggerLevel)> {
        let named = self.named.iter().map(|(name, level)| (name.clone(), level.shown()));
        named.chain([(ROOT.to_owned(), self.root.shown())]).collect()
    }

    /// One logger, `None` when it has no level of its own.
    pub fn one(&self, name: &str) -> Option<LoggerLevel> {
        if name.eq_ignore_ascii_case(ROOT) {
            return Some(self.root.shown());
        }
        self.named.get(name).map(Level::shown)
    }

    /// Sets a level for a name and everything known below it; the names that changed, sorted.
    pub fn set(&mut self, namespace: &str, level: &'static str, now_ms: i64) -> Vec<String> {
        if namespace.eq_ignore_ascii_case(ROOT) {
            let mut changed: Vec<String> = self
                .named
                .iter_mut()
                .filter_map(|(name, known)| known.set(level, now_ms).then(|| name.clone()))
                .collect();
            if self.root.set(level, now_ms) {
                changed.push(ROOT.to_owned());
            }
            return changed;
        }
        if !self.named.contains_key(namespace) && self.named.len() < LOGGERS_MAX {
            let inherited = Level { level: self.effective(namespace), last_modified: None };
            self.named.insert(namespace.to_owned(), inherited);
        }
        let below = self.named.iter_mut().filter(|(name, _)| is_below(name, namespace));
        below.filter_map(|(name, known)| known.set(level, now_ms).then(|| name.clone())).collect()
    }

    fn effective(&self, name: &str) -> &'static str {
        let above = self.named.iter().filter(|(other, _)| is_below(name, other));
        above.max_by_key(|(other, _)| other.len()).map_or(self.root.level, |(_, level)| level.level)
    }

    /// Directives in the way of `tracing_subscriber::EnvFilter`: the root first, `.` written as `::`. Names that are no path are left out.
    pub fn directives(&self) -> String {
        let mut out = directive(self.root.level).to_owned();
        for (name, level) in &self.named {
            let target = name.replace('.', "::");
            if target.chars().all(|character| character.is_ascii_alphanumeric() || matches!(character, '_' | ':' | '-'))
            {
                out.push_str(&format!(",{target}={}", directive(level.level)));
            }
        }
        out
    }
}

/// Whether `name` is `namespace` or below it.
fn is_below(name: &str, namespace: &str) -> bool {
    name.strip_prefix(namespace).is_some_and(|rest| rest.is_empty() || rest.starts_with('.') || rest.starts_with("::"))
}

fn directive(level: &str) -> &'static str {
    match level {
        "OFF" => "off",
        "FATAL" | "ERROR" => "error",
        "WARN" => "warn",
        "INFO" => "info",
        "DEBUG" => "debug",
        _ => "trace",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_holds_below_its_name_and_only_there() {
        let mut loggers = Loggers::new("INFO");
        assert_eq!(loggers.set("a.b", "DEBUG", 1), ["a.b"]);
        assert_eq!(loggers.set("a.b.c", "ERROR", 2), ["a.b.c"]);
        assert_eq!(loggers.set("a.bc", "WARN", 3), ["a.bc"]);
        assert_eq!(loggers.set("a.b", "TRACE", 4), ["a.b", "a.b.c"]);
        assert_eq!(loggers.set("a.b", "TRACE", 5), Vec::<String>::new());
        assert_eq!(loggers.one("a.b.c").and_then(|shown| shown.last_modified), Some(4));
        assert_eq!(loggers.one("a.bc").and_then(|shown| shown.level).as_deref(), Some("WARN"));
    }

    #[test]
    fn the_root_changes_everything() {
        let mut loggers = Loggers::new("INFO");
        loggers.set("a", "DEBUG", 1);
        assert_eq!(loggers.set("ROOT", "WARN", 2), ["a", "root"]);
        assert_eq!(loggers.directives(), "warn,a=warn");
    }

    #[test]
    fn names_made_up_by_persons_are_bounded() {
        let mut loggers = Loggers::new("INFO");
        for number in 0..LOGGERS_MAX + 10 {
            loggers.set(&format!("n{number}"), "DEBUG", 1);
        }
        assert_eq!(loggers.all().len(), LOGGERS_MAX + 1);
    }
}
