//! One Fetch to one leader: the request, and its answer as one outcome for each partition. Pure.
//!
//! Fetch 4-18, without a session (KIP-227): a reader has few partitions. From version 13 topics are named by id (KIP-516).

use bytes::Bytes;
use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_protocol::messages::fetch_response::PartitionData;
use kafka_protocol::messages::{BrokerId, FetchRequest, FetchResponse, TopicName};
use kafka_protocol::protocol::StrBytes;
use uuid::Uuid;

use super::committed::Aborted;
use super::options::ReaderOptions;
use crate::cluster::{LeaderHint, NodeId};
use crate::config::BrokerAddress;
use crate::wire::error_code::codes;

/// Since this version a topic is named by its id only.
pub(super) const VERSION_TOPIC_ID: i16 = 13;
/// No session: each request says everything.
const SESSION_EPOCH_NONE: i32 = -1;

/// What a fetch asks of one partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) partition: i32,
    pub(super) offset: i64,
    pub(super) leader_epoch: i32,
    pub(super) max_bytes: i32,
}

/// What a leader said of one partition.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) partition: i32,
    pub(super) result: Result<Fetched, Refused>,
}

#[derive(Debug)]
pub(super) struct Fetched {
    pub(super) records: Bytes,
    pub(super) aborted: Vec<Aborted>,
    pub(super) last_stable_offset: i64,
    pub(super) high_watermark: i64,
}

#[derive(Debug)]
pub(super) struct Refused {
    pub(super) code: i16,
    /// Who leads now, if the broker knows (KIP-951).
    pub(super) hint: Option<LeaderHint>,
}

pub(super) fn request(
    version: i16,
    topic: &str,
    topic_id: Uuid,
    asked: &[Asked],
    options: &ReaderOptions,
) -> FetchRequest {
    let partitions = asked.iter().map(|asked| {
        FetchPartition::default()
            .with_partition(asked.partition)
            .with_current_leader_epoch(asked.leader_epoch)
            .with_fetch_offset(asked.offset)
            .with_last_fetched_epoch(-1)
            .with_log_start_offset(-1)
            .with_partition_max_bytes(asked.max_bytes)
    });
    let named = if version >= VERSION_TOPIC_ID {
        FetchTopic::default().with_topic_id(topic_id)
    } else {
        FetchTopic::default().with_topic(TopicName(StrBytes::from_string(topic.to_owned())))
    };
    FetchRequest::default()
        .with_replica_id(BrokerId(-1))
        .with_max_wait_ms(i32::try_from(options.max_wait.as_millis()).unwrap_or(i32::MAX))
        .with_min_bytes(1)
        .with_max_bytes(options.max_bytes)
        .with_isolation_level(options.isolation.wire_value())
        .with_session_epoch(SESSION_EPOCH_NONE)
        .with_topics(vec![named.with_partitions(partitions.collect())])
}

/// The outcome of every partition that the response mentions; the code, when it refuses as a whole.
pub(super) fn read(response: FetchResponse, topic: &str, topic_id: Uuid) -> Result<Vec<Told>, i16> {
    if response.error_code != codes::NONE {
        return Err(response.error_code);
    }
    let endpoints: Vec<(NodeId, BrokerAddress)> = response
        .node_endpoints
        .iter()
        .filter_map(|endpoint| {
            let address = BrokerAddress::advertised(&endpoint.host, endpoint.port)?;
            Some((NodeId(*endpoint.node_id), address))
        })
        .collect();
    let told = response
        .responses
        .into_iter()
        .filter(|answer| answer.topic.as_str() == topic || (!topic_id.is_nil() && answer.topic_id == topic_id))
        .flat_map(|answer| answer.partitions)
        .map(|partition| read_partition(partition, &endpoints));
    Ok(told.collect())
}

fn read_partition(data: PartitionData, endpoints: &[(NodeId, BrokerAddress)]) -> Told {
    let partition = data.partition_index;
    if data.error_code != codes::NONE {
        let leader = NodeId(*data.current_leader.leader_id);
        let hint = (leader.0 >= 0).then(|| LeaderHint {
            leader,
            leader_epoch: data.current_leader.leader_epoch,
            address: endpoints.iter().find(|(node, _)| *node == leader).map(|(_, address)| address.clone()),
        });
        return Told { partition, result: Err(Refused { code: data.error_code, hint }) };
    }
    let aborted = data.aborted_transactions.unwrap_or_default();
    let fetched = Fetched {
        records: data.records.unwrap_or_default(),
        aborted: aborted
            .iter()
            .map(|entry| Aborted { producer_id: *entry.producer_id, first_offset: entry.first_offset })
            .collect(),
        last_stable_offset: data.last_stable_offset,
        high_watermark: data.high_watermark,
    };
    Told { partition, result: Ok(fetched) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kafka_protocol::messages::fetch_response::{FetchableTopicResponse, LeaderIdAndEpoch, NodeEndpoint};

    const ASKED: Asked = Asked { partition: 2, offset: 7, leader_epoch: 3, max_bytes: 100 };

    #[test]
    fn topics_are_named_by_id_since_version_13_and_by_name_before() {
        let id = Uuid::from_u128(9);
        let options = ReaderOptions::default();
        let new = request(13, "t", id, &[ASKED], &options);
        assert_eq!((new.topics[0].topic_id, new.topics[0].topic.as_str()), (id, ""));
        let old = request(12, "t", id, &[ASKED], &options);
        assert_eq!((old.topics[0].topic_id, old.topics[0].topic.as_str()), (Uuid::nil(), "t"));
        assert_eq!((old.session_id, old.session_epoch, old.isolation_level), (0, -1, 1));
    }

    #[test]
    fn a_refusal_names_the_new_leader_and_its_address() {
        let partition = PartitionData::default()
            .with_partition_index(2)
            .with_error_code(6)
            .with_current_leader(LeaderIdAndEpoch::default().with_leader_id(BrokerId(5)).with_leader_epoch(4));
        let endpoint =
            NodeEndpoint::default().with_node_id(BrokerId(5)).with_host(StrBytes::from_static_str("h")).with_port(9);
        let topic =
            FetchableTopicResponse::default().with_topic_id(Uuid::from_u128(9)).with_partitions(vec![partition]);
        let response = FetchResponse::default().with_responses(vec![topic]).with_node_endpoints(vec![endpoint]);
        let told = read(response, "t", Uuid::from_u128(9)).unwrap();
        let refused = told[0].result.as_ref().unwrap_err();
        let hint = refused.hint.as_ref().unwrap();
        assert_eq!((refused.code, hint.leader, hint.leader_epoch), (6, NodeId(5), 4));
        assert_eq!(hint.address.as_ref().unwrap().to_string(), "h:9");
    }
}
