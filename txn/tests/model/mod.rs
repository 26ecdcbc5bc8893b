//! A machine, an honest broker and a hostile network between them, driven by a list of operations.
//!
//! The property tests draw the operations, the fuzzer reads them from bytes, and the stories write them by hand. Whatever
//! they do, the [`ledger::Ledger`] watches every request and event and compares the books with the logs at the end.

#![allow(dead_code, reason = "each test binary and the fuzz target use their own part of the model")]

pub(crate) mod broker;
pub(crate) mod ledger;

use broker::{Broker, records_of};
use ledger::Ledger;
use oncewire_txn::{
    BatchId, Cause, Command, ErrorCode, Event, Machine, Output, PartitionIndex, Protocol, Reply, Request, RequestId,
    Settings, Span, StateName, Time,
};

pub(crate) const PARTITIONS: u32 = 3;
const MILLIS: u64 = 1_000;
const TRANSACTION_TIMEOUT: Span = Span::from_millis(20_000);
/// More than any run needs to become quiet; a machine that spins is caught by it.
const ROUNDS_MAX: usize = 20_000;

/// One step of a run. Numbers are taken modulo what they choose from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    Init,
    Begin,
    Append {
        partition: u32,
    },
    Fail,
    Commit,
    Abort,
    Close,
    /// The request arrives and so does its reply.
    Deliver {
        which: usize,
    },
    /// The request arrives and its reply does not.
    LoseReply {
        which: usize,
    },
    /// The request left and never arrives.
    LoseRequest {
        which: usize,
    },
    /// The request did not leave.
    NeverSent {
        which: usize,
    },
    /// The driver gives the request up, and it arrives some time later.
    Delay {
        which: usize,
    },
    /// A delayed one arrives.
    ArriveLate {
        which: usize,
    },
    /// The broker does nothing and says this.
    Refuse {
        which: usize,
        code: i16,
    },
    /// The broker acts, and says this all the same.
    ActAndSay {
        which: usize,
        code: i16,
    },
    /// The markers of the ended transaction land.
    WriteMarkers,
    /// Time passes.
    Pass {
        millis: u64,
    },
    /// Time passes up to where the machine wants to be woken.
    Wake,
    /// Another producer takes the transactional id.
    TakeOver,
    /// The cluster finalizes transactions V2.
    Upgrade,
}

/// Codes that a broker may send without having acted.
pub(crate) const CODES: [i16; 24] =
    [3, 6, 7, 14, 15, 16, 19, 20, 51, 51, 5, 13, 2, 10, 29, 45, 48, 49, 53, 55, 59, 120, -1, 999];

/// Everything of one run.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) machine: Machine,
    pub(crate) broker: Broker,
    pub(crate) ledger: Ledger,
    pub(crate) now: Time,
    pub(crate) in_flight: Vec<(RequestId, Request)>,
    delayed: Vec<Request>,
    wake: Option<Time>,
    next_batch: u64,
    taking_over: bool,
    pub(crate) events: Vec<Event>,
    pub(crate) sent: Vec<Request>,
}

impl World {
    pub(crate) fn new(protocol: Protocol, first_epoch: i16) -> World {
        let settings = Settings {
            delivery_timeout: Span::from_millis(15_000),
            max_block: Span::from_millis(8_000),
            abort_grace: Span::from_millis(2_000),
            close_timeout: Span::from_millis(1_000),
            batches_max: 40,
            ..Settings::default().with_transaction_timeout(TRANSACTION_TIMEOUT)
        };
        World::with(settings, protocol, first_epoch)
    }

    pub(crate) fn with(settings: Settings, protocol: Protocol, first_epoch: i16) -> World {
        let timeout = settings.transaction_timeout.0;
        World {
            machine: Machine::new(settings, 1),
            broker: Broker::new(protocol, timeout, first_epoch),
            ledger: Ledger::default(),
            now: Time(1),
            in_flight: Vec::new(),
            delayed: Vec::new(),
            wake: None,
            next_batch: 0,
            taking_over: false,
            events: Vec::new(),
            sent: Vec::new(),
        }
    }

