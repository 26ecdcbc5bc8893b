//! Lines of a file, compatible with Kafka's FileStreamSource.
