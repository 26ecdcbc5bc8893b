//! Which versions are spoken with which brokers.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use bytes::{Bytes, BytesMut};
use kafka_protocol::messages::ApiVersionsResponse;
use kafka_protocol::messages::api_versions_response::{ApiVersion, FinalizedFeatureKey};
use kafka_protocol::protocol::{Encodable, StrBytes};
use oncewire_client::wire::WireError;
use oncewire_client::wire::api::*;
use oncewire_client::wire::guard::{check_request, check_response};

fn range(min: i16, max: i16) -> VersionRange {
    VersionRange { min, max }
}

fn offers(api: ApiKey, min: i16, max: i16) -> ApiVersion {
    ApiVersion::default().with_api_key(api as i16).with_min_version(min).with_max_version(max)
}

fn broker(apis: Vec<ApiVersion>, transaction_version: i16) -> ApiVersionsResponse {
    let feature = FinalizedFeatureKey::default()
        .with_name(StrBytes::from_static_str("transaction.version"))
        .with_max_version_level(transaction_version)
        .with_min_version_level(transaction_version);
    ApiVersionsResponse::default()
        .with_api_keys(apis)
        .with_finalized_features_epoch(7)
        .with_finalized_features(vec![feature])
}

fn body(response: &ApiVersionsResponse, version: i16) -> Bytes {
    let mut bytes = BytesMut::new();
    response.encode(&mut bytes, version).unwrap();
    bytes.freeze()
}

#[test]
fn latest_common_version_is_taken() {
    assert_eq!(negotiate(ApiKey::Fetch, range(0, 13)), Ok(13));
    assert_eq!(negotiate(ApiKey::Metadata, range(0, 99)), Ok(13));
}

#[test]
fn add_partitions_stays_below_the_brokers_own_versions() {
    assert_eq!(negotiate(ApiKey::AddPartitionsToTxn, range(0, 5)), Ok(3));
    let v2 = negotiate_for(TransactionProtocol::V2, ApiKey::AddPartitionsToTxn, range(0, 5));
    assert_eq!(v2, Ok(3));
}

#[test]
fn produce_and_end_txn_reach_their_latest_only_under_transactions_v2() {
    for (api, v1, v2) in [(ApiKey::Produce, 11, 12), (ApiKey::EndTxn, 4, 5)] {
        assert_eq!(negotiate(api, range(0, 99)), Ok(v1));
        assert_eq!(negotiate_for(TransactionProtocol::V2, api, range(0, 99)), Ok(v2));
    }
}

#[test]
fn no_common_version_names_both_ranges() {
    let error = negotiate(ApiKey::Produce, range(0, 2)).unwrap_err();
    assert_eq!(error, WireError::NoCommonVersion { api: ApiKey::Produce, ours: (3, 11), theirs: (0, 2) });
    assert!(negotiate(ApiKey::Produce, range(12, 13)).is_err());
}

#[test]
fn api_that_a_broker_does_not_list_is_not_offered() {
    let apis = BrokerApis::from_response(&broker(vec![offers(ApiKey::Fetch, 4, 18)], 2));
    assert_eq!(apis.negotiate(ApiKey::Fetch), Ok(18));
    let missing = WireError::ApiNotOffered { api: ApiKey::EndTxn };
    assert_eq!(apis.negotiate(ApiKey::EndTxn), Err(missing));
}

#[test]
fn transactions_v2_needs_the_finalized_feature_and_the_versions() {
    let all = || vec![offers(ApiKey::Produce, 3, 13), offers(ApiKey::EndTxn, 0, 5)];
    let protocol = |response: &ApiVersionsResponse| BrokerApis::from_response(response).transaction_protocol();
    assert_eq!(protocol(&broker(all(), 2)), TransactionProtocol::V2);
    assert_eq!(protocol(&broker(all(), 1)), TransactionProtocol::V1);
    assert_eq!(protocol(&broker(all(), 2).with_finalized_features_epoch(-1)), TransactionProtocol::V1);
    let old = vec![offers(ApiKey::Produce, 3, 11), offers(ApiKey::EndTxn, 0, 5)];
    assert_eq!(protocol(&broker(old, 2)), TransactionProtocol::V1);
    assert_eq!(protocol(&ApiVersionsResponse::default()), TransactionProtocol::V1);
}

#[test]
fn handshake_keeps_apis_that_nobody_here_knows() {
    let unknown = ApiVersion::default().with_api_key(9_999).with_max_version(3);
    let response = broker(vec![offers(ApiKey::Fetch, 4, 18), unknown], 2);
    for version in [3, 4] {
        let Ok(Handshake::Done(apis)) = read_handshake(version, body(&response, version)) else {
            panic!("version {version}");
        };
        assert_eq!(apis.range(ApiKey::Fetch), Some(range(4, 18)));
        assert_eq!(apis.transaction_version(), 2);
    }
}

#[test]
fn broker_that_lists_only_api_versions_is_asked_again() {
    let response =
        ApiVersionsResponse::default().with_error_code(35).with_api_keys(vec![offers(ApiKey::ApiVersions, 0, 3)]);
    assert_eq!(read_handshake(4, body(&response, 0)), Ok(Handshake::AskAgain(3)));
}

#[test]
fn broker_that_lists_nothing_is_asked_in_version_0() {
    let response = ApiVersionsResponse::default().with_error_code(35);
    assert_eq!(read_handshake(4, body(&response, 0)), Ok(Handshake::AskAgain(0)));
}

#[test]
fn broker_that_refuses_what_it_offers_does_not_make_a_loop() {
    let response =
        ApiVersionsResponse::default().with_error_code(35).with_api_keys(vec![offers(ApiKey::ApiVersions, 0, 4)]);
    assert!(matches!(read_handshake(4, body(&response, 0)), Err(WireError::NoCommonVersion { .. })));
    let nothing = ApiVersionsResponse::default().with_error_code(35);
    assert!(read_handshake(0, body(&nothing, 0)).is_err());
}

#[test]
fn other_refusals_keep_their_code() {
    let response = ApiVersionsResponse::default().with_error_code(34);
    assert_eq!(read_handshake(3, body(&response, 3)), Ok(Handshake::Refused(34)));
}

#[test]
fn handshake_cut_short_is_malformed() {
    assert!(matches!(read_handshake(4, Bytes::new()), Err(WireError::Malformed { .. })));
    assert!(matches!(read_handshake(4, Bytes::from_static(&[0, 35])), Err(WireError::Malformed { .. })));
}

#[test]
fn every_usable_version_has_its_tables() {
    for api in ApiKey::iter() {
        for protocol in [TransactionProtocol::V1, TransactionProtocol::V2] {
            let Some(usable) = usable_versions(api, protocol) else { continue };
            for version in usable.min..=usable.max {
                for result in [check_request(api, version, &[]), check_response(api, version, &[])] {
                    let missing = WireError::UnsupportedVersion { api, version };
                    assert_ne!(result, Err(missing), "{api:?} {version}");
                }
            }
        }
    }
}
