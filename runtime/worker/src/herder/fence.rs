//! Fencing of tasks that a connector no longer has.
//!
//! A task fences older owners of its own transactional id by its InitProducerId. A connector that comes back with fewer
//! tasks leaves ids without a new owner: their old owners could still commit. A distributed worker knows them from the task
//! count in the config topic; a standalone worker asks the coordinators which ids of this form they know (ListTransactions,
//! KIP-664) and fences those that are not its own. Coordinators forget an id 7 days after its last use
//! (`transactional.id.expiration.ms`), and then its owner is fenced too.

use oncewire_client::admin::Admin;
use std::time::Duration;

/// Stored as the transaction timeout of a fenced id until its next owner sets its own, and the coordinator's patience with
/// its own writes: 60 s, below every broker's default cap (KAFKA-16047).
const FENCE_TIMEOUT: Duration = Duration::from_secs(60);

/// How long all of it may take.
const FENCE_PATIENCE: Duration = Duration::from_secs(60);

/// The ids among `listed` that belong to tasks of this connector beyond its present ones. Pure.
pub fn beyond(listed: &[String], group_id: &str, connector: &str, tasks: usize) -> Vec<String> {
    let prefix = format!("{group_id}-{connector}-");
    listed
        .iter()
        .filter(|id| {
            let number = id.strip_prefix(&prefix).unwrap_or_default();
            let canonical = number.parse::<u32>().is_ok_and(|parsed| parsed.to_string() == number);
            canonical && number.parse::<usize>().is_ok_and(|number| number >= tasks)
        })
        .cloned()
        .collect()
}

/// Fences the connector's tasks beyond its present ones.
///
/// # Errors
/// One line for the operator.
pub async fn fence_beyond(admin: &Admin, group_id: &str, connector: &str, tasks: usize) -> Result<(), String> {
    let listed = match admin.list_transactions().await {
        Ok(listed) => listed.into_iter().map(|listed| listed.transactional_id).collect::<Vec<_>>(),
        Err(error) => {
            // Brokers before 3.0 can't list, and a principal may not be allowed to. The tasks' own ids are fenced anyway.
            tracing::warn!(connector, "tasks that the connector no longer has can't be looked for: {error}");
            return Ok(());
        }
    };
    let ids = beyond(&listed, group_id, connector, tasks);
    if ids.is_empty() {
        return Ok(());
    }
    for (id, fenced) in admin.fence_producers(&ids, FENCE_TIMEOUT, FENCE_PATIENCE).await {
        match fenced {
            Ok(_) => tracing::info!(connector, transactional_id = id, "fenced a task that the connector no longer has"),
            Err(error) => {
                return Err(format!("connector {connector:?}: transactional id {id:?} can't be fenced: {error}"));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ids_of_this_connector_beyond_its_tasks_are_fenced() {
        let listed: Vec<String> =
            ["g-c-0", "g-c-1", "g-c-2", "g-c-10", "g-c-x-1", "g-c-01", "g-cc-5", "other", "g-c-", "g-c--3"]
                .map(str::to_owned)
                .into();
        assert_eq!(beyond(&listed, "g", "c", 2), ["g-c-2", "g-c-10"]);
        assert!(beyond(&listed, "g", "c", 11).is_empty());
    }
}
