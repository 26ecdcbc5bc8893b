//! Log lines on standard error: `INFO` and above by default, `ONCEWIRE_LOG` (tracing's filter syntax) for more or less. A
//! running worker's levels are changed over REST (`/admin/loggers`); they then take the place of what was given at the start.
//!
//! Every line, and what is said of a panic, goes out by the mask of the secrets that config providers gave, and then as one line.

use crate::log_line::{Colours, OneLine, paragraph};
use oncewire_distributed::loggers::{LevelSink, ROOT};
use oncewire_plugins::providers::Secrets;
use std::backtrace::{Backtrace, BacktraceStatus};
use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};
use std::panic::PanicHookInfo;
use std::sync::OnceLock;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Registry, reload};

/// The filter in force; set once by [`start`].
static FILTER: OnceLock<reload::Handle<EnvFilter, Registry>> = OnceLock::new();

/// Starts logging for this process.
pub(crate) fn start(secrets: &Secrets) {
    let (filter, complaint) = filter(std::env::var("ONCEWIRE_LOG").unwrap_or_default().trim());
    let (filter, handle) = reload::Layer::new(filter);
    let masking = secrets.clone();
    let is_terminal = std::io::stderr().is_terminal();
    let colours = if is_terminal { Colours::Kept } else { Colours::WrittenOut };
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(move || masking.masking(OneLine::new(std::io::stderr(), colours)))
        .with_ansi(is_terminal)
        .with_target(false);
    tracing_subscriber::registry().with(filter).with(lines).init();
    std::panic::set_hook(panic_hook(secrets.clone(), std::io::stderr));
    // Logging is started once per process; a second handle would speak of the same filter.
    let _ = FILTER.set(handle);
    if let Some(complaint) = complaint {
        tracing::warn!("{complaint}");
    }
}

const LEVELS: [&str; 6] = ["error", "warn", "info", "debug", "trace", "off"];

/// The filter that a text asks for, and what is wrong with it. A word alone that is no level would be the name of a module to tracing, and
/// silence all others: a slip such as `trce` is told instead.
fn filter(text: &str) -> (EnvFilter, Option<String>) {
    let usual = |why: &str| {
        (EnvFilter::new("info"), Some(format!("ONCEWIRE_LOG={text:?} is not understood ({why}); using info")))
    };
    let is_level =
        |word: &str| LEVELS.iter().any(|level| word.eq_ignore_ascii_case(level)) || word.parse::<u8>().is_ok();
    let alone = || text.split(',').map(str::trim).filter(|part| !part.is_empty() && !part.contains(['=', '[']));
    if text.is_empty() {
        return (EnvFilter::new("info"), None);
    }
    if let Some(word) = alone().find(|word| !is_level(word) && !word.starts_with("oncewire"))
        && !alone().any(is_level)
    {
        return usual(&format!("{word:?} is no level; there are {}", LEVELS.join(", ")));
    }
    EnvFilter::try_new(text).map_or_else(|error| usual(&error.to_string()), |filter| (filter, None))
}

/// Says what panicked, as Rust does by itself, but masked: a connector's panic may quote its configuration.
fn panic_hook<W: Write>(
    secrets: Secrets,
    open: impl Fn() -> W + Send + Sync + 'static,
) -> Box<dyn Fn(&PanicHookInfo<'_>) + Send + Sync> {
    Box::new(move |panic| {
        let thread = std::thread::current();
        let mut said = format!("thread '{}' {panic}\n", thread.name().unwrap_or("<unnamed>"));
        let trace = Backtrace::capture();
        if trace.status() == BacktraceStatus::Captured {
            said.push_str(&format!("{trace}\n"));
        }
        // It may quote what somebody else named: its further lines are indented.
        let said = format!("{}\n", paragraph(&secrets.redact(&said)));
        // Nothing is left to tell that it could not be told.
        let _ = open().write_all(said.as_bytes());
    })
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    #[derive(Clone, Default)]
    struct Heard(Arc<Mutex<Vec<u8>>>);

    impl Write for Heard {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().expect("nobody panics with it").extend(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_word_that_is_no_level_is_told_and_does_not_silence_the_log() {
        for text in ["verbose", "trce", "verbose,oncewire_worker=debug", "a=b"] {
            let (taken, complaint) = filter(text);
            assert_eq!(taken.to_string(), "info", "{text}");
            assert!(complaint.is_some_and(|said| said.contains(text) && said.contains("info")), "{text}");
        }
        for text in ["debug", "DEBUG", "warn,oncewire_worker=trace", "info,hyper", "oncewire_worker", "off", "5"] {
            assert_eq!(filter(text).1, None, "{text}");
        }
        assert_eq!(filter("").0.to_string(), "info");
    }

    #[test]
    fn a_panic_does_not_tell_a_secret() {
        let (secrets, heard) = (Secrets::default(), Heard::default());
        secrets.remember("hunter2");
        let out = heard.clone();
        let before = std::panic::take_hook();
        std::panic::set_hook(panic_hook(secrets, move || out.clone()));
        let panicked = std::thread::spawn(|| panic!("no login with {}", "hunter2")).join();
        std::panic::set_hook(before);
        assert!(panicked.is_err());
        let said = String::from_utf8(heard.0.lock().expect("nobody panics with it").clone()).expect("text");
        assert!(said.contains("panicked at ") && said.contains("no login with [hidden]"), "{said}");
    }
}
