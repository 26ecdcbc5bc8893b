//! Log lines on standard error: `INFO` and above by default, `ONCEWIRE_LOG` (tracing's filter syntax) for more or less. A
//! running worker's levels are changed over REST (`/admin/loggers`); they then take the place of what was given at the start.

use oncewire_distributed::loggers::{LevelSink, ROOT};
use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::sync::OnceLock;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Registry, reload};

/// The filter in force; set once by [`start`].
static FILTER: OnceLock<reload::Handle<EnvFilter, Registry>> = OnceLock::new();

/// Starts logging for this process.
pub(crate) fn start() {
    let (filter, complaint) = match std::env::var("ONCEWIRE_LOG") {
        Err(_) => (EnvFilter::new("info"), None),
        Ok(text) => match EnvFilter::try_new(&text) {
            Ok(filter) => (filter, None),
            Err(error) => {
                (EnvFilter::new("info"), Some(format!("ONCEWIRE_LOG={text:?} is not understood ({error}); using info")))
            }
        },
    };
    let (filter, handle) = reload::Layer::new(filter);
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false);
    tracing_subscriber::registry().with(filter).with(lines).init();
    // Logging is started once per process; a second handle would speak of the same filter.
    let _ = FILTER.set(handle);
    if let Some(complaint) = complaint {
        tracing::warn!("{complaint}");
    }
}

/// The level that the process began with.
pub(crate) fn root_level() -> String {
    let level = tracing_subscriber::filter::LevelFilter::current();
    level.to_string().to_ascii_uppercase()
}

/// Puts levels that were set over REST in force.
pub(crate) struct Levels;

impl LevelSink for Levels {
    fn apply(&self, levels: &BTreeMap<String, String>) {
        let Some(handle) = FILTER.get() else { return };
        let directives: Vec<String> = levels
            .iter()
            // Java's namespaces are remembered, but nothing here logs under them.
            .filter(|(namespace, _)| namespace.chars().all(|letter| letter.is_alphanumeric() || "_:".contains(letter)))
            .map(|(namespace, level)| match namespace.as_str() {
                ROOT => ours(level).to_owned(),
                namespace => format!("{namespace}={}", ours(level)),
            })
            .collect();
        match EnvFilter::try_new(directives.join(",")) {
            Ok(filter) => {
                if let Err(error) = handle.reload(filter) {
                    tracing::warn!("levels can't be changed: {error}");
                }
            }
            Err(error) => tracing::warn!("levels are not understood: {error}"),
        }
    }
}

/// Log4j's levels in tracing's words.
fn ours(level: &str) -> &'static str {
    match level {
        "OFF" => "off",
        "FATAL" | "ERROR" => "error",
        "WARN" => "warn",
        "DEBUG" => "debug",
        "TRACE" | "ALL" => "trace",
        _ => "info",
    }
}
