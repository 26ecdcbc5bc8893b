//! What the cluster said about its brokers and topics, and which of two answers is newer. Pure.
//!
//! Brokers learn of changes one after the other, so a later answer can be older news. Leaders are ordered by their epoch
//! (KIP-320): an answer with a lower epoch does not replace a leader, unless it comes again and again (then the log was
//! rebuilt and epochs started anew). A topic that one answer does not know stays until a second answer says so too: brokers that
//! just started answer "unknown" for topics that exist.
//!
//! No sequence numbers or positions live here: what a producer knows of a partition must outlive a glitch of the metadata.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use kafka_protocol::messages::MetadataResponse;
use kafka_protocol::messages::metadata_response::MetadataResponseTopic;
use tokio::time::Instant;

use super::types::{Broker, LeaderHint, NodeId, PartitionMetadata, TopicMetadata};
use crate::config::BrokerAddress;
use crate::wire::error_code::codes;

/// After this many answers in a row with a lower leader epoch, the lower epoch is believed.
const OLDER_EPOCH_ANSWERS_MAX: u32 = 5;
/// After this many answers in a row that do not know a topic, it is gone.
const UNKNOWN_TOPIC_ANSWERS_MAX: u32 = 2;
/// Topics kept; beyond it the ones not used for longest go.
const TOPICS_MAX: usize = 10_000;

#[derive(Debug, Default)]
pub(super) struct Metadata {
    brokers: BTreeMap<NodeId, Broker>,
    controller: Option<NodeId>,
    cluster_id: Option<String>,
    topics: HashMap<String, CachedTopic>,
    /// Topics that the last answer about them did not give.
    absent: HashMap<String, TopicAnswer>,
}

#[derive(Debug)]
struct CachedTopic {
    topic: Arc<TopicMetadata>,
    updated: Instant,
    used: Instant,
    unknown_answers: u32,
    older_epoch_answers: BTreeMap<i32, u32>,
}

/// What one answer said about one topic that was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TopicAnswer {
    /// It is there; some of its partitions may have no leader.
    Known,
    /// It does not exist.
    Unknown,
    /// The broker refused, with this code.
    Refused(i16),
}

impl Metadata {
    /// Takes an answer in.
    pub(super) fn apply(&mut self, response: MetadataResponse, now: Instant) {
        if let Some(cluster_id) = &response.cluster_id {
            self.cluster_id = Some(cluster_id.to_string());
        }
        // A broker that just started may list none; what we know is then better.
        let brokers: BTreeMap<NodeId, Broker> = response.brokers.iter().filter_map(broker).collect();
        if !brokers.is_empty() {
            self.brokers = brokers;
        }
        self.controller = Some(NodeId(*response.controller_id)).filter(|node| node.0 >= 0);
        for topic in response.topics {
            let Some(name) = topic.name.as_ref().map(|name| name.to_string()) else {
                continue;
            };
            self.absent.remove(&name);
            let answer = match topic.error_code {
                codes::NONE | codes::LEADER_NOT_AVAILABLE => {
                    self.known(&name, topic, now);
                    TopicAnswer::Known
                }
                codes::UNKNOWN_TOPIC_OR_PARTITION | codes::UNKNOWN_TOPIC_ID => self.unknown(&name),
                code => TopicAnswer::Refused(code),
            };
            if answer != TopicAnswer::Known {
                self.absent.insert(name, answer);
            }
        }
        self.evict();
    }

    fn known(&mut self, name: &str, told: MetadataResponseTopic, now: Instant) {
        let before = self.topics.remove(name);
        let used = before.as_ref().map_or(now, |cached| cached.used);
        let (known, mut older_epoch_answers) = match before {
            // A topic that was deleted and made again has another id: its epochs start anew.
            Some(cached) if cached.topic.topic_id == told.topic_id => {
                (cached.topic.partitions.clone(), cached.older_epoch_answers)
            }
            _ => (BTreeMap::new(), BTreeMap::new()),
        };
        let mut partitions = BTreeMap::new();
        for partition in &told.partitions {
            let index = partition.partition_index;
            let news = PartitionMetadata {
                leader: Some(NodeId(*partition.leader_id)).filter(|node| node.0 >= 0),
                leader_epoch: partition.leader_epoch,
            };
            let strikes = older_epoch_answers.remove(&index).unwrap_or(0);
            let chosen = match known.get(&index) {
                Some(old) if news.leader_epoch < old.leader_epoch && news.leader_epoch >= 0 => {
                    if strikes + 1 < OLDER_EPOCH_ANSWERS_MAX {
                        older_epoch_answers.insert(index, strikes + 1);
                        *old
                    } else {
                        news
                    }
                }
                _ => news,
            };
            partitions.insert(index, chosen);
        }
        let topic =
            TopicMetadata { name: name.to_owned(), topic_id: told.topic_id, internal: told.is_internal, partitions };
        let cached =
            CachedTopic { topic: Arc::new(topic), updated: now, used, unknown_answers: 0, older_epoch_answers };
        self.topics.insert(name.to_owned(), cached);
    }

