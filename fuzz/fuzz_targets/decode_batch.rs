//! Record batches from anywhere: decoding, decompression, control records.
#![no_main]

#[path = "../bodies/batch.rs"]
mod batch;

libfuzzer_sys::fuzz_target!(|data: &[u8]| batch::decode_batch(data));