    pub(crate) fn apply(&mut self, operation: Operation) {
        match operation {
            Operation::Init => self.command(Command::Init),
            Operation::Begin => self.command(Command::Begin),
            Operation::Append { partition } => self.append(partition),
            Operation::Fail => {
                self.command(Command::Fail(Cause::BatchRejected { batch: None, reason: "too large".into() }));
            }
            Operation::Commit => self.command(Command::Commit),
            Operation::Abort => self.command(Command::Abort),
            Operation::Close => self.command(Command::Close),
            Operation::Deliver { which } => self.deliver(which),
            Operation::LoseReply { which } => self.with_request(which, |world, id, request| {
                world.act(&request);
                world.reply(id, Reply::Lost { sent: true });
            }),
            Operation::LoseRequest { which } => {
                self.with_request(which, |world, id, _| world.reply(id, Reply::Lost { sent: true }));
            }
            Operation::NeverSent { which } => {
                self.with_request(which, |world, id, _| world.reply(id, Reply::Lost { sent: false }));
            }
            Operation::Delay { which } => self.with_request(which, |world, id, request| {
                world.delayed.push(request);
                world.reply(id, Reply::Lost { sent: true });
            }),
            Operation::ArriveLate { which } => {
                if !self.delayed.is_empty() {
                    let request = self.delayed.remove(which % self.delayed.len());
                    self.act(&request);
                }
            }
            Operation::Refuse { which, code } => self.with_request(which, |world, id, request| {
                // A broker does not say "not open" of a transaction that it has committed: that would be a lie, not a fault.
                let code = if matches!(request, Request::EndTxn { .. }) && code == 48 { 14 } else { code };
                let reply = world.refusal(&request, code);
                world.reply(id, reply);
            }),
            Operation::ActAndSay { which, code } => self.with_request(which, |world, id, request| {
                world.act(&request);
                // Only codes that leave open whether the broker has acted.
                let code = if matches!(code, 7 | 20 | 999 | 13 | 16) { code } else { -1 };
                let code = if matches!(request, Request::Produce { .. }) && code == 20 { 20 } else { code };
                let reply = world.refusal(&request, code);
                world.reply(id, reply);
            }),
            Operation::WriteMarkers => self.broker.write_markers(),
            Operation::Pass { millis } => self.pass(self.now.after(Span(millis * MILLIS))),
            Operation::Wake => {
                if let Some(wake) = self.wake {
                    self.pass(wake);
                }
            }
            Operation::TakeOver => {
                self.taking_over = self.broker.init(None).is_err();
            }
            Operation::Upgrade => self.broker.upgrade(),
        }
        if self.taking_over && self.broker.is_quiet() {
            self.taking_over = self.broker.init(None).is_err();
        }
    }

    fn with_request(&mut self, which: usize, act: impl FnOnce(&mut World, RequestId, Request)) {
        if !self.in_flight.is_empty() {
            let (id, request) = self.in_flight.remove(which % self.in_flight.len());
            act(self, id, request);
        }
    }

    pub(crate) fn command(&mut self, command: Command) {
        let begins = command == Command::Begin;
        if self.machine.handle_command(self.now, command).is_ok() && begins {
            self.ledger.began();
        }
        self.drain();
    }

    fn append(&mut self, partition: u32) {
        let batch = BatchId(self.next_batch);
        let partition = PartitionIndex(partition % PARTITIONS);
        let command = Command::Append { partition, batch, records: records_of(batch) };
        if self.machine.handle_command(self.now, command).is_ok() {
            self.next_batch += 1;
            self.ledger.appended(partition, batch);
        }
        self.drain();
    }

    pub(crate) fn deliver(&mut self, which: usize) {
        self.with_request(which, |world, id, request| {
            let reply = world.act(&request);
            world.reply(id, reply);
        });
    }

    fn act(&mut self, request: &Request) -> Reply {
        self.broker.handle(self.now.0, request)
    }

