//! `oncewire distributed`: the counterpart of connect-distributed, for a group with Java workers or without.

use crate::exit::{Exit, Stop};
use crate::logging::{Levels, root_level};
use crate::registry::registry;
use crate::standalone::{Stopping, asked_to_stop};
use crate::worker_file::read_worker;
use clap::Args;
use oncewire_api::stop_signal;
use oncewire_distributed::loggers::Loggers;
use oncewire_distributed::{EndError, StartError, prepare};
use oncewire_plugins::providers::Secrets;
use std::path::PathBuf;
use std::sync::Arc;

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  oncewire distributed worker.properties\n\n\
    worker.properties, the least (the file of a Java worker works as it is):\n  \
    bootstrap.servers=localhost:9092\n  group.id=connect-cluster\n  \
    key.converter=org.apache.kafka.connect.storage.StringConverter\n  \
    value.converter=org.apache.kafka.connect.storage.StringConverter\n  \
    config.storage.topic=connect-configs\n  offset.storage.topic=connect-offsets\n  \
    status.storage.topic=connect-status\n  exactly.once.source.support=enabled\n\
    and on a cluster of fewer than three brokers:\n  \
    config.storage.replication.factor=1\n  offset.storage.replication.factor=1\n  \
    status.storage.replication.factor=1\n\n\
    Then, over REST (http://localhost:8083 unless listeners says otherwise):\n  \
    curl -X PUT -H 'Content-Type: application/json' \\\n    localhost:8083/connectors/lines/config -d \\\n    \
    '{\"connector.class\":\"FileStreamSource\",\n      \"file\":\"/var/log/app.log\",\"topic\":\"app-log\"}'\n\n\
    SIGTERM or Ctrl-C stops in good order; the tasks wait until the worker is back,\n\
    up to scheduled.rebalance.max.delay.ms (5 minutes). To hand them over first:\n  \
    curl -X POST localhost:8083/worker/drain")]
pub(crate) struct DistributedArgs {
    /// The worker's properties, as for connect-distributed
    worker: PathBuf,
}

pub(crate) async fn run(args: DistributedArgs, secrets: &Secrets) -> Result<Exit, Stop> {
    let properties = read_worker(&args.worker)?;
    let loggers = Loggers::new(&root_level(), Arc::new(Levels));
    let of = args.worker.display().to_string();
    let prepared = prepare(&of, &properties, registry(), loggers, secrets).map_err(stopped)?;
    let (trigger, signal) = stop_signal();
    let running = tokio::select! {
        running = prepared.start(signal) => running.map_err(stopped)?,
        () = asked_to_stop() => {
            tracing::info!("stopped, before it had started");
            return Ok(Exit::Done);
        }
    };
    tracing::info!("REST is at {}", running.url());
    let ended = running.ended();
    tokio::pin!(ended);
    let ended = tokio::select! {
        ended = &mut ended => ended,
        () = asked_to_stop() => {
            let stopping = Stopping::begin();
            trigger.stop();
            tokio::select! {
                ended = &mut ended => {
                    stopping.done();
                    ended
                }
                // A second signal: a person does not want to wait for the graceful end.
                () = asked_to_stop() => return Err(Stop::failed("stopped before the worker had ended")),
            }
        }
    };
    ended.map(|()| Exit::Done).map_err(|error| match &error {
        EndError::Refused(_) => Stop::not_started(error.to_string()),
        EndError::Herder(_) => Stop::failed(error.to_string()),
    })
}

fn stopped(error: StartError) -> Stop {
    match error {
        StartError::Config { of, problems } => Stop::mistakes(&of, &problems),
        StartError::Start(problem) => Stop::not_started(problem),
    }
}
