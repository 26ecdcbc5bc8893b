//! What a producer's callers and its driver share: the machine, the batches it speaks of, and who waits for which news.
//!
//! Everything is under one short lock that is never held over an await. A caller's command reaches the machine while the
//! caller holds the lock, so its answer is at once and two callers can't overtake each other; all I/O is the driver's.
//! Batches stay here, byte for byte, from `send` until the machine says that they may go.

use super::counters::{Counters, ProducerMetrics, add, subtract};
use super::error::{Failure, ProducerError};
use super::machine_stub::{Machine, Settings};
use super::partitions::Partitions;
use super::stage::StagedBatch;
use super::transactional::{Committed, ProducerState};
use crate::batch::{ProducerStamp, SealedBatch};
use crate::config::ProducerConfig;
use bytes::Bytes;
use oncewire_txn::{
    BatchId, Cause, Command, EndGoal, Event, Outcome, Output, PartitionIndex, ProducerIdentity, Protocol, Reply,
    Request, RequestId, Time,
};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, oneshot};

/// Shared by handle and driver.
pub(crate) struct Shared {
    transactional_id: Arc<str>,
    core: Mutex<Core>,
    /// Rung when the driver has something to look at.
    wake: Notify,
    /// One permit for each byte of `buffer.memory`.
    room: Arc<Semaphore>,
    room_bytes: usize,
    max_block: Duration,
    origin: Instant,
    pub(crate) counters: Counters,
}

/// What the lock guards.
struct Core {
    machine: Machine,
    partitions: Partitions,
    batches: HashMap<BatchId, HeldBatch>,
    next_batch: u64,
    phase: Phase,
    identity: Option<ProducerIdentity>,
    /// Why the open transaction can only be aborted.
    abort_cause: Option<Failure>,
    /// Set once, never left: what every further call is answered with.
    terminal: Option<ProducerError>,
    waiting_init: Vec<oneshot::Sender<Result<ProducerIdentity, ProducerError>>>,
    waiting_end: Vec<oneshot::Sender<Result<Committed, ProducerError>>>,
    /// The end of a transaction whose callers had all dropped their futures.
    unclaimed: Option<(EndGoal, Result<Committed, ProducerError>)>,
    open: OpenTransaction,
}

struct HeldBatch {
    sealed: SealedBatch,
    records: u32,
    bytes: usize,
    /// Gives its bytes of `buffer.memory` back when dropped.
    _room: OwnedSemaphorePermit,
}

/// What a commit will report.
struct OpenTransaction {
    begun: Instant,
    records: u64,
    bytes: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Fresh,
    Initializing,
    Ready,
    Open,
    Ending(EndGoal),
    Closing,
    Closed,
}

/// The answer to a wish to end a transaction.
pub(crate) enum EndTicket {
    /// Known already.
    Done(Result<Committed, ProducerError>),
    /// Will come.
    Waiting(oneshot::Receiver<Result<Committed, ProducerError>>),
}

/// The answer to a wish to initialize: known, or a receiver of what will come.
pub(crate) type InitTicket = Result<ProducerIdentity, oneshot::Receiver<Result<ProducerIdentity, ProducerError>>>;

/// One thing for the driver to do.
pub(crate) enum Order {
    /// A request to the coordinator, or about it.
    Coordinator(RequestId, CoordinatorRequest),
    /// One batch to its leader.
    Produce(ProduceOrder),
    /// New metadata of a topic.
    Refresh(RequestId, Arc<str>),
}

/// A request about the transaction, with names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CoordinatorRequest {
    Find,
    Init { current: Option<ProducerIdentity> },
    AddPartitions { identity: ProducerIdentity, partitions: Vec<(PartitionIndex, Arc<str>, u32)> },
    End { identity: ProducerIdentity, goal: EndGoal, protocol: Protocol },
}

