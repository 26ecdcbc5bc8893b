//! Transactional ids are joined by `-` (`<group>-<connector>-<task>`, KIP-618), so that different connectors, of different Connect
//! clusters on one Kafka cluster, can get the same: `g` + `a-1` and `g-a` + `1`. They would fence each other without end. The id of a
//! leader's producer, `connect-cluster-<group>`, can be a task's too.
//!
//! ```text
//! g     -  a-1  - 0          connect  -  cluster-g  - 0
//! g-a   -  1    - 0          connect-cluster - g-0         (the leader of the group g-0)
//! ```

/// How the id of a leader's producer begins.
const LEADER: &str = "connect-cluster-";

/// What clashes when the ids of `connector` in `group` can equal those of another `(group, connector)`, or of the leader of its group;
/// names both, and what to change. The task numbers need not be known: they come last and hold no `-`.
pub fn txid_collision<'a>(
    group: &str,
    connector: &str,
    others: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Option<String> {
    let ids = format!("{group}-{connector}-");
    let mut leaders = vec![group.to_owned()];
    for (other_group, other) in others {
        if (other_group, other) != (group, connector) && format!("{other_group}-{other}-") == ids {
            return Some(format!(
                "connector '{connector}' of group '{group}' and connector '{other}' of group '{other_group}' have the same transactional \
                 ids, {ids}<task>, and would fence each other; rename one of them"
            ));
        }
        leaders.push(other_group.to_owned());
    }
    leaders.into_iter().find_map(|leader_group| {
        let id = format!("{LEADER}{leader_group}");
        let task = id.strip_prefix(&ids)?;
        let is_task = !task.is_empty() && task.bytes().all(|byte| byte.is_ascii_digit());
        is_task.then(|| {
            format!(
                "task {task} of connector '{connector}' of group '{group}' and the leader of group '{leader_group}' have the same \
                 transactional id, {id}, and would fence each other; rename the connector"
            )
        })
    })
}

/// What may clash when only the other groups are known, as from a list of the Kafka cluster's groups: a connector there that would have
/// the ids of ours. A warning, since nobody says that there is such a connector.
pub fn possible_txid_collision<'a>(
    group: &str,
    connector: &str,
    other_groups: impl IntoIterator<Item = &'a str>,
) -> Option<String> {
    let ours = format!("{group}-{connector}");
    other_groups.into_iter().filter(|other| *other != group).find_map(|other| {
        let rival = ours.strip_prefix(other)?.strip_prefix('-').filter(|rival| !rival.is_empty())?;
        Some(format!(
            "connector '{connector}' of group '{group}' would have the same transactional ids, {ours}-<task>, as a connector '{rival}' of \
             group '{other}'; if there is one, rename one of them"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_that_are_joined_the_same_are_found_and_both_are_named() {
        let found = txid_collision("g", "a-1", [("x", "y"), ("g-a", "1")]).unwrap();
        for name in ["'a-1'", "'g'", "'1'", "'g-a'", "g-a-1-<task>"] {
            assert!(found.contains(name), "{found}");
        }
        assert!(txid_collision("g-a", "1", [("g", "a-1")]).is_some());
    }

    #[test]
    fn others_do_not_clash() {
        assert_eq!(txid_collision("g", "a-1", [("g", "a-1"), ("g", "a"), ("g-a", "2"), ("ga", "-1")]), None);
        assert_eq!(txid_collision("g", "a", []), None);
    }

    #[test]
    fn a_task_can_have_the_id_of_a_leader() {
        let found = txid_collision("connect", "cluster-g", [("g-0", "z")]).unwrap();
        assert!(found.contains("leader of group 'g-0'"), "{found}");
        assert!(txid_collision("connect", "cluster", [("5", "z")]).is_some());
        assert_eq!(txid_collision("connect", "cluster", [("g", "z")]), None);
    }

    #[test]
    fn another_group_whose_name_begins_ours_may_clash() {
        let found = possible_txid_collision("g-a", "1", ["z", "g-a", "g"]).unwrap();
        assert!(found.contains("connector 'a-1' of group 'g'"), "{found}");
        assert!(possible_txid_collision("g", "a-1", ["g-a"]).is_some());
        assert_eq!(possible_txid_collision("g", "a", ["g-a", "ga", "g"]), None);
    }
}
