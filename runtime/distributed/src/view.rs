//! What everybody may look at without asking the herder's loop: the last snapshot of the topics and of the group.
//!
//! Reads over REST are answered from here, so they never wait for a rebalance.

use oncewire_membership::ConnectProtocol;
use oncewire_rest::model::Stage;
use oncewire_topics::{ConfigSnapshot, ConfigTopic, StatusTopic};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// The group as this worker last saw it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GroupView {
    /// The generation, -1 before the first.
    pub generation: i32,
    /// The protocol in use.
    pub protocol: Option<ConnectProtocol>,
    /// The leader's advertised URL; `None` while it is not known.
    pub leader_url: Option<String>,
    /// Whether this worker leads.
    pub leads: bool,
    /// Whether a rebalance is under way or asked for.
    pub rebalancing: bool,
    /// Whether the group was joined at least once.
    pub joined: bool,
    /// Whether this worker is a member, as far as it knows.
    pub member: bool,
}

impl GroupView {
    /// Whether requests between workers are signed.
    pub fn is_signed(&self) -> bool {
        self.protocol == Some(ConnectProtocol::Sessioned)
    }
}

/// Shared by the loop, the REST interface and the tasks' gates.
#[derive(Debug, Clone)]
pub struct View {
    /// The config topic.
    pub configs: ConfigTopic,
    /// The status topic.
    pub statuses: StatusTopic,
    group: Arc<Mutex<GroupView>>,
    stage: Arc<Mutex<Option<Stage>>>,
}

impl View {
    /// Before the group is joined.
    pub fn new(configs: ConfigTopic, statuses: StatusTopic) -> Self {
        let group = GroupView { generation: -1, rebalancing: true, ..GroupView::default() };
        Self { configs, statuses, group: Arc::new(Mutex::new(group)), stage: Arc::default() }
    }

    /// The last snapshot of the config topic.
    pub fn snapshot(&self) -> Arc<ConfigSnapshot> {
        self.configs.snapshot()
    }

    /// The group.
    pub fn group(&self) -> GroupView {
        self.group.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Changes the group.
    pub fn update_group(&self, change: impl FnOnce(&mut GroupView)) {
        change(&mut self.group.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// What the loop is doing.
    pub fn stage(&self) -> Option<Stage> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The loop begins something.
    pub fn begin_stage(&self, description: impl Into<String>) {
        let stage = Stage { description: description.into(), started_ms: now_ms(), completed_ms: None };
        *self.stage.lock().unwrap_or_else(PoisonError::into_inner) = Some(stage);
    }

    /// It is done with it.
    pub fn end_stage(&self) {
        if let Some(stage) = self.stage.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            stage.completed_ms.get_or_insert_with(now_ms);
        }
    }
}

/// Milliseconds since 1970.
pub fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
