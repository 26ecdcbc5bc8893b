//! How many bytes of payload a second the batch codec writes and reads, on one thread.
//!
//! ```text
//! cargo run --release -p oncewire-client --example batch_speed
//! ```
//!
//! Three record sizes; each line is the best of several rounds, with what a plain copy of the same
//! bytes takes beside it. Encoding includes the stamp with its checksum; decoding checks the checksum.

use std::hint::black_box;
use std::time::{Duration, Instant};

use oncewire_client::batch::{BatchBuilder, BatchLimits, ProducerStamp, SealedBatch, batches};

const ROUNDS: usize = 300;
/// Short rounds: the best one then fits between the time slices of a busy machine.
const ROUND_BYTES: usize = 4 << 20;

const STAMP: ProducerStamp =
    ProducerStamp { producer_id: 4711, producer_epoch: 3, base_sequence: 0, transactional: true };

fn main() {
    println!("{:<22} {:>8} {:>10} {:>12} {:>12}", "MB/s of values", "copy", "encode", "decode refs", "decode Bytes");
    for (value_bytes, records) in [(20, 10_000), (84, 2_000), (1_000, 500)] {
        measure(value_bytes, records);
    }
}

fn measure(value_bytes: usize, records: usize) {
    let value = vec![b'x'; value_bytes];
    let payload = value_bytes * records;
    let times = ROUND_BYTES / payload;
    let mut buffer = Vec::new();
    let sealed_bytes = start(&value, records, Vec::new()).stamp(STAMP);

    let copy = best(times, || {
        let mut target = Vec::with_capacity(payload);
        for _ in 0..records {
            target.extend_from_slice(black_box(&value));
        }
        black_box(target);
    });
    let encode = best(times, || encode(&value, records, &mut buffer));
    let refs = best(times, || {
        for batch in batches(&sealed_bytes) {
            let batch = batch.expect("our own batch");
            batch.check_crc().expect("our own checksum");
            for record in batch.record_refs().expect("our own batch").expect("not compressed") {
                black_box(record.expect("our own record"));
            }
        }
    });
    let owned = best(times, || {
        for batch in batches(&sealed_bytes) {
            let batch = batch.expect("our own batch");
            batch.check_crc().expect("our own checksum");
            for record in batch.records().expect("our own batch") {
                black_box(record.expect("our own record"));
            }
        }
    });
    let rate = |time: Duration| (payload * times) as f64 / time.as_secs_f64() / 1e6;
    println!(
        "{:<22} {:>8.0} {:>10.0} {:>12.0} {:>12.0}",
        format!("{records} x {value_bytes} B"),
        rate(copy),
        rate(encode),
        rate(refs),
        rate(owned)
    );
}

fn start(value: &[u8], records: usize, buffer: Vec<u8>) -> SealedBatch {
    let mut builder = BatchBuilder::with_buffer(BatchLimits::default(), buffer);
    for index in 0..records {
        builder.append(1_700_000_000_000 + index as i64, None, Some(black_box(value)), &[]).expect("within the limit");
    }
    builder.seal()
}

/// As a producer does it: the buffer comes back once the broker has answered.
fn encode(value: &[u8], records: usize, buffer: &mut Vec<u8>) {
    let mut sealed = start(value, records, std::mem::take(buffer));
    drop(black_box(sealed.stamp(STAMP)));
    *buffer = sealed.into_buffer().expect("nobody else holds it");
}

fn best(times: usize, mut work: impl FnMut()) -> Duration {
    (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..times {
                work();
            }
            start.elapsed()
        })
        .min()
        .expect("at least one round")
}
