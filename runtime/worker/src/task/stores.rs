//! Opens a task's offset stores: which topics, through which clients, in which order.
//!
//! A topic of the connector's own is made and checked by the connector's admin client and read by its consumer. Where these
//! have the same settings as the client that is there already, they are that one: a task then has one connection per broker,
//! not three.

use super::run::TaskSpec;
use crate::config::clients::{admin_client, consumer_client, producer_properties, worker_servers};
use crate::config::connector::ConnectorConfig;
use crate::config::worker::{Delivery, OffsetsTopic, WorkerConfig};
use crate::error::TaskFailure;
use crate::store::choice::{Choice, Stores, choose};
use crate::store::connector_offsets::ConnectorOffsets;
use crate::store::offset_fold::OffsetFold;
use crate::store::offset_sink::OffsetSink;
use crate::store::offset_topic;
use crate::store::task_offsets::TaskOffsets;
use crate::store::topic_reader::TopicReader;
use crate::store::topic_writer::TopicWriter;
use oncewire_client::cluster::Cluster;
use oncewire_client::config::ClientConfig;
use oncewire_client::error::Error;
use oncewire_client::producer::PlainProducer;
use oncewire_client::reader::Isolation;
use std::sync::Arc;

/// Which topics the connector's offsets are in.
pub(crate) fn stores_of(worker: &WorkerConfig, connector: &ConnectorConfig, exactly_once: bool) -> Stores {
    match &worker.delivery {
        Delivery::Distributed { offsets, .. } => {
            let producer = producer_properties(worker, &connector.originals);
            choose(Choice {
                exactly_once,
                worker_topic: &offsets.name,
                own_topic: connector.offsets_topic.as_deref(),
                worker_servers: &worker_servers(worker),
                producer_servers: producer.get("bootstrap.servers").map(String::as_str).unwrap_or_default(),
            })
        }
        Delivery::ExactlyOnce(topic) => Stores::Own(topic.name.clone()),
        Delivery::AtLeastOnce(_) => Stores::Global,
    }
}

/// What both modes and the offsets API read of a connector's own topic.
pub(crate) struct OwnTopic<'a> {
    pub worker: &'a WorkerConfig,
    pub connector: &'a ConnectorConfig,
    /// Whether the connector's tasks hold transactional ids: offsets then lie on their producers' cluster, and only
    /// committed ones are read.
    pub exactly_once: bool,
    /// The client that is there already.
    pub cluster: &'a Cluster,
}

impl OwnTopic<'_> {
    /// Makes the topic if it is missing, and checks it.
    pub(crate) async fn ensure(&self, topic: &str) -> Result<(), TaskFailure> {
        let Delivery::Distributed { offsets, .. } = &self.worker.delivery else { return Ok(()) };
        let wanted = OffsetsTopic { name: topic.to_owned(), ..offsets.clone() };
        let admin = admin_client(self.worker, &self.connector.originals, &self.connector.name);
        let errand = Errand::new(self.cluster, admin.map_err(TaskFailure::failed)?).await?;
        let ensured = offset_topic::ensure(&errand.cluster, &wanted).await;
        errand.close().await;
        ensured
    }

    /// Whether the worker's shared reader sees what the connector's consumer would.
    fn is_read_by(&self, reader: &TopicReader) -> Result<bool, TaskFailure> {
        let (properties, name) = (&self.connector.originals, &self.connector.name);
        let consumer = consumer_client(self.worker, properties, name, self.exactly_once);
        Ok(reader.reads_as(&consumer.map_err(TaskFailure::failed)?.client))
    }

    /// Its offsets as of now.
    pub(crate) async fn read(&self, topic: &str) -> Result<OffsetFold, TaskFailure> {
        let name = &self.connector.name;
        let consumer = consumer_client(self.worker, &self.connector.originals, name, self.exactly_once);
        let consumer = consumer.map_err(TaskFailure::failed)?;
        for warning in &consumer.warnings {
            tracing::warn!(connector = name, "{warning}");
        }
        let errand = Errand::new(self.cluster, consumer.client).await?;
        let read = offset_topic::read(&errand.cluster, topic, name, consumer.isolation).await;
        errand.close().await;
        read
    }
}

/// A client for a moment: the one that is there, or one of its own.
struct Errand {
    cluster: Cluster,
    is_own: bool,
}

impl Errand {
    async fn new(at_hand: &Cluster, wanted: ClientConfig) -> Result<Self, Error> {
        if is_same(at_hand, &wanted) {
            return Ok(Self { cluster: at_hand.clone(), is_own: false });
        }
        Ok(Self { cluster: Cluster::connect(wanted).await?, is_own: true })
    }

    async fn close(self) {
        if self.is_own {
            self.cluster.close().await;
        }
    }
}

/// Whether two clients differ in nothing but their name.
fn is_same(at_hand: &Cluster, wanted: &ClientConfig) -> bool {
    let named = ClientConfig { client_id: at_hand.config().client_id.clone(), ..wanted.clone() };
    named == *at_hand.config()
}

