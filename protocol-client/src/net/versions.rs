//! The choice of a version: what the client reads, what the broker speaks, what the caller can use. Pure.
//!
//! Some versions mean more than their fields: Produce 12 and EndTxn 5 switch the broker to the second transaction protocol
//! (KIP-890). Such versions are chosen only for a caller that names them, never because both sides happen to know them.

use kafka_protocol::messages::ApiKey;
use kafka_protocol::protocol::VersionRange;

use crate::cluster::Versions;
use crate::wire::api::{BrokerApis, TransactionProtocol, usable_versions};

/// The highest version that all three share; else what stands in the way.
///
/// `encodable` are the versions that the message type has.
pub(crate) fn choose(
    broker: &BrokerApis,
    api: ApiKey,
    encodable: VersionRange,
    wanted: Versions,
) -> Result<i16, String> {
    // An open upper end is not a wish for the versions of the second protocol.
    let protocol =
        if wanted.max == i16::MAX && wanted.min == 0 { TransactionProtocol::V1 } else { TransactionProtocol::V2 };
    let usable = usable_versions(api, protocol).unwrap_or(encodable).intersect(&encodable);
    let ours = usable.intersect(&VersionRange { min: wanted.min, max: wanted.max });
    let Some(theirs) = broker.range(api) else {
        return Err("the broker does not offer this API".to_owned());
    };
    let shared = ours.intersect(&theirs);
    if shared.is_empty() {
        return Err(format!(
            "the broker speaks {} to {}, this client needs {} to {}",
            theirs.min, theirs.max, ours.min, ours.max
        ));
    }
    Ok(shared.max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kafka_protocol::messages::ApiVersionsResponse;
    use kafka_protocol::messages::api_versions_response::ApiVersion;

    fn broker(api: ApiKey, min: i16, max: i16) -> BrokerApis {
        let offered = ApiVersion::default().with_api_key(api as i16).with_min_version(min).with_max_version(max);
        BrokerApis::from_response(&ApiVersionsResponse::default().with_api_keys(vec![offered]))
    }

    const EVERY: VersionRange = VersionRange { min: 0, max: 99 };

    #[test]
    fn the_highest_shared_version_is_chosen() {
        let api = ApiKey::Metadata;
        assert_eq!(choose(&broker(api, 0, 12), api, EVERY, Versions::ANY), Ok(12));
        assert_eq!(choose(&broker(api, 0, 99), api, EVERY, Versions::ANY), Ok(13));
        assert_eq!(choose(&broker(api, 0, 99), api, EVERY, Versions::at_most(5)), Ok(5));
    }

    #[test]
    fn the_second_transaction_protocol_must_be_asked_for_by_name() {
        let api = ApiKey::Produce;
        assert_eq!(choose(&broker(api, 3, 13), api, EVERY, Versions::ANY), Ok(11));
        assert_eq!(choose(&broker(api, 3, 13), api, EVERY, Versions::at_least(12)), Ok(12));
        assert_eq!(choose(&broker(ApiKey::EndTxn, 0, 5), ApiKey::EndTxn, EVERY, Versions::at_most(5)), Ok(5));
    }

    #[test]
    fn no_shared_version_names_both_ranges() {
        let api = ApiKey::EndTxn;
        let refused = choose(&broker(api, 6, 9), api, EVERY, Versions::ANY).unwrap_err();
        assert!(refused.contains("6 to 9") && refused.contains("0 to 4"), "{refused}");
        assert!(choose(&broker(api, 0, 4), api, EVERY, Versions::at_least(5)).is_err());
        assert!(choose(&broker(api, 0, 4), ApiKey::Fetch, EVERY, Versions::ANY).is_err());
    }
}
