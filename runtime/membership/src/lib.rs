//! Kafka Connect's group protocol: its bytes and both assignors, pure.
