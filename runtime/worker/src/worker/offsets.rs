//! A connector's stored offsets for a person: listed, altered, reset (KIP-875).
//!
//! What is altered goes through JSON first, so that the connector sees what it would read back; then the connector is asked,
//! then everything is written: exactly once, in one transaction of task 0's id, which fences a task that still runs.

use super::tasks::check;
use super::{AlterError, OffsetChange, Offsets};
use crate::config::clients::{consumer_client, plain_clients, task_clients};
use crate::config::connector::ConnectorConfig;
use crate::config::worker::WorkerConfig;
use crate::error::TaskFailure;
use crate::store::choice::Stores;
use crate::store::offset_fold::OffsetFold;
use crate::store::task_offsets::TaskOffsets;
use crate::store::topic_reader::TopicReader;
use crate::store::topic_writer::TopicWriter;
use crate::task::ahead::now_ms;
use crate::task::offset_buffer::OffsetBuffer;
use crate::task::stores::{self, OwnTopic, read_shared, stores_of};
use oncewire_api::plugin::PluginRegistry;
use oncewire_api::{Properties, SourceConnector};
use oncewire_client::cluster::Cluster;
use oncewire_client::producer::{PlainProducer, ProducerError, TransactionalProducer};
use oncewire_plugins::json::{offset_key_bytes, offset_value_bytes, parse_offset_key, parse_offset_value};
use std::sync::Arc;
use std::time::Duration;

/// How long closing the producer may take.
const CLOSE_MAX: Duration = Duration::from_secs(5);

/// One connector's offsets.
pub(super) struct ConnectorStores<'a> {
    pub worker: &'a WorkerConfig,
    pub reader: &'a TopicReader,
    pub writer: &'a TopicWriter,
    pub connector: ConnectorConfig,
    pub make: fn() -> Box<dyn SourceConnector>,
    pub exactly_once: bool,
}

impl<'a> ConnectorStores<'a> {
    pub(super) fn new(
        worker: &'a WorkerConfig,
        registry: &PluginRegistry,
        (reader, writer): (&'a TopicReader, &'a TopicWriter),
        properties: &Properties,
    ) -> Result<Self, String> {
        let (connector, make) = check(worker, registry, properties.clone())?;
        let exactly_once = connector.can_be_fenced(worker);
        Ok(Self { worker, reader, writer, connector, make, exactly_once })
    }

    /// The topic that its tasks write offsets to with their own producers, if they do.
    pub(super) fn topic(&self) -> Option<String> {
        match stores_of(self.worker, &self.connector, self.exactly_once) {
            Stores::Global => None,
            Stores::Own(topic) | Stores::Both(topic) => Some(topic),
        }
    }

    pub(super) async fn list(&self) -> Result<Offsets, String> {
        let fold = self.fold().await.map_err(|failure| failure.to_string())?;
        Ok(fold.iter().map(|(partition, offset)| (partition.clone(), Some(offset.clone()))).collect())
    }

    async fn fold(&self) -> Result<OffsetFold, TaskFailure> {
        let name = &self.connector.name;
        let (topic, has_behind) = match stores_of(self.worker, &self.connector, self.exactly_once) {
            Stores::Global => return read_shared(self.reader, name).await,
            Stores::Own(topic) => (topic, false),
            Stores::Both(topic) => (topic, true),
        };
        let consumer = consumer_client(self.worker, &self.connector.originals, name, self.exactly_once);
        let consumer = consumer.map_err(TaskFailure::failed)?;
        let cluster = Cluster::connect(consumer.client).await?;
        let own = self.own(&cluster);
        let read = async {
            own.ensure(&topic).await?;
            own.read(&topic).await
        };
        let read = read.await;
        cluster.close().await;
        let mut fold = read?;
        if has_behind {
            fold.fall_through_to(&read_shared(self.reader, name).await?);
        }
        Ok(fold)
    }

    fn own<'b>(&'b self, cluster: &'b Cluster) -> OwnTopic<'b> {
        OwnTopic { worker: self.worker, connector: &self.connector, exactly_once: self.exactly_once, cluster }
    }

    pub(super) async fn alter(&self, change: OffsetChange) -> Result<bool, AlterError> {
        let change = match change {
            OffsetChange::Alter(offsets) => OffsetChange::Alter(through_json(&self.connector.name, offsets)?),
            OffsetChange::Reset => OffsetChange::Reset,
        };
        if self.exactly_once { self.alter_in_a_transaction(change).await } else { self.alter_plainly(change).await }
    }

    async fn alter_in_a_transaction(&self, change: OffsetChange) -> Result<bool, AlterError> {
        let clients = task_clients(self.worker, &self.connector.originals, &self.connector.name, 0);
        let clients = clients.map_err(AlterError::Config)?;
        let cluster = Cluster::connect(clients.client).await.map_err(|error| AlterError::Store(error.to_string()))?;
        let producer = TransactionalProducer::new(cluster.clone(), clients.producer);
        let altered = self.transact(&cluster, &producer, change).await;
        if let Err(error) = producer.close(CLOSE_MAX).await {
            tracing::warn!(connector = self.connector.name, "closing the producer: {error}");
        }
        cluster.close().await;
        altered
    }

