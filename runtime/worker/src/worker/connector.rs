//! One connector instance: its own task, its mailbox, and what becomes of it when it fails or panics.
//!
//! ```text
//! Worker ──► Mailbox (the newest wish, questions, a failure, the stop) ──► run (connector_state.rs decides, this calls)
//! ```
//!
//! A wish that was not begun yet gives way to a newer one, and is told so. Questions for task configurations wait for the
//! wish before them. A panic in the connector fails this instance only; it then answers as any failed one until it is
//! stopped. Bound: one wish, [`QUESTIONS_MAX`] questions.

use super::connector_state::{Call, Phase, Step};
use super::status::{State, Statuses, TargetState};
use super::tasks::Checked;
use super::{ReconfigureError, Requests, Transition};
use crate::config::connector::ConnectorConfig;
use oncewire_api::{ConnectorContext, ConnectorRequest, Properties, SourceConnector};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// Questions for task configurations that may wait; further ones are refused.
const QUESTIONS_MAX: usize = 16;

/// How long an aborted instance is waited for: it may sit in code that never awaits.
const ABORTED_MAX: Duration = Duration::from_millis(100);

type Wish = (TargetState, oneshot::Sender<Result<TargetState, String>>);
type Question = oneshot::Sender<Result<Vec<Properties>, ReconfigureError>>;

/// A connector with its checked configuration.
struct Made {
    connector: Box<dyn SourceConnector>,
    config: ConnectorConfig,
}

struct Mail {
    phase: Phase,
    wish: Option<Wish>,
    questions: VecDeque<Question>,
    failure: Option<String>,
    stopping: bool,
    silenced: bool,
}

/// Shared by the handle, the instance's task, and the connector's own context.
struct Mailbox {
    name: String,
    statuses: Arc<dyn Statuses>,
    mail: Mutex<Mail>,
    wake: Notify,
}

/// The instance as the worker holds it. Dropping it abandons the instance.
pub(super) struct Instance {
    mailbox: Arc<Mailbox>,
    run: JoinHandle<()>,
}

/// What the task takes out of the mailbox, in this order of urgency.
enum Letter {
    Stop,
    Failure(String),
    Wish(Wish),
    Question(Question),
}

