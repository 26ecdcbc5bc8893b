//! Every state with every input: commands, replies of every kind with every code, losses, and time.
//!
//! Each case builds the state anew by a script, applies one input, and checks what must hold whatever the input was. The
//! move itself is checked against the table of legal moves by the machine (a debug assertion), the wire by the model's
//! ledger rules that can be seen from one step.

#![allow(clippy::unwrap_used, reason = "helpers of tests; clippy knows only the test functions themselves")]

use oncewire_txn::{
    BatchId, Cause, Command, EndGoal, ErrorCode, Event, Machine, Outcome, Output, PartitionIndex, ProducerIdentity,
    Protocol, Refusal, Reply, Request, RequestId, Settings, Span, StateName, Time,
};

const OURS: ProducerIdentity = ProducerIdentity { id: 7, epoch: 3 };
const P0: PartitionIndex = PartitionIndex(0);

/// A state under test: how to get there, by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scene {
    Fresh,
    Finding,
    Initializing,
    InitTimedOutInFlight,
    Ready,
    ReadyBumping,
    Empty,
    Adding,
    Producing,
    FiveInFlight,
    RetryHeld,
    AwaitingMetadata,
    AbortRequiredIdle,
    AbortRequiredInFlight,
    CommitFlushing,
    CommitSent,
    CommitUndecided,
    AbortDraining,
    AbortSent,
    Closing,
    UnknownStanding,
    Settling,
    Fenced,
    Fatal,
    Closed,
}

const SCENES: [Scene; 25] = [
    Scene::Fresh,
    Scene::Finding,
    Scene::Initializing,
    Scene::InitTimedOutInFlight,
    Scene::Ready,
    Scene::ReadyBumping,
    Scene::Empty,
    Scene::Adding,
    Scene::Producing,
    Scene::FiveInFlight,
    Scene::RetryHeld,
    Scene::AwaitingMetadata,
    Scene::AbortRequiredIdle,
    Scene::AbortRequiredInFlight,
    Scene::CommitFlushing,
    Scene::CommitSent,
    Scene::CommitUndecided,
    Scene::AbortDraining,
    Scene::AbortSent,
    Scene::Closing,
    Scene::UnknownStanding,
    Scene::Settling,
    Scene::Fenced,
    Scene::Fatal,
    Scene::Closed,
];

/// A machine with what is in flight.
struct Stage {
    machine: Machine,
    protocol: Protocol,
    now: Time,
    in_flight: Vec<(RequestId, Request)>,
    events: Vec<Event>,
    wake: Option<Time>,
    next_batch: u64,
    commit_left: bool,
}

impl Stage {
    fn new(protocol: Protocol) -> Stage {
        Stage {
            machine: Machine::new(Settings::default(), 3),
            protocol,
            now: Time(1),
            in_flight: Vec::new(),
            events: Vec::new(),
            wake: None,
            next_batch: 0,
            commit_left: false,
        }
    }

    fn drain(&mut self) {
        loop {
            match self.machine.poll_output() {
                Output::Send(id, request) => {
                    self.commit_left |= matches!(request, Request::EndTxn { goal: EndGoal::Commit, .. });
                    self.in_flight.push((id, request));
                }
                Output::Event(event) => self.events.push(event),
                Output::Wait { until } => {
                    self.wake = until;
                    return;
                }
            }
        }
    }

    fn command(&mut self, command: Command) -> Result<(), Refusal> {
        let answer = self.machine.handle_command(self.now, command);
        self.drain();
        answer
    }

    fn append(&mut self) {
        let batch = BatchId(self.next_batch);
        self.next_batch += 1;
        self.command(Command::Append { partition: P0, batch, records: 2 }).unwrap();
    }

    fn reply(&mut self, id: RequestId, reply: Reply) {
        self.in_flight.retain(|(other, _)| *other != id);
        self.machine.handle_reply(self.now, id, reply);
        self.drain();
    }

    /// Answer the oldest request with a code.
    fn answer(&mut self, code: i16) {
        let (id, request) = self.in_flight[0].clone();
        let reply = reply_for(&request, code, self.protocol);
        self.reply(id, reply);
    }

    fn lose(&mut self) {
        let (id, _) = self.in_flight[0];
        self.reply(id, Reply::Lost { sent: true });
    }

    fn pass(&mut self, span: Span) {
        self.now = self.now.after(span);
        self.machine.handle_timeout(self.now);
        self.drain();
    }

    fn wake_up(&mut self) {
        let wake = self.wake.unwrap();
        self.now = self.now.max(wake);
        self.machine.handle_timeout(self.now);
        self.drain();
    }

    fn initialized(&mut self) {
        self.command(Command::Init).unwrap();
        self.answer(0);
        self.answer(0);
        assert_eq!(self.machine.state(), StateName::Ready);
    }

