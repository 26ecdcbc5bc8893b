//! The herder's loop: one task that owns the group membership, the assignment and everything that follows from them.
//!
//! ```text
//!            commands (REST, gates) ─┐
//!   group events (join, assigned) ───┤
//!   changes of the config topic ─────┼──► one turn: decide (decide/*), act (worker, topics, member)
//!   wishes of connectors ────────────┤
//!   jobs that ended ─────────────────┤
//!   timers ──────────────────────────┘
//! ```
//!
//! A turn may write to the config topic and stop tasks, both bounded; what could take longer (asking a connector for task
//! configurations, fencing, calls to other workers) is a job whose end is another turn. Heartbeats go on meanwhile, in the
//! client. Invariant: nothing is started but from an assignment that was made from exactly our snapshot.

use super::collision::Rivals;
use super::command::{Command, QUEUE_MAX, Reply};
use super::fence::Rounds;
use super::job::{Done, Jobs};
use super::leftovers::Leftovers;
use super::slept::Slept;
use super::tasks::Reconfigurations;
use super::trouble::Trouble;
use super::wave::Wave;
use crate::config::DistributedConfig;
use crate::loggers::Loggers;
use crate::view::{View, now_ms};
use crate::wishes::Wishes;
use oncewire_api::StopSignal;
use oncewire_api::plugin::PluginRegistry;
use oncewire_client::complaint::Complaint;
use oncewire_client::group::{GroupEvent, GroupMember};
use oncewire_membership::{Assignment, Assignor, Backoff, ConnectProtocol, LeaderState};
use oncewire_plugins::providers::ConfigProviders;
use oncewire_rest::{HerderError, RestClient};
use oncewire_worker::worker::Worker;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// What the loop is made of.
pub struct Parts {
    /// The configuration.
    pub config: Arc<DistributedConfig>,
    /// Snapshots, and the group as others may see it.
    pub view: View,
    /// Runs connectors and tasks.
    pub worker: Worker,
    /// The membership.
    pub member: GroupMember,
    /// Resolves `${…}`.
    pub providers: ConfigProviders,
    /// Connectors by class.
    pub registry: PluginRegistry,
    /// Talks to other workers.
    pub rest: RestClient,
    /// Looks for groups with the same topics; taken when it has looked.
    pub rivals: Option<Rivals>,
    /// Our advertised URL.
    pub url: String,
    /// `host:port` of it, for statuses.
    pub worker_id: String,
    /// Levels of loggers.
    pub loggers: Loggers,
    /// Commands, for gates to send.
    pub commands: mpsc::Sender<Command>,
}

/// The assignment in force.
#[derive(Debug, Clone)]
pub struct Held {
    /// What was assigned, merged over the rounds.
    pub assignment: Assignment,
    /// The protocol of its generation.
    pub protocol: ConnectProtocol,
    /// Our member id in it.
    pub member_id: String,
}

impl Held {
    /// Whether this worker leads.
    pub fn leads(&self) -> bool {
        self.assignment.leader == self.member_id
    }
}

/// The loop's state.
pub struct Tick {
    pub(super) parts: Parts,
    pub(super) assignor: Assignor,
    pub(super) owners: LeaderState,
    pub(super) held: Option<Held>,
    pub(super) last_completed_generation: i32,
    /// A member without a break since an assignment of another leader: it knows that the group lived on, and not who has left.
    pub(super) is_heir: bool,
    pub(super) unsync: Backoff,
    /// The config topic could not be read in time: nothing goes on before it was.
    pub(super) must_read: bool,
    /// The leader's transactional producer was fenced or failed; when to claim it again.
    pub(super) claim_at: Option<Instant>,
    /// The leader's end of a scheduled delay, told to all members.
    pub(super) rejoin_at: Option<Instant>,
    /// Changes that call for a round.
    pub(super) wave: Wave,
    pub(super) reconfigurations: Reconfigurations,
    pub(super) rounds: Rounds,
    pub(super) leftovers: Leftovers,
    pub(super) slept: Slept,
    pub(super) wishes: Wishes,
    pub(super) jobs: Jobs,
    pub(super) deferred: VecDeque<Command>,
    pub(super) draining: super::drain::Drain,
    pub(super) trouble: Trouble,
    /// Why the group does not take this worker at all: it ends.
    pub(super) refused: Option<String>,
    /// The leader's producer, its key for the others, and its writes.
    pub(super) leading_trouble: Complaint,
    pub(super) write_trouble: Complaint,
}

/// How long the last LeaveGroup may take: 3 s.
const LEAVE_MAX: Duration = Duration::from_secs(3);

/// How long statuses may take to be written before a worker goes: 5 s.
const STATUS_FLUSH_MAX: Duration = Duration::from_secs(5);

/// What woke the loop.
enum Woken {
    Stop,
    Group(GroupEvent),
    Command(Command),
    Configs,
    Wishes,
    Job(Done),
    Timer,
}

