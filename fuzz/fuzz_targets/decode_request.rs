//! Requests from anywhere, as the dev broker reads them: header, guard, body.
#![no_main]

#[path = "../bodies/messages.rs"]
mod messages;

libfuzzer_sys::fuzz_target!(|data: &[u8]| messages::decode_request(data));
