//! What a producer's callers and its driver share: the machine, the batches it speaks of, and who waits for which news.
//!
//! Everything is under one short lock that is never held over an await. A caller's command reaches the machine while the
//! caller holds the lock, so its answer is at once and two callers can't overtake each other; all I/O is the driver's.
//! Batches stay here, byte for byte, from `send` until the machine says that they may go.

mod exchange;
#[cfg(test)]
mod tests;

pub(crate) use exchange::{CoordinatorRequest, Order};

use super::counters::{Counters, ProducerMetrics, add, subtract};
use super::error::{Failure, ProducerError};
use super::partitions::Partitions;
use super::stage::StagedBatch;
use super::transactional::{Committed, ProducerState};
use crate::batch::SealedBatch;
use crate::config::ProducerConfig;
use oncewire_txn::{BatchId, Cause, Command, EndGoal, Machine, ProducerIdentity, Refusal, Settings, StateName, Time};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, oneshot};

/// Shared by handle and driver.
pub(crate) struct Shared {
    transactional_id: Arc<str>,
    core: Mutex<Core>,
    /// Rung when the driver has something to look at.
    wake: Notify,
    /// Whether the next transaction's first request waits for the markers of the one before.
    settle_markers: AtomicBool,
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
    /// How the open transaction is being ended, since a caller asked for it.
    ending: Option<EndGoal>,
    closing: bool,
    /// Why the open transaction can only be aborted.
    abort_cause: Option<Failure>,
    /// Set once, never left: what every further call is answered with.
    terminal: Option<ProducerError>,
    waiting_init: Vec<oneshot::Sender<Result<ProducerIdentity, ProducerError>>>,
    waiting_end: Vec<oneshot::Sender<Result<Committed, ProducerError>>>,
    /// The end of a transaction whose callers had all dropped their futures.
    unclaimed: Option<(EndGoal, Result<Committed, ProducerError>)>,
    open: OpenTransaction,
    /// What a broker said beyond the code about the last batch that it refused, and about which partition.
    broker_words: Option<(Arc<str>, u32, String)>,
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

/// The answer to a wish to end a transaction.
pub(crate) enum EndTicket {
    /// Known already.
    Done(Result<Committed, ProducerError>),
    /// Will come.
    Waiting(oneshot::Receiver<Result<Committed, ProducerError>>),
}

/// The answer to a wish to initialize: known, or a receiver of what will come.
pub(crate) type InitTicket = Result<ProducerIdentity, oneshot::Receiver<Result<ProducerIdentity, ProducerError>>>;

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
                ending: None,
                closing: false,
                abort_cause: None,
                terminal: None,
                waiting_init: Vec::new(),
                waiting_end: Vec::new(),
                unclaimed: None,
                open: OpenTransaction { begun: now, records: 0, bytes: 0 },
                broker_words: None,
            }),
            wake: Notify::new(),
            settle_markers: AtomicBool::new(true),
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
        if core.machine.needs_init() {
            self.command(&mut core, now, Command::Init)?;
        } else if core.machine.state() != StateName::Initializing
            && let Some(identity) = core.machine.identity()
        {
            return Ok(Ok(identity));
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
        self.command(&mut core, now, Command::Begin)?;
        core.abort_cause = None;
        core.unclaimed = None;
        core.broker_words = None;
        core.open = OpenTransaction { begun: Instant::now(), records: 0, bytes: 0 };
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
        match core.ending {
            Some(pending) if pending == goal => {}
            Some(_) => {
                return Err(
                    self.misuse("the transaction is being ended the other way; wait for that call's result first")
                );
            }
            None if core.is_open() => {
                core.check_usable()?;
                let command = if goal == EndGoal::Commit { Command::Commit } else { Command::Abort };
                self.command(&mut core, now, command)?;
                core.ending = Some(goal);
            }
            None => {
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
        core.closing = true;
        // Refused only by a machine that is closed or closing.
        let _ = core.machine.handle_command(now, Command::Close);
        drop(core);
        self.wake.notify_one();
    }

    /// The driver was stopped from outside: nobody will bring news any more.
    pub(crate) fn stopped(&self) {
        let mut core = self.lock();
        core.closing = true;
        let error = ProducerError::Closed { transactional_id: self.transactional_id.clone() };
        core.finish(error, &self.counters);
    }

    pub(crate) fn fail_open_transaction(&self, reason: &str) {
        let now = self.now();
        let mut core = self.lock();
        if core.is_open() || core.ending == Some(EndGoal::Commit) {
            let cause = Cause::BatchRejected { batch: None, reason: reason.to_owned() };
            // Refused only when a commit has left already, with everything that it was to have.
            let _ = core.machine.handle_command(now, Command::Fail(cause));
        }
        drop(core);
        self.wake.notify_one();
    }

    pub(crate) fn state(&self) -> ProducerState {
        let core = self.lock();
        if core.closing {
            return ProducerState::Closed;
        }
        match core.machine.state() {
            StateName::Uninitialized | StateName::InitRequired => ProducerState::Uninitialized,
            StateName::Initializing => ProducerState::Initializing,
            StateName::Ready => ProducerState::Ready,
            StateName::InTransaction => ProducerState::InTransaction,
            StateName::AbortRequired => ProducerState::AbortRequired,
            StateName::Ending => ProducerState::Ending,
            StateName::Fenced => ProducerState::Fenced,
            StateName::Fatal => ProducerState::Failed,
            StateName::Closed => ProducerState::Closed,
        }
    }

    pub(crate) fn identity(&self) -> Option<ProducerIdentity> {
        self.lock().machine.identity()
    }

    pub(crate) fn settle_markers(&self) -> bool {
        self.settle_markers.load(Ordering::Relaxed)
    }

    pub(crate) fn stop_settling_markers(&self) {
        self.settle_markers.store(false, Ordering::Relaxed);
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

    /// Whether a batch is still wanted: it may have been dropped while it waited for its turn on the wire.
    pub(crate) fn holds(&self, batch: BatchId) -> bool {
        self.lock().batches.contains_key(&batch)
    }

    /// Keeps what a broker said about a refused batch, for the error that may come of it.
    pub(crate) fn broker_said(&self, topic: &Arc<str>, partition: u32, words: String) {
        self.lock().broker_words = Some((topic.clone(), partition, words));
    }

    fn append(&self, batches: Vec<StagedBatch>, mut room: OwnedSemaphorePermit) -> Result<(), ProducerError> {
        let now = self.now();
        let mut core = self.lock();
        core.check_usable()?;
        for staged in batches {
            let (records, bytes) = (staged.records(), staged.size_bytes());
            let partition = core.partitions.index(&staged.topic, staged.partition);
            let batch = BatchId(core.next_batch);
            core.next_batch += 1;
            let permits = bytes.min(self.room_bytes);
            // The permit was taken for all of them together, or for this one.
            let Some(share) = room.split(permits) else { return Err(self.misuse("a batch grew while it waited")) };
            core.batches.insert(batch, HeldBatch { sealed: staged.batch, records, bytes, _room: share });
            if let Err(error) = self.command(&mut core, now, Command::Append { partition, batch, records }) {
                core.batches.remove(&batch);
                return Err(error);
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
        match (core.is_open(), &core.abort_cause) {
            (true, None) => Ok(()),
            (true, Some(cause)) => Err(self.abort_required(cause.clone())),
            (false, _) => Err(self.misuse("no transaction is open; call begin before send")),
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

    /// Gives the machine a command; a refusal becomes the caller's error.
    fn command(&self, core: &mut Core, now: Time, command: Command) -> Result<(), ProducerError> {
        let Err(refusal) = core.machine.handle_command(now, command) else { return Ok(()) };
        let transactional_id = self.transactional_id.clone();
        Err(match refusal {
            Refusal::AbortRequired(cause) => {
                ProducerError::AbortRequired { transactional_id, cause: core.failure(&cause) }
            }
            Refusal::Fenced(cause) => ProducerError::Fenced { transactional_id, cause: core.failure(&cause) },
            Refusal::Fatal(cause) => ProducerError::Fatal { transactional_id, cause: core.failure(&cause) },
            Refusal::Closed => ProducerError::Closed { transactional_id },
            other => ProducerError::Misuse { transactional_id, reason: other.to_string() },
        })
    }

    fn misuse(&self, reason: impl Into<String>) -> ProducerError {
        ProducerError::Misuse { transactional_id: self.transactional_id.clone(), reason: reason.into() }
    }

    fn not_committed(&self, core: &Core, cause: Failure) -> ProducerError {
        let recoverable = core.machine.state() == StateName::Ready;
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

    /// A transaction takes batches, or waits for its abort.
    fn is_open(&self) -> bool {
        matches!(self.machine.state(), StateName::InTransaction | StateName::AbortRequired)
    }

    fn failure(&self, cause: &Cause) -> Failure {
        let index = match cause {
            Cause::Code { partition, .. } | Cause::DeadlinePassed { partition, .. } => *partition,
            _ => None,
        };
        let mut failure = Failure::from_cause(cause, index.and_then(|index| self.partitions.name(index).cloned()));
        if let Some((topic, partition, words)) = &self.broker_words
            && failure.code.is_some()
            && failure.topic.as_ref() == Some(topic)
            && failure.partition == Some(*partition)
        {
            failure.reason.clone_from(words);
        }
        failure
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
