//! `oncewire standalone`: the counterpart of connect-standalone, exactly-once.

use crate::exit::{Exit, Stop};
use crate::registry::registry;
use crate::worker_file::read_worker;
use clap::Args;
use oncewire_api::stop_signal;
use oncewire_plugins::providers::Secrets;
use oncewire_worker::config::ConfigErrors;
use oncewire_worker::config::properties::read_connector;
use oncewire_worker::config::references::resolve_references;
use oncewire_worker::config::worker::WorkerConfig;
use oncewire_worker::herder::standalone::{self, Ends, StartError};
use oncewire_worker::herder::supervisor::TaskState;
use std::path::PathBuf;
use std::time::Instant;

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  oncewire standalone worker.properties file-source.properties\n\n\
    worker.properties, the least:\n  bootstrap.servers=localhost:9092\n  group.id=my-worker\n  \
    key.converter=org.apache.kafka.connect.storage.StringConverter\n  \
    value.converter=org.apache.kafka.connect.storage.StringConverter\n\n\
    file-source.properties:\n  name=lines\n  connector.class=FileStreamSource\n  file=/var/log/app.log\n  topic=app-log\n\n\
    Connector files are Java properties, a flat JSON object, or\n{\"name\":…,\"config\":{…}}. Source offsets live in the topic <group.id>-offsets,\n\
    in the records' own transactions. SIGTERM or Ctrl-C stops in good order;\nONCEWIRE_LOG=debug says more.")]
pub(crate) struct StandaloneArgs {
    /// The worker's properties, as for connect-standalone
    worker: PathBuf,
    /// One file for each connector
    #[arg(required = true)]
    connectors: Vec<PathBuf>,
}

pub(crate) async fn run(args: StandaloneArgs, secrets: &Secrets) -> Result<Exit, Stop> {
    let usage = |error: &dyn std::fmt::Display| Stop::usage(error.to_string());
    let properties = read_worker(&args.worker)?;
    let files = args
        .connectors
        .iter()
        .map(|path| read_connector(path))
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| usage(&error))?;
    let of = args.worker.display().to_string();
    let (properties, files) = resolve_references(&of, &properties, files, secrets).map_err(|error| usage(&error))?;
    let mistakes = |errors: ConfigErrors| Stop::mistakes(&errors.of, &errors.problems);
    let worker = WorkerConfig::standalone(&of, properties).map_err(mistakes)?;
    let (trigger, signal) = stop_signal();
    let herder = standalone::run(worker, files, registry(), signal);
    tokio::pin!(herder);
    let ended = tokio::select! {
        ended = &mut herder => ended,
        () = asked_to_stop() => {
            let stopping = Stopping::begin();
            trigger.stop();
            tokio::select! {
                ended = &mut herder => {
                    stopping.done();
                    ended
                }
                // A second signal: a person does not want to wait for the graceful end.
                () = asked_to_stop() => return Err(Stop::failed("stopped before the tasks had ended")),
            }
        }
    };
    ended
        .map_err(|error| match error {
            StartError::Config(errors) => mistakes(errors),
            StartError::Cluster(_) | StartError::Connector { .. } => Stop::not_started(error.to_string()),
        })
        .and_then(|ends| summary(&ends))
}

/// A worker's orderly end in its log: when it begins, and as the last line how long it took.
pub(crate) struct Stopping(Instant);

impl Stopping {
    pub(crate) fn begin() -> Self {
        tracing::info!("stopping");
        Self(Instant::now())
    }

    pub(crate) fn done(&self) {
        tracing::info!("stopped, after {:.1} s", self.0.elapsed().as_secs_f32());
    }
}

/// Waits for SIGINT or SIGTERM.
pub(crate) async fn asked_to_stop() {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut interrupt), Ok(mut terminate)) = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        tracing::warn!("signals can't be listened to; only SIGKILL will end this process");
        return std::future::pending().await;
    };
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}

/// What the process ends with: a failed task counts most, then a superseded one.
fn summary(ends: &Ends) -> Result<Exit, Stop> {
    let mut failed = Vec::new();
    let mut superseded = Vec::new();
    for (name, state) in ends {
        match state {
            TaskState::Failed { cause } => failed.push(format!("task {name} failed: {cause}")),
            TaskState::Superseded { cause } => superseded.push(format!("task {name} was superseded: {cause}")),
            _ => {}
        }
    }
    if !failed.is_empty() {
        return Err(Stop::failed(failed.join("; ")));
    }
    if !superseded.is_empty() {
        return Err(Stop { exit: Exit::Superseded, message: superseded.join("; ") });
    }
    Ok(Exit::Done)
}