/// A stamped batch and where it goes.
#[derive(Debug, Clone)]
pub(crate) struct ProduceOrder {
    pub(crate) request: RequestId,
    pub(crate) topic: Arc<str>,
    pub(crate) partition: u32,
    pub(crate) protocol: Protocol,
    pub(crate) records: Bytes,
}

/// What one drain of the machine asks the driver for.
pub(crate) struct Drained {
    pub(crate) orders: Vec<Order>,
    /// When to come back although nothing has happened.
    pub(crate) until: Option<Instant>,
    /// True when the driver may end.
    pub(crate) closed: bool,
}

impl Shared {
    pub(crate) fn new(config: &ProducerConfig, settings: Settings) -> Self {
        let room_bytes = config.buffer_memory_bytes.clamp(1, Semaphore::MAX_PERMITS.min(u32::MAX as usize));
        let now = Instant::now();
        Self {
            transactional_id: config.transactional_id.as_str().into(),
            core: Mutex::new(Core {
                machine: Machine::new(settings, super::seed()),
                partitions: Partitions::default(),
                batches: HashMap::new(),
                next_batch: 0,
                phase: Phase::Fresh,
                identity: None,
                abort_cause: None,
                terminal: None,
                waiting_init: Vec::new(),
                waiting_end: Vec::new(),
                unclaimed: None,
                open: OpenTransaction { begun: now, records: 0, bytes: 0 },
            }),
            wake: Notify::new(),
            room: Arc::new(Semaphore::new(room_bytes)),
            room_bytes,
            max_block: config.max_block,
            origin: now,
            counters: Counters::default(),
        }
    }

    pub(crate) fn transactional_id(&self) -> &Arc<str> {
        &self.transactional_id
    }

    /// Resolves when a caller has given the machine something to do.
    pub(crate) async fn woken(&self) {
        self.wake.notified().await;
    }

    pub(crate) fn init(&self) -> Result<InitTicket, ProducerError> {
        let now = self.now();
        let mut core = self.lock();
        core.check_usable()?;
        match (core.phase, core.identity) {
            (Phase::Fresh, _) => {
                core.command(now, Command::Init).map_err(|reason| self.misuse(reason))?;
                core.phase = Phase::Initializing;
            }
            (Phase::Initializing, _) => {}
            (_, Some(identity)) => return Ok(Ok(identity)),
            (_, None) => return Err(self.misuse("the producer has no identity")),
        }
        let (sender, receiver) = oneshot::channel();
        core.waiting_init.push(sender);
        drop(core);
        self.wake.notify_one();
        Ok(Err(receiver))
    }

    pub(crate) fn begin(&self) -> Result<(), ProducerError> {
        let now = self.now();
        let mut core = self.lock();
        core.check_usable()?;
        match core.phase {
            Phase::Ready => {}
            Phase::Fresh | Phase::Initializing => return Err(self.misuse("call init and wait for it before begin")),
            Phase::Open => return Err(self.misuse("a transaction is open; commit or abort it before begin")),
            _ => return Err(self.misuse("a transaction is being ended; wait for its commit or abort before begin")),
        }
        core.command(now, Command::Begin).map_err(|reason| self.misuse(reason))?;
        core.phase = Phase::Open;
        core.abort_cause = None;
        core.unclaimed = None;
        core.open = OpenTransaction { begun: Instant::now(), records: 0, bytes: 0 };
        drop(core);
        // The machine may have set itself a timer.
        self.wake.notify_one();
        Ok(())
    }

    pub(crate) async fn send(&self, batches: Vec<StagedBatch>) -> Result<(), ProducerError> {
        self.check_open()?;
        let mut guard = HoleGuard { shared: self, armed: true };
        let all: usize = batches.iter().map(StagedBatch::size_bytes).sum();
        if let Some(room) = self.reserve_now(all) {
            self.append(batches, room)?;
        } else {
            for batch in batches {
                let room = self.reserve(batch.size_bytes()).await?;
                self.append(vec![batch], room)?;
            }
        }
        guard.armed = false;
        Ok(())
    }

