//! An offsets topic: made and checked at the start, read to its end by each task. Who writes to it: `task_offsets.rs`,
//! `offset_sink.rs`, `topic_writer.rs`.
//!
//! A task reads it after its producer has fenced every older owner, read_committed, up to the end at READ_UNCOMMITTED: an
//! open transaction of someone else makes it wait, never stop short (KIP-618; Materialize issue 9249 tells of the reverse
//! order). The offsets that a task sees are those at its start and those that it has committed since.

use super::offset_fold::OffsetFold;
use crate::acl::{self, Resource};
use crate::config::worker::OffsetsTopic;
use crate::error::TaskFailure;
use oncewire_client::admin::{Admin, NewTopic, TopicOutcome};
use oncewire_client::batch::Record;
use oncewire_client::cluster::Cluster;
use oncewire_client::error::{BrokerError, Error};
use oncewire_client::reader::{Isolation, LogReader, ReaderOptions};
use std::time::Duration;
use tokio::time::Instant;

/// How long one read of the topic to its end may take before the task gives up and is started again: 5 minutes. It has to
/// be longer than a foreign transaction may stay open (`transaction.timeout.ms`, 60 s by default).
pub const READ_TO_END_MAX: Duration = Duration::from_secs(300);

/// How often the log says what is waited for: 10 s.
const SAY_EVERY: Duration = Duration::from_secs(10);

const CLEANUP_POLICY: &str = "cleanup.policy";

/// What the worker's properties about the topic begin with. They count for the connectors' own topics, too.
const PREFIX: &str = "offset.storage.";

const TOPIC_AUTHORIZATION_FAILED: i16 = 29;
const INVALID_REPLICATION_FACTOR: i16 = 38;

/// How often the making of the topic is tried while there are too few brokers, and the wait in between: 10 s in all.
const CREATE_TRIES_MAX: u32 = 20;
const CREATE_PAUSE: Duration = Duration::from_millis(500);

/// Makes the topic if it is missing, and checks that it is compacted only.
///
/// # Errors
/// One line for the operator: failed for good when it may not be made or is not compacted.
pub async fn ensure(cluster: &Cluster, topic: &OffsetsTopic) -> Result<(), TaskFailure> {
    let admin = Admin::new(cluster.clone());
    let known = cluster.topic(&topic.name).await.map_err(|error| cant_be_read(&topic.name, error))?;
    if known.is_none() {
        let mut configs = topic.configs.clone();
        configs.insert(CLEANUP_POLICY.to_owned(), "compact".to_owned());
        let wanted = NewTopic {
            name: topic.name.clone(),
            partitions: topic.partitions,
            replication_factor: topic.replication_factor,
            configs,
        };
        let outcome = create(&admin, &wanted).await.map_err(|error| {
            let message = not_made(&wanted, &error);
            TaskFailure::from(error).with_message(message)
        })?;
        if outcome == TopicOutcome::Created {
            tracing::info!(topic = topic.name, "offsets topic made");
            return Ok(());
        }
    }
    match admin.topic_configs(&topic.name, &[CLEANUP_POLICY]).await {
        Err(error) => {
            tracing::info!(topic = topic.name, "cleanup.policy of the offsets topic can't be checked: {error}");
            Ok(())
        }
        Ok(configs) => match configs.get(CLEANUP_POLICY).and_then(|entry| entry.value.as_deref()) {
            None | Some("compact") => Ok(()),
            Some(policy) => Err(TaskFailure::failed(format!(
                "offsets topic {:?} has cleanup.policy={policy}, which would lose offsets; set it to compact",
                topic.name
            ))),
        },
    }
}

/// What a person has to change so that the topic can be made.
fn not_made(wanted: &NewTopic, error: &Error) -> String {
    let to_grant = || acl::advice(error.code()?, &Resource::OffsetsTopic(&wanted.name));
    let advice = wanted.advice(error, PREFIX).or_else(to_grant);
    let advice = advice.unwrap_or_else(|| format!("change the properties below {PREFIX}"));
    format!(
        "offsets topic {:?} can't be made ({error}); {advice}; or make it yourself with {CLEANUP_POLICY}=compact",
        wanted.name
    )
}

