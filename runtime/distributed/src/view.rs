//! What everybody may look at without asking the herder's loop: the last snapshot of the topics and of the group.
//!
//! Reads over REST are answered from here, so they never wait for a rebalance.

use oncewire_membership::ConnectProtocol;
use oncewire_rest::model::Stage;
use oncewire_topics::{ConfigSnapshot, ConfigTopic, StatusTopic};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::sync::watch;

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
    /// Whether this worker hands over what it has: nothing starts any more.
    pub draining: bool,
    /// What keeps it from being one again, if it is more than a rebalance.
    pub trouble: Option<String>,
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
    group: watch::Sender<GroupView>,
    /// How often the loop has seen changes of the config topic.
    config_changes: watch::Sender<u64>,
    stage: Arc<Mutex<Option<Stage>>>,
}

impl View {
    /// Before the group is joined.
    pub fn new(configs: ConfigTopic, statuses: StatusTopic) -> Self {
        let group = GroupView { generation: -1, rebalancing: true, ..GroupView::default() };
        let (group, config_changes) = (watch::Sender::new(group), watch::Sender::new(0));
        Self { configs, statuses, group, config_changes, stage: Arc::default() }
    }

    /// The last snapshot of the config topic.
    pub fn snapshot(&self) -> Arc<ConfigSnapshot> {
        self.configs.snapshot()
    }

    /// The group.
    pub fn group(&self) -> GroupView {
        self.group.borrow().clone()
    }

    /// Changes the group.
    pub fn update_group(&self, change: impl FnOnce(&mut GroupView)) {
        self.group.send_if_modified(|group| {
            let before = group.clone();
            change(group);
            *group != before
        });
    }

    /// The loop has seen changes of the config topic.
    pub fn note_config_changes(&self) {
        self.config_changes.send_modify(|changes| *changes = changes.wrapping_add(1));
    }

    /// Tells of every change of the group and of the configurations from now on.
    pub fn news(&self) -> News {
        News { group: self.group.subscribe(), config_changes: self.config_changes.subscribe() }
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

/// For those who wait until something is different.
#[derive(Debug)]
pub struct News {
    group: watch::Receiver<GroupView>,
    config_changes: watch::Receiver<u64>,
}

impl News {
    /// The next change; one that came since the last call, or since [`View::news`], at once.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub async fn next(&mut self) {
        let changed = tokio::select! {
            changed = self.group.changed() => changed,
            changed = self.config_changes.changed() => changed,
        };
        if changed.is_err() {
            // The view is gone, and whoever waits will be soon.
            std::future::pending::<()>().await;
        }
    }
}

/// Milliseconds since 1970.
pub fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Waker};

    fn is_there(news: &mut News) -> bool {
        pin!(news.next()).poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    #[test]
    fn changes_of_the_group_and_of_the_configurations_are_news_and_once() {
        let (group, config_changes) = (watch::Sender::new(GroupView::default()), watch::Sender::new(0));
        let mut news = News { group: group.subscribe(), config_changes: config_changes.subscribe() };
        assert!(!is_there(&mut news));
        group.send_modify(|group| group.leads = true);
        assert!(is_there(&mut news));
        assert!(!is_there(&mut news));
        config_changes.send_modify(|changes| *changes += 1);
        assert!(is_there(&mut news));
        drop((group, config_changes));
        assert!(!is_there(&mut news), "nobody is told that it is over");
    }
}