    pub(crate) fn end(&self, goal: EndGoal) -> Result<EndTicket, ProducerError> {
        let now = self.now();
        let mut core = self.lock();
        match core.phase {
            Phase::Ending(pending) if pending == goal => {}
            Phase::Ending(_) => {
                return Err(
                    self.misuse("the transaction is being ended the other way; wait for that call's result first")
                );
            }
            Phase::Open => {
                core.check_usable()?;
                if goal == EndGoal::Commit
                    && let Some(cause) = &core.abort_cause
                {
                    return Err(self.not_committed(cause.clone(), true));
                }
                let command = if goal == EndGoal::Commit { Command::Commit } else { Command::Abort };
                core.command(now, command).map_err(|reason| self.misuse(reason))?;
                core.phase = Phase::Ending(goal);
            }
            _ => {
                if let Some((_, result)) = core.unclaimed.take_if(|(of, _)| *of == goal) {
                    return Ok(EndTicket::Done(result));
                }
                core.check_usable()?;
                return match goal {
                    EndGoal::Abort => Ok(EndTicket::Done(Ok(Committed::default()))),
                    EndGoal::Commit => Err(self.misuse("no transaction is open; call begin before commit")),
                };
            }
        }
        let (sender, receiver) = oneshot::channel();
        core.waiting_end.push(sender);
        drop(core);
        self.wake.notify_one();
        Ok(EndTicket::Waiting(receiver))
    }

    /// Asks the machine to finish. Any number of times.
    pub(crate) fn close(&self) {
        let now = self.now();
        let mut core = self.lock();
        if !matches!(core.phase, Phase::Closing | Phase::Closed) {
            // A machine that refuses to close is fenced or failed, and has nothing left to do.
            if core.command(now, Command::Close).is_err() {
                core.phase = Phase::Closed;
            } else {
                core.phase = Phase::Closing;
            }
        }
        drop(core);
        self.wake.notify_one();
    }

    /// The driver was stopped from outside: nobody will bring news any more.
    pub(crate) fn stopped(&self) {
        let mut core = self.lock();
        core.phase = Phase::Closed;
        let error = ProducerError::Closed { transactional_id: self.transactional_id.clone() };
        core.finish(error, &self.counters);
    }

    pub(crate) fn fail_open_transaction(&self, reason: &str) {
        let now = self.now();
        let mut core = self.lock();
        if core.phase == Phase::Open {
            let cause = Cause::BatchRejected { batch: None, reason: reason.to_owned() };
            core.abort_cause.get_or_insert_with(|| Failure::local(reason));
            // Refused only when the transaction can't be committed anyway.
            let _ = core.command(now, Command::Fail(cause));
        }
        drop(core);
        self.wake.notify_one();
    }

    pub(crate) fn state(&self) -> ProducerState {
        let core = self.lock();
        match (&core.terminal, core.phase) {
            (_, Phase::Closing | Phase::Closed) => ProducerState::Closed,
            (Some(ProducerError::Fenced { .. }), _) => ProducerState::Fenced,
            (Some(_), _) => ProducerState::Failed,
            (None, Phase::Fresh) => ProducerState::Uninitialized,
            (None, Phase::Initializing) => ProducerState::Initializing,
            (None, Phase::Ready) => ProducerState::Ready,
            (None, Phase::Open) if core.abort_cause.is_some() => ProducerState::AbortRequired,
            (None, Phase::Open) => ProducerState::InTransaction,
            (None, Phase::Ending(_)) => ProducerState::Ending,
        }
    }

    pub(crate) fn identity(&self) -> Option<ProducerIdentity> {
        self.lock().identity
    }

    pub(crate) fn metrics(&self) -> ProducerMetrics {
        self.counters.snapshot()
    }

    pub(crate) fn driver_gone(&self) -> ProducerError {
        self.lock().terminal.clone().unwrap_or_else(|| ProducerError::Fatal {
            transactional_id: self.transactional_id.clone(),
            cause: Failure::local("the producer's driver ended while the call waited"),
        })
    }