    /// In a transaction, with one batch in flight to its leader.
    fn producing(&mut self) {
        self.initialized();
        self.command(Command::Begin).unwrap();
        self.append();
        if self.protocol == Protocol::Explicit {
            self.answer(0);
        }
        assert!(matches!(self.in_flight[0].1, Request::Produce { .. }));
    }

    fn committing(&mut self) {
        self.producing();
        self.answer(0);
        self.command(Command::Commit).unwrap();
        assert!(matches!(self.in_flight[0].1, Request::EndTxn { goal: EndGoal::Commit, .. }));
    }

    fn unknown(&mut self) {
        self.committing();
        self.lose();
        self.pass(Span::from_millis(61_000));
        assert!(matches!(self.events.last(), Some(Event::Ended(Outcome::Unknown(_)))));
        while !self.in_flight.is_empty() {
            self.lose();
        }
    }
}

fn reply_for(request: &Request, code: i16, protocol: Protocol) -> Reply {
    let code = ErrorCode(code);
    match request {
        Request::FindCoordinator => Reply::Coordinator(code),
        Request::InitProducerId { current } => {
            let identity = current.map_or(OURS, |current| ProducerIdentity { epoch: current.epoch + 1, ..current });
            Reply::Initialized { code, identity, protocol }
        }
        Request::AddPartitions { partitions, .. } => {
            Reply::PartitionsAdded(partitions.iter().map(|partition| (*partition, code)).collect())
        }
        Request::Produce { .. } => Reply::Produced { code, base_offset: 5, log_start_offset: 0, leader_known: false },
        Request::EndTxn { identity, protocol, .. } => {
            let next = ProducerIdentity { epoch: identity.epoch + 1, ..*identity };
            let next = (*protocol == Protocol::Implicit).then_some(next);
            Reply::Ended { code, next, protocol: *protocol }
        }
        Request::RefreshMetadata { .. } => Reply::Metadata,
    }
}

fn stage(scene: Scene, protocol: Protocol) -> Stage {
    let mut stage = Stage::new(protocol);
    let s = &mut stage;
    match scene {
        Scene::Fresh => {}
        Scene::Finding => s.command(Command::Init).unwrap(),
        Scene::Initializing => {
            s.command(Command::Init).unwrap();
            s.answer(0);
        }
        Scene::InitTimedOutInFlight => {
            s.command(Command::Init).unwrap();
            s.answer(0);
            s.pass(Span::from_millis(61_000));
            assert!(matches!(s.events.last(), Some(Event::InitFailed(_))));
        }
        Scene::Ready => s.initialized(),
        Scene::ReadyBumping => {
            // Only the explicit protocol bumps by itself after a lost answer; the other one is Ready again here.
            s.producing();
            s.lose();
            s.command(Command::Abort).unwrap();
            while s.machine.state() != StateName::Ready {
                if s.in_flight.is_empty() { s.wake_up() } else { s.answer(0) }
            }
        }
        Scene::Empty => {
            s.initialized();
            s.command(Command::Begin).unwrap();
        }
        Scene::Adding => {
            s.initialized();
            s.command(Command::Begin).unwrap();
            s.append();
        }
        Scene::Producing => s.producing(),
        Scene::FiveInFlight => {
            s.producing();
            for _ in 0..6 {
                s.append();
            }
        }
        Scene::RetryHeld => {
            s.producing();
            s.answer(19);
        }
        Scene::AwaitingMetadata => {
            s.producing();
            s.answer(6);
        }
        _ => abort_or_end(s, scene),
    }
    stage
}

/// The scenes from an abort-only transaction on.
fn abort_or_end(s: &mut Stage, scene: Scene) {
    match scene {
        Scene::AbortRequiredIdle => {
            s.producing();
            s.answer(10);
        }
        Scene::AbortRequiredInFlight => {
            s.producing();
            s.command(Command::Fail(Cause::Requested)).unwrap();
        }
        Scene::CommitFlushing => {
            s.producing();
            s.command(Command::Commit).unwrap();
        }
        Scene::CommitSent => s.committing(),
        Scene::CommitUndecided => {
            s.committing();
            s.lose();
        }
        Scene::AbortDraining => {
            s.producing();
            s.command(Command::Abort).unwrap();
        }
        Scene::AbortSent => {
            s.producing();
            s.answer(0);
            s.command(Command::Abort).unwrap();
        }
        Scene::Closing => {
            s.producing();
            s.command(Command::Close).unwrap();
        }
        Scene::UnknownStanding => s.unknown(),
        Scene::Settling => {
            s.unknown();
            s.command(Command::Init).unwrap();
        }
        Scene::Fenced => {
            s.producing();
            s.answer(90);
        }
        Scene::Fatal => {
            s.producing();
            s.answer(53);
        }
        _ => s.command(Command::Close).unwrap(),
    }
}