/// The client that makes a task's topics, where it is another than the producer's.
pub(super) fn other_admin(spec: &TaskSpec, cluster: &Cluster) -> Result<Option<ClientConfig>, TaskFailure> {
    let admin = admin_client(&spec.worker, &spec.connector.originals, &spec.connector.name);
    let admin = admin.map_err(TaskFailure::failed)?;
    let is_standalone = spec.surroundings.is_none();
    Ok((!is_standalone && !is_same(cluster, &admin)).then_some(admin))
}

/// What the process shares: the reader and the writer of the worker's topic. `None` in standalone mode.
pub(crate) type Shared<'a> = Option<(&'a TopicReader, &'a TopicWriter)>;

pub(super) fn shared(spec: &TaskSpec) -> Shared<'_> {
    spec.surroundings.as_ref().map(|around| (&around.reader, &around.writer))
}

/// What an exactly-once task reads and writes. Its producer must hold the transactional id.
pub(crate) async fn exactly_once(own: &OwnTopic<'_>, shared: Shared<'_>) -> Result<TaskOffsets, TaskFailure> {
    let (name, cluster) = (own.connector.name.as_str(), own.cluster);
    let (topic, fold, behind) = match (stores_of(own.worker, own.connector, true), shared) {
        (Stores::Own(topic), None) => {
            // A standalone worker's herder has made and checked it.
            let fold = offset_topic::read(cluster, &topic, name, Isolation::Committed).await?;
            (topic, fold, None)
        }
        (Stores::Own(topic), Some((reader, _))) if reader.topic() == topic && own.is_read_by(reader)? => {
            let fold = read_shared(reader, name).await?;
            (topic, fold, None)
        }
        (Stores::Own(topic), Some(_)) => {
            own.ensure(&topic).await?;
            let fold = own.read(&topic).await?;
            (topic, fold, None)
        }
        (Stores::Both(topic), Some((reader, writer))) => {
            own.ensure(&topic).await?;
            let mut fold = own.read(&topic).await?;
            fold.fall_through_to(&read_shared(reader, name).await?);
            (topic, fold, Some(writer.clone()))
        }
        (stores, _) => return Err(TaskFailure::failed(format!("offsets can't be in {stores:?} here"))),
    };
    let partitions = offset_topic::partitions(cluster, &topic).await?;
    Ok(TaskOffsets::new(&topic, partitions, name, fold, behind))
}

/// What a task without transactions reads, and where it writes, in a distributed worker.
pub(crate) async fn at_least_once(
    own: &OwnTopic<'_>,
    (reader, writer): (&TopicReader, &TopicWriter),
    producer: &Arc<PlainProducer>,
) -> Result<(ConnectorOffsets, OffsetSink), TaskFailure> {
    let name = own.connector.name.as_str();
    let (topic, fold, behind) = match stores_of(own.worker, own.connector, own.exactly_once) {
        Stores::Global => {
            let fold = read_shared(reader, name).await?;
            return Ok((ConnectorOffsets::new(name, fold), OffsetSink::Global(writer.clone())));
        }
        Stores::Own(topic) if reader.topic() == topic && own.is_read_by(reader)? => {
            let fold = read_shared(reader, name).await?;
            (topic, fold, None)
        }
        Stores::Own(topic) => {
            own.ensure(&topic).await?;
            let fold = own.read(&topic).await?;
            (topic, fold, None)
        }
        Stores::Both(topic) => {
            own.ensure(&topic).await?;
            let mut fold = own.read(&topic).await?;
            fold.fall_through_to(&read_shared(reader, name).await?);
            (topic, fold, Some(writer.clone()))
        }
    };
    let partitions = offset_topic::partitions(own.cluster, &topic).await?;
    let sink = OffsetSink::Own { topic: topic.as_str().into(), partitions, producer: producer.clone(), behind };
    Ok((ConnectorOffsets::new(name, fold), sink))
}

/// What a task of a standalone worker without transactions reads, and where it writes.
pub(super) fn in_a_file(spec: &TaskSpec) -> Result<(ConnectorOffsets, OffsetSink), TaskFailure> {
    let Some(file) = &spec.file else { return Err(TaskFailure::failed("the offsets file was not opened")) };
    let mut fold = OffsetFold::new(&spec.connector.name);
    for (key, value) in file.entries() {
        fold.apply(Some(&key), value.as_ref(), 0);
    }
    Ok((ConnectorOffsets::new(&spec.connector.name, fold), OffsetSink::File(file.clone())))
}

/// The worker's topic, read with all tasks of the process together.
pub(crate) async fn read_shared(reader: &TopicReader, name: &str) -> Result<OffsetFold, TaskFailure> {
    reader.read(name).await.map_err(|error| offset_topic::cant_be_read(reader.topic(), error))
}
