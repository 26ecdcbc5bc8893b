//! The transactional Kafka producer as a sans-I/O state machine.
//!
//! It decides when a producer id is asked for, which sequence a batch gets, what is sent again and when, how a transaction
//! ends and what may follow. It owns no bytes, no names and no sockets: a batch is a [`BatchId`], a partition a
//! [`PartitionIndex`], and the driver knows what they stand for. No dependencies.
//!
//! # Contract
//!
//! - Hand it one input ([`Machine::handle_command`], [`Machine::handle_reply`], [`Machine::handle_timeout`]), then drain
//!   [`Machine::poll_output`] until it says [`Output::Wait`], and call `handle_timeout` when that time has come.
//! - Time is passed in and never goes back. Equal inputs, times and seeds give equal outputs.
//! - Each [`Output::Send`] gets exactly one reply: the broker's, or [`Reply::Lost`] when there will be none. The driver
//!   bounds how long that takes, and closes a connection whose reply it gave up.
//! - The Produce requests of one partition go out in the order in which they were polled, on one connection.
//! - Each batch that was appended is reported once, [`Event::Acked`] or [`Event::Dropped`]; until then its bytes are kept.
//! - Each `Commit` and `Abort` that was accepted is answered by one [`Event::Ended`].
//!
//! # States
//!
//! ```text
//!                    Init                   reply             Begin                  Commit, Abort, Close
//! Uninitialized ───────────► Initializing ────────► Ready ───────────► InTransaction ───────────┐
//!      ▲                      │    ▲                ▲  │                    │ a record failed,   │
//!      └── failed, first one ─┤    │ Init           │  │ bump failed        │ too old, refused   │
//!                             │    │                │  │                    ▼                    ▼
//!                             │  ┌─┴────────────┐   │  │             AbortRequired ─────────► Ending
//!                             └─►│ InitRequired │◄──┼──┘                          Commit, Abort, │
//!                       failed   └──────────────┘   │  ended for good                   Close    │
//!                                       ▲           └────────────────────────────────────────────┤
//!                                       └────────────────────────────────────────────────────────┤
//!                                          outcome unknown, or the coordinator has let us go     │
//!                                                                             after Close: Closed ◄┘
//!
//! any of these ──► Fenced   another owner has the transactional id
//! any of these ──► Fatal    of no use any more
//! all but Ending ──► Closed   by Close (a transaction that is open is aborted first, so it goes through Ending)
//! ```
//!
//! Rules that the picture does not show:
//!
//! - **A commit has three outcomes.** From the moment that EndTxn(commit) may have arrived only the same EndTxn is sent.
//!   When `max_block` passes without a definite answer the outcome is [`Outcome::Unknown`], and `Init` must come next: it
//!   first sends the same EndTxn again until it is answered, then renews the identity; then the caller reads what is
//!   committed.
//! - **`Commit` on a transaction that can only be aborted aborts it**, and the outcome is [`Outcome::NotCommitted`] with
//!   the first cause. The same holds when the cause comes while the commit still flushes: it does not wait any longer.
//! - **An epoch is bumped by the broker, between transactions.** In the explicit protocol that is done by the machine itself
//!   after any answer was lost or any sequence was spent on a batch that was given up, in `Ready`, before anything else is
//!   sent; `Begin` and `Append` are accepted meanwhile. In the implicit protocol EndTxn brings the next epoch.
//! - **Nothing sent, no EndTxn.** An empty commit is [`Outcome::Committed`] and an empty abort [`Outcome::Aborted`] at once.
//! - **A refused epoch** (PRODUCER_FENCED, INVALID_PRODUCER_EPOCH) from the coordinator is fencing when the transaction is
//!   younger than its time-out, because then it cannot have timed out: the machine stops and sends nothing that could hurt
//!   the new owner. Otherwise the caller's `Init` decides: the same refusal there is fencing too.
//!
//! # A worked loop
//!
//! ```
//! use oncewire_txn::*;
//! use std::collections::VecDeque;
//!
//! /// Stands for the sockets: here every request succeeds.
//! fn answer(request: &Request) -> Reply {
//!     let (code, protocol) = (ErrorCode::NONE, Protocol::Implicit);
//!     match request {
//!         Request::FindCoordinator => Reply::Coordinator(code),
//!         Request::InitProducerId { .. } => {
//!             Reply::Initialized { code, identity: ProducerIdentity { id: 7, epoch: 0 }, protocol }
//!         }
//!         Request::AddPartitions { partitions, .. } => {
//!             Reply::PartitionsAdded(partitions.iter().map(|partition| (*partition, code)).collect())
//!         }
//!         Request::Produce { .. } => {
//!             Reply::Produced { code, base_offset: 0, log_start_offset: 0, leader_known: false }
//!         }
//!         Request::EndTxn { identity, .. } => {
//!             let next = Some(ProducerIdentity { epoch: identity.epoch + 1, ..*identity });
//!             Reply::Ended { code, next, protocol }
//!         }
//!         Request::RefreshMetadata { .. } => Reply::Metadata,
//!     }
//! }
//!
//! let mut machine = Machine::new(Settings::default(), 42);
//! let append = Command::Append { partition: PartitionIndex(0), batch: BatchId(1), records: 10 };
//! let mut wishes = VecDeque::from([Command::Init, Command::Begin, append, Command::Commit]);
//! let mut events = Vec::new();
//! let mut now = Time(0);
//! while let Some(wish) = wishes.pop_front() {
//!     machine.handle_command(now, wish)?;
//!     loop {
//!         match machine.poll_output() {
//!             Output::Send(id, request) => {
//!                 now = now.after(Span(500)); // the round trip
//!                 machine.handle_reply(now, id, answer(&request));
//!             }
//!             Output::Event(event) => events.push(event),
//!             Output::Wait { until: _ } => break, // a real driver sleeps here, then calls handle_timeout
//!         }
//!     }
//! }
//! assert_eq!(events.last(), Some(&Event::Ended(Outcome::Committed)));
//! # Ok::<(), Refusal>(())
//! ```
//!
//! # Known limits
//!
//! - In the explicit protocol a lost AddPartitionsToTxn that arrives after its transaction was ended, and before the bump
//!   that follows, opens a transaction of its own; the bump then finds it, makes the coordinator abort it, and is refused
//!   itself. The machine then reports [`Event::Fenced`] though nobody else is there. Nothing is lost.
//! - In the explicit protocol a coordinator answers a producer that timed out and one that was fenced alike, even to
//!   InitProducerId (only transactions V2 remember the epoch before). The local limit on a transaction's age, below the
//!   coordinator's, keeps this case rare.

mod backoff;
mod command;
mod ids;
mod machine;
mod outcome;
mod output;
mod partitions;
mod refusal;
mod reply;
mod sequence;
mod settings;
mod state;
mod verdict;

pub use command::Command;
pub use ids::{BatchId, ErrorCode, PartitionIndex, ProducerIdentity, RequestId, Span, Time};
pub use machine::Machine;
pub use outcome::{Cause, EndGoal, Outcome, RequestKind};
pub use output::{Event, Output, Protocol, Request};
pub use refusal::Refusal;
pub use reply::Reply;
pub use settings::Settings;
pub use state::StateName;
pub use verdict::{Row, TABLE, Verdict, verdict};
