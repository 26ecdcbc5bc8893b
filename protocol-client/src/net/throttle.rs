//! How long a broker asks us to stay silent (KIP-219: it answers first, then stops reading from us). Pure.

use std::time::Duration;

use kafka_protocol::messages::ApiKey;

/// The longest that we obey. A broker's quota window is seconds long; more is a mistake or malice.
const THROTTLE_MAX: Duration = Duration::from_secs(60);

/// APIs whose response begins with `throttle_time_ms`, and the version since which it does (Kafka protocol guide).
const THROTTLE_FIRST: &[(i16, i16)] = &[
    (1, 1),  // Fetch
    (2, 2),  // ListOffsets
    (3, 3),  // Metadata
    (8, 3),  // OffsetCommit
    (9, 3),  // OffsetFetch
    (10, 1), // FindCoordinator
    (11, 2), // JoinGroup
    (12, 1), // Heartbeat
    (13, 1), // LeaveGroup
    (14, 1), // SyncGroup
    (15, 1), // DescribeGroups
    (16, 1), // ListGroups
    (19, 2), // CreateTopics
    (20, 1), // DeleteTopics
    (22, 0), // InitProducerId
    (24, 0), // AddPartitionsToTxn
    (25, 0), // AddOffsetsToTxn
    (26, 0), // EndTxn
    (28, 0), // TxnOffsetCommit
    (32, 0), // DescribeConfigs
    (37, 0), // CreatePartitions
    (44, 0), // IncrementalAlterConfigs
    (60, 0), // DescribeCluster
    (61, 0), // DescribeProducers
    (65, 0), // DescribeTransactions
    (66, 0), // ListTransactions
];

/// The throttle time in a response frame (correlation id first), or zero.
pub(crate) fn throttle_time(api: ApiKey, version: i16, frame: &[u8]) -> Duration {
    let begins_with_it = THROTTLE_FIRST.iter().any(|&(key, since)| key == api as i16 && version >= since);
    // Header version 1 has tagged fields after the correlation id; no broker uses any, so one zero byte.
    let body_at = match api.response_header_version(version) {
        0 => 4,
        _ if frame.get(4) == Some(&0) => 5,
        _ => return Duration::ZERO,
    };
    match frame.get(body_at..body_at + 4) {
        Some(&[a, b, c, d]) if begins_with_it => from_millis(i32::from_be_bytes([a, b, c, d])),
        _ => Duration::ZERO,
    }
}

/// A broker's number of milliseconds as a duration within our limit.
pub(crate) fn from_millis(millis: i32) -> Duration {
    Duration::from_millis(u64::try_from(millis).unwrap_or(0)).min(THROTTLE_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_throttle_time_is_read_after_either_header() {
        let plain = [0, 0, 0, 9, 0, 0, 0x01, 0, 0, 0];
        assert_eq!(throttle_time(ApiKey::EndTxn, 2, &plain), Duration::from_millis(256));
        let flexible = [0, 0, 0, 9, 0, 0, 0, 0x01, 0, 0, 0];
        assert_eq!(throttle_time(ApiKey::EndTxn, 5, &flexible), Duration::from_millis(256));
    }

    #[test]
    fn responses_without_it_and_short_frames_mean_no_pause() {
        let frame = [0, 0, 0, 9, 0, 0, 1, 0];
        assert_eq!(throttle_time(ApiKey::Produce, 3, &frame), Duration::ZERO);
        assert_eq!(throttle_time(ApiKey::EndTxn, 2, &frame[..6]), Duration::ZERO);
        assert_eq!(throttle_time(ApiKey::Metadata, 2, &frame), Duration::ZERO);
    }

    #[test]
    fn a_hostile_throttle_time_is_capped_and_a_negative_one_ignored() {
        assert_eq!(from_millis(i32::MAX), THROTTLE_MAX);
        assert_eq!(from_millis(-5), Duration::ZERO);
    }
}
