//! The levels that `/admin/loggers` takes (KIP-495). Which loggers there are, and what a level does, is the herder's.

/// The levels that can be set, as Java's Log4j knows them, most silent first.
pub const LEVELS: [&str; 8] = ["OFF", "FATAL", "ERROR", "WARN", "INFO", "DEBUG", "TRACE", "ALL"];

/// The level of that name in any case, blanks around it ignored.
pub fn level(name: &str) -> Option<&'static str> {
    LEVELS.into_iter().find(|known| known.eq_ignore_ascii_case(name.trim()))
}