/// Brokers that are just coming up are fewer than the replicas that are wanted: that is waited out (KAFKA-13504).
async fn create(admin: &Admin, wanted: &NewTopic) -> Result<TopicOutcome, Error> {
    let mut tries = 1;
    loop {
        match admin.create_topic(wanted).await {
            Err(error) if error.code() == Some(INVALID_REPLICATION_FACTOR) && tries < CREATE_TRIES_MAX => {
                if tries == 1 {
                    let patience = CREATE_PAUSE * CREATE_TRIES_MAX;
                    tracing::warn!(topic = wanted.name, "can't be made, tried again for {patience:?}: {error}");
                }
                tries += 1;
                tokio::time::sleep(CREATE_PAUSE).await;
            }
            outcome => return outcome,
        }
    }
}

/// One connector's offsets as the topic has them now.
///
/// # Errors
/// When the topic is not there or can't be read in [`READ_TO_END_MAX`].
pub async fn read(
    cluster: &Cluster,
    topic: &str,
    connector: &str,
    isolation: Isolation,
) -> Result<OffsetFold, TaskFailure> {
    let mut fold = OffsetFold::new(connector);
    let options = ReaderOptions { isolation, ..ReaderOptions::default() };
    let mut reader = LogReader::open(cluster, topic, options).await.map_err(|error| cant_be_read(topic, error))?;
    let take = |record: Record| fold.apply(record.key.as_ref(), record.value.as_ref(), record.timestamp_ms);
    read_to_end(&mut reader, take).await.map_err(|error| cant_be_read(topic, error))?;
    Ok(fold)
}

/// Reads to the end that was taken last, and says in the log what it waits for when that takes long: a transaction that nobody ends
/// holds up every task that starts.
///
/// # Errors
/// As [`LogReader::read_to_end`], after [`READ_TO_END_MAX`].
pub(crate) async fn read_to_end(reader: &mut LogReader, mut take: impl FnMut(Record)) -> Result<(), Error> {
    let deadline = Instant::now() + READ_TO_END_MAX;
    loop {
        let next_word = deadline.min(Instant::now() + SAY_EVERY);
        match reader.read_to_end(next_word, |_partition, records| records.into_iter().for_each(&mut take)).await {
            // The reader's own patience with a broker has a cause.
            Err(error @ Error::Timeout { last: None, .. }) if Instant::now() < deadline => {
                tracing::warn!("stored offsets are waited for, up to {READ_TO_END_MAX:?}: {error}");
            }
            other => return other,
        }
    }
}

/// How many partitions the topic has.
///
/// # Errors
/// When it is not there, or nobody answers.
pub async fn partitions(cluster: &Cluster, topic: &str) -> Result<u32, TaskFailure> {
    match cluster.topic(topic).await.map_err(|error| cant_be_read(topic, error))? {
        Some(metadata) => Ok(u32::try_from(metadata.partitions.len()).unwrap_or(u32::MAX)),
        None => Err(TaskFailure::lost(format!("offsets topic {topic:?} is gone"))),
    }
}

/// What an error about an offsets topic means for a task, with what to grant.
pub fn cant_be_read(topic: &str, error: Error) -> TaskFailure {
    match error {
        Error::UnknownTopic { .. } => TaskFailure::lost(format!("offsets topic {topic:?} is gone")),
        Error::Broker(BrokerError { code: TOPIC_AUTHORIZATION_FAILED, .. }) => {
            let advice = acl::advice(TOPIC_AUTHORIZATION_FAILED, &Resource::OffsetsTopic(topic)).unwrap_or_default();
            TaskFailure::failed(format!("offsets topic {topic:?}: {error}; {advice}"))
        }
        error => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn what_is_refused_is_named_by_the_worker_s_property_or_by_what_to_grant() {
        let wanted =
            NewTopic { name: "o".into(), partitions: Some(25), replication_factor: Some(3), configs: BTreeMap::new() };
        let told = |code| {
            let (api, subject) = ("CreateTopics", "topic o".to_owned());
            not_made(&wanted, &Error::Broker(BrokerError { api, code, subject, message: None, user: None }))
        };
        let replicas = told(INVALID_REPLICATION_FACTOR);
        assert!(replicas.contains("offset.storage.replication.factor is 3, "), "{replicas}");
        assert!(replicas.contains("set it to 1 for a single broker"), "{replicas}");
        assert!(told(TOPIC_AUTHORIZATION_FAILED).contains("grant Read, Write and Describe"));
        assert!(told(40).contains("change the properties below offset.storage."));
    }
}
