//! What a distributed herder would be to the worker: it writes down what it is told, and opens gates when a test says so.

use super::{PATIENCE, Stand, map, register, registry};
use async_trait::async_trait;
use oncewire_api::{ConnectorRequest, Properties};
use oncewire_worker::config::worker::WorkerConfig;
use oncewire_worker::worker::{GateRefusal, State, Statuses, TargetState, TaskGate, TaskStart, Worker};
use std::sync::{Arc, Mutex};
use tokio::sync::watch;

/// One thing that was told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    Connector(String, State, Option<String>),
    Task(String, u32, State, Option<String>),
    Topic(String, u32, String),
    Request(ConnectorRequest),
    Fence,
    Verify,
}

#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<Vec<Told>>>);

impl Log {
    fn push(&self, told: Told) {
        self.0.lock().expect("no panic under it").push(told);
    }

    pub fn told(&self) -> Vec<Told> {
        self.0.lock().expect("no panic under it").clone()
    }
}

impl Statuses for Log {
    fn connector(&self, name: &str, state: State, trace: Option<String>) {
        self.push(Told::Connector(name.into(), state, trace));
    }

    fn task(&self, connector: &str, task: u32, state: State, trace: Option<String>) {
        self.push(Told::Task(connector.into(), task, state, trace));
    }

    fn topic(&self, connector: &str, task: u32, topic: &str) {
        self.push(Told::Topic(connector.into(), task, topic.into()));
    }
}

/// Opens when told to; answers what it was made with.
pub struct Gate {
    pub log: Log,
    pub open: watch::Receiver<bool>,
    pub fence: Result<(), GateRefusal>,
    pub verify: Result<(), GateRefusal>,
    pub topics: Vec<String>,
}

#[async_trait]
impl TaskGate for Gate {
    async fn fence(&self) -> Result<(), GateRefusal> {
        self.log.push(Told::Fence);
        self.open.clone().wait_for(|open| *open).await.expect("the test holds the other end");
        self.fence.clone()
    }

    async fn verify(&self) -> Result<(), GateRefusal> {
        self.log.push(Told::Verify);
        self.verify.clone()
    }

    async fn written_topics(&self) -> Vec<String> {
        self.topics.clone()
    }
}

/// A distributed worker on a stand, without a group.
pub struct Herd {
    pub worker: Worker,
    pub log: Log,
    pub gate: watch::Sender<bool>,
}

impl Stand {
    /// The properties of a distributed worker in this mode.
    pub fn distribute(&mut self, mode: &str) {
        self.worker.extend(map(&[
            ("exactly.once.source.support", mode),
            ("offset.storage.topic", "w-offsets"),
            ("offset.storage.replication.factor", "1"),
            ("offset.flush.interval.ms", "50"),
        ]));
    }

    /// Starts a worker under no herder.
    pub async fn herd(&self) -> Herd {
        let config = WorkerConfig::distributed("worker", self.worker.clone()).expect("the properties are right");
        let log = Log::default();
        let worker = Worker::start(Arc::new(config), registry(), Arc::new(log.clone())).await.expect("it starts");
        Herd { worker, log, gate: watch::channel(true).0 }
    }

    /// Sets what the next task does.
    pub fn script(&self, script: impl Into<super::Script>) {
        register(&self.connector["script.id"], script.into());
    }
}

impl Herd {
    pub fn gate(&self) -> Gate {
        Gate {
            log: self.log.clone(),
            open: self.gate.subscribe(),
            fence: Ok(()),
            verify: Ok(()),
            topics: vec!["t".into()],
        }
    }

    /// Starts task 0 of the stand's connector.
    pub fn start(&self, stand: &Stand, target: TargetState) {
        self.start_with(stand, target, self.gate());
    }

    pub fn start_with(&self, stand: &Stand, target: TargetState, gate: Gate) {
        let start = TaskStart {
            connector: "c".into(),
            task: 0,
            task_count: 1,
            connector_config: stand.connector.clone(),
            task_config: stand.connector.clone(),
            target,
            gate: Arc::new(gate),
        };
        self.worker.start_task(start).expect("it is not here yet");
    }

    pub async fn stop(&self) {
        self.worker.stop_tasks(&[("c".into(), 0)]).await;
    }

    /// Starts the stand's connector instance.
    pub async fn connect(&self, config: &Properties, target: TargetState) -> Result<TargetState, String> {
        let log = self.log.clone();
        let requests = Arc::new(move |request| log.push(Told::Request(request)));
        self.worker.start_connector("c", config.clone(), target, requests).done().await
    }

    /// The states that were told of the task, in order.
    pub fn task_states(&self) -> Vec<State> {
        let told = self.log.told().into_iter();
        told.filter_map(|told| if let Told::Task(_, _, state, _) = told { Some(state) } else { None }).collect()
    }

    /// The states that were told of the connector, in order.
    pub fn connector_states(&self) -> Vec<State> {
        let told = self.log.told().into_iter();
        told.filter_map(|told| if let Told::Connector(_, state, _) = told { Some(state) } else { None }).collect()
    }

    /// The last trace that was told, of task or connector.
    pub fn trace(&self) -> String {
        let told = self.log.told().into_iter().rev();
        told.filter_map(|told| match told {
            Told::Task(_, _, _, trace) | Told::Connector(_, _, trace) => trace,
            _ => None,
        })
        .next()
        .expect("a trace was told")
    }

    /// Waits until what was told satisfies this.
    pub async fn until(&self, what: &str, done: impl Fn(&Herd) -> bool) {
        let deadline = tokio::time::Instant::now() + PATIENCE;
        while !done(self) {
            assert!(tokio::time::Instant::now() < deadline, "waited in vain for {what}: {:?}", self.log.told());
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    }

    pub async fn until_state(&self, state: State) {
        self.until(state.name(), |herd| herd.task_states().last() == Some(&state)).await;
    }
}