impl Mailbox {
    /// Tells UNASSIGNED, and nothing after it.
    fn silence(&self) {
        let mut mail = self.lock();
        if !mail.silenced {
            mail.silenced = true;
            self.statuses.connector(&self.name, State::Unassigned, None);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Mail> {
        self.mail.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Under the lock, so that nothing is told after the silence.
    fn enter(&self, phase: Phase, trace: Option<String>) {
        let mut mail = self.lock();
        mail.phase = phase;
        if !mail.silenced {
            self.statuses.connector(&self.name, phase.state(), trace);
        }
    }

    fn fail(&self, problem: String) {
        self.lock().failure.get_or_insert(problem);
        self.wake.notify_one();
    }

    async fn next(&self) -> Letter {
        loop {
            if let Some(letter) = self.take() {
                return letter;
            }
            self.wake.notified().await;
        }
    }

    fn take(&self) -> Option<Letter> {
        let mut mail = self.lock();
        if mail.stopping {
            return Some(Letter::Stop);
        }
        if let Some(problem) = mail.failure.take() {
            return Some(Letter::Failure(problem));
        }
        if let Some(wish) = mail.wish.take() {
            return Some(Letter::Wish(wish));
        }
        mail.questions.pop_front().map(Letter::Question)
    }
}

impl Instance {
    /// Makes the instance's task. `checked`: what makes the connector, or why it can't be made, which is its failure.
    pub(super) fn new(
        name: &str,
        checked: Result<Checked, String>,
        statuses: Arc<dyn Statuses>,
        requests: Requests,
    ) -> Self {
        let mail = Mail {
            phase: Phase::Init,
            wish: None,
            questions: VecDeque::new(),
            failure: None,
            stopping: false,
            silenced: false,
        };
        let mailbox =
            Arc::new(Mailbox { name: name.to_owned(), statuses, mail: Mutex::new(mail), wake: Notify::new() });
        let run = tokio::spawn(run(mailbox.clone(), checked, requests));
        Self { mailbox, run }
    }

    /// Asks for a target state.
    pub(super) fn wish(&self, target: TargetState) -> Transition {
        let (sender, receiver) = oneshot::channel();
        let before = self.mailbox.lock().wish.replace((target, sender));
        if let Some((_, before)) = before {
            // Whoever asked may not care.
            let _ = before.send(Err("a newer target state took the place of this one".to_owned()));
        }
        self.mailbox.wake.notify_one();
        Transition(receiver)
    }

    /// Asks for task configurations. The receiver ends without an answer when the instance goes.
    pub(super) fn question(&self) -> Option<oneshot::Receiver<Result<Vec<Properties>, ReconfigureError>>> {
        let (sender, receiver) = oneshot::channel();
        let mut mail = self.mailbox.lock();
        if mail.questions.len() >= QUESTIONS_MAX {
            return None;
        }
        mail.questions.push_back(sender);
        drop(mail);
        self.mailbox.wake.notify_one();
        Some(receiver)
    }

    pub(super) fn phase(&self) -> Phase {
        self.mailbox.lock().phase
    }

    /// Asks it to end.
    pub(super) fn ask_to_stop(&self) {
        self.mailbox.lock().stopping = true;
        self.mailbox.wake.notify_one();
    }

    /// Waits for the end that was asked for; at the deadline it is abandoned, after UNASSIGNED was told for it.
    pub(super) async fn ended(mut self, deadline: Instant) {
        if tokio::time::timeout_at(deadline, &mut self.run).await.is_ok() {
            return;
        }
        tracing::warn!(connector = self.mailbox.name, "did not stop in time and was abandoned");
        self.mailbox.silence();
        self.run.abort();
        // Only to see it gone, if it can be.
        let _ = tokio::time::timeout(ABORTED_MAX, &mut self.run).await;
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        self.run.abort();
    }
}

/// An inner task that ends with its owner.
struct Guarded(JoinHandle<()>);

impl Drop for Guarded {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn run(mailbox: Arc<Mailbox>, checked: Result<Checked, String>, requests: Requests) {
    let checked = match checked {
        Ok(checked) => Some(checked),
        Err(problem) => {
            mailbox.fail(problem);
            None
        }
    };
    let (inner_mailbox, inner_requests) = (mailbox.clone(), requests.clone());
    let inner = async move {
        let made = checked.map(|(config, make)| Made { connector: make(), config });
        Life { mailbox: inner_mailbox, made, requests: inner_requests }.run().await;
    };
    let mut inner = Guarded(tokio::spawn(inner));
    if let Err(error) = (&mut inner.0).await
        && error.is_panic()
    {
        mailbox.fail(format!("the connector panicked: {error}"));
        Life { mailbox, made: None, requests }.run().await;
    }
}

struct Life {
    mailbox: Arc<Mailbox>,
    made: Option<Made>,
    requests: Requests,
}

impl Life {
    async fn run(mut self) {
        loop {
            match self.mailbox.next().await {
                Letter::Stop => break,
                Letter::Failure(problem) => {
                    tracing::error!(connector = self.mailbox.name, "connector failed: {problem}");
                    self.mailbox.enter(Phase::Failed, Some(problem));
                }
                Letter::Wish((target, asked)) => {
                    let outcome = self.go(target).await;
                    // Whoever asked may not care.
                    let _ = asked.send(outcome.map(|()| target));
                }
                Letter::Question(asked) => {
                    let _ = asked.send(self.task_configs().await);
                }
            }
        }
        if self.mailbox.lock().phase == Phase::Started
            && let Some(made) = &mut self.made
        {
            made.connector.stop().await;
        }
        let mut mail = self.mailbox.lock();
        if !mail.silenced {
            mail.silenced = true;
            self.mailbox.statuses.connector(&self.mailbox.name, State::Unassigned, None);
        }
    }

    async fn go(&mut self, target: TargetState) -> Result<(), String> {
        let phase = self.mailbox.lock().phase;
        let (call, wanted) = match phase.wish(target) {
            Step::Already => return Ok(()),
            Step::Refuse => return Err("the connector has failed; restart it".to_owned()),
            Step::Go(call, wanted) => (call, wanted),
        };
        match (call, &mut self.made) {
            (Call::Start, Some(made)) => {
                let (mailbox, requests) = (Arc::downgrade(&self.mailbox), self.requests.clone());
                let context = ConnectorContext::new(self.mailbox.name.as_str(), move |request| {
                    if let (ConnectorRequest::Fail(problem), Some(mailbox)) = (&request, mailbox.upgrade()) {
                        mailbox.fail(problem.clone());
                    }
                    requests(request);
                });
                if let Err(error) = made.connector.start(context, &made.config.originals).await {
                    let problem = error.to_string();
                    tracing::error!(connector = self.mailbox.name, "connector can't start: {problem}");
                    self.mailbox.enter(Phase::Failed, Some(problem.clone()));
                    return Err(problem);
                }
            }
            (Call::Stop, Some(made)) => made.connector.stop().await,
            (Call::Start, None) => return Err("the connector could not be made; change its configuration".to_owned()),
            (Call::Stop, None) | (Call::Nothing, _) => {}
        }
        tracing::info!(connector = self.mailbox.name, "connector is {}", wanted.state().name());
        self.mailbox.enter(wanted, None);
        Ok(())
    }

    async fn task_configs(&mut self) -> Result<Vec<Properties>, ReconfigureError> {
        let is_started = self.mailbox.lock().phase == Phase::Started;
        let Some(made) = self.made.as_mut().filter(|_| is_started) else { return Err(ReconfigureError::NotRunning) };
        let max = made.config.tasks_max;
        let configs = made.connector.task_configs(max).await;
        let configs = configs.map_err(|error| ReconfigureError::Failed(error.to_string()))?;
        if configs.len() <= max {
            return Ok(configs);
        }
        let problem = format!(
            "the connector has made {} tasks, more than tasks.max={max}; raise tasks.max, or set tasks.max.enforce=false \
             to let it",
            configs.len()
        );
        if !made.config.tasks_max_enforce {
            tracing::warn!(connector = self.mailbox.name, "{problem}");
            return Ok(configs);
        }
        self.mailbox.fail(problem.clone());
        Err(ReconfigureError::TooManyTasks(problem))
    }
}