fn stages() -> impl Iterator<Item = (Scene, Protocol)> {
    let both = [Protocol::Explicit, Protocol::Implicit];
    SCENES.into_iter().flat_map(move |scene| both.map(|protocol| (scene, protocol)))
}

/// What must hold after any input.
fn check(case: &str, before: StateName, stage: &Stage) {
    let machine = &stage.machine;
    let coordinator = |request: &Request| !matches!(request, Request::Produce { .. } | Request::RefreshMetadata { .. });
    let asking = stage.in_flight.iter().filter(|(_, request)| coordinator(request)).count();
    assert!(asking <= 1, "{case}: {asking} requests to the coordinator at once");
    let producing = |to: u32| {
        let same = |request: &Request| matches!(request, Request::Produce { partition, .. } if partition.0 == to);
        stage.in_flight.iter().filter(|(_, request)| same(request)).count()
    };
    assert!(producing(0) <= 5 && producing(1) <= 5, "{case}: more than five batches of a partition in flight");
    assert!(stage.wake.is_none_or(|wake| wake > stage.now), "{case}: wants to be woken in the past");
    let stopped = [StateName::Fenced, StateName::Fatal, StateName::Closed];
    if stopped.contains(&before) {
        assert!(machine.state() == before || machine.state() == StateName::Closed, "{case}: came back to life");
    }
    if stopped.contains(&machine.state()) {
        assert_eq!(machine.open_batches(), 0, "{case}: stopped with open batches");
    }
    let ended = stage.events.iter().filter(|event| matches!(event, Event::Ended(_))).count();
    assert!(ended <= 1, "{case}: one transaction ended {ended} times");
}

fn commands() -> Vec<Command> {
    vec![
        Command::Init,
        Command::Begin,
        Command::Append { partition: P0, batch: BatchId(900), records: 1 },
        Command::Append { partition: PartitionIndex(1), batch: BatchId(901), records: 1 },
        Command::Append { partition: P0, batch: BatchId(902), records: 0 },
        Command::Append { partition: P0, batch: BatchId(903), records: u32::MAX },
        Command::Append { partition: P0, batch: BatchId(0), records: 1 },
        Command::Fail(Cause::TransactionTooOld),
        Command::Commit,
        Command::Abort,
        Command::Close,
    ]
}

fn is_legal(scene: Scene, state: StateName, command: &Command) -> Option<bool> {
    let open = matches!(state, StateName::InTransaction | StateName::AbortRequired);
    Some(match command {
        Command::Init => {
            matches!(state, StateName::Uninitialized | StateName::InitRequired | StateName::Initializing)
        }
        Command::Begin => state == StateName::Ready,
        Command::Append { records: 0 | u32::MAX, .. } => false,
        // Batch 0 may be open already.
        Command::Append { batch: BatchId(0), .. } => return None,
        Command::Append { .. } => state == StateName::InTransaction,
        Command::Fail(_) => {
            open || scene == Scene::CommitFlushing || scene == Scene::AbortDraining || scene == Scene::AbortSent
        }
        Command::Commit | Command::Abort => open,
        Command::Close => state != StateName::Closed && scene != Scene::Closing,
    })
}

#[test]
fn every_command_in_every_state_is_taken_or_refused_and_a_refused_one_changes_nothing() {
    for (scene, protocol) in stages() {
        for command in commands() {
            let mut stage = stage(scene, protocol);
            let before = stage.machine.state();
            let (flying, told) = (stage.in_flight.len(), stage.events.len());
            let case = format!("{scene:?} {protocol:?} {command:?}");
            let answer = stage.command(command.clone());
            if let Some(legal) = is_legal(scene, before, &command) {
                assert_eq!(answer.is_ok(), legal, "{case}: {answer:?}");
            }
            if let Err(refusal) = answer {
                assert_eq!(stage.machine.state(), before, "{case}");
                assert_eq!((stage.in_flight.len(), stage.events.len()), (flying, told), "{case}");
                assert!(!refusal.to_string().is_empty());
            }
            check(&case, before, &stage);
        }
    }
}

#[test]
fn every_code_for_every_request_in_flight_in_every_state_leaves_a_sound_machine() {
    for (scene, protocol) in stages() {
        for index in 0..stage(scene, protocol).in_flight.len() {
            for code in (-2..=140).chain([999, i16::MIN, i16::MAX]) {
                let mut stage = stage(scene, protocol);
                let before = stage.machine.state();
                let (id, request) = stage.in_flight[index].clone();
                let case = format!("{scene:?} {protocol:?} {request:?} answered {code}");
                let reply = reply_for(&request, code, protocol);
                stage.reply(id, reply);
                check(&case, before, &stage);
                let committed = stage.events.contains(&Event::Ended(Outcome::Committed));
                let may = matches!(request, Request::EndTxn { goal: EndGoal::Commit, .. }) && code == 0;
                assert!(!committed || may, "{case}: committed");
                follow_to_the_end(&case, stage);
            }
        }
    }
}

