//! Levels of loggers, as `/admin/loggers` shows and sets them.

/// The levels that can be set, as Java's Log4j knows them, most silent first.
pub const LEVELS: [&str; 8] = ["OFF", "FATAL", "ERROR", "WARN", "INFO", "DEBUG", "TRACE", "ALL"];
