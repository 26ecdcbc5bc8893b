//! The coordinator: every state against every request, in both generations of the protocol.

use std::time::{Duration, Instant};

use kafka_protocol::messages::*;

use super::{Identity, Teller, batch, text};

const TOPIC: &str = "transactions";

pub(super) fn tell(teller: &mut Teller) {
    teller.topic(TOPIC, 1, &[]);
    init(teller);
    add(teller);
    explicit_table(teller);
    implicit_table(teller);
    fencing(teller);
    fencing_versions(teller);
    timeouts(teller);
    admin(teller);
}

impl Teller {
    /// Waits until the coordinator shows no pending state.
    pub(super) fn settle_markers(&mut self, id: &str) {
        let deadline = Instant::now() + Duration::from_secs(20);
        while self.described(id).starts_with("Prepare") {
            assert!(Instant::now() < deadline, "the markers of {id} never landed");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn described(&mut self, id: &str) -> String {
        let request = DescribeTransactionsRequest::default().with_transactional_ids(vec![TransactionalId(text(id))]);
        let answer: DescribeTransactionsResponse = self.client.call(ApiKey::DescribeTransactions, 0, &request);
        let state = &answer.transaction_states[0];
        match state.error_code {
            0 => state.transaction_state.to_string(),
            code => crate::transcript::code_name(code),
        }
    }

    fn note_init(&mut self, step: &str, id: &str, brought: Identity) -> Identity {
        let answer = self.init(id, brought);
        self.told.producer(step, answer.error_code, answer.producer_id.0, answer.producer_epoch);
        Identity { id: answer.producer_id.0, epoch: answer.producer_epoch }
    }

    fn note_end(&mut self, step: &str, version: i16, id: &str, producer: Identity, commit: bool) -> Identity {
        let answer = self.end(version, id, producer, commit);
        self.told.producer(step, answer.error_code, answer.producer_id.0, answer.producer_epoch);
        Identity { id: answer.producer_id.0, epoch: answer.producer_epoch }
    }

    fn note_state(&mut self, step: &str, id: &str) {
        self.settle_markers(id);
        let state = self.described(id);
        self.told.note(step, state);
    }

    /// An implicit transaction with one record: Ongoing afterwards.
    fn open_implicit(&mut self, id: &str, producer: Identity) {
        let answer = self.produce(12, Some(id), TOPIC, batch(producer, 0, 1, true));
        assert_eq!(answer.error_code, 0, "implicit produce of {id}");
    }
}

fn init(teller: &mut Teller) {
    teller.told.story("InitProducerId");
    let first = teller.note_init("a new id", "init", Identity::NONE);
    teller.note_state("its state", "init");
    let second = teller.note_init("again", "init", Identity::NONE);
    teller.note_init("with the epoch before", "init", first);
    let third = teller.note_init("with the current epoch", "init", second);
    teller.note_init("with the epoch before that", "init", second);
    teller.note_init("with the one before it", "init", first);
    teller.note_init("with an epoch to come", "init", third.plus(1));
    teller.note_init("with a foreign id", "init", Identity { id: third.id + 700, epoch: 0 });
    teller.note_init("with an id but no epoch", "init", Identity { epoch: -1, ..third });
    teller.note_init("with an epoch but no id", "init", Identity { id: -1, ..third });
    teller.note_init("a new id with an identity", "init-brought", Identity { id: 93_000_000, epoch: 7 });
    let answer = teller.init_once(3, Some("init"), first);
    teller.told.code("fenced, in version 3", answer.error_code);
    let answer = teller.init_once(4, Some(""), Identity::NONE);
    teller.told.code("an empty id", answer.error_code);
    let answer = teller.init_once(4, None, Identity::NONE);
    teller.told.producer("no id", answer.error_code, answer.producer_id.0, answer.producer_epoch);
    let brought = Identity { id: answer.producer_id.0, epoch: answer.producer_epoch };
    let answer = teller.init_once(4, None, brought);
    teller.told.note("no id but an identity gives epoch", answer.producer_epoch.to_string());
    for timeout in [0, -1, 900_000, 900_001] {
        let answer = teller.init_for(timeout, 4, Some("init-timeout"), Identity::NONE);
        teller.told.code(&format!("timeout {timeout}"), answer.error_code);
    }
}

fn add(teller: &mut Teller) {
    teller.told.story("AddPartitionsToTxn");
    let id = "add";
    let producer = teller.producer(id);
    let code = teller.add(3, "nobody", producer, TOPIC);
    teller.told.code("unknown id", code);
    let code = teller.add(3, id, Identity { id: producer.id + 700, epoch: 0 }, TOPIC);
    teller.told.code("foreign producer", code);
    for version in [1, 2, 3] {
        let code = teller.add(version, id, producer.plus(1), TOPIC);
        teller.told.code(&format!("wrong epoch, version {version}"), code);
    }
    let codes = teller.add_once(3, id, producer, &[TOPIC, "nowhere"]);
    teller.told.code("beside an unknown topic", codes[0]);
    teller.told.code("the unknown topic", codes[1]);
    teller.note_state("state", id);
    let code = teller.add(3, id, producer, TOPIC);
    teller.told.code("good", code);
    teller.note_state("state", id);
    let code = teller.add(3, id, producer, TOPIC);
    teller.told.code("the same again", code);
    teller.note_end("abort", 4, id, producer, false);
}

/// Brings an id into a state by explicit requests; returns its producer.
fn explicit(teller: &mut Teller, id: &str, state: &str) -> Identity {
    let producer = teller.producer(id);
    if state != "Empty" {
        assert_eq!(teller.add(3, id, producer, TOPIC), 0);
    }
    match state {
        "CompleteCommit" => assert_eq!(teller.end(4, id, producer, true).error_code, 0),
        "CompleteAbort" => assert_eq!(teller.end(4, id, producer, false).error_code, 0),
        _ => {}
    }
    teller.settle_markers(id);
    producer
}

fn explicit_table(teller: &mut Teller) {
    teller.told.story("EndTxn 4 in every state");
    for state in ["Empty", "Ongoing", "CompleteCommit", "CompleteAbort"] {
        for (goal, commit) in [("commit", true), ("abort", false)] {
            let id = format!("explicit-{state}-{goal}");
            let producer = explicit(teller, &id, state);
            let code = teller.end(4, &id, producer.plus(1), commit).error_code;
            teller.told.code(&format!("{state}, {goal}, wrong epoch"), code);
            let foreign = Identity { id: producer.id + 700, epoch: 0 };
            let code = teller.end(4, &id, foreign, commit).error_code;
            teller.told.code(&format!("{state}, {goal}, foreign producer"), code);
            let code = teller.end(4, &id, producer, commit).error_code;
            teller.told.code(&format!("{state}, {goal}"), code);
            teller.note_state(&format!("{state}, {goal}, then"), &id);
        }
    }
    let code = teller.end(4, "nobody", Identity { id: 1, epoch: 0 }, true).error_code;
    teller.told.code("unknown id", code);
    let producer = explicit(teller, "explicit-old", "Ongoing");
    let code = teller.end(1, "explicit-old", producer.plus(1), true).error_code;
    teller.told.code("wrong epoch, version 1", code);
    teller.end(4, "explicit-old", producer, false);
}

/// Brings an id into a state by implicit requests; returns its producer as of then.
fn implicit(teller: &mut Teller, id: &str, state: &str) -> Identity {
    let producer = teller.producer(id);
    // One raise first, so that there is an epoch before.
    let aborted = teller.end(5, id, producer, false);
    let producer = Identity { id: aborted.producer_id.0, epoch: aborted.producer_epoch };
    teller.settle_markers(id);
    let next = |answer: EndTxnResponse| {
        assert_eq!(answer.error_code, 0);
        Identity { id: answer.producer_id.0, epoch: answer.producer_epoch }
    };
    let producer = match state {
        "Empty" => teller.producer(id),
        "Ongoing" => {
            teller.open_implicit(id, producer);
            producer
        }
        "CompleteCommit" => {
            teller.open_implicit(id, producer);
            next(teller.end(5, id, producer, true))
        }
        _ => {
            teller.open_implicit(id, producer);
            next(teller.end(5, id, producer, false))
        }
    };
    teller.settle_markers(id);
    producer
}

fn implicit_table(teller: &mut Teller) {
    teller.told.story("EndTxn 5 in every state");
    for state in ["Empty", "Ongoing", "CompleteCommit", "CompleteAbort"] {
        for (goal, commit) in [("commit", true), ("abort", false)] {
            for (which, epochs) in [("current epoch", 0), ("epoch before", -1), ("epoch to come", 1)] {
                let id = format!("implicit-{state}-{goal}-{epochs}");
                let producer = implicit(teller, &id, state);
                let answer = teller.end(5, &id, producer.plus(epochs), commit);
                let told = match answer.error_code {
                    0 => format!(
                        "same producer: {}, epoch +{}",
                        answer.producer_id.0 == producer.id,
                        answer.producer_epoch - producer.epoch
                    ),
                    code => crate::transcript::code_name(code),
                };
                teller.told.note(&format!("{state}, {goal}, {which}"), told);
                teller.note_state("then", &id);
                let left_open = teller.described(&id) == "Ongoing";
                if left_open {
                    teller.end(5, &id, producer, false);
                }
            }
        }
    }
    let id = "implicit-foreign";
    let producer = implicit(teller, id, "Ongoing");
    let foreign = Identity { id: producer.id + 700, epoch: 0 };
    let code = teller.end(5, id, foreign, true).error_code;
    teller.told.code("Ongoing, foreign producer", code);
    teller.end(5, id, producer, false);
}

fn fencing(teller: &mut Teller) {
    for (generation, version) in [("explicit", 4), ("implicit", 5)] {
        teller.told.story(&format!("a successor fences an {generation} transaction"));
        let id = format!("fenced-{generation}");
        let zombie = teller.producer(&id);
        match version {
            4 => {
                assert_eq!(teller.add(3, &id, zombie, TOPIC), 0);
                assert_eq!(teller.produce(11, Some(&id), TOPIC, batch(zombie, 0, 1, true)).error_code, 0);
            }
            _ => teller.open_implicit(&id, zombie),
        }
        let answer = teller.init_once(4, Some(&id), Identity::NONE);
        teller.told.code("the successor's first try", answer.error_code);
        teller.settle_markers(&id);
        teller.note_state("the state", &id);
        teller.note_produced("the zombie's produce", version + 7, Some(&id), TOPIC, batch(zombie, 1, 1, true));
        let answer = teller.init_once(4, Some(&id), Identity::NONE);
        teller.told.note("epochs passed", (answer.producer_epoch - zombie.epoch).to_string());
        let successor = Identity { id: answer.producer_id.0, epoch: answer.producer_epoch };
        for (goal, commit) in [("commit", true), ("abort", false)] {
            let code = teller.end(version, &id, zombie, commit).error_code;
            teller.told.code(&format!("the zombie's {goal}"), code);
        }
        let code = teller.add(3, &id, zombie, TOPIC);
        teller.told.code("the zombie's add", code);
        let code = teller.init(&id, zombie).error_code;
        teller.told.code("the zombie's init", code);
        teller.note_produced("the zombie's next produce", version + 7, Some(&id), TOPIC, batch(zombie, 1, 1, true));
        teller.open_implicit(&id, successor);
        let code = teller.end(5, &id, successor, true).error_code;
        teller.told.code("the successor's commit", code);
    }
}

/// A predecessor's own end, between the successor's first try and its second.
fn fencing_versions(teller: &mut Teller) {
    for (generation, version) in [("explicit", 4), ("implicit", 5)] {
        for (goal, commit) in [("commit", true), ("abort", false)] {
            teller.told.story(&format!("{goal} of an {generation} transaction that was fenced and not taken over"));
            let id = format!("half-fenced-{generation}-{goal}");
            let zombie = teller.producer(&id);
            match version {
                4 => assert_eq!(teller.add(3, &id, zombie, TOPIC), 0),
                _ => teller.open_implicit(&id, zombie),
            }
            let answer = teller.init_once(4, Some(&id), Identity::NONE);
            teller.told.code("the successor's first try", answer.error_code);
            teller.settle_markers(&id);
            let answer = teller.end(version, &id, zombie, commit);
            teller.told.code("the zombie's end", answer.error_code);
            teller.settle_markers(&id);
            let answer = teller.init(&id, zombie);
            let told = match answer.error_code {
                0 => format!("epoch +{}", answer.producer_epoch - zombie.epoch),
                code => crate::transcript::code_name(code),
            };
            teller.told.note("the zombie's init", told);
        }
    }
}

/// What a producer may do first after its transaction took too long.
const LATE_REQUESTS: [&str; 5] = ["commit", "abort", "init", "add", "produce"];

fn timeouts(teller: &mut Teller) {
    let mut late = Vec::new();
    for (generation, version) in [("explicit", 4), ("implicit", 5)] {
        for asks_first in LATE_REQUESTS {
            let id = format!("late-{generation}-{asks_first}");
            let answer = teller.init_for(200, 4, Some(&id), Identity::NONE);
            let producer = Identity { id: answer.producer_id.0, epoch: answer.producer_epoch };
            match version {
                4 => {
                    assert_eq!(teller.add(3, &id, producer, TOPIC), 0);
                    assert_eq!(teller.produce(11, Some(&id), TOPIC, batch(producer, 0, 1, true)).error_code, 0);
                }
                _ => teller.open_implicit(&id, producer),
            }
            late.push((format!("{asks_first} after an {generation} transaction took too long"), id, version, producer));
        }
    }
    for ((title, id, version, producer), asks_first) in late.into_iter().zip(LATE_REQUESTS.iter().cycle()) {
        teller.told.story(&title);
        let deadline = Instant::now() + Duration::from_secs(20);
        while teller.described(&id) != "CompleteAbort" {
            assert!(Instant::now() < deadline, "{id} was never aborted");
            std::thread::sleep(Duration::from_millis(5));
        }
        ask_late(teller, asks_first, &id, version, producer);
        let answer = teller.init(&id, producer);
        let told = match answer.error_code {
            0 => format!("epoch +{}", answer.producer_epoch - producer.epoch),
            code => crate::transcript::code_name(code),
        };
        teller.told.note("init with the old epoch", told);
    }
}

fn ask_late(teller: &mut Teller, request: &str, id: &str, version: i16, producer: Identity) {
    match request {
        "commit" | "abort" => {
            let answer = teller.end(version, id, producer, request == "commit");
            teller.told.code(request, answer.error_code);
        }
        "add" => {
            let code = teller.add(3, id, producer, TOPIC);
            teller.told.code(request, code);
        }
        "produce" => {
            teller.note_produced(request, version + 7, Some(id), TOPIC, batch(producer, 1, 1, true));
        }
        _ => {}
    }
}

fn admin(teller: &mut Teller) {
    teller.told.story("transactions are described");
    let unknown = teller.described("nobody");
    teller.told.note("unknown id", unknown);
    let empty = teller.described("");
    teller.told.note("empty id", empty);
    let producer = teller.producer("described");
    teller.open_implicit("described", producer);
    let request =
        DescribeTransactionsRequest::default().with_transactional_ids(vec![TransactionalId(text("described"))]);
    let answer: DescribeTransactionsResponse = teller.client.call(ApiKey::DescribeTransactions, 0, &request);
    let state = &answer.transaction_states[0];
    teller.told.note("timeout", state.transaction_timeout_ms.to_string());
    teller.told.note("started", (state.transaction_start_time_ms > 0).to_string());
    for topic in &state.topics {
        teller.told.note("topic", format!("{} {:?}", topic.topic.as_str(), topic.partitions));
    }
    let filter = ListTransactionsRequest::default()
        .with_state_filters(vec![text("Ongoing"), text("Asleep")])
        .with_duration_filter(-1);
    let answer: ListTransactionsResponse = teller.client.call(ApiKey::ListTransactions, 1, &filter);
    teller.told.note("unknown filters", format!("{:?}", answer.unknown_state_filters));
    for state in &answer.transaction_states {
        teller.told.note("ongoing", state.transactional_id.as_str());
    }
    teller.end(5, "described", producer, false);
    let coordinator = |version: i16, key: &str, kind: i8| {
        (version, FindCoordinatorRequest::default().with_key_type(kind).with_coordinator_keys(vec![text(key)]))
    };
    for (step, (version, request)) in
        [("empty transactional id", coordinator(4, "", 1)), ("bad key type", coordinator(4, "x", 9))]
    {
        let answer: FindCoordinatorResponse = teller.client.call(ApiKey::FindCoordinator, version, &request);
        let code = answer.coordinators.first().map_or(answer.error_code, |found| found.error_code);
        teller.told.code(step, code);
    }
}
