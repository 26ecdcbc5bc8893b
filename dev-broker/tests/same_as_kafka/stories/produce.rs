//! Produce: what a batch must be, and the sequences of idempotent producers.

use bytes::{BufMut, Bytes, BytesMut};
use kafka_protocol::messages::{ApiKey, ProduceResponse};

use super::{Identity, Teller, batch, batch_at, now_ms};

const CRC_AT: usize = 17;
const ATTRIBUTES_AT: usize = 21;

pub(super) fn tell(teller: &mut Teller) {
    batches(teller);
    acks(teller);
    sequences(teller);
    epochs(teller);
    wrap(teller);
    membership(teller);
}

/// The batch with some bytes changed and the CRC made right again.
fn changed(batch: &Bytes, at: usize, bytes: &[u8]) -> Bytes {
    let mut changed = batch.to_vec();
    changed[at..at + bytes.len()].copy_from_slice(bytes);
    let crc = crc32c::crc32c(&changed[ATTRIBUTES_AT..]);
    changed[CRC_AT..ATTRIBUTES_AT].copy_from_slice(&crc.to_be_bytes());
    changed.into()
}

fn batches(teller: &mut Teller) {
    teller.told.story("a produced batch must be sound");
    let topic = "sound";
    teller.topic(topic, 1, &[]);
    let good = batch(Identity::NONE, -1, 3, false);
    teller.note_produced("sound", 9, None, topic, good.clone());
    teller.note_produced("old version", 3, None, topic, good.clone());
    teller.note_produced("unknown topic", 9, None, "nowhere", good.clone());
    let mut flipped = good.to_vec();
    let last = flipped.len() - 1;
    flipped[last] ^= 0x40;
    teller.note_produced("wrong CRC", 9, None, topic, flipped.into());
    teller.note_produced("no bytes", 9, None, topic, Bytes::new());
    teller.note_produced("two batches", 9, None, topic, [good.clone(), good.clone()].concat().into());
    teller.note_produced("base offset 5", 9, None, topic, changed(&good, 0, &5_i64.to_be_bytes()));
    teller.note_produced("too few records", 9, None, topic, changed(&good, 57, &2_i32.to_be_bytes()));
    teller.note_produced("last offset delta too high", 9, None, topic, changed(&good, 23, &7_i32.to_be_bytes()));
    let with_id = batch(Identity { id: 90_000_000, epoch: 0 }, 0, 1, true);
    teller.note_produced(
        "control batch",
        9,
        Some("x"),
        topic,
        changed(&with_id, ATTRIBUTES_AT, &0x30_i16.to_be_bytes()),
    );
    let no_sequence = changed(&batch(Identity { id: 90_000_000, epoch: 0 }, 0, 1, false), 53, &(-1_i32).to_be_bytes());
    teller.note_produced("producer id without sequence", 9, None, topic, no_sequence);
    let future = batch_at(now_ms() + 2 * 3_600_000, Identity::NONE, -1, 1, false);
    teller.note_produced("two hours ahead", 9, None, topic, future);
    teller.note_produced("in 1970", 9, None, topic, batch_at(5, Identity::NONE, -1, 1, false));
    teller.note_produced("zstd in version 6", 6, None, topic, changed(&good, ATTRIBUTES_AT, &4_i16.to_be_bytes()));
    teller.topic("small", 1, &[("max.message.bytes", "100")]);
    teller.note_produced("larger than max.message.bytes", 9, None, "small", good.clone());
    teller.topic("compacted", 1, &[("cleanup.policy", "compact")]);
    teller.note_produced("compacted topic, no key", 9, None, "compacted", good.clone());
    teller.topic("many-replicas", 1, &[("min.insync.replicas", "2")]);
    teller.note_produced("min.insync.replicas 2 with one replica", 9, None, "many-replicas", good.clone());
    teller.topic("append-time", 1, &[("message.timestamp.type", "LogAppendTime")]);
    let before = now_ms();
    let appended = teller.produce(9, None, "append-time", good);
    let is_now = (before - 1_000..before + 60_000).contains(&appended.log_append_time_ms);
    teller.told.note("append time is the broker's", is_now.to_string());
    let mut message = BytesMut::new();
    message.put_i64(0);
    message.put_i32(14);
    message.put_u32(0);
    message.put_u8(1);
    message.put_bytes(0, 9);
    teller.note_produced("magic 1", 9, None, topic, message.freeze());
}

fn acks(teller: &mut Teller) {
    teller.told.story("acks");
    teller.topic("acked", 1, &[]);
    for acks in [1, 2, -2] {
        let request = Teller::produce_request(None, acks, "acked", batch(Identity::NONE, -1, 1, false));
        let answer: ProduceResponse = teller.client.call(ApiKey::Produce, 9, &request);
        teller.told.code(&format!("acks {acks}"), answer.responses[0].partition_responses[0].error_code);
    }
}

fn idempotent(teller: &mut Teller) -> Identity {
    let answer = teller.init_once(4, None, Identity::NONE);
    assert_eq!(answer.error_code, 0);
    Identity { id: answer.producer_id.0, epoch: answer.producer_epoch }
}