    fn unknown(&mut self, name: &str) -> TopicAnswer {
        let Some(cached) = self.topics.get_mut(name) else {
            return TopicAnswer::Unknown;
        };
        cached.unknown_answers += 1;
        if cached.unknown_answers < UNKNOWN_TOPIC_ANSWERS_MAX {
            return TopicAnswer::Known;
        }
        self.topics.remove(name);
        TopicAnswer::Unknown
    }

    fn evict(&mut self) {
        // Read right after it was written; what piles up was never asked for.
        if self.absent.len() > TOPICS_MAX {
            self.absent.clear();
        }
        while self.topics.len() > TOPICS_MAX {
            let oldest = self.topics.iter().min_by_key(|(_, cached)| cached.used).map(|(name, _)| name.clone());
            let Some(oldest) = oldest else { return };
            self.topics.remove(&oldest);
        }
    }

    /// The topic and when it was told, marking it as used.
    pub(super) fn topic(&mut self, name: &str, now: Instant) -> Option<(Arc<TopicMetadata>, Instant)> {
        let cached = self.topics.get_mut(name)?;
        cached.used = now;
        Some((Arc::clone(&cached.topic), cached.updated))
    }

    /// Why the last answer about a topic did not give it; forgets that.
    pub(super) fn take_absence(&mut self, name: &str) -> Option<TopicAnswer> {
        self.absent.remove(name)
    }

    /// After REBOOTSTRAP_REQUIRED: only the bootstrap servers are left to ask.
    pub(super) fn forget_brokers(&mut self) {
        self.brokers.clear();
        self.controller = None;
    }

    pub(super) fn forget_topic(&mut self, name: &str) {
        self.topics.remove(name);
    }

    pub(super) fn leader(&self, topic: &str, partition: i32) -> Option<(NodeId, i32)> {
        let partition = self.topics.get(topic)?.topic.partitions.get(&partition)?;
        Some((partition.leader?, partition.leader_epoch))
    }

    /// Takes over one partition's leader; true if it is news.
    pub(super) fn hint(&mut self, topic: &str, partition: i32, hint: &LeaderHint) -> bool {
        let Some(cached) = self.topics.get_mut(topic) else {
            return false;
        };
        let Some(old) = cached.topic.partitions.get(&partition) else {
            return false;
        };
        if hint.leader.0 < 0 || hint.leader_epoch <= old.leader_epoch {
            return false;
        }
        let news = PartitionMetadata { leader: Some(hint.leader), leader_epoch: hint.leader_epoch };
        Arc::make_mut(&mut cached.topic).partitions.insert(partition, news);
        cached.older_epoch_answers.remove(&partition);
        if let Some(address) = &hint.address {
            self.add_broker(hint.leader, address);
        }
        true
    }

    /// Adds or moves one broker; the others stay as they are.
    pub(super) fn add_broker(&mut self, id: NodeId, address: &BrokerAddress) {
        let rack = self.brokers.get(&id).and_then(|known| known.rack.clone());
        self.brokers.insert(id, Broker { id, address: address.clone(), rack });
    }

    pub(super) fn broker(&self, id: NodeId) -> Option<&Broker> {
        self.brokers.get(&id)
    }

    pub(super) fn brokers(&self) -> impl Iterator<Item = &Broker> {
        self.brokers.values()
    }

    pub(super) fn cluster_id(&self) -> Option<&str> {
        self.cluster_id.as_deref()
    }

    pub(super) fn controller(&self) -> Option<NodeId> {
        self.controller
    }
}

