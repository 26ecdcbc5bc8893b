//! The log reader against a scripted leader: every state of a log in which "read to the end" once hung or stopped short.

#![allow(missing_docs, unreachable_pub, dead_code, reason = "a test binary has no public API")]
#![allow(clippy::unwrap_used, reason = "a failed set-up fails the test")]

#[path = "../cluster/fake.rs"]
mod fake;
mod log;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kafka_protocol::messages::ApiKey;
use oncewire_client::batch::ControlMarker;
use oncewire_client::cluster::Cluster;
use oncewire_client::config::ClientConfig;
use oncewire_client::error::Error;
use oncewire_client::reader::{Isolation, LogReader, ReaderEvent, ReaderOptions, Start};
use tokio::net::TcpListener;
use tokio::time::{Instant, timeout};

use fake::FakeBroker;
use log::Log;

const LEADER_NOT_AVAILABLE: i16 = 5;
const NOT_LEADER_OR_FOLLOWER: i16 = 6;
const PATIENCE: Duration = Duration::from_secs(5);

/// One broker that leads the only partition of every topic, with this log.
async fn leader(log: Log) -> (Cluster, Arc<Mutex<Log>>, FakeBroker) {
    let (cluster, shared, broker, _) = leader_for(log, PATIENCE).await;
    (cluster, shared, broker)
}

/// The same for a client with this patience; the last is the leader that Metadata tells.
async fn leader_for(log: Log, patience: Duration) -> (Cluster, Arc<Mutex<Log>>, FakeBroker, Arc<AtomicI32>) {
    let told = Arc::new(AtomicI32::new(1));
    let telling = Arc::clone(&told);
    let shared = Arc::new(Mutex::new(log));
    let served = Arc::clone(&shared);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let broker = FakeBroker::on(listener, move |head, body| match head.api {
        ApiKey::Metadata => Some(fake::metadata(head, body, &[(1, address)], telling.load(Ordering::Relaxed))),
        _ => served.lock().unwrap().answer(head, body),
    });
    let mut config = ClientConfig::new(&address.to_string()).unwrap();
    config.default_api_timeout = patience;
    config.retry_backoff = Duration::from_millis(1);
    config.retry_backoff_max = Duration::from_millis(5);
    let cluster = Cluster::connect(config).await.unwrap();
    (cluster, shared, broker, told)
}

fn options() -> ReaderOptions {
    ReaderOptions { max_wait: Duration::from_millis(10), ..ReaderOptions::default() }
}

async fn open(cluster: &Cluster, options: ReaderOptions) -> LogReader {
    LogReader::open(cluster, "t", options).await.unwrap()
}

/// Visible offsets up to the end.
async fn to_end(reader: &mut LogReader) -> Vec<i64> {
    let mut offsets = Vec::new();
    let read = |_, records: Vec<oncewire_client::batch::Record>| offsets.extend(records.iter().map(|one| one.offset));
    reader.read_to_end(Instant::now() + PATIENCE, read).await.unwrap();
    offsets
}

#[tokio::test]
async fn a_marker_at_the_end_of_the_log_is_reached() {
    let log = Log::default().data(1, 2).marker(1, ControlMarker::Commit);
    let (cluster, _, _broker) = leader(log).await;
    let mut reader = open(&cluster, options()).await;
    assert_eq!(to_end(&mut reader).await, vec![0, 1]);
    assert_eq!(reader.positions()[&0], 3);
    cluster.close().await;
}

#[tokio::test]
async fn an_open_transaction_below_the_high_watermark_is_waited_for() {
    let log = Log::default().data(1, 1).marker(1, ControlMarker::Commit).open(2, 3);
    let (cluster, shared, _broker) = leader(log).await;
    let mut reader = open(&cluster, options()).await;
    let mut early = Vec::new();
    let soon = Instant::now() + Duration::from_millis(100);
    let error = reader.read_to_end(soon, |_, records| early.extend(records)).await.unwrap_err().to_string();
    assert!(error.contains("partition 0 stands at 2 of 5, held back by an open transaction"), "{error}");
    assert_eq!(early.len(), 1);
    shared.lock().unwrap().close(2, ControlMarker::Commit);
    assert_eq!(to_end(&mut reader).await, vec![2, 3, 4]);
    cluster.close().await;
}

