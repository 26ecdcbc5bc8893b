//! Making a topic of the cluster's own, and refusing one that would lose what it holds.

use crate::error::TopicError;
use crate::settings::TopicSettings;
use oncewire_client::admin::{Admin, NewTopic, TopicOutcome};
use oncewire_client::cluster::Cluster;
use oncewire_client::error::Error;
use oncewire_client::wire::error_code::codes;

const CLEANUP_POLICY: &str = "cleanup.policy";
const COMPACT: &str = "compact";

/// Which of the topics it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Config,
    Status,
}

impl Role {
    /// The worker property that names the topic.
    fn property(self) -> &'static str {
        match self {
            Self::Config => "config.storage.topic",
            Self::Status => "status.storage.topic",
        }
    }

    fn holds(self) -> &'static str {
        match self {
            Self::Config => "connector configurations",
            Self::Status => "connector and task statuses",
        }
    }
}

/// Makes the topic if it is missing, and checks that it is compacted only and, for configs, has one partition.
pub(crate) async fn ensure(cluster: &Cluster, settings: &TopicSettings, role: Role) -> Result<(), TopicError> {
    let admin = Admin::new(cluster.clone());
    let topic = &settings.name;
    let is_there = cluster.topic(topic).await?.is_some();
    if !is_there {
        match admin.create_topic(&wanted(settings, role)).await {
            Ok(TopicOutcome::Created) => {
                tracing::info!(topic, "{} made", role.property());
                return Ok(());
            }
            Ok(TopicOutcome::Existed) => {}
            // Somebody else may make it; if nobody does, opening it says so.
            Err(error) if is_not_for_us(&error) => {
                tracing::info!(topic, "{} can't be made by this worker: {error}", role.property());
            }
            Err(error) => {
                let problem = format!(
                    "given by {} can't be made ({error}); make it with {CLEANUP_POLICY}={COMPACT}, or change the settings of its name",
                    role.property()
                );
                return Err(TopicError::Config { topic: topic.clone(), problem });
            }
        }
    }
    let policy = match admin.topic_configs(topic, &[CLEANUP_POLICY]).await {
        Ok(configs) => configs.get(CLEANUP_POLICY).and_then(|entry| entry.value.clone()),
        Err(error) => {
            tracing::info!(topic, "{CLEANUP_POLICY} of the topic can't be checked: {error}; it should be {COMPACT}");
            None
        }
    };
    check_policy(settings, role, policy.as_deref())?;
    if role == Role::Config
        && let Some(known) = cluster.topic(topic).await?
    {
        check_partitions(settings, known.partitions.len())?;
    }
    Ok(())
}

fn wanted(settings: &TopicSettings, role: Role) -> NewTopic {
    let mut configs = settings.configs.clone();
    if let Some(policy) = configs.insert(CLEANUP_POLICY.to_owned(), COMPACT.to_owned())
        && policy != COMPACT
    {
        tracing::warn!(
            topic = settings.name,
            "the setting {CLEANUP_POLICY}={policy} has no effect, it has to be {COMPACT}"
        );
    }
    let partitions = match role {
        Role::Config => Some(1),
        Role::Status => settings.partitions,
    };
    NewTopic { name: settings.name.clone(), partitions, replication_factor: settings.replication_factor, configs }
}

fn check_policy(settings: &TopicSettings, role: Role, policy: Option<&str>) -> Result<(), TopicError> {
    match policy {
        None | Some(COMPACT) => Ok(()),
        Some(policy) => Err(TopicError::Config {
            topic: settings.name.clone(),
            problem: format!(
                "given by {property} is required to have {CLEANUP_POLICY}={COMPACT} but has {CLEANUP_POLICY}={policy}, which would \
                 lose {holds} in the course of time; set it to {COMPACT}, or name another topic in {property}",
                property = role.property(),
                holds = role.holds(),
            ),
        }),
    }
}

fn check_partitions(settings: &TopicSettings, partitions: usize) -> Result<(), TopicError> {
    if partitions == 1 {
        return Ok(());
    }
    let property = Role::Config.property();
    Err(TopicError::Config {
        topic: settings.name.clone(),
        problem: format!(
            "given by {property} is required to have a single partition, since configs are read in the order of their writing, \
             but has {partitions}; name another topic in {property}, or a new one"
        ),
    })
}

/// Whether the cluster leaves the making of topics to somebody else.
fn is_not_for_us(error: &Error) -> bool {
    matches!(
        error.code(),
        Some(codes::TOPIC_AUTHORIZATION_FAILED | codes::CLUSTER_AUTHORIZATION_FAILED | codes::UNSUPPORTED_VERSION)
    ) || matches!(error, Error::Unsupported { .. })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn settings() -> TopicSettings {
        let configs = BTreeMap::from([("cleanup.policy".to_owned(), "delete".to_owned())]);
        TopicSettings { name: "t".into(), partitions: Some(5), replication_factor: None, configs }
    }

    #[test]
    fn the_config_topic_is_made_compacted_with_one_partition_whatever_the_settings_say() {
        let topic = wanted(&settings(), Role::Config);
        assert_eq!(topic.partitions, Some(1));
        assert_eq!(topic.configs["cleanup.policy"], "compact");
        assert_eq!(wanted(&settings(), Role::Status).partitions, Some(5));
    }

    /// B36 cleanup-policy-check
    #[test]
    fn a_topic_that_is_not_compacted_only_is_refused_by_name() {
        for policy in ["delete", "compact,delete"] {
            let error = check_policy(&settings(), Role::Status, Some(policy)).unwrap_err().to_string();
            assert!(
                error.contains("\"t\"") && error.contains("status.storage.topic") && error.contains(policy),
                "{error}"
            );
        }
        assert!(check_policy(&settings(), Role::Config, Some("compact")).is_ok());
        assert!(check_policy(&settings(), Role::Config, None).is_ok(), "it may not be ours to look at");
    }

    /// B33 multi-partition-config-topic
    #[test]
    fn a_config_topic_of_two_partitions_is_refused() {
        let error = check_partitions(&settings(), 2).unwrap_err().to_string();
        assert!(error.contains("required to have a single partition"), "{error}");
    }
}
