//! The producers that a partition's leader remembers (KIP-664). DescribeProducers 0.

use kafka_protocol::messages::describe_producers_request::TopicRequest;
use kafka_protocol::messages::describe_producers_response::ProducerState;
use kafka_protocol::messages::{DescribeProducersRequest, TopicName};
use kafka_protocol::protocol::StrBytes;

use super::Admin;
use crate::cluster::{Call, Target};
use crate::error::{BrokerError, Error};
use crate::wire::error_code::codes;

const API: &str = "DescribeProducers";

/// A producer that a partition leader remembers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ActiveProducer {
    /// The producer id.
    pub producer_id: i64,
    /// Its epoch.
    pub epoch: i32,
    /// Its last sequence number; -1 when only a marker was written.
    pub last_sequence: i32,
    /// Milliseconds since 1970.
    pub last_timestamp_ms: i64,
    /// The coordinator's epoch of the last marker.
    pub coordinator_epoch: i32,
    /// First offset of its open transaction; `None` when none is open.
    pub txn_start_offset: Option<i64>,
}

impl Admin {
    /// The producers that the leader of a partition remembers.
    ///
    /// # Errors
    /// [`Error::UnknownTopic`], the leader's refusal, or [`Error::Timeout`] after `default.api.timeout.ms`.
    pub async fn describe_producers(&self, topic: &str, partition: i32) -> Result<Vec<ActiveProducer>, Error> {
        let subject = format!("{topic}-{partition}");
        match self.cluster.topic(topic).await? {
            Some(known) if known.partitions.contains_key(&partition) => {}
            _ => return Err(Error::UnknownTopic { topic: subject }),
        }
        let mut retry = self.cluster.retry(format!("describing the producers of {subject}"), self.cluster.patience());
        loop {
            let error = match self.try_producers(topic, partition, &subject).await {
                Err(error) if error.retriable() => error,
                other => return other.map_err(|error| self.cluster.with_user(error)),
            };
            let stale = error.leader_is_stale();
            retry.pause(error).await?;
            if stale && let Err(error) = self.cluster.refresh(&[topic]).await {
                // If nobody answers, the next attempt says so too.
                tracing::debug!(%error, "refreshing failed");
            }
        }
    }

    async fn try_producers(&self, topic: &str, partition: i32, subject: &str) -> Result<Vec<ActiveProducer>, Error> {
        let Some((leader, _)) = self.cluster.leader(topic, partition) else {
            return Err(Error::broker(API, codes::LEADER_NOT_AVAILABLE, subject));
        };
        let asked = TopicRequest::default()
            .with_name(TopicName(StrBytes::from_string(topic.to_owned())))
            .with_partition_indexes(vec![partition]);
        let build = |_| DescribeProducersRequest::default().with_topics(vec![asked]);
        let reply = self.cluster.call(Call::to(Target::Node(leader)), build).await?;
        let told = reply.body.topics.into_iter().flat_map(|topic| topic.partitions).next();
        let Some(told) = told else {
            return Err(Error::broker(API, codes::UNKNOWN_TOPIC_OR_PARTITION, subject));
        };
        if told.error_code != codes::NONE {
            return Err(Error::Broker(BrokerError {
                api: API,
                code: told.error_code,
                subject: subject.to_owned(),
                message: told.error_message.map(|message| message.to_string()),
                user: None,
            }));
        }
        Ok(told.active_producers.iter().map(producer).collect())
    }
}

fn producer(state: &ProducerState) -> ActiveProducer {
    ActiveProducer {
        producer_id: *state.producer_id,
        epoch: state.producer_epoch,
        last_sequence: state.last_sequence,
        last_timestamp_ms: state.last_timestamp,
        coordinator_epoch: state.coordinator_epoch,
        txn_start_offset: Some(state.current_txn_start_offset).filter(|offset| *offset >= 0),
    }
}