#[tokio::test]
async fn a_log_whose_segments_are_all_deleted_has_its_end_at_its_start() {
    let (cluster, _, broker) = leader(Log::starting_at(57)).await;
    let mut reader = open(&cluster, options()).await;
    assert_eq!(to_end(&mut reader).await, Vec::<i64>::new());
    assert_eq!(reader.positions()[&0], 57);
    assert_eq!(broker.count(ApiKey::Fetch), 0, "nothing to fetch");
    cluster.close().await;
}

#[tokio::test]
async fn a_partition_that_was_never_written_is_at_its_end() {
    let (cluster, _, _broker) = leader(Log::default()).await;
    let mut reader = open(&cluster, options()).await;
    assert!(matches!(reader.next().await.unwrap(), ReaderEvent::ReachedEnd));
    assert!(matches!(reader.next().await.unwrap(), ReaderEvent::Idle));
    cluster.close().await;
}

#[tokio::test]
async fn offsets_that_compaction_emptied_at_the_end_are_stepped_over() {
    let log = Log::default().data(-1, 2).gap(3);
    let (cluster, _, _broker) = leader(log).await;
    let mut reader = open(&cluster, options()).await;
    assert_eq!(to_end(&mut reader).await, vec![0, 1]);
    assert_eq!(reader.positions()[&0], 5);
    cluster.close().await;
}

#[tokio::test]
async fn tailing_gives_what_is_written_later_and_each_end_once() {
    let (cluster, shared, _broker) = leader(Log::default().data(-1, 1)).await;
    let mut reader = open(&cluster, options()).await;
    assert!(matches!(reader.next().await.unwrap(), ReaderEvent::Records { partition: 0, .. }));
    assert!(matches!(reader.next().await.unwrap(), ReaderEvent::ReachedEnd));
    shared.lock().unwrap().append(-1, 2);
    reader.mark_end().await.unwrap();
    assert_eq!(to_end(&mut reader).await, vec![1, 2]);
    cluster.close().await;
}

#[tokio::test]
async fn dropping_next_at_any_point_loses_no_record() {
    let log = (0..200).fold(Log::default(), |log, _| log.data(-1, 1));
    let (cluster, shared, _broker) = leader(log).await;
    shared.lock().unwrap().batches_max = 7;
    let mut reader = open(&cluster, options()).await;
    let mut offsets = Vec::new();
    let deadline = Instant::now() + PATIENCE;
    for step in 0_u64.. {
        assert!(Instant::now() < deadline, "stuck after {} records", offsets.len());
        match timeout(Duration::from_micros(step % 300), reader.next()).await {
            Ok(Ok(ReaderEvent::Records { records, .. })) => offsets.extend(records.iter().map(|one| one.offset)),
            Ok(Ok(ReaderEvent::ReachedEnd)) => break,
            Ok(Ok(ReaderEvent::Idle)) | Err(_) => {}
            Ok(Err(error)) => panic!("{error}"),
        }
    }
    assert_eq!(offsets, (0..200).collect::<Vec<i64>>());
    cluster.close().await;
}

#[tokio::test]
async fn an_offset_out_of_range_goes_on_at_the_log_start() {
    let (cluster, _, _broker) = leader(Log::starting_at(10).data(-1, 2)).await;
    let start = Start::Offsets(BTreeMap::from([(0, 3)]));
    let mut reader = open(&cluster, ReaderOptions { start, ..options() }).await;
    assert_eq!(to_end(&mut reader).await, vec![10, 11]);
    cluster.close().await;
}

#[tokio::test]
async fn a_batch_above_the_partitions_share_still_arrives() {
    let (cluster, shared, _broker) = leader(Log::default().data(-1, 50)).await;
    shared.lock().unwrap().cuts_batches = true;
    let mut reader = open(&cluster, ReaderOptions { partition_max_bytes: 100, ..options() }).await;
    assert_eq!(to_end(&mut reader).await.len(), 50);
    cluster.close().await;
}

#[tokio::test]
async fn aborted_records_are_hidden_from_committed_readers_only() {
    let log = Log::default().data(1, 2).marker(1, ControlMarker::Abort).data(2, 1).marker(2, ControlMarker::Commit);
    let (cluster, shared, _broker) = leader(log).await;
    shared.lock().unwrap().aborted = vec![(1, 0)];
    let mut committed = open(&cluster, options()).await;
    assert_eq!(to_end(&mut committed).await, vec![3]);
    let mut all = open(&cluster, ReaderOptions { isolation: Isolation::Uncommitted, ..options() }).await;
    assert_eq!(to_end(&mut all).await, vec![0, 1, 3]);
    cluster.close().await;
}