    /// Gives the machine what came back, and takes what it wants done.
    pub(crate) fn step(&self, replies: impl IntoIterator<Item = (RequestId, Reply)>) -> Drained {
        let now = self.now();
        let mut core = self.lock();
        for (request, reply) in replies {
            core.machine.handle_reply(now, request, reply);
        }
        core.machine.handle_timeout(now);
        let mut drained = Drained { orders: Vec::new(), until: None, closed: false };
        loop {
            match core.machine.poll_output(now) {
                Output::Send(request, what) => {
                    if let Some(order) = self.order(&mut core, request, what) {
                        drained.orders.push(order);
                    }
                }
                Output::Event(event) => self.event(&mut core, event),
                Output::Wait { until } => {
                    drained.until = until.map(|time| self.origin + Duration::from_micros(time.0));
                    break;
                }
            }
        }
        drained.closed = core.phase == Phase::Closed;
        drained
    }

    /// Adds names and bytes to what the machine wants sent.
    fn order(&self, core: &mut Core, request: RequestId, what: Request) -> Option<Order> {
        let order = match what {
            Request::FindCoordinator => Order::Coordinator(request, CoordinatorRequest::Find),
            Request::InitProducerId { current } => Order::Coordinator(request, CoordinatorRequest::Init { current }),
            Request::AddPartitions { identity, partitions } => {
                let named = partitions
                    .into_iter()
                    .filter_map(|index| core.partitions.name(index).map(|(topic, of)| (index, topic.clone(), *of)))
                    .collect();
                Order::Coordinator(request, CoordinatorRequest::AddPartitions { identity, partitions: named })
            }
            Request::EndTxn { identity, goal, protocol } => {
                Order::Coordinator(request, CoordinatorRequest::End { identity, goal, protocol })
            }
            Request::RefreshMetadata { partition } => {
                let (topic, _) = core.partitions.name(partition)?;
                Order::Refresh(request, topic.clone())
            }
            Request::Produce { identity, partition, batch, base_sequence, retry, protocol } => {
                if retry {
                    add(&self.counters.retries, 1);
                }
                let (topic, number) = core.partitions.name(partition)?.clone();
                let held = core.batches.get_mut(&batch)?;
                let records = held.sealed.stamp(ProducerStamp {
                    producer_id: identity.id,
                    producer_epoch: identity.epoch,
                    base_sequence,
                    transactional: true,
                });
                Order::Produce(ProduceOrder { request, topic, partition: number, protocol, records })
            }
        };
        Some(order)
    }

    /// Turns the machine's news into answers for those who wait.
    fn event(&self, core: &mut Core, event: Event) {
        match event {
            Event::Initialized(identity) => {
                core.identity = Some(identity);
                if core.phase == Phase::Initializing {
                    core.phase = Phase::Ready;
                }
                core.answer_init(&Ok(identity));
            }
            Event::InitFailed(cause) => {
                if core.phase == Phase::Initializing {
                    core.phase = Phase::Fresh;
                }
                let cause = core.failure(&cause);
                core.answer_init(&Err(ProducerError::InitFailed {
                    transactional_id: self.transactional_id.clone(),
                    cause,
                }));
            }
            Event::Acked { batch, .. } => {
                if let Some(held) = core.batches.remove(&batch) {
                    add(&self.counters.records, u64::from(held.records));
                    add(&self.counters.bytes, held.bytes as u64);
                    subtract(&self.counters.buffered, held.bytes as u64);
                }
            }
            Event::Dropped { batch } => {
                if let Some(held) = core.batches.remove(&batch) {
                    subtract(&self.counters.buffered, held.bytes as u64);
                }
            }
            Event::AbortRequired(cause) => {
                let failure = core.failure(&cause);
                tracing::warn!(transactional_id = %self.transactional_id, cause = %failure, "the transaction can only be aborted");
                core.abort_cause.get_or_insert(failure);
            }
            Event::Ended(outcome) => self.ended(core, outcome),
            Event::Fenced(cause) => {
                let cause = core.failure(&cause);
                let error = ProducerError::Fenced { transactional_id: self.transactional_id.clone(), cause };
                core.finish(error, &self.counters);
            }
            Event::Fatal(cause) => {
                let cause = core.failure(&cause);
                let error = ProducerError::Fatal { transactional_id: self.transactional_id.clone(), cause };
                core.finish(error, &self.counters);
            }
            Event::Closed => {
                core.phase = Phase::Closed;
                let error = ProducerError::Closed { transactional_id: self.transactional_id.clone() };
                core.finish(error, &self.counters);
            }
        }
    }

