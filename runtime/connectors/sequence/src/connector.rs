//! The connector: one task for each sequence.

use async_trait::async_trait;
use oncewire_api::{
    ConfigDef, ConnectorContext, ConnectorError, ConnectorTransactionBoundaries, ExactlyOnceSupport, OffsetValue,
    Properties, SourceConnector, SourceOffset, SourcePartition, SourceTask,
};

use crate::VERSION;
use crate::config::{SequenceConfig, TASK_ID, join};
use crate::task::{N_FIELD, SequenceSourceTask, TASK_FIELD};

/// Numbers in a checkable pattern.
#[derive(Debug, Default)]
pub struct SequenceSourceConnector {
    properties: Properties,
}

#[async_trait]
impl SourceConnector for SequenceSourceConnector {
    fn version(&self) -> &str {
        VERSION
    }

    fn config_def(&self) -> ConfigDef {
        SequenceConfig::def()
    }

    async fn start(&mut self, _context: ConnectorContext, properties: &Properties) -> Result<(), ConnectorError> {
        SequenceConfig::parse(properties).map_err(|problems| ConnectorError::new(join(&problems)))?;
        self.properties = properties.clone();
        Ok(())
    }

    async fn task_configs(&mut self, tasks_max: usize) -> Result<Vec<Properties>, ConnectorError> {
        let config =
            SequenceConfig::parse(&self.properties).map_err(|problems| ConnectorError::new(join(&problems)))?;
        if config.tasks > tasks_max {
            let message = format!(
                "'tasks' is {}, but 'tasks.max' allows {tasks_max}; raise 'tasks.max' or lower 'tasks'",
                config.tasks
            );
            return Err(ConnectorError::new(message));
        }
        let of_task = |task: usize| {
            let mut properties = self.properties.clone();
            properties.insert(TASK_ID.into(), task.to_string());
            properties
        };
        Ok((0..config.tasks).map(of_task).collect())
    }

    fn task(&self) -> Box<dyn SourceTask> {
        Box::new(SequenceSourceTask::default())
    }

    fn exactly_once_support(&self, _properties: &Properties) -> Option<ExactlyOnceSupport> {
        Some(ExactlyOnceSupport::Supported)
    }

    fn can_define_transaction_boundaries(&self, _properties: &Properties) -> Option<ConnectorTransactionBoundaries> {
        Some(ConnectorTransactionBoundaries::Supported)
    }

    async fn alter_offsets(
        &mut self,
        _properties: &Properties,
        offsets: &[(SourcePartition, Option<SourceOffset>)],
    ) -> Result<bool, ConnectorError> {
        let count = |value: Option<&OffsetValue>| value.and_then(OffsetValue::as_int).is_some_and(|number| number >= 0);
        for (partition, offset) in offsets {
            if !count(partition.get(TASK_FIELD)) {
                return Err(ConnectorError::new(format!(
                    "partition {partition} has no 'task' that is a whole number from 0"
                )));
            }
            if let Some(offset) = offset
                && !count(offset.get(N_FIELD))
            {
                return Err(ConnectorError::new(format!("offset {offset} has no 'n' that is a whole number from 0")));
            }
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn started(entries: &[(&str, &str)]) -> SequenceSourceConnector {
        let properties = entries.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
        let mut connector = SequenceSourceConnector::default();
        connector.start(ConnectorContext::new("c", |_| {}), &properties).await.unwrap();
        connector
    }

    #[tokio::test]
    async fn each_task_knows_its_number() {
        let mut connector = started(&[("topic", "t"), ("tasks", "3")]).await;
        let configs = connector.task_configs(5).await.unwrap();
        assert_eq!(configs.iter().map(|config| config["task.id"].as_str()).collect::<Vec<_>>(), ["0", "1", "2"]);
    }

    #[tokio::test]
    async fn more_tasks_than_allowed_are_refused_by_name() {
        let mut connector = started(&[("topic", "t"), ("tasks", "3")]).await;
        let error = connector.task_configs(2).await.unwrap_err();
        assert_eq!(error.to_string(), "'tasks' is 3, but 'tasks.max' allows 2; raise 'tasks.max' or lower 'tasks'");
    }

    #[tokio::test]
    async fn offsets_of_another_shape_are_refused() {
        let mut connector = started(&[("topic", "t")]).await;
        let task = || SourcePartition::single("task", OffsetValue::Int(0));
        let good = [(task(), Some(SourceOffset::single("n", 5))), (task(), None)];
        assert!(connector.alter_offsets(&Properties::new(), &good).await.unwrap());
        let bad = [(task(), Some(SourceOffset::single("n", "5")))];
        assert!(connector.alter_offsets(&Properties::new(), &bad).await.is_err());
    }
}