    /// A reply that says `code`, of the right kind.
    pub(crate) fn refusal(&self, request: &Request, code: i16) -> Reply {
        let none = oncewire_txn::ProducerIdentity { id: -1, epoch: -1 };
        let code = ErrorCode(code);
        let protocol = self.machine.protocol().unwrap_or(Protocol::Explicit);
        match request {
            Request::FindCoordinator => Reply::Coordinator(code),
            Request::InitProducerId { .. } => Reply::Initialized { code, identity: none, protocol },
            Request::AddPartitions { partitions, .. } => {
                Reply::PartitionsAdded(partitions.iter().map(|partition| (*partition, code)).collect())
            }
            Request::Produce { .. } => {
                Reply::Produced { code, base_offset: -1, log_start_offset: -1, leader_known: code.0 == 6 }
            }
            Request::EndTxn { .. } => Reply::Ended { code, next: None, protocol },
            Request::RefreshMetadata { .. } => Reply::Metadata,
        }
    }

    pub(crate) fn reply(&mut self, id: RequestId, reply: Reply) {
        self.ledger.replied(id, &reply);
        self.machine.handle_reply(self.now, id, reply);
        self.drain();
    }

    fn pass(&mut self, until: Time) {
        self.now = self.now.max(until);
        self.broker.expire(self.now.0);
        self.machine.handle_timeout(self.now);
        self.drain();
        assert!(self.wake.is_none_or(|wake| wake > self.now), "woken for nothing: {:?}", self.machine);
    }

    fn drain(&mut self) {
        for _ in 0..ROUNDS_MAX {
            match self.machine.poll_output() {
                Output::Send(id, request) => {
                    self.ledger.sent(id, &request);
                    self.sent.push(request.clone());
                    self.in_flight.push((id, request));
                }
                Output::Event(event) => {
                    self.ledger.told(&self.broker, &event);
                    self.events.push(event);
                }
                Output::Wait { until } => {
                    self.wake = until;
                    return;
                }
            }
        }
        panic!("the machine never waits");
    }

    /// Answer the oldest request with this code, the broker doing nothing.
    pub(crate) fn refuse(&mut self, code: i16) {
        self.with_request(0, |world, id, request| {
            let reply = world.refusal(&request, code);
            world.reply(id, reply);
        });
    }

    /// Lose the oldest request on its way.
    pub(crate) fn lose(&mut self) {
        self.apply(Operation::LoseRequest { which: 0 });
    }

    /// Bring every request home and let every marker land, waking the machine for its short waits only.
    pub(crate) fn calm(&mut self) {
        for _ in 0..ROUNDS_MAX {
            let soon = self.wake.filter(|wake| wake.since(self.now) <= Span::from_millis(1_000));
            if !self.in_flight.is_empty() {
                self.deliver(0);
            } else if !self.broker.is_quiet() && !self.broker.is_ongoing() {
                self.apply(Operation::WriteMarkers);
            } else if let Some(wake) = soon {
                self.pass(wake);
            } else {
                return;
            }
        }
        panic!("the run does not become calm: {:?}", self.machine);
    }

