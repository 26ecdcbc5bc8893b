//! FindCoordinator (key 10), versions 0 to 6: this broker, for transactions and for groups.
//!
//! Share groups (key type 2) are refused.

use kafka_protocol::ResponseError;
use kafka_protocol::messages::find_coordinator_response::Coordinator;
use kafka_protocol::messages::{BrokerId, FindCoordinatorRequest, FindCoordinatorResponse};
use kafka_protocol::protocol::StrBytes;

use super::text;
use crate::broker::Broker;

const KEY_TYPE_GROUP: i8 = 0;
const KEY_TYPE_TRANSACTION: i8 = 1;
/// From here on many keys are asked for in one request (KIP-699).
const FIRST_BATCHED_VERSION: i16 = 4;

pub(super) fn serve(broker: &Broker, version: i16, request: &FindCoordinatorRequest) -> FindCoordinatorResponse {
    let settings = &broker.settings;
    let (host, port) = (text(&settings.advertised_host), i32::from(settings.advertised_port));
    let node = BrokerId(settings.node_id);
    // An empty key is answered too: InitProducerId is where it is refused.
    let refusal = match request.key_type {
        KEY_TYPE_GROUP | KEY_TYPE_TRANSACTION => None,
        _ => Some(ResponseError::InvalidRequest),
    };
    if version < FIRST_BATCHED_VERSION {
        return match refusal {
            Some(code) => refuse(request, code),
            None => FindCoordinatorResponse::default().with_node_id(node).with_host(host).with_port(port),
        };
    }
    let coordinators = request
        .coordinator_keys
        .iter()
        .map(|key| match refusal {
            Some(code) => none_for(key, code),
            None => {
                Coordinator::default().with_key(key.clone()).with_node_id(node).with_host(host.clone()).with_port(port)
            }
        })
        .collect();
    FindCoordinatorResponse::default().with_coordinators(coordinators)
}

pub(super) fn refuse(request: &FindCoordinatorRequest, code: ResponseError) -> FindCoordinatorResponse {
    let coordinators: Vec<Coordinator> = request.coordinator_keys.iter().map(|key| none_for(key, code)).collect();
    if !coordinators.is_empty() {
        return FindCoordinatorResponse::default().with_coordinators(coordinators);
    }
    FindCoordinatorResponse::default().with_error_code(code.code()).with_node_id(BrokerId(-1)).with_port(-1)
}

fn none_for(key: &StrBytes, code: ResponseError) -> Coordinator {
    Coordinator::default()
        .with_key(key.clone())
        .with_node_id(BrokerId(-1))
        .with_port(-1)
        .with_error_code(code.code())
        .with_error_message(Some(text(&code.to_string())))
}
