//! An honest in-process Kafka broker for the quickstart, tests and simulation.
