//! Two Connect clusters on one Kafka cluster whose transactional ids are joined the same (`g` + `a-1`, `g-a` + `1`): their tasks
//! would fence each other without end. Looked for when a connector is created; what can't be asked is let pass, with a line
//! in the log.

use oncewire_client::admin::Admin;
use oncewire_client::cluster::Cluster;
use oncewire_rest::HerderError;
use oncewire_rest::herder::Answer;
use oncewire_validation::{possible_txid_collision, txid_collision};
use std::time::Duration;

/// How long the brokers may take to say which groups and ids there are: 5 s.
const ASK_MAX: Duration = Duration::from_secs(5);

/// Finds rivals of connectors that are not there yet.
#[derive(Debug, Clone)]
pub struct Rivals {
    cluster: Cluster,
    group_id: String,
}

impl Rivals {
    /// Asks this cluster.
    pub fn new(cluster: Cluster, group_id: &str) -> Self {
        Self { cluster, group_id: group_id.to_owned() }
    }

    pub(super) fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    pub(super) fn group_id(&self) -> &str {
        &self.group_id
    }

    /// Refuses a new connector whose transactional ids are in use already and can be those of another group's connector. One that
    /// only might clash is told in the log; so is one that `was_here` before, since the ids, which brokers know for days
    /// (`transactional.id.expiration.ms`), are then those of its own earlier tasks.
    ///
    /// # Errors
    /// A 400 that names both.
    pub async fn check(&self, connector: &str, was_here: bool) -> Answer<()> {
        if let Some(certain) = txid_collision(&self.group_id, connector, []) {
            return Err(HerderError::BadRequest(certain));
        }
        let admin = Admin::new(self.cluster.clone());
        let listed = match tokio::time::timeout(ASK_MAX, admin.list_groups()).await {
            Ok(Ok(groups)) => groups,
            Ok(Err(error)) => {
                tracing::debug!("other groups can't be asked for: {error}");
                return Ok(());
            }
            Err(_) => {
                tracing::debug!("other groups were not told in {ASK_MAX:?}");
                return Ok(());
            }
        };
        let others =
            listed.iter().filter(|group| group.protocol_type == "connect").map(|group| group.group_id.as_str());
        let Some(possible) = possible_txid_collision(&self.group_id, connector, others) else { return Ok(()) };
        if was_here {
            tracing::warn!(connector, "{possible}");
            return Ok(());
        }
        let prefix = format!("{}-{connector}-", self.group_id);
        let in_use = match tokio::time::timeout(ASK_MAX, admin.list_transactions()).await {
            Ok(Ok(listed)) => listed.iter().any(|listed| is_task(&prefix, &listed.transactional_id)),
            _ => false,
        };
        if in_use {
            return Err(HerderError::BadRequest(format!("{possible}; such ids are in use on this Kafka cluster")));
        }
        tracing::warn!(connector, "{possible}");
        Ok(())
    }
}

fn is_task(prefix: &str, id: &str) -> bool {
    id.strip_prefix(prefix).is_some_and(|task| !task.is_empty() && task.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_number_is_digits_to_the_end() {
        assert!(is_task("g-a-1-", "g-a-1-0"));
        assert!(!is_task("g-a-1-", "g-a-1-0-2"));
        assert!(!is_task("g-a-1-", "g-a-1-"));
    }
}
