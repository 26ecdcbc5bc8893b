//! In which topics a connector's offsets are. Pure.
//!
//! ```text
//!                 no own topic                       own topic, another one           own topic = the worker's
//! at least once   the worker's                       own, and the worker's behind it  own
//! exactly once    own = the worker's name, on the    own, and the worker's behind it  own
//!                 cluster that the task writes to
//! ```
//!
//! Exactly once, offsets must be on the cluster that the records go to: one transaction can't span two. Where that is not the
//! worker's cluster, the worker's topic stands behind. "The same" means the same name and the same set of bootstrap servers,
//! as text: another name for the same cluster counts as another cluster, which costs a copy and harms nothing. Source:
//! KIP-618.

use std::collections::BTreeSet;

/// The topics, told to those who read and write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stores {
    /// Only the worker's topic, through the worker's clients.
    Global,
    /// Only this topic, through the connector's clients.
    Own(String),
    /// This topic first; the worker's behind it.
    Both(String),
}

/// What decides.
#[derive(Debug, Clone, Copy)]
pub struct Choice<'a> {
    /// Whether the task writes in transactions.
    pub exactly_once: bool,
    /// `offset.storage.topic` of the worker.
    pub worker_topic: &'a str,
    /// `offsets.storage.topic` of the connector.
    pub own_topic: Option<&'a str>,
    /// `bootstrap.servers` of the worker.
    pub worker_servers: &'a str,
    /// `bootstrap.servers` of the connector's producers.
    pub producer_servers: &'a str,
}

/// See the module.
pub fn choose(choice: Choice<'_>) -> Stores {
    let topic = match (choice.own_topic, choice.exactly_once) {
        (Some(topic), _) => topic,
        (None, true) => choice.worker_topic,
        (None, false) => return Stores::Global,
    };
    let is_the_same =
        topic == choice.worker_topic && servers(choice.worker_servers) == servers(choice.producer_servers);
    if is_the_same { Stores::Own(topic.to_owned()) } else { Stores::Both(topic.to_owned()) }
}

fn servers(list: &str) -> BTreeSet<&str> {
    list.split(',').map(str::trim).filter(|server| !server.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stores(exactly_once: bool, own_topic: Option<&str>, producer_servers: &str) -> Stores {
        choose(Choice { exactly_once, worker_topic: "w", own_topic, worker_servers: "a:1,b:1", producer_servers })
    }

    #[test]
    fn scenario_48_the_same_topic_is_told_by_name_and_set_of_servers() {
        let same = "b:1, a:1,";
        assert_eq!(stores(false, None, same), Stores::Global);
        assert_eq!(stores(false, None, "c:1"), Stores::Global);
        assert_eq!(stores(false, Some("o"), same), Stores::Both("o".into()));
        assert_eq!(stores(false, Some("w"), same), Stores::Own("w".into()));
        assert_eq!(stores(false, Some("w"), "a:1"), Stores::Both("w".into()), "another text is another cluster");
        assert_eq!(stores(true, None, same), Stores::Own("w".into()));
        assert_eq!(stores(true, None, "c:1"), Stores::Both("w".into()));
        assert_eq!(stores(true, Some("o"), same), Stores::Both("o".into()));
        assert_eq!(stores(true, Some("w"), same), Stores::Own("w".into()));
    }
}