#[tokio::test]
async fn fetch_errors_that_pass_are_retried_and_others_are_told() {
    let (cluster, shared, _broker) = leader(Log::default().data(-1, 1)).await;
    shared.lock().unwrap().refusals = vec![6, 74, 56, 5];
    let mut reader = open(&cluster, options()).await;
    assert_eq!(to_end(&mut reader).await, vec![0]);
    {
        // At once: a fetch that is under way must not see the record without the refusal.
        let mut log = shared.lock().unwrap();
        log.append(-1, 1);
        log.refusals = vec![29];
    }
    reader.mark_end().await.unwrap();
    let told = reader.read_to_end(Instant::now() + PATIENCE, |_, _| {}).await.unwrap_err();
    assert_eq!(told.code(), Some(29));
    assert_eq!(to_end(&mut reader).await, vec![1], "it can be used again");
    cluster.close().await;
}

#[tokio::test]
async fn a_topic_that_does_not_exist_is_named() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let asked = AtomicUsize::new(0);
    let _broker = FakeBroker::on(listener, move |head, _| {
        asked.fetch_add(1, Ordering::SeqCst);
        let topic = kafka_protocol::messages::metadata_response::MetadataResponseTopic::default()
            .with_error_code(3)
            .with_name(Some(kafka_protocol::messages::TopicName("t".into())));
        Some(fake::respond(head, &fake::brokers(&[(1, address)]).with_topics(vec![topic])))
    });
    let cluster = Cluster::connect(ClientConfig::new(&address.to_string()).unwrap()).await.unwrap();
    let refused = LogReader::open(&cluster, "t", options()).await.unwrap_err();
    assert!(matches!(refused, Error::UnknownTopic { topic } if topic == "t"));
    cluster.close().await;
}

/// All brokers of a small cluster were away for longer than the patience: the partition has no leader for as long, and then one again.
#[tokio::test]
async fn a_leader_that_comes_back_after_the_patience_is_found_by_whoever_goes_on_asking() {
    let (cluster, shared, broker, told) = leader_for(Log::default().data(-1, 1), Duration::from_millis(200)).await;
    let mut reader = open(&cluster, options()).await;
    assert_eq!(to_end(&mut reader).await, vec![0]);
    told.store(-1, Ordering::Relaxed);
    shared.lock().unwrap().refusals = vec![NOT_LEADER_OR_FOLLOWER];
    for _ in 0..2 {
        let error = timeout(PATIENCE, async {
            loop {
                if let Err(error) = reader.next().await {
                    return error;
                }
            }
        });
        let error = error.await.unwrap();
        assert!(matches!(error, Error::Timeout { .. }) && error.code() == Some(LEADER_NOT_AVAILABLE), "{error}");
    }
    let fetches = broker.count(ApiKey::Fetch);
    told.store(1, Ordering::Relaxed);
    shared.lock().unwrap().append(-1, 1);
    let found = timeout(PATIENCE, async {
        loop {
            if let Ok(ReaderEvent::Records { records, .. }) = reader.next().await {
                return records;
            }
            // An error at each call would never let the time-out in.
            tokio::task::yield_now().await;
        }
    });
    assert_eq!(found.await.unwrap()[0].offset, 1);
    assert!(broker.count(ApiKey::Fetch) > fetches);
    cluster.close().await;
}

/// Who asks a reader now and then, as for stored offsets, leaves it alone in between. What it has begun must not keep others waiting:
/// one request for metadata is under way at a time, for all.
#[tokio::test]
async fn a_reader_that_nobody_reads_holds_up_nobody_elses_look_up() {
    let (cluster, shared, _broker) = leader(Log::default().data(-1, 1)).await;
    let mut reader = open(&cluster, options()).await;
    assert_eq!(to_end(&mut reader).await, vec![0]);
    shared.lock().unwrap().refusals = vec![NOT_LEADER_OR_FOLLOWER];
    // After so many the next one has to wait for its time.
    for _ in 0..20 {
        cluster.refresh(&["t"]).await.unwrap();
    }
    let moments = Instant::now() + Duration::from_millis(20);
    while Instant::now() < moments {
        // Nothing to read, or no time to read it.
        let _ = timeout(Duration::from_millis(5), reader.next()).await;
    }
    assert!(shared.lock().unwrap().refusals.is_empty(), "it had to look for the leader");
    timeout(PATIENCE, cluster.refresh(&["t"])).await.expect("nobody is in the way").unwrap();
    drop(reader);
    cluster.close().await;
}