    /// The requests so far, by name, and forget them. A bump that was answered with CONCURRENT_TRANSACTIONS counts once.
    pub(crate) fn requests(&mut self) -> Vec<&'static str> {
        let names = self.sent.iter().map(|request| match request {
            Request::FindCoordinator => "find",
            Request::InitProducerId { current: None } => "init",
            Request::InitProducerId { current: Some(_) } => "bump",
            Request::AddPartitions { .. } => "add",
            Request::Produce { .. } => "produce",
            Request::EndTxn { goal: oncewire_txn::EndGoal::Commit, .. } => "commit",
            Request::EndTxn { goal: oncewire_txn::EndGoal::Abort, .. } => "abort",
            Request::RefreshMetadata { .. } => "metadata",
        });
        let mut names: Vec<_> = names.collect();
        names.dedup_by(|next, last| next == last && *last == "bump");
        self.sent.clear();
        names
    }

    /// How the transactions ended so far.
    pub(crate) fn outcomes(&self) -> Vec<oncewire_txn::Outcome> {
        let ends = self.events.iter().filter_map(|event| match event {
            Event::Ended(outcome) => Some(outcome.clone()),
            _ => None,
        });
        ends.collect()
    }

    /// Ready, with nothing left to do.
    pub(crate) fn ready(protocol: Protocol) -> World {
        let mut world = World::new(protocol, 0);
        world.apply(Operation::Init);
        world.calm();
        world.requests();
        world
    }

    /// With an open transaction and one batch for each of these partitions.
    pub(crate) fn with_batches(protocol: Protocol, partitions: &[u32]) -> World {
        let mut world = World::ready(protocol);
        world.begin(partitions);
        world
    }

    /// Begin, and append one batch for each of these partitions.
    pub(crate) fn begin(&mut self, partitions: &[u32]) {
        self.apply(Operation::Begin);
        for partition in partitions {
            self.apply(Operation::Append { partition: *partition });
        }
    }

    /// From here on everything works: bring all requests home, end what is open, and compare the books.
    pub(crate) fn finish(mut self) -> World {
        for _ in 0..ROUNDS_MAX {
            if !self.in_flight.is_empty() {
                self.deliver(0);
            } else if !self.delayed.is_empty() {
                self.apply(Operation::ArriveLate { which: 0 });
            } else if !self.broker.is_quiet() && !self.broker.is_ongoing() {
                self.apply(Operation::WriteMarkers);
            } else if matches!(self.machine.state(), StateName::InTransaction | StateName::AbortRequired) {
                self.command(Command::Commit);
            } else if let Some(wake) = self.wake {
                self.pass(wake);
            } else if self.broker.is_ongoing() {
                // Whatever the producer left open, the coordinator ends.
                self.broker.expire(u64::MAX);
            } else {
                self.ledger.audit(&self.broker);
                return self;
            }
        }
        panic!("the run does not become quiet: {:?}", self.machine);
    }
}

/// Read operations from bytes, run them, and check everything. For the fuzzer and its corpus.
pub(crate) fn fuzz_operations(data: &[u8]) {
    const OPERATIONS_MAX: usize = 2_000;
    let Some((first, rest)) = data.split_first() else { return };
    let protocol = if first & 1 == 0 { Protocol::Explicit } else { Protocol::Implicit };
    let first_epoch = if first & 2 == 0 { 0 } else { broker::EPOCH_EXHAUSTED - 2 };
    let mut world = World::new(protocol, first_epoch);
    for pair in rest.chunks_exact(2).take(OPERATIONS_MAX) {
        world.apply(operation(pair[0], pair[1]));
    }
    world.finish();
}

/// One operation from two bytes: what, and with which number.
pub(crate) fn operation(what: u8, number: u8) -> Operation {
    let which = usize::from(number & 0x0f);
    let code = CODES[usize::from(number) % CODES.len()];
    match what % 32 {
        0 => Operation::Init,
        1 | 2 => Operation::Begin,
        3..=7 => Operation::Append { partition: u32::from(number) },
        8 => Operation::Fail,
        9 | 10 => Operation::Commit,
        11 => Operation::Abort,
        12 if number > 250 => Operation::Close,
        13 => Operation::LoseReply { which },
        14 => Operation::LoseRequest { which },
        15 => Operation::NeverSent { which },
        16 => Operation::Delay { which },
        17 => Operation::ArriveLate { which },
        18 => Operation::Refuse { which: 0, code },
        19 => Operation::ActAndSay { which: 0, code },
        20 | 21 => Operation::WriteMarkers,
        22 => Operation::Pass { millis: u64::from(number) },
        23 if number > 240 => Operation::Pass { millis: 16_000 },
        24 if number > 250 => Operation::TakeOver,
        25 if number > 240 => Operation::Upgrade,
        26 | 27 => Operation::Wake,
        _ => Operation::Deliver { which },
    }
}
