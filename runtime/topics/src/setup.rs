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

    /// What the topic's own settings begin with.
    fn prefix(self) -> &'static str {
        match self {
            Self::Config => "config.storage.",
            Self::Status => "status.storage.",
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
        let wanted = wanted(settings, role);
        match admin.create_topic(&wanted).await {
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
                return Err(TopicError::Config { topic: topic.clone(), problem: not_made(&wanted, role, &error) });
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

/// What a person has to change so that the topic can be made.
fn not_made(wanted: &NewTopic, role: Role, error: &Error) -> String {
    let (property, prefix) = (role.property(), role.prefix());
    let advice = wanted.advice(error, prefix).unwrap_or_else(|| format!("change the properties below {prefix}"));
    format!(
        "given by {property} can't be made ({error}); {advice}; or make it yourself with {CLEANUP_POLICY}={COMPACT}"
    )
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
    use oncewire_client::error::BrokerError;
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

    #[test]
    fn a_refused_number_of_replicas_is_named_by_its_property() {
        let settings = TopicSettings { replication_factor: Some(3), ..settings() };
        let code = codes::INVALID_REPLICATION_FACTOR;
        let words = Some("Unable to replicate the partition 3 time(s)".to_owned());
        let error = BrokerError { api: "CreateTopics", code, subject: "topic t".into(), message: words, user: None };
        for (role, property) in [
            (Role::Config, "config.storage.replication.factor is 3"),
            (Role::Status, "status.storage.replication.factor is 3"),
        ] {
            let told = not_made(&wanted(&settings, role), role, &Error::Broker(error.clone()));
            assert!(told.contains(property) && told.contains("1 for a single broker"), "{told}");
        }
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
