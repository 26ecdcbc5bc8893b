//! Which broker coordinates a group or a transactional id: the cache, and FindCoordinator 1-6.
//!
//! The key of the cache is the pair of kind and id: a group and a transactional id of the same text have different
//! coordinators. An entry goes when its user says so (NOT_COORDINATOR and the like) or when its node cannot be reached.

use std::collections::{BTreeMap, HashMap};

use kafka_protocol::messages::find_coordinator_response::Coordinator;
use kafka_protocol::messages::{FindCoordinatorRequest, FindCoordinatorResponse};
use kafka_protocol::protocol::StrBytes;

use super::Cluster;
use super::types::{Call, CoordinatorKind, NodeId, Versions};
use crate::config::BrokerAddress;
use crate::error::{BrokerError, Error};
use crate::wire::error_code::codes;

/// Entries kept; when more are asked for, all are forgotten and looked up again as they are used.
const COORDINATORS_MAX: usize = 10_000;
/// Since this version one request can ask for several keys (KIP-699).
const VERSION_BATCHED: i16 = 4;
const API: &str = "FindCoordinator";

#[derive(Debug, Default)]
pub(super) struct Coordinators {
    known: HashMap<(CoordinatorKind, String), NodeId>,
}

/// A coordinator as a response names it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Found {
    node: NodeId,
    address: BrokerAddress,
}

impl Coordinators {
    fn known(&self, kind: CoordinatorKind, key: &str) -> Option<NodeId> {
        self.known.get(&(kind, key.to_owned())).copied()
    }

    fn learn(&mut self, kind: CoordinatorKind, key: &str, node: NodeId) {
        if self.known.len() >= COORDINATORS_MAX {
            self.known.clear();
        }
        self.known.insert((kind, key.to_owned()), node);
    }

    pub(super) fn forget(&mut self, kind: CoordinatorKind, key: &str) {
        self.known.remove(&(kind, key.to_owned()));
    }

    pub(super) fn forget_node(&mut self, node: NodeId) {
        self.known.retain(|_, known| *known != node);
    }
}

impl Cluster {
    /// The coordinator of a group or a transactional id: from the cache, else looked up with retries until
    /// `default.api.timeout.ms`.
    ///
    /// # Errors
    /// [`Error::Timeout`], or the broker's refusal (authorization).
    ///
    /// # Cancel safety
    /// Dropping the future ends this look-up only; other callers look up for themselves.
    pub async fn coordinator(&self, kind: CoordinatorKind, key: &str) -> Result<NodeId, Error> {
        let mut retry = self.retry(format!("finding the coordinator of {}", subject(kind, key)), self.patience());
        loop {
            let keys = [key.to_owned()];
            let found = self.coordinators(kind, &keys).await.remove(key);
            match found.unwrap_or(Err(Error::Closed)) {
                Err(error) if error.retriable() => retry.pause(error).await?,
                other => return other,
            }
        }
    }

    /// One attempt for many keys at once; a result for each.
    pub(crate) async fn coordinators(
        &self,
        kind: CoordinatorKind,
        keys: &[String],
    ) -> BTreeMap<String, Result<NodeId, Error>> {
        let mut results: BTreeMap<String, Result<NodeId, Error>> = BTreeMap::new();
        let mut missing = Vec::new();
        for key in keys {
            match self.inner.lock_coordinators().known(kind, key) {
                Some(node) => {
                    results.insert(key.clone(), Ok(node));
                }
                None => missing.push(key.clone()),
            }
        }
        if missing.is_empty() {
            return results;
        }
        let call = self.lookup_call();
        let batched = missing.len() > 1
            && matches!(self.version::<FindCoordinatorRequest>(call).await, Ok(version) if version >= VERSION_BATCHED);
        let chunks: Vec<&[String]> = if batched { vec![missing.as_slice()] } else { missing.chunks(1).collect() };
        for chunk in chunks {
            results.extend(self.find(kind, chunk).await);
        }
        results
    }

    async fn find(&self, kind: CoordinatorKind, keys: &[String]) -> BTreeMap<String, Result<NodeId, Error>> {
        let versions = if keys.len() > 1 { Versions { min: VERSION_BATCHED, max: i16::MAX } } else { Versions::ANY };
        let call = Call { versions, ..self.lookup_call() };
        let build = |version| request(version, kind, keys);
        match self.call(call, build).await {
            Err(error) => keys.iter().map(|key| (key.clone(), Err(error.clone()))).collect(),
            Ok(reply) => {
                let found = read(&reply.body, reply.version, kind, keys);
                found
                    .into_iter()
                    .map(|(key, result)| (key.clone(), self.learn_coordinator(kind, key, result)))
                    .collect()
            }
        }
    }

    fn learn_coordinator(
        &self,
        kind: CoordinatorKind,
        key: String,
        found: Result<Found, Error>,
    ) -> Result<NodeId, Error> {
        let found = found.map_err(|error| self.with_user(error))?;
        tracing::debug!(?kind, key, node = found.node.0, address = %found.address, "coordinator found");
        self.inner.lock_metadata().add_broker(found.node, &found.address);
        self.inner.lock_coordinators().learn(kind, &key, found.node);
        Ok(found.node)
    }

    /// Forgets a coordinator after NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE or a lost connection.
    pub fn forget_coordinator(&self, kind: CoordinatorKind, key: &str) {
        self.inner.lock_coordinators().forget(kind, key);
    }
}

fn subject(kind: CoordinatorKind, key: &str) -> String {
    match kind {
        CoordinatorKind::Group => format!("group '{key}'"),
        CoordinatorKind::Transaction => format!("transactional id '{key}'"),
    }
}