fn sequences(teller: &mut Teller) {
    teller.told.story("sequences of an idempotent producer");
    let topic = "sequenced";
    teller.topic(topic, 1, &[]);
    let producer = idempotent(teller);
    for sequence in [0, 10, 20, 30, 40, 50] {
        teller.note_produced(&format!("sequence {sequence}"), 9, None, topic, batch(producer, sequence, 10, false));
    }
    for sequence in [50, 10, 30, 20, 40] {
        teller.note_produced(&format!("again {sequence}"), 9, None, topic, batch(producer, sequence, 10, false));
    }
    teller.note_produced("the sixth oldest again", 9, None, topic, batch(producer, 0, 10, false));
    teller.note_produced("half a batch again", 9, None, topic, batch(producer, 50, 5, false));
    teller.note_produced("a gap", 9, None, topic, batch(producer, 61, 1, false));
    teller.note_produced("the next", 9, None, topic, batch(producer, 60, 1, false));
}

fn epochs(teller: &mut Teller) {
    teller.told.story("epochs of an idempotent producer");
    let topic = "epochs";
    teller.topic(topic, 1, &[]);
    let producer = idempotent(teller);
    teller.note_produced("epoch 0", 9, None, topic, batch(producer, 0, 5, false));
    teller.note_produced("epoch 1 goes on", 9, None, topic, batch(producer.plus(1), 5, 1, false));
    teller.note_produced("epoch 1 begins", 9, None, topic, batch(producer.plus(1), 0, 5, false));
    teller.note_produced("epoch 0 goes on", 9, None, topic, batch(producer, 5, 1, false));
    teller.note_produced("epoch 0 again", 9, None, topic, batch(producer, 0, 5, false));
    let unknown = Identity { id: 91_000_000, epoch: 3 };
    teller.note_produced("unknown producer in mid-sequence", 9, None, topic, batch(unknown, 812, 1, false));
}

fn wrap(teller: &mut Teller) {
    teller.told.story("sequences wrap to zero");
    let topic = "wrapped";
    teller.topic(topic, 1, &[]);
    let producer = Identity { id: 92_000_000, epoch: 0 };
    teller.note_produced("over the end", 9, None, topic, batch(producer, i32::MAX - 7, 20, false));
    teller.note_produced("the same again", 9, None, topic, batch(producer, i32::MAX - 7, 20, false));
    teller.note_produced("a negative next", 9, None, topic, batch(producer, i32::MIN + 12, 1, false));
    teller.note_produced("the next", 9, None, topic, batch(producer, 12, 1, false));
}

fn membership(teller: &mut Teller) {
    teller.told.story("a transactional batch must be in the transaction");
    let topic = "members";
    teller.topic(topic, 1, &[]);
    let id = "member";
    let producer = teller.producer(id);
    let first = || batch(producer, 0, 1, true);
    teller.note_produced("without transactional id", 9, None, topic, first());
    teller.note_produced("not added, version 9", 9, Some(id), topic, first());
    teller.note_produced("not added, version 11", 11, Some(id), topic, first());
    teller.note_produced("wrong epoch, version 11", 11, Some(id), topic, batch(producer.plus(1), 0, 1, true));
    teller.note_produced("wrong epoch, version 12", 12, Some(id), topic, batch(producer.plus(1), 0, 1, true));
    let foreign = Identity { id: producer.id + 500, epoch: 0 };
    teller.note_produced("foreign producer, version 11", 11, Some(id), topic, batch(foreign, 0, 1, true));
    teller.note_produced("foreign producer, version 12", 12, Some(id), topic, batch(foreign, 0, 1, true));
    teller.note_produced("unknown transactional id", 12, Some("nobody"), topic, first());
    let code = teller.add(3, id, producer, topic);
    teller.told.code("add", code);
    teller.note_produced("added, version 11", 11, Some(id), topic, first());
    teller.note_produced("outside the open transaction", 11, None, topic, batch(producer, 1, 1, false));
    let ended = teller.end(4, id, producer, true).error_code;
    teller.told.code("commit", ended);
    teller.settle_markers(id);
    teller.note_produced("after the commit, version 11", 11, Some(id), topic, batch(producer, 1, 1, true));
    teller.note_produced("after the commit, version 12", 12, Some(id), topic, batch(producer, 1, 1, true));
    let ended = teller.end(5, id, producer, false);
    teller.told.producer("abort", ended.error_code, ended.producer_id.0, ended.producer_epoch);
    teller.settle_markers(id);
    teller.note_produced("the old epoch, version 11", 11, Some(id), topic, batch(producer, 2, 1, true));
    teller.note_produced("the old epoch, version 12", 12, Some(id), topic, batch(producer, 2, 1, true));
    let next = Identity { id: ended.producer_id.0, epoch: ended.producer_epoch };
    teller.note_produced("the new epoch goes on", 12, Some(id), topic, batch(next, 2, 1, true));
    teller.note_produced("the new epoch begins", 12, Some(id), topic, batch(next, 0, 1, true));
    let ended = teller.end(5, id, next, true);
    teller.told.producer("commit", ended.error_code, ended.producer_id.0, ended.producer_epoch);
}
