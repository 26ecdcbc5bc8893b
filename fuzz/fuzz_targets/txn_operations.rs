//! The transaction machine, driven by bytes taken as operations against a model of a broker.
#![no_main]

// The body is the model that the machine's own tests use: bytes are operations, and an honest broker checks the result.
#[path = "../../txn/tests/model/mod.rs"]
mod model;

libfuzzer_sys::fuzz_target!(|data: &[u8]| model::fuzz_operations(data));