impl Tick {
    /// Before the group is joined.
    pub fn new(parts: Parts) -> Self {
        let config = parts.config.clone();
        Self {
            assignor: match config.deals_early {
                true => Assignor::dealing_early(config.rebalance_delay_max),
                false => Assignor::new(config.rebalance_delay_max),
            },
            owners: LeaderState::default(),
            held: None,
            last_completed_generation: -1,
            is_heir: false,
            unsync: Backoff::new(config.rebalance_delay_max, config.unsync_backoff),
            must_read: false,
            claim_at: None,
            rejoin_at: None,
            wave: Wave::default(),
            reconfigurations: Reconfigurations::default(),
            rounds: Rounds::default(),
            leftovers: Leftovers::default(),
            slept: Slept::default(),
            wishes: Wishes::default(),
            jobs: Jobs::default(),
            deferred: VecDeque::new(),
            draining: super::drain::Drain::default(),
            trouble: Trouble::default(),
            refused: None,
            leading_trouble: Complaint::default(),
            write_trouble: Complaint::default(),
            parts,
        }
    }

    /// Runs until `stop`, then hands everything back in order.
    ///
    /// # Errors
    /// The group has never taken this worker, and does not before somebody changes something; what, is said.
    pub async fn run(mut self, mut commands: mpsc::Receiver<Command>, stop: StopSignal) -> Result<(), String> {
        while self.refused.is_none() {
            self.chores().await;
            if self.must_read {
                self.recover_read(&stop).await;
                if stop.is_stopped() {
                    break;
                }
            }
            match self.wait(&mut commands, &stop).await {
                Woken::Stop => break,
                Woken::Group(event) => {
                    if let GroupEvent::Lead { members, .. } = &event {
                        self.leftovers.note_round(members);
                    }
                    self.on_group(event).await;
                }
                Woken::Command(command) => self.on_command(command).await,
                Woken::Configs => self.on_config_changes().await,
                Woken::Wishes => self.on_wishes(),
                Woken::Job(done) => self.on_job(done).await,
                Woken::Timer => {}
            }
            self.parts.view.end_stage();
        }
        let refused = self.refused.take();
        self.shutdown(commands).await;
        refused.map_or(Ok(()), Err)
    }

    async fn wait(&mut self, commands: &mut mpsc::Receiver<Command>, stop: &StopSignal) -> Woken {
        if !self.is_rebalancing()
            && let Some(command) = self.deferred.pop_front()
        {
            return Woken::Command(command);
        }
        let timer = self.next_timer();
        let out = self.draining.is_out();
        tokio::select! {
            biased;
            () = stop.stopped() => Woken::Stop,
            event = self.parts.member.next(), if !out => Woken::Group(event),
            () = self.parts.view.configs.changed() => Woken::Configs,
            Some(done) = self.jobs.next() => Woken::Job(done),
            () = self.wishes.wait() => Woken::Wishes,
            Some(command) = commands.recv() => Woken::Command(command),
            () = tokio::time::sleep_until(timer) => Woken::Timer,
        }
    }

    /// The loop never sleeps longer than this, so that a clock that was set, or a lost wake-up, heals: 10 s.
    fn next_timer(&self) -> Instant {
        let idle = Instant::now() + Duration::from_secs(10);
        // While a round goes on none begins; its end is an event.
        let tasks = if self.is_rebalancing() { None } else { self.reconfigurations.next_due() };
        [self.rejoin_at, self.claim_at, self.wave_due(), tasks, self.session_key_due(), self.draining.due()]
            .into_iter()
            .flatten()
            .fold(idle, Instant::min)
    }

    fn wave_due(&self) -> Option<Instant> {
        // During a round nothing is published that could be waited for.
        self.wave.due(!self.is_rebalancing() && self.reconfigurations.more_to_come(Instant::now()))
    }

    pub(super) fn is_rebalancing(&self) -> bool {
        self.parts.view.group().rebalancing
    }

    pub(super) fn leads(&self) -> bool {
        self.held.as_ref().is_some_and(Held::leads)
    }

    /// What is due whatever woke the loop.
    async fn chores(&mut self) {
        let now = Instant::now();
        if self.rejoin_at.is_some_and(|at| at <= now) {
            self.rejoin_at = None;
            self.rejoin("the scheduled delay has passed");
        }
        self.claim_if_due().await;
        self.rotate_session_key().await;
        self.start_due_reconfigurations();
        self.take_up_superseded().await;
        if self.wave_due().is_some_and(|at| at <= now) {
            self.wave.answered();
            self.rejoin("connectors or tasks were added or removed");
        }
        self.go_on_draining().await;
        self.fence_leftovers();
    }

    pub(super) fn rejoin(&mut self, reason: &str) {
        if self.draining.is_out() {
            // No round follows, and whoever asks something of this worker would wait for its end.
            return;
        }
        self.parts.view.update_group(|group| group.rebalancing = true);
        self.parts.member.rejoin(reason);
    }