fn broker(told: &kafka_protocol::messages::metadata_response::MetadataResponseBroker) -> Option<(NodeId, Broker)> {
    let id = NodeId(*told.node_id);
    let address = BrokerAddress::advertised(&told.host, told.port)?;
    let rack = told.rack.as_ref().map(|rack| rack.to_string());
    Some((id, Broker { id, address, rack }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kafka_protocol::messages::metadata_response::{MetadataResponseBroker, MetadataResponsePartition};
    use kafka_protocol::messages::{BrokerId, TopicName};
    use kafka_protocol::protocol::StrBytes;
    use uuid::Uuid;

    const TOPIC: &str = "t";

    fn answer(code: i16, id: u128, leaders: &[(i32, i32)]) -> MetadataResponse {
        let partitions = leaders.iter().enumerate().map(|(index, &(leader, epoch))| {
            MetadataResponsePartition::default()
                .with_partition_index(i32::try_from(index).unwrap())
                .with_leader_id(BrokerId(leader))
                .with_leader_epoch(epoch)
        });
        let topic = MetadataResponseTopic::default()
            .with_name(Some(TopicName(StrBytes::from_static_str(TOPIC))))
            .with_error_code(code)
            .with_topic_id(Uuid::from_u128(id))
            .with_partitions(partitions.collect());
        MetadataResponse::default().with_topics(vec![topic])
    }

    fn with_brokers(ids: &[i32]) -> MetadataResponse {
        let brokers = ids.iter().map(|id| {
            MetadataResponseBroker::default()
                .with_node_id(BrokerId(*id))
                .with_host(StrBytes::from_static_str("h"))
                .with_port(9092)
        });
        MetadataResponse::default().with_brokers(brokers.collect())
    }

    fn metadata(answers: Vec<MetadataResponse>) -> Metadata {
        let mut metadata = Metadata::default();
        answers.into_iter().for_each(|answer| metadata.apply(answer, Instant::now()));
        metadata
    }

    #[test]
    fn an_older_leader_epoch_does_not_replace_a_newer_one() {
        let told = metadata(vec![answer(0, 1, &[(5, 7)]), answer(0, 1, &[(4, 6)])]);
        assert_eq!(told.leader(TOPIC, 0), Some((NodeId(5), 7)));
        let same = metadata(vec![answer(0, 1, &[(5, 7)]), answer(0, 1, &[(4, 7)])]);
        assert_eq!(same.leader(TOPIC, 0), Some((NodeId(4), 7)));
        let untold = metadata(vec![answer(0, 1, &[(5, 7)]), answer(0, 1, &[(4, -1)])]);
        assert_eq!(untold.leader(TOPIC, 0), Some((NodeId(4), -1)));
    }

    #[test]
    fn an_older_epoch_that_is_told_again_and_again_is_believed() {
        let mut answers = vec![answer(0, 1, &[(5, 7)])];
        answers.extend((0..OLDER_EPOCH_ANSWERS_MAX).map(|_| answer(0, 1, &[(4, 0)])));
        assert_eq!(metadata(answers).leader(TOPIC, 0), Some((NodeId(4), 0)));
    }

    #[test]
    fn a_topic_that_was_made_anew_starts_with_its_own_epochs() {
        let told = metadata(vec![answer(0, 1, &[(5, 7)]), answer(0, 2, &[(4, 0)])]);
        assert_eq!(told.leader(TOPIC, 0), Some((NodeId(4), 0)));
    }

    #[test]
    fn a_topic_outlives_one_answer_that_does_not_know_it() {
        let unknown = || answer(codes::UNKNOWN_TOPIC_OR_PARTITION, 0, &[]);
        let mut told = metadata(vec![answer(0, 1, &[(5, 7)]), unknown()]);
        assert_eq!(told.leader(TOPIC, 0), Some((NodeId(5), 7)));
        told.apply(unknown(), Instant::now());
        assert_eq!(told.leader(TOPIC, 0), None);
        assert_eq!(told.take_absence(TOPIC), Some(TopicAnswer::Unknown));
        // A known answer in between starts the count anew.
        let told = metadata(vec![answer(0, 1, &[(5, 7)]), unknown(), answer(0, 1, &[(5, 7)]), unknown()]);
        assert!(told.leader(TOPIC, 0).is_some());
    }

    #[test]
    fn a_refused_topic_tells_its_code() {
        let mut told = metadata(vec![answer(29, 0, &[])]);
        assert_eq!(told.take_absence(TOPIC), Some(TopicAnswer::Refused(29)));
        assert_eq!(told.take_absence(TOPIC), None);
    }

    #[test]
    fn a_partition_without_a_leader_is_kept() {
        let mut told = metadata(vec![answer(codes::NONE, 1, &[(5, 7), (-1, 3)])]);
        let (topic, _) = told.topic(TOPIC, Instant::now()).unwrap();
        assert_eq!(topic.partitions.len(), 2);
        assert_eq!(told.leader(TOPIC, 1), None);
    }

    #[test]
    fn a_hint_moves_one_partition_and_adds_its_broker_only() {
        let mut told = metadata(vec![with_brokers(&[1, 2]), answer(0, 1, &[(1, 7), (2, 3)])]);
        let address = BrokerAddress { host: "new".into(), port: 1 };
        let hint = LeaderHint { leader: NodeId(9), leader_epoch: 8, address: Some(address.clone()) };
        assert!(told.hint(TOPIC, 0, &hint));
        assert!(!told.hint(TOPIC, 0, &hint), "told before");
        assert_eq!(told.leader(TOPIC, 0), Some((NodeId(9), 8)));
        assert_eq!(told.leader(TOPIC, 1), Some((NodeId(2), 3)));
        assert_eq!(told.broker(NodeId(9)).unwrap().address, address);
        assert_eq!(told.brokers().count(), 3);
        assert!(!told.hint("other", 0, &hint));
        let old = LeaderHint { leader: NodeId(1), leader_epoch: 2, address: None };
        assert!(!told.hint(TOPIC, 1, &old));
    }

    #[test]
    fn an_answer_without_brokers_does_not_forget_the_known_ones() {
        let told = metadata(vec![with_brokers(&[1, 2]), MetadataResponse::default()]);
        assert_eq!(told.brokers().count(), 2);
    }
}