    async fn transact(
        &self,
        cluster: &Cluster,
        producer: &TransactionalProducer,
        change: OffsetChange,
    ) -> Result<bool, AlterError> {
        producer.init().await?;
        let mut stored = stores::exactly_once(&self.own(cluster), Some((self.reader, self.writer))).await?;
        let change = wanted(change, || stored.known());
        let answer = self.ask_connector(&change).await?;
        let mut buffer = OffsetBuffer::default();
        change.into_iter().for_each(|(partition, offset)| buffer.put(partition, offset));
        if !buffer.is_empty() {
            write(producer, &mut stored, &buffer).await?;
        }
        Ok(answer)
    }

    async fn alter_plainly(&self, change: OffsetChange) -> Result<bool, AlterError> {
        let clients = plain_clients(self.worker, &self.connector.originals, &self.connector.name, 0);
        let clients = clients.map_err(AlterError::Config)?;
        let cluster = Cluster::connect(clients.client).await.map_err(|error| AlterError::Store(error.to_string()))?;
        let producer = Arc::new(PlainProducer::new(cluster.clone(), clients.producer));
        let altered = async {
            let shared = (self.reader, self.writer);
            let (mut offsets, sink) = stores::at_least_once(&self.own(&cluster), shared, &producer).await?;
            let change = wanted(change, || offsets.known());
            let answer = self.ask_connector(&change).await?;
            let records = offsets.encode(change.iter())?;
            sink.store(records).await.map_err(AlterError::Store)?;
            Ok(answer)
        };
        let altered = altered.await;
        drop(producer);
        cluster.close().await;
        altered
    }

    /// In a task of its own: a panic of the connector is an answer too.
    async fn ask_connector(&self, change: &Offsets) -> Result<bool, AlterError> {
        let (make, properties, change) = (self.make, self.connector.originals.clone(), change.clone());
        let asked = tokio::spawn(async move { make().alter_offsets(&properties, &change).await });
        match asked.await {
            Ok(answer) => answer.map_err(|error| AlterError::Refused(error.to_string())),
            Err(error) => Err(AlterError::Refused(format!("the connector panicked: {error}"))),
        }
    }
}

async fn write(
    producer: &TransactionalProducer,
    stored: &mut TaskOffsets,
    buffer: &OffsetBuffer,
) -> Result<(), AlterError> {
    stored.remove_behind(buffer).await?;
    let mut stage = producer.stage();
    stored.stage(buffer, &mut stage, now_ms())?;
    producer.begin().await?;
    producer.send(stage.seal()).await?;
    producer.commit().await?;
    stored.committed(buffer, now_ms());
    Ok(())
}

fn wanted(
    change: OffsetChange,
    known: impl FnOnce() -> Vec<(oncewire_api::SourcePartition, oncewire_api::SourceOffset)>,
) -> Offsets {
    match change {
        OffsetChange::Alter(offsets) => offsets,
        OffsetChange::Reset => known().into_iter().map(|(partition, _)| (partition, None)).collect(),
    }
}

/// What would be read back, had these offsets been stored.
fn through_json(connector: &str, offsets: Offsets) -> Result<Offsets, AlterError> {
    let illegal = |problem: String| AlterError::Illegal(problem);
    let mut through = Vec::with_capacity(offsets.len());
    for (partition, offset) in offsets {
        let key = offset_key_bytes(connector, &partition).map_err(|error| illegal(error.to_string()))?;
        let (_, partition) = parse_offset_key(&key).map_err(|error| illegal(error.to_string()))?;
        let partition = partition.ok_or_else(|| illegal("a source partition is null".to_owned()))?;
        let offset = match offset {
            None => None,
            Some(offset) => {
                let value = offset_value_bytes(&offset).map_err(|error| illegal(error.to_string()))?;
                parse_offset_value(&value).map_err(|error| illegal(error.to_string()))?
            }
        };
        through.push((partition, offset));
    }
    Ok(through)
}

impl From<TaskFailure> for AlterError {
    fn from(failure: TaskFailure) -> Self {
        match failure {
            TaskFailure::Superseded(message) => Self::Fenced(message),
            TaskFailure::Lost(message) | TaskFailure::Failed(message) => Self::Store(message),
        }
    }
}

impl From<ProducerError> for AlterError {
    fn from(error: ProducerError) -> Self {
        TaskFailure::from(error).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oncewire_api::{OffsetValue, SourceOffset, SourcePartition};

    #[test]
    fn offsets_come_to_the_connector_as_they_would_be_read_back() {
        let bytes = OffsetValue::Bytes(vec![1, 2, 3].into());
        let through = through_json(
            "c",
            vec![(SourcePartition::single("p", bytes), Some(SourceOffset::single("n", OffsetValue::Float(1.0))))],
        )
        .unwrap();
        assert_eq!(
            through,
            [(SourcePartition::single("p", "AQID"), Some(SourceOffset::single("n", OffsetValue::Float(1.0))))]
        );
        let nan = SourceOffset::single("n", OffsetValue::Float(f64::NAN));
        assert!(matches!(
            through_json("c", vec![(SourcePartition::single("p", "x"), Some(nan))]),
            Err(AlterError::Illegal(_))
        ));
    }
}
