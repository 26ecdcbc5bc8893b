//! Another group of workers that uses this group's config topic, by a copied properties file with another `group.id`: both groups
//! run every connector, so every record is written twice.
//!
//! Looked for once, when a worker first leads. What is sure: a leader's transactional id, `connect-cluster-<group.id>` (KIP-618),
//! belongs to its group; its producer is among those that the topic's one partition remembers (for `producer.id.expiration.ms`, a
//! day); and the group has members now. Not seen: groups without exactly-once support, whose leaders write under no name; a
//! group that comes later (its own leader sees this one); ids that this worker may not describe.

use super::collision::Rivals;
use super::job::Done;
use super::tick::Tick;
use oncewire_client::admin::{ActiveProducer, Admin, ListedGroup, ListedTransaction};
use oncewire_client::error::Error;
use std::time::Duration;

/// How long the brokers may take to say so: 10 s; nobody waits for it.
const ASK_MAX: Duration = Duration::from_secs(10);

impl Rivals {
    /// The other groups with members whose leaders have written to this group's config topic within the last day, by name.
    ///
    /// # Errors
    /// When brokers can't be asked, or don't let this worker know.
    pub async fn sharing(&self, config_topic: &str) -> Result<Vec<String>, Error> {
        let admin = Admin::new(self.cluster().clone());
        let mut others = admin.list_groups().await?;
        others.retain(|group| is_rival(group, self.group_id()));
        if others.is_empty() {
            return Ok(Vec::new());
        }
        let transactions = admin.list_transactions().await?;
        let producers = admin.describe_producers(config_topic, 0).await?;
        Ok(writers(&others, &transactions, &producers))
    }
}

fn is_rival(group: &ListedGroup, ours: &str) -> bool {
    // Brokers before version 4 of the request tell no state.
    group.protocol_type == "connect" && group.group_id != ours && !["Empty", "Dead", ""].contains(&group.state.as_str())
}

fn writers(groups: &[ListedGroup], transactions: &[ListedTransaction], producers: &[ActiveProducer]) -> Vec<String> {
    let has_written = |group: &&ListedGroup| {
        let id = format!("connect-cluster-{}", group.group_id);
        let mut leaders = transactions.iter().filter(|one| one.transactional_id == id);
        leaders.any(|leader| producers.iter().any(|producer| producer.producer_id == leader.producer_id))
    };
    groups.iter().filter(has_written).map(|group| group.group_id.clone()).collect()
}

impl Tick {
    /// Looks once whether another group uses this group's topics.
    pub(super) fn look_for_sharing(&mut self) {
        let Some(rivals) = self.parts.rivals.take() else { return };
        let topic = self.parts.config.config_topic.name.clone();
        self.jobs.spawn(async move {
            let asked = tokio::time::timeout(ASK_MAX, rivals.sharing(&topic)).await;
            let result = match asked {
                Ok(answer) => answer.map_err(|error| error.to_string()),
                Err(_) => Err(format!("no answer in {ASK_MAX:?}")),
            };
            Done::SharingSeen { result }
        });
    }

    /// Says it. Nothing is stopped for it: which of the two groups is the mistake, only a person knows.
    pub(super) fn on_sharing_seen(&self, result: Result<Vec<String>, String>) {
        match result {
            Err(problem) => tracing::debug!("whether another group uses the config topic can't be told: {problem}"),
            Ok(groups) => {
                for other in groups {
                    tracing::warn!(
                        topic = self.parts.config.config_topic.name,
                        "group {other:?} writes to the config topic of this group, {:?}: both run all connectors, and every record \
                         is written twice; give one of them its own config.storage.topic, offset.storage.topic and status.storage.topic",
                        self.parts.config.group_id
                    );
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oncewire_client::admin::TransactionState;

    fn group(id: &str, protocol_type: &str, state: &str) -> ListedGroup {
        ListedGroup { group_id: id.to_owned(), protocol_type: protocol_type.to_owned(), state: state.to_owned() }
    }

    #[test]
    fn only_a_group_of_workers_with_members_is_a_rival() {
        assert!(is_rival(&group("h", "connect", "Stable"), "g"));
        for other in [group("g", "connect", "Stable"), group("h", "consumer", "Stable"), group("h", "connect", "Empty")]
        {
            assert!(!is_rival(&other, "g"), "{other:?}");
        }
    }

    #[test]
    fn a_group_shares_a_topic_when_the_producer_of_its_leader_is_known_there() {
        let leader = |group: &str, producer_id| ListedTransaction {
            transactional_id: format!("connect-cluster-{group}"),
            producer_id,
            state: TransactionState::CompleteCommit,
        };
        let written = |producer_id| ActiveProducer {
            producer_id,
            epoch: 0,
            last_sequence: 0,
            last_timestamp_ms: 0,
            coordinator_epoch: 0,
            txn_start_offset: None,
        };
        let groups =
            [group("h", "connect", "Stable"), group("i", "connect", "Stable"), group("j", "connect", "Stable")];
        // i leads over another topic; of j nothing is known.
        let found = writers(&groups, &[leader("h", 1), leader("i", 2)], &[written(1), written(3)]);
        assert_eq!(found, ["h"]);
    }
}
