//! Against real Apache Kafka: kills, cuts, bad input.