fn request(version: i16, kind: CoordinatorKind, keys: &[String]) -> FindCoordinatorRequest {
    let text = |key: &String| StrBytes::from_string(key.clone());
    let request = FindCoordinatorRequest::default().with_key_type(kind.key_type());
    if version >= VERSION_BATCHED {
        request.with_coordinator_keys(keys.iter().map(text).collect())
    } else {
        request.with_key(keys.first().map(text).unwrap_or_default())
    }
}

/// One result for each key that was asked for, whatever the response holds.
fn read(
    response: &FindCoordinatorResponse,
    version: i16,
    kind: CoordinatorKind,
    keys: &[String],
) -> BTreeMap<String, Result<Found, Error>> {
    // By key, the first of each: a look through all answers for each key would keep this thread for seconds when a whole connector's
    // thousands of ids are asked for, and the heartbeats with it.
    let mut entries: HashMap<&str, &Coordinator> = HashMap::with_capacity(response.coordinators.len());
    for entry in &response.coordinators {
        entries.entry(entry.key.as_str()).or_insert(entry);
    }
    let one = |key: &String| {
        if version < VERSION_BATCHED {
            let code = response.error_code;
            let message = response.error_message.as_ref().map(|message| message.to_string());
            return found(kind, key, code, message, *response.node_id, &response.host, response.port);
        }
        match entries.get(key.as_str()) {
            Some(entry) => {
                let message = entry.error_message.as_ref().map(|message| message.to_string());
                found(kind, key, entry.error_code, message, *entry.node_id, &entry.host, entry.port)
            }
            None => refused(kind, key, codes::COORDINATOR_NOT_AVAILABLE, None),
        }
    };
    keys.iter().map(|key| (key.clone(), one(key))).collect()
}

fn found(
    kind: CoordinatorKind,
    key: &str,
    code: i16,
    message: Option<String>,
    node: i32,
    host: &str,
    port: i32,
) -> Result<Found, Error> {
    if code != codes::NONE {
        return refused(kind, key, code, message);
    }
    // No error and yet no node: seen while a coordinator moves.
    match BrokerAddress::advertised(host, port) {
        Some(address) if node >= 0 => Ok(Found { node: NodeId(node), address }),
        _ => refused(kind, key, codes::COORDINATOR_NOT_AVAILABLE, message),
    }
}

fn refused(kind: CoordinatorKind, key: &str, code: i16, message: Option<String>) -> Result<Found, Error> {
    Err(Error::Broker(BrokerError { api: API, code, subject: subject(kind, key), message, user: None }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kafka_protocol::messages::BrokerId;

    fn keys(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn entry(key: &str, node: i32, code: i16) -> Coordinator {
        Coordinator::default()
            .with_key(StrBytes::from_string(key.to_owned()))
            .with_node_id(BrokerId(node))
            .with_host(StrBytes::from_static_str("h"))
            .with_port(9092)
            .with_error_code(code)
    }

    #[test]
    fn a_group_and_a_transactional_id_of_one_name_are_different_keys() {
        let mut cache = Coordinators::default();
        cache.learn(CoordinatorKind::Group, "orders", NodeId(1));
        cache.learn(CoordinatorKind::Transaction, "orders", NodeId(2));
        assert_eq!(cache.known(CoordinatorKind::Group, "orders"), Some(NodeId(1)));
        assert_eq!(cache.known(CoordinatorKind::Transaction, "orders"), Some(NodeId(2)));
        cache.forget(CoordinatorKind::Group, "orders");
        assert_eq!(cache.known(CoordinatorKind::Transaction, "orders"), Some(NodeId(2)));
        cache.forget_node(NodeId(2));
        assert_eq!(cache.known(CoordinatorKind::Transaction, "orders"), None);
    }

    #[test]
    fn each_key_of_a_batched_answer_has_its_own_result() {
        let response = FindCoordinatorResponse::default().with_coordinators(vec![
            entry("a", 3, 0),
            entry("b", -1, 0),
            entry("c", -1, 53),
        ]);
        let results = read(&response, 4, CoordinatorKind::Transaction, &keys(&["a", "b", "c", "d"]));
        assert_eq!(results["a"].as_ref().unwrap().node, NodeId(3));
        let code = |key: &str| results[key].as_ref().unwrap_err().code();
        assert_eq!(code("b"), Some(codes::COORDINATOR_NOT_AVAILABLE));
        assert_eq!(code("c"), Some(53));
        assert_eq!(code("d"), Some(codes::COORDINATOR_NOT_AVAILABLE));
    }

    /// With a look through the whole answer for each key this takes minutes.
    #[test]
    fn an_answer_for_very_many_keys_is_gone_through_once() {
        let keys: Vec<String> = (0..100_000).map(|task| format!("g-c-{task}")).collect();
        let mut coordinators: Vec<Coordinator> = keys.iter().rev().map(|key| entry(key, 3, 0)).collect();
        coordinators.push(entry("g-c-7", 4, 0));
        let response = FindCoordinatorResponse::default().with_coordinators(coordinators);
        let results = read(&response, 4, CoordinatorKind::Transaction, &keys);
        assert_eq!(results.len(), keys.len());
        assert!(results.values().all(|found| found.as_ref().unwrap().node == NodeId(3)), "of two the first counts");
    }

    #[test]
    fn older_requests_carry_one_key_and_the_kind() {
        let old = request(3, CoordinatorKind::Transaction, &keys(&["a"]));
        assert_eq!((old.key.as_str(), old.key_type, old.coordinator_keys.len()), ("a", 1, 0));
        let new = request(4, CoordinatorKind::Group, &keys(&["a", "b"]));
        assert_eq!((new.key.as_str(), new.key_type, new.coordinator_keys.len()), ("", 0, 2));
    }
}
