//! The connector: checks the configuration and makes the one task that a file can have.

use async_trait::async_trait;
use oncewire_api::{
    CheckedValue, ConfigDef, ConnectorContext, ConnectorError, ExactlyOnceSupport, NullableProperties, OffsetValue,
    Properties, SourceConnector, SourceOffset, SourcePartition, SourceTask,
};

use crate::VERSION;
use crate::config::{FILE, FileConfig, NO_FILE, join};
use crate::task::{FILENAME_FIELD, FileStreamSourceTask, POSITION_FIELD};

/// Reads the lines of one file.
#[derive(Debug, Default)]
pub struct FileStreamSourceConnector {
    properties: Properties,
}

fn has_file(properties: &Properties) -> bool {
    properties.get(FILE).is_some_and(|file| !file.trim().is_empty())
}

#[async_trait]
impl SourceConnector for FileStreamSourceConnector {
    fn version(&self) -> &str {
        VERSION
    }

    fn config_def(&self) -> ConfigDef {
        FileConfig::def()
    }

    async fn validate(&mut self, properties: &NullableProperties) -> Vec<CheckedValue> {
        let mut checked = FileConfig::def().check(properties);
        let given = properties.get(FILE).and_then(Option::as_deref).unwrap_or_default();
        if given.trim().is_empty()
            && let Some(file) = checked.iter_mut().find(|value| value.name == FILE)
        {
            file.errors.push(format!("Invalid value {given} for configuration {FILE}: {NO_FILE}"));
        }
        checked
    }

    async fn start(&mut self, _context: ConnectorContext, properties: &Properties) -> Result<(), ConnectorError> {
        FileConfig::parse(properties).map_err(|problems| ConnectorError::new(join(&problems)))?;
        self.properties = properties.clone();
        Ok(())
    }

    async fn task_configs(&mut self, _tasks_max: usize) -> Result<Vec<Properties>, ConnectorError> {
        // All properties, as Java does: a Java worker of the same group then finds the same task configuration.
        Ok(vec![self.properties.clone()])
    }

    fn task(&self) -> Box<dyn SourceTask> {
        Box::new(FileStreamSourceTask::default())
    }

    fn exactly_once_support(&self, properties: &Properties) -> Option<ExactlyOnceSupport> {
        Some(if has_file(properties) { ExactlyOnceSupport::Supported } else { ExactlyOnceSupport::Unsupported })
    }

    async fn alter_offsets(
        &mut self,
        properties: &Properties,
        offsets: &[(SourcePartition, Option<SourceOffset>)],
    ) -> Result<bool, ConnectorError> {
        if !has_file(properties) {
            return Err(ConnectorError::new(
                "offsets cannot be changed while 'file' is not set: standard input has none",
            ));
        }
        for (partition, offset) in offsets {
            if partition.get(FILENAME_FIELD).and_then(OffsetValue::as_text).is_none() {
                let message = format!(
                    "partition {partition} has no '{FILENAME_FIELD}' that is text; expected {{\"filename\":\"<path>\"}}"
                );
                return Err(ConnectorError::new(message));
            }
            let Some(offset) = offset else { continue };
            if offset.get(POSITION_FIELD).and_then(OffsetValue::as_int).is_none_or(|position| position < 0) {
                let message = format!(
                    "offset {offset} has no '{POSITION_FIELD}' that is a whole number from 0; expected {{\"position\":<bytes>}}"
                );
                return Err(ConnectorError::new(message));
            }
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use oncewire_api::plugin::{PluginKind, PluginRegistry};

    use super::*;

    fn properties(entries: &[(&str, &str)]) -> Properties {
        entries.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect()
    }

    #[tokio::test]
    async fn there_is_one_task_with_all_properties() {
        let given = properties(&[("name", "c"), ("file", "/in"), ("topic", "t")]);
        let mut connector = FileStreamSourceConnector::default();
        connector.start(ConnectorContext::new("c", |_| {}), &given).await.unwrap();
        assert_eq!(connector.task_configs(10).await.unwrap(), [given]);
    }

    #[test]
    fn exactly_once_is_supported_when_there_is_a_file() {
        let connector = FileStreamSourceConnector::default();
        let with_file = properties(&[("file", "/in")]);
        assert_eq!(connector.exactly_once_support(&with_file), Some(ExactlyOnceSupport::Supported));
        assert_eq!(connector.exactly_once_support(&Properties::new()), Some(ExactlyOnceSupport::Unsupported));
    }

    #[test]
    fn java_s_names_lead_here() {
        let registry = PluginRegistry::new([crate::plugin()]);
        for name in [crate::CLASS, "FileStreamSourceConnector", "FileStreamSource"] {
            assert!(registry.find(PluginKind::Source, name).is_ok(), "{name}");
        }
    }

    #[tokio::test]
    async fn no_file_is_found_before_the_connector_is_made() {
        let mut connector = FileStreamSourceConnector::default();
        for file in [None, Some(None), Some(Some(" ".to_string()))] {
            let mut given = NullableProperties::from([("topic".into(), Some("t".into()))]);
            given.extend(file.map(|file| ("file".to_string(), file)));
            let checked = connector.validate(&given).await;
            let wrong: Vec<&str> =
                checked.iter().filter(|value| !value.errors.is_empty()).map(|value| value.name.as_str()).collect();
            assert_eq!(wrong, ["file"]);
        }
    }

    #[tokio::test]
    async fn offsets_of_another_shape_are_refused() {
        let given = properties(&[("file", "/in"), ("topic", "t")]);
        let mut connector = FileStreamSourceConnector::default();
        let file = || SourcePartition::single("filename", "/in");
        let good = [(file(), Some(SourceOffset::single("position", 5))), (file(), None)];
        assert!(connector.alter_offsets(&given, &good).await.unwrap());
        let no_offset_of_ours = [
            (SourcePartition::single("file", "/in"), None),
            (file(), Some(SourceOffset::single("position", -1))),
            (file(), Some(SourceOffset::single("position", "5"))),
            (file(), Some(SourceOffset::single("pos", 5))),
        ];
        for bad in no_offset_of_ours {
            assert!(connector.alter_offsets(&given, &[bad]).await.is_err());
        }
        assert!(connector.alter_offsets(&Properties::new(), &good).await.is_err());
    }
}
