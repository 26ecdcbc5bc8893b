//! DescribeCluster (key 60), versions 0 to 2: one broker, which is also the controller.

use kafka_protocol::ResponseError;
use kafka_protocol::messages::describe_cluster_response::DescribeClusterBroker;
use kafka_protocol::messages::{BrokerId, DescribeClusterRequest, DescribeClusterResponse};

use super::text;
use crate::broker::Broker;

const ENDPOINT_TYPE_BROKERS: i8 = 1;

pub(super) fn serve(broker: &Broker, request: &DescribeClusterRequest) -> DescribeClusterResponse {
    if request.endpoint_type != ENDPOINT_TYPE_BROKERS {
        return refuse(ResponseError::MismatchedEndpointType);
    }
    let settings = &broker.settings;
    let node = DescribeClusterBroker::default()
        .with_broker_id(BrokerId(settings.node_id))
        .with_host(text(&settings.advertised_host))
        .with_port(i32::from(settings.advertised_port));
    DescribeClusterResponse::default()
        .with_cluster_id(text(&settings.cluster_id))
        .with_controller_id(BrokerId(settings.node_id))
        .with_brokers(vec![node])
}

pub(super) fn refuse(code: ResponseError) -> DescribeClusterResponse {
    DescribeClusterResponse::default().with_error_code(code.code()).with_error_message(Some(text(&code.to_string())))
}