    fn ended(&self, core: &mut Core, outcome: Outcome) {
        let goal = match core.phase {
            Phase::Ending(goal) => goal,
            _ => EndGoal::Abort,
        };
        let result = match outcome {
            Outcome::Committed => {
                if core.open.records > 0 {
                    add(&self.counters.committed, 1);
                }
                Ok(Committed {
                    records: core.open.records,
                    bytes: core.open.bytes,
                    duration: core.open.begun.elapsed(),
                })
            }
            Outcome::Aborted => {
                add(&self.counters.aborted, 1);
                match (goal, core.abort_cause.take()) {
                    (EndGoal::Abort, _) => Ok(Committed::default()),
                    (EndGoal::Commit, cause) => {
                        let cause = cause.unwrap_or_else(|| Failure::local("the transaction was aborted"));
                        Err(self.not_committed(cause, true))
                    }
                }
            }
            Outcome::NotCommitted(cause) => {
                add(&self.counters.aborted, 1);
                let cause = core.failure(&cause);
                Err(self.not_committed(cause, true))
            }
            Outcome::Unknown(cause) => {
                add(&self.counters.unknown, 1);
                let cause = core.failure(&cause);
                Err(ProducerError::Unknown { transactional_id: self.transactional_id.clone(), cause })
            }
        };
        if matches!(core.phase, Phase::Ending(_) | Phase::Open) {
            core.phase = Phase::Ready;
        }
        core.abort_cause = None;
        core.answer_end(goal, result);
    }

    fn append(&self, batches: Vec<StagedBatch>, mut room: OwnedSemaphorePermit) -> Result<(), ProducerError> {
        let now = self.now();
        let mut core = self.lock();
        core.check_usable()?;
        if let Some(cause) = &core.abort_cause {
            return Err(self.abort_required(cause.clone()));
        }
        if core.phase != Phase::Open {
            return Err(self.misuse("the transaction was ended while its batches were being sent"));
        }
        for staged in batches {
            let (records, bytes) = (staged.records(), staged.size_bytes());
            let partition = core.partitions.index(&staged.topic, staged.partition);
            let batch = BatchId(core.next_batch);
            core.next_batch += 1;
            let permits = bytes.min(self.room_bytes);
            // The permit was taken for all of them together, or for this one.
            let Some(share) = room.split(permits) else { return Err(self.misuse("a batch grew while it waited")) };
            core.batches.insert(batch, HeldBatch { sealed: staged.batch, records, bytes, _room: share });
            if let Err(reason) = core.command(now, Command::Append { partition, batch, records }) {
                core.batches.remove(&batch);
                return Err(self.misuse(reason));
            }
            add(&self.counters.buffered, bytes as u64);
            core.open.records += u64::from(records);
            core.open.bytes += bytes as u64;
        }
        drop(core);
        self.wake.notify_one();
        Ok(())
    }

    fn check_open(&self) -> Result<(), ProducerError> {
        let core = self.lock();
        core.check_usable()?;
        match (core.phase, &core.abort_cause) {
            (Phase::Open, None) => Ok(()),
            (Phase::Open, Some(cause)) => Err(self.abort_required(cause.clone())),
            _ => Err(self.misuse("no transaction is open; call begin before send")),
        }
    }

