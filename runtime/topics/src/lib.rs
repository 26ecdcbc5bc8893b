//! Kafka Connect's config and status topics: folds, readers, writers.
