//! Offsets of a topic's partitions. ListOffsets 2-10: each leader is asked for its own partitions.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use kafka_protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use kafka_protocol::messages::list_offsets_response::ListOffsetsPartitionResponse;
use kafka_protocol::messages::{BrokerId, ListOffsetsRequest, ListOffsetsResponse, TopicName};
use kafka_protocol::protocol::StrBytes;

use super::Admin;
use crate::cluster::{Call, Cluster, NodeId, Target};
use crate::error::Error;
use crate::reader::Isolation;
use crate::wire::error_code::codes;

const API: &str = "ListOffsets";

/// Which offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OffsetSpec {
    /// The log start.
    Earliest,
    /// The end: high watermark when uncommitted, last stable offset when committed.
    Latest,
    /// The first record with this timestamp or a later one, in milliseconds.
    Timestamp(i64),
}

impl OffsetSpec {
    fn wire_value(self) -> i64 {
        match self {
            Self::Latest => -1,
            Self::Earliest => -2,
            Self::Timestamp(milliseconds) => milliseconds,
        }
    }
}

/// An offset that a leader told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListedOffset {
    /// The offset; -1 when no record has the timestamp.
    pub offset: i64,
    /// Its timestamp in milliseconds; -1 for the log's ends.
    pub timestamp_ms: i64,
    /// The leader epoch at it; -1 when not known.
    pub leader_epoch: i32,
}

impl Admin {
    /// The offsets of the given partitions of a topic, or of all with `None`.
    ///
    /// # Errors
    /// [`Error::UnknownTopic`], the leader's refusal, or [`Error::Timeout`] after `default.api.timeout.ms`.
    pub async fn list_offsets(
        &self,
        topic: &str,
        partitions: Option<&[i32]>,
        spec: OffsetSpec,
        isolation: Isolation,
    ) -> Result<BTreeMap<i32, ListedOffset>, Error> {
        let Some(known) = self.cluster.topic(topic).await? else {
            return Err(Error::UnknownTopic { topic: topic.to_owned() });
        };
        let wanted: BTreeSet<i32> = match partitions {
            Some(partitions) => partitions.iter().copied().collect(),
            None => known.partitions.keys().copied().collect(),
        };
        let question = Question { topic: topic.to_owned(), spec, isolation };
        question.ask(&self.cluster, wanted, self.cluster.patience()).await
    }
}

/// What is asked of every leader.
#[derive(Debug, Clone)]
pub(crate) struct Question {
    pub(crate) topic: String,
    pub(crate) spec: OffsetSpec,
    pub(crate) isolation: Isolation,
}

impl Question {
    /// Asks until every partition is answered.
    pub(crate) async fn ask(
        &self,
        cluster: &Cluster,
        mut wanted: BTreeSet<i32>,
        patience: Duration,
    ) -> Result<BTreeMap<i32, ListedOffset>, Error> {
        let mut retry = cluster.retry(format!("listing the offsets of topic {}", self.topic), patience);
        let mut answers = BTreeMap::new();
        loop {
            let outcome = self.round(cluster, &mut wanted, &mut answers).await;
            if wanted.is_empty() {
                return Ok(answers);
            }
            let error = match outcome {
                Err(error) if !error.retriable() => return Err(cluster.with_user(error)),
                Err(error) => error,
                // Leaders answered without mentioning some partitions.
                Ok(()) => Error::broker(API, codes::UNKNOWN_TOPIC_OR_PARTITION, self.topic.clone()),
            };
            retry.pause(error).await?;
            match cluster.refresh(&[&self.topic]).await {
                Err(error) if !error.retriable() => return Err(error),
                // If nobody answers, the next round says so.
                _ => {}
            }
        }
    }

    /// One question to each leader, all at once. The last error that a partition or leader met.
    async fn round(
        &self,
        cluster: &Cluster,
        wanted: &mut BTreeSet<i32>,
        answers: &mut BTreeMap<i32, ListedOffset>,
    ) -> Result<(), Error> {
        let mut outcome = Ok(());
        let mut by_leader: BTreeMap<NodeId, Vec<(i32, i32)>> = BTreeMap::new();
        for &partition in wanted.iter() {
            match cluster.leader(&self.topic, partition) {
                Some((leader, epoch)) => by_leader.entry(leader).or_default().push((partition, epoch)),
                None => outcome = Err(self.refused(partition, codes::LEADER_NOT_AVAILABLE)),
            }
        }
        let mut pending = Vec::new();
        for (leader, partitions) in by_leader {
            let call = Call::to(Target::Node(leader));
            match cluster.send(call, |_| self.request(&partitions, cluster.config().request_timeout)).await {
                Ok(sent) => pending.push(sent),
                Err(error) => outcome = Err(error),
            }
        }
        for sent in pending {
            match sent.await {
                Ok(reply) => {
                    for partition in self.partitions(&reply.body) {
                        match self.read(partition) {
                            Ok(listed) => {
                                if wanted.remove(&partition.partition_index) {
                                    answers.insert(partition.partition_index, listed);
                                }
                            }
                            Err(error) if error.retriable() => outcome = Err(error),
                            Err(error) => return Err(error),
                        }
                    }
                }
                Err(error) => outcome = Err(error),
            }
        }
        outcome
    }

    fn request(&self, partitions: &[(i32, i32)], timeout: Duration) -> ListOffsetsRequest {
        let partitions = partitions.iter().map(|&(index, leader_epoch)| {
            ListOffsetsPartition::default()
                .with_partition_index(index)
                .with_current_leader_epoch(leader_epoch)
                .with_timestamp(self.spec.wire_value())
        });
        let topic = ListOffsetsTopic::default()
            .with_name(TopicName(StrBytes::from_string(self.topic.clone())))
            .with_partitions(partitions.collect());
        ListOffsetsRequest::default()
            .with_replica_id(BrokerId(-1))
            .with_isolation_level(self.isolation.wire_value())
            .with_topics(vec![topic])
            .with_timeout_ms(i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX))
    }

    fn partitions<'a>(
        &'a self,
        response: &'a ListOffsetsResponse,
    ) -> impl Iterator<Item = &'a ListOffsetsPartitionResponse> {
        response.topics.iter().filter(|topic| topic.name.as_str() == self.topic).flat_map(|topic| &topic.partitions)
    }

    fn read(&self, partition: &ListOffsetsPartitionResponse) -> Result<ListedOffset, Error> {
        if partition.error_code != codes::NONE {
            return Err(self.refused(partition.partition_index, partition.error_code));
        }
        Ok(ListedOffset {
            offset: partition.offset,
            timestamp_ms: partition.timestamp,
            leader_epoch: partition.leader_epoch,
        })
    }

    fn refused(&self, partition: i32, code: i16) -> Error {
        Error::broker(API, code, format!("{}-{partition}", self.topic))
    }
}
