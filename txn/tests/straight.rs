//! The straight path in both generations of the protocol, request by request.

#![allow(clippy::unwrap_used, reason = "helpers of tests; clippy knows only the test functions themselves")]

use oncewire_txn::{
    BatchId, Command, EndGoal, ErrorCode, Event, Machine, Outcome, Output, PartitionIndex, ProducerIdentity, Protocol,
    Reply, Request, RequestId, Settings, Time,
};

const OURS: ProducerIdentity = ProducerIdentity { id: 7, epoch: 0 };

fn sent(machine: &mut Machine) -> (RequestId, Request) {
    match machine.poll_output() {
        Output::Send(id, request) => (id, request),
        other => panic!("expected a request, not {other:?}"),
    }
}

fn told(machine: &mut Machine) -> Event {
    match machine.poll_output() {
        Output::Event(event) => event,
        other => panic!("expected an event, not {other:?}"),
    }
}

fn initialized(protocol: Protocol) -> Machine {
    let mut machine = Machine::new(Settings::default(), 1);
    machine.handle_command(Time(0), Command::Init).unwrap();
    let (id, request) = sent(&mut machine);
    assert_eq!(request, Request::FindCoordinator);
    machine.handle_reply(Time(1), id, Reply::Coordinator(ErrorCode::NONE));
    let (id, request) = sent(&mut machine);
    assert_eq!(request, Request::InitProducerId { current: None });
    machine.handle_reply(Time(2), id, Reply::Initialized { code: ErrorCode::NONE, identity: OURS, protocol });
    assert_eq!(told(&mut machine), Event::Initialized(OURS));
    machine
}

fn produced() -> Reply {
    Reply::Produced { code: ErrorCode::NONE, base_offset: 40, log_start_offset: 0, leader_known: false }
}

#[test]
fn explicit_protocol_adds_then_produces_then_ends_and_keeps_its_numbers() {
    let mut machine = initialized(Protocol::Explicit);
    let partition = PartitionIndex(3);
    for round in 0..2 {
        let batch = BatchId(round);
        machine.handle_command(Time(3), Command::Begin).unwrap();
        machine.handle_command(Time(3), Command::Append { partition, batch, records: 10 }).unwrap();
        let (id, request) = sent(&mut machine);
        assert_eq!(request, Request::AddPartitions { identity: OURS, partitions: vec![partition] });
        machine.handle_reply(Time(4), id, Reply::PartitionsAdded(vec![(partition, ErrorCode::NONE)]));
        let (id, request) = sent(&mut machine);
        let base_sequence = i32::try_from(round * 10).unwrap();
        let protocol = Protocol::Explicit;
        let expected = Request::Produce { identity: OURS, partition, batch, base_sequence, retry: false, protocol };
        assert_eq!(request, expected);
        machine.handle_command(Time(4), Command::Commit).unwrap();
        assert!(matches!(machine.poll_output(), Output::Wait { .. }), "no EndTxn before the last acknowledgement");
        machine.handle_reply(Time(5), id, produced());
        assert_eq!(told(&mut machine), Event::Acked { batch, base_offset: Some(40) });
        let (id, request) = sent(&mut machine);
        assert_eq!(request, Request::EndTxn { identity: OURS, goal: EndGoal::Commit, protocol });
        machine.handle_reply(Time(6), id, Reply::Ended { code: ErrorCode::NONE, next: None, protocol });
        assert_eq!(told(&mut machine), Event::Ended(Outcome::Committed));
        assert_eq!(machine.poll_output(), Output::Wait { until: None });
    }
}

#[test]
fn implicit_protocol_produces_at_once_and_takes_the_next_epoch_from_the_end() {
    let mut machine = initialized(Protocol::Implicit);
    let partition = PartitionIndex(3);
    let protocol = Protocol::Implicit;
    for epoch in 0..3 {
        let identity = ProducerIdentity { id: 7, epoch };
        let batch = BatchId(u64::try_from(epoch).unwrap());
        machine.handle_command(Time(3), Command::Begin).unwrap();
        machine.handle_command(Time(3), Command::Append { partition, batch, records: 10 }).unwrap();
        let (id, request) = sent(&mut machine);
        let expected = Request::Produce { identity, partition, batch, base_sequence: 0, retry: false, protocol };
        assert_eq!(request, expected, "a new epoch starts at 0");
        machine.handle_reply(Time(5), id, produced());
        assert_eq!(told(&mut machine), Event::Acked { batch, base_offset: Some(40) });
        machine.handle_command(Time(5), Command::Commit).unwrap();
        let (id, request) = sent(&mut machine);
        assert_eq!(request, Request::EndTxn { identity, goal: EndGoal::Commit, protocol });
        let next = Some(ProducerIdentity { id: 7, epoch: epoch + 1 });
        machine.handle_reply(Time(6), id, Reply::Ended { code: ErrorCode::NONE, next, protocol });
        assert_eq!(told(&mut machine), Event::Ended(Outcome::Committed));
        assert_eq!(machine.poll_output(), Output::Wait { until: None });
    }
}

#[test]
fn five_batches_of_a_partition_are_in_flight_and_not_six() {
    let mut machine = initialized(Protocol::Implicit);
    let partition = PartitionIndex(0);
    machine.handle_command(Time(3), Command::Begin).unwrap();
    for batch in 0..8 {
        let command = Command::Append { partition, batch: BatchId(batch), records: 1 };
        machine.handle_command(Time(3), command).unwrap();
    }
    let ids: Vec<RequestId> = (0..5).map(|_| sent(&mut machine).0).collect();
    assert!(matches!(machine.poll_output(), Output::Wait { .. }));
    machine.handle_reply(Time(4), ids[0], produced());
    assert!(matches!(told(&mut machine), Event::Acked { .. }));
    assert!(matches!(sent(&mut machine).1, Request::Produce { base_sequence: 5, .. }));
    assert!(matches!(machine.poll_output(), Output::Wait { .. }));
}
