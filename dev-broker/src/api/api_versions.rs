//! ApiVersions (key 18), versions 0 to 4: what is served, and the finalized features.
//!
//! As a 4.x broker, Produce is announced from version 0 although versions below 3 are not served: librdkafka looks
//! for them before it believes that the broker speaks record batches (KAFKA-18659). A feature at level 0 is not among
//! the finalized ones. Simplifications: the only feature is `transaction.version`; the client's name and version are
//! not checked. KIP-511, KIP-584.

use kafka_protocol::ResponseError;
use kafka_protocol::messages::api_versions_response::{ApiVersion, FinalizedFeatureKey, SupportedFeatureKey};
use kafka_protocol::messages::{ApiKey, ApiVersionsRequest, ApiVersionsResponse};
use kafka_protocol::protocol::StrBytes;

use super::SERVED;
use crate::broker::Broker;

const FEATURE: StrBytes = StrBytes::from_static_str("transaction.version");
const TRANSACTION_VERSION_MAX: i16 = 2;
/// Features never change while this broker lives.
const FEATURES_EPOCH: i64 = 1;

pub(super) fn serve(broker: &Broker, request: Option<&ApiVersionsRequest>) -> ApiVersionsResponse {
    if request.is_none() {
        return refuse(ResponseError::UnsupportedVersion);
    }
    let level = broker.settings.transaction_version;
    let finalized =
        FinalizedFeatureKey::default().with_name(FEATURE).with_min_version_level(level).with_max_version_level(level);
    let supported = SupportedFeatureKey::default().with_name(FEATURE).with_max_version(TRANSACTION_VERSION_MAX);
    ApiVersionsResponse::default()
        .with_api_keys(api_keys())
        .with_supported_features(vec![supported])
        .with_finalized_features_epoch(FEATURES_EPOCH)
        .with_finalized_features(if level > 0 { vec![finalized] } else { Vec::new() })
}

/// The list of versions comes with an error too: it is how a client finds one that is served.
pub(super) fn refuse(code: ResponseError) -> ApiVersionsResponse {
    ApiVersionsResponse::default().with_error_code(code.code()).with_api_keys(api_keys())
}

fn api_keys() -> Vec<ApiVersion> {
    SERVED
        .iter()
        .map(|(api, versions)| {
            let min = if *api == ApiKey::Produce { 0 } else { versions.min };
            ApiVersion::default().with_api_key(*api as i16).with_min_version(min).with_max_version(versions.max)
        })
        .collect()
}