    async fn on_command(&mut self, command: Command) {
        if command.needs_group() && self.is_rebalancing() {
            if self.deferred.len() < QUEUE_MAX {
                self.deferred.push_back(command);
            } else {
                refuse(command, &HerderError::RebalanceExpected);
            }
            return;
        }
        self.parts.view.begin_stage(command.description());
        match command {
            Command::Ping(reply) => answer(reply, Ok(())),
            Command::Put { name, config, initial_state, replace, reply } => {
                let put = self.put_connector(name, config, initial_state, replace).await;
                answer(reply, put);
            }
            Command::Delete { name, reply } => {
                let deleted = self.delete_connector(&name).await;
                answer(reply, deleted);
            }
            Command::Target { name, state, reply } => {
                let written = self.put_target(&name, state).await;
                answer(reply, written);
            }
            Command::Stop { name, reply } => {
                let stopped = self.stop_connector(&name).await;
                answer(reply, stopped);
            }
            Command::RestartConnector { name, reply } => self.restart_connector(name, reply).await,
            Command::RestartTask { name, task, reply } => {
                let restarted = self.restart_task(&name, task).await;
                answer(reply, restarted);
            }
            Command::RestartPlan { request, reply } => {
                let planned = self.restart_by_plan(request).await;
                answer(reply, planned);
            }
            Command::Offsets { name, entries, reply } => self.change_offsets(name, entries, reply).await,
            Command::ClusterLogger { namespace, level, reply } => {
                let written = self.parts.view.configs.put_logger_level(&namespace, &level).await;
                let written = self.written(written);
                answer(reply, written);
            }
            Command::TaskConfigs { name, configs, reply } => {
                let written = self.take_task_configs(&name, configs).await;
                answer(reply, written);
            }
            Command::Fence { name, reply } => self.fence(name, super::fence::Waiter::Reply(reply)).await,
            Command::Verify { name, task, generation, reply } => {
                let verified = self.verify(&name, task, generation);
                answer(reply, verified);
            }
            Command::Drain(reply) => {
                let drained = self.drain();
                answer(reply, drained);
            }
        }
    }

    async fn on_job(&mut self, done: Done) {
        match done {
            Done::ConnectorReady { connector, result } => self.on_connector_ready(&connector, result),
            Done::Restarted { connector, result, reply } => {
                self.on_connector_ready(&connector, result.clone());
                let failed =
                    |problem| HerderError::Internal(format!("Failed to start connector: {connector}: {problem}"));
                answer(reply, result.map(drop).map_err(failed));
            }
            Done::TaskConfigs { connector, result } => self.on_task_configs(connector, result).await,
            Done::Forwarded { connector, result } => self.on_forwarded(&connector, result),
            Done::Fenced { connector, result } => self.on_fenced(connector, result).await,
            Done::LeftoversFenced { connector, result } => self.on_leftovers_fenced(connector, result).await,
            Done::SharingSeen { result } => self.on_sharing_seen(result),
            Done::OffsetsChanged { reply, answer: changed } => answer(reply, changed),
        }
    }

    async fn shutdown(mut self, mut commands: mpsc::Receiver<Command>) {
        self.parts.view.begin_stage("stopping");
        commands.close();
        for command in self.deferred.drain(..) {
            refuse(command, &shutting_down());
        }
        while let Ok(command) = commands.try_recv() {
            refuse(command, &shutting_down());
        }
        self.rounds.fail_all(&shutting_down());
        self.stop_everything().await;
        if let Err(error) = self.parts.view.statuses.flush(STATUS_FLUSH_MAX).await {
            tracing::warn!("the last statuses were not written: {error}");
        }
        if !self.draining.is_out() {
            self.parts.member.leave("the worker is shutting down", LEAVE_MAX).await;
        }
        self.jobs.abort().await;
        self.parts.worker.close().await;
    }
}

fn shutting_down() -> HerderError {
    HerderError::Unavailable("Worker is shutting down".to_owned())
}

/// Answers; nobody may be waiting any more.
pub(super) fn answer<T>(reply: Reply<T>, answer: Result<T, HerderError>) {
    // The caller's time limit may have passed; then nobody is there to be told.
    let _ = reply.send(answer);
}

/// Answers a command that is not carried out.
fn refuse(command: Command, error: &HerderError) {
    let error = error.clone();
    match command {
        Command::Ping(reply) => answer(reply, Err(error)),
        Command::Put { reply, .. } => answer(reply, Err(error)),
        Command::RestartPlan { reply, .. } => answer(reply, Err(error)),
        Command::Offsets { reply, .. } => answer(reply, Err(error)),
        Command::Drain(reply) => answer(reply, Err(error)),
        Command::Delete { reply, .. }
        | Command::Target { reply, .. }
        | Command::Stop { reply, .. }
        | Command::RestartConnector { reply, .. }
        | Command::RestartTask { reply, .. }
        | Command::ClusterLogger { reply, .. }
        | Command::TaskConfigs { reply, .. }
        | Command::Fence { reply, .. }
        | Command::Verify { reply, .. } => answer(reply, Err(error)),
    }
}

/// The clock of timers between workers.
pub(super) fn clock_ms() -> i64 {
    now_ms()
}
