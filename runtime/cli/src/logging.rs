//! Log lines on standard error: `INFO` and above by default, `ONCEWIRE_LOG` (tracing's filter syntax) for more or less.

use std::io::IsTerminal;
use tracing_subscriber::EnvFilter;

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
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false)
        .init();
    if let Some(complaint) = complaint {
        tracing::warn!("{complaint}");
    }
}
