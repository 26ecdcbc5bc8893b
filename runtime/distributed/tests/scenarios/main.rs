//! What Kafka Connect's behaviour asks of a group of workers, shown end to end: real workers in this process, a dev broker, and
//! requests over REST. docs/scenarios.md lists all scenarios with the test that shows each.

#![allow(missing_docs, unreachable_pub, reason = "a test binary has no public API")]
#![allow(clippy::unwrap_used, reason = "a failed set-up fails the test")]

mod support;

mod again;
mod drain;
mod exactly_once;
mod follower_list;
mod group;
mod leftovers;
mod list;
mod outside;
mod requests;
mod secure_rest;
mod states;
mod topics;