    fn reserve_now(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        let permits = u32::try_from(bytes).ok().filter(|_| bytes <= self.room_bytes)?;
        self.room.clone().try_acquire_many_owned(permits).ok()
    }

    async fn reserve(&self, bytes: usize) -> Result<OwnedSemaphorePermit, ProducerError> {
        // A batch larger than the whole buffer takes all of it, and goes alone.
        let permits = u32::try_from(bytes.min(self.room_bytes)).unwrap_or(u32::MAX);
        let waiting = self.room.clone().acquire_many_owned(permits);
        match tokio::time::timeout(self.max_block, waiting).await {
            Ok(Ok(room)) => Ok(room),
            // The semaphore is closed when the producer ends.
            Ok(Err(_)) => Err(self.driver_gone()),
            Err(_) => Err(ProducerError::BufferFull {
                wanted_bytes: bytes,
                limit_bytes: self.room_bytes,
                waited: self.max_block,
            }),
        }
    }

    fn now(&self) -> Time {
        Time(u64::try_from(self.origin.elapsed().as_micros()).unwrap_or(u64::MAX))
    }

    fn lock(&self) -> MutexGuard<'_, Core> {
        // A panic under the lock is our bug; the machine's state is still what it last decided.
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn misuse(&self, reason: impl Into<String>) -> ProducerError {
        ProducerError::Misuse { transactional_id: self.transactional_id.clone(), reason: reason.into() }
    }

    fn not_committed(&self, cause: Failure, recoverable: bool) -> ProducerError {
        ProducerError::NotCommitted { transactional_id: self.transactional_id.clone(), cause, recoverable }
    }

    fn abort_required(&self, cause: Failure) -> ProducerError {
        ProducerError::AbortRequired { transactional_id: self.transactional_id.clone(), cause }
    }
}

impl Core {
    fn check_usable(&self) -> Result<(), ProducerError> {
        match &self.terminal {
            Some(error) => Err(error.clone()),
            None => Ok(()),
        }
    }

    fn command(&mut self, now: Time, command: Command) -> Result<(), String> {
        self.machine.handle_command(now, command).map_err(|refused| refused.to_string())
    }

    fn failure(&self, cause: &Cause) -> Failure {
        let index = match cause {
            Cause::Code { partition, .. } | Cause::DeadlinePassed { partition, .. } => *partition,
            _ => None,
        };
        Failure::from_cause(cause, index.and_then(|index| self.partitions.name(index).cloned()))
    }

    fn answer_init(&mut self, result: &Result<ProducerIdentity, ProducerError>) {
        for waiting in self.waiting_init.drain(..) {
            // The caller may have dropped its future; a later `init` asks again.
            let _ = waiting.send(result.clone());
        }
    }

    fn answer_end(&mut self, goal: EndGoal, result: Result<Committed, ProducerError>) {
        let mut taken = false;
        for waiting in self.waiting_end.drain(..) {
            taken |= waiting.send(result.clone()).is_ok();
        }
        self.unclaimed = if taken { None } else { Some((goal, result)) };
    }

    /// Nothing goes on after this: tell everybody, free the memory.
    fn finish(&mut self, error: ProducerError, counters: &Counters) {
        let error = self.terminal.get_or_insert(error).clone();
        self.answer_init(&Err(error.clone()));
        for waiting in self.waiting_end.drain(..) {
            // As above.
            let _ = waiting.send(Err(error.clone()));
        }
        for (_, held) in self.batches.drain() {
            subtract(&counters.buffered, held.bytes as u64);
        }
    }
}

/// Makes the transaction abort-only when `send` is dropped or fails half way.
struct HoleGuard<'a> {
    shared: &'a Shared,
    armed: bool,
}

impl Drop for HoleGuard<'_> {
    fn drop(&mut self) {
        if self.armed {
            self.shared.fail_open_transaction("not all batches that were given to send became part of the transaction");
        }
    }
}
