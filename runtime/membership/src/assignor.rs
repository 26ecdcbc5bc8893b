//! The leader's duty: who runs what.
//!
//! [`Assignor`] holds what must be remembered from round to round (KIP-415) and decides between the two ways of assigning. What is the same
//! for both is here: an assignment is calculated from the leader's config snapshot only if no member has read further than it.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::eager;
use crate::incremental::Incremental;
use crate::load::{Load, TaskId};
use crate::protocol::ConnectProtocol;
use crate::wire::{Assignment, CONFIG_MISMATCH, MemberState, NAME_BYTES_MAX, NO_ERROR};

/// What is to be run, by the config topic.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Configured {
    /// Offset after the last data record that was read; -1 if none.
    pub offset: i64,
    /// Task numbers of each connector. A connector whose set of task configs is incomplete has none.
    pub tasks: BTreeMap<String, Vec<i32>>,
}

impl Configured {
    /// All that can be said on the wire: names beyond [`NAME_BYTES_MAX`] cannot, and are never assigned.
    pub fn load(&self) -> Load {
        let mut load = Load::default();
        for (connector, tasks) in self.tasks.iter().filter(|(connector, _)| connector.len() <= NAME_BYTES_MAX) {
            load.connectors.insert(connector.clone());
            load.tasks.extend(tasks.iter().map(|task| TaskId::new(connector, *task)));
        }
        load
    }
}

/// What the leader is given when the group has come together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Round {
    /// What the broker chose.
    pub protocol: ConnectProtocol,
    /// Our member id.
    pub leader: String,
    /// The generation that begins.
    pub generation: i32,
    /// The last generation of which we took an assignment; -1 if none.
    pub last_completed_generation: i32,
    /// All members by id, ourselves among them.
    pub members: BTreeMap<String, MemberState>,
    /// The freshest snapshot at hand. The herder works from the same one from here on: assignments carry its offset.
    pub configured: Configured,
}

/// What the leader has decided.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outcome {
    /// One for each member.
    pub assignments: BTreeMap<String, Assignment>,
    /// The REST address of each member.
    pub urls: BTreeMap<String, String>,
    /// Who runs what, once everyone has taken its assignment.
    pub owners: LeaderState,
    /// Time until everyone is to join again; zero: no such date.
    pub delay: Duration,
}

/// Who runs what in the whole cluster: where the leader sends a request that concerns one connector or task.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LeaderState {
    /// REST address of the worker with the connector instance.
    pub connectors: BTreeMap<String, String>,
    /// REST address of the worker with the task.
    pub tasks: BTreeMap<TaskId, String>,
}

impl LeaderState {
    /// REST address of the worker that has the instance of `connector`.
    pub fn connector_url(&self, connector: &str) -> Option<&str> {
        self.connectors.get(connector).map(String::as_str)
    }

    /// REST address of the worker that has `task`.
    pub fn task_url(&self, task: &TaskId) -> Option<&str> {
        self.tasks.get(task).map(String::as_str)
    }
}

/// Both ways of assigning, with the memory of the incremental one.
#[derive(Debug, Clone)]
pub struct Assignor {
    incremental: Incremental,
}

impl Assignor {
    /// `delay_max` is the property `scheduled.rebalance.max.delay.ms`: how long the work of a departed worker is kept for its return. As in
    /// Java it is handed out when that time is over, also to a worker that returned long before.
    pub fn new(delay_max: Duration) -> Self {
        Self { incremental: Incremental::new(delay_max, false) }
    }

    /// As [`Assignor::new`], but what departed workers had is handed out before that time once as many workers as are missing have come
    /// with nothing: to these.
    pub fn dealing_early(delay_max: Duration) -> Self {
        Self { incremental: Incremental::new(delay_max, true) }
    }

    /// Forgets all rounds: for when another member leads, or we have left the group. What we knew is then no longer what holds.
    pub fn forget(&mut self) {
        self.incremental.forget();
    }

    /// Begins to lead a group that has lived before: forgets all rounds, and takes `lost`, which so many `workers` that are gone left behind,
    /// for what was assigned to them. It waits for their return. `last_completed_generation` as in the [`Round`] that follows.
    pub fn take_over(&mut self, lost: Load, workers: usize, last_completed_generation: i32) {
        self.incremental.take_over(lost, workers, last_completed_generation);
    }

    /// Deals everything out. `now_ms` is of any clock that only goes forward.
    pub fn assign(&mut self, round: Round, now_ms: i64) -> Outcome {
        let urls: BTreeMap<String, String> =
            round.members.iter().map(|(member, state)| (member.clone(), state.url.clone())).collect();
        let told = Told {
            leader: round.leader.clone(),
            leader_url: urls.get(&round.leader).cloned().unwrap_or_default(),
            offset: round.configured.offset,
        };
        let offset_max = round.members.values().map(|state| state.offset).max().unwrap_or(-1);
        if round.configured.offset < offset_max {
            // Someone knows of connectors that we don't. Everybody keeps what it has until we have read on.
            let mismatch = Told { offset: offset_max, ..told };
            let assignments = urls
                .keys()
                .map(|member| (member.clone(), mismatch.assignment(CONFIG_MISMATCH, Dealt::default(), 0)))
                .collect();
            return Outcome { assignments, urls, ..Outcome::default() };
        }
        let (going, staying): (BTreeMap<&String, &MemberState>, BTreeMap<_, _>) =
            round.members.iter().partition(|(_, state)| state.is_going());
        let (mut dealt, delay_ms) = if round.protocol.is_eager() {
            (eager::deal(staying.into_keys(), &round.configured.load()), 0)
        } else {
            self.incremental.deal(
                staying.into_iter().map(|(member, state)| (member.clone(), state.load())).collect(),
                &going.into_keys().cloned().collect(),
                round.configured.load(),
                round.last_completed_generation,
                round.generation,
                now_ms,
            )
        };
        let mut owners = LeaderState::default();
        for (member, dealt) in &dealt {
            let url = &urls[member];
            owners.connectors.extend(dealt.owned.connectors.iter().map(|connector| (connector.clone(), url.clone())));
            owners.tasks.extend(dealt.owned.tasks.iter().map(|task| (task.clone(), url.clone())));
        }
        let assignments = urls
            .keys()
            .map(|member| {
                (member.clone(), told.assignment(NO_ERROR, dealt.remove(member).unwrap_or_default(), delay_ms))
            })
            .collect();
        Outcome { assignments, urls, owners, delay: Duration::from_millis(u64::from(delay_ms.unsigned_abs())) }
    }
}

/// One member's part in a round.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Dealt {
    /// To start.
    pub(crate) assigned: Load,
    /// To stop.
    pub(crate) revoked: Load,
    /// All that it then runs.
    pub(crate) owned: Load,
}

/// What every member is told alike.
struct Told {
    leader: String,
    leader_url: String,
    offset: i64,
}

impl Told {
    fn assignment(&self, error: i16, dealt: Dealt, delay_ms: i32) -> Assignment {
        Assignment {
            error,
            leader: self.leader.clone(),
            leader_url: self.leader_url.clone(),
            offset: self.offset,
            assigned: dealt.assigned,
            revoked: dealt.revoked,
            delay_ms,
        }
    }
}