#[test]
fn every_loss_and_every_reply_of_a_wrong_kind_in_every_state_leaves_a_sound_machine() {
    let none = ErrorCode::NONE;
    for (scene, protocol) in stages() {
        let replies = [
            Reply::Lost { sent: true },
            Reply::Lost { sent: false },
            Reply::Metadata,
            Reply::Coordinator(none),
            Reply::Initialized { code: none, identity: ProducerIdentity { id: -1, epoch: -1 }, protocol },
            Reply::Initialized { code: none, identity: OURS, protocol: Protocol::Explicit },
            Reply::PartitionsAdded(Vec::new()),
            Reply::PartitionsAdded(vec![(PartitionIndex(99), none)]),
            Reply::Produced { code: none, base_offset: -1, log_start_offset: -1, leader_known: true },
            Reply::Ended { code: none, next: Some(ProducerIdentity { id: -5, epoch: -5 }), protocol },
            Reply::Ended { code: none, next: None, protocol: Protocol::Implicit },
        ];
        for reply in replies {
            for index in 0..stage(scene, protocol).in_flight.len() {
                let mut stage = stage(scene, protocol);
                let before = stage.machine.state();
                let (id, request) = stage.in_flight[index].clone();
                let case = format!("{scene:?} {protocol:?} {request:?} answered {reply:?}");
                stage.reply(id, reply.clone());
                check(&case, before, &stage);
                follow_to_the_end(&case, stage);
            }
            let mut stage = stage(scene, protocol);
            let (before, flying, told) = (stage.machine.state(), stage.in_flight.len(), stage.events.len());
            stage.reply(RequestId(u64::MAX), reply.clone());
            assert_eq!(stage.machine.state(), before, "{scene:?}: a stray reply changed the state");
            assert_eq!((stage.in_flight.len(), stage.events.len()), (flying, told), "{scene:?}: a stray reply acted");
        }
    }
}

#[test]
fn time_alone_brings_every_state_to_rest() {
    for (scene, protocol) in stages() {
        for span in [0, 1, 1_000, 1_000_000, 60_000_000, u64::MAX / 2] {
            let mut stage = stage(scene, protocol);
            let before = stage.machine.state();
            let case = format!("{scene:?} {protocol:?} after {span} us");
            stage.pass(Span(span));
            check(&case, before, &stage);
            follow_to_the_end(&case, stage);
        }
    }
}

/// From here on nobody answers: every request is lost, and time passes. The caller asks to commit what is open. The machine
/// must come to rest, and never contradict a commit that may have arrived.
fn follow_to_the_end(case: &str, mut stage: Stage) {
    for round in 0..1_000 {
        assert!(round < 999, "{case}: does not come to rest, {:?}", stage.machine);
        if let Some((id, request)) = stage.in_flight.first().cloned() {
            let contradicts = matches!(request, Request::EndTxn { goal: EndGoal::Abort, .. })
                && stage.events.iter().any(|event| matches!(event, Event::Ended(Outcome::Unknown(_))));
            assert!(!contradicts, "{case}: an abort after an unknown commit");
            stage.reply(id, Reply::Lost { sent: true });
        } else if matches!(stage.machine.state(), StateName::InTransaction | StateName::AbortRequired) {
            stage.command(Command::Commit).unwrap();
        } else if stage.wake.is_some() {
            stage.wake_up();
        } else {
            break;
        }
    }
    let rest = [
        StateName::Uninitialized,
        StateName::Ready,
        StateName::InitRequired,
        StateName::Fenced,
        StateName::Fatal,
        StateName::Closed,
    ];
    assert!(rest.contains(&stage.machine.state()), "{case}: rests in {:?}", stage.machine.state());
    assert_eq!(stage.machine.open_batches(), 0, "{case}");
    let unknown = stage.events.iter().any(|event| matches!(event, Event::Ended(Outcome::Unknown(_))));
    assert!(!unknown || stage.commit_left, "{case}: unknown, though no commit ever left");
    check(case, StateName::Uninitialized, &stage);
}

#[test]
fn nothing_is_ever_sent_by_a_machine_that_stopped() {
    for scene in [Scene::Fenced, Scene::Fatal, Scene::Closed] {
        for protocol in [Protocol::Explicit, Protocol::Implicit] {
            let mut stage = stage(scene, protocol);
            for command in commands().into_iter().filter(|command| *command != Command::Close) {
                assert!(stage.command(command).is_err());
            }
            stage.pass(Span::from_millis(1_000_000));
            assert!(stage.in_flight.is_empty(), "{scene:?}");
            assert_eq!(stage.wake, None, "{scene:?}");
        }
    }
}
