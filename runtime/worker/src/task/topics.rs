//! The topics that a task writes to: how many partitions they have, which one a record goes to, and making a missing one.
//!
//! A missing topic is made by the first `topic.creation.*` group that matches (KIP-158). Without such groups it is made with
//! the broker's defaults, if the broker would make topics by itself (`auto.create.topics.enable`), because that is what
//! happens to a Java worker; where the operator switched that off, the task fails and says what to do. The dead letter topic is
//! made with one partition and its own replication factor, as Java's sinks do. Bound: as many entries as the connector names
//! topics, at most [`TOPICS_MAX`].

use crate::acl::{self, Resource};
use crate::config::dead_letters::{self, DeadLetters};
use crate::config::topic_creation::TopicCreation;
use crate::error::TaskFailure;
use oncewire_client::admin::{Admin, NewTopic};
use oncewire_client::cluster::Cluster;
use oncewire_client::config::ClientConfig;
use oncewire_client::error::Error;
use oncewire_client::producer::Partitioner;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Topics that one task may write to: 10,000.
pub const TOPICS_MAX: usize = 10_000;

/// How long a topic's number of partitions is believed: 5 minutes, as `metadata.max.age.ms`.
const PARTITIONS_MAX_AGE: Duration = Duration::from_secs(300);

/// A topic that exists.
pub struct Topic {
    name: Arc<str>,
    partitions: u32,
    asked: Instant,
    partitioner: Partitioner,
}

impl Topic {
    /// Its name; the same allocation for each record.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Where a record goes: where its connector says, else by its key, else where the last one went for a while.
    ///
    /// # Errors
    /// When the connector names a partition that the topic does not have.
    pub fn choose(&mut self, wanted: Option<u32>, key: Option<&[u8]>, value_bytes: usize) -> Result<u32, TaskFailure> {
        match wanted {
            Some(partition) if partition < self.partitions => Ok(partition),
            Some(partition) => Err(TaskFailure::failed(format!(
                "the connector wants partition {partition} of topic {:?}, which has {} partitions",
                self.name, self.partitions
            ))),
            None => Ok(self.partitioner.partition(&self.name, self.partitions, key, value_bytes)),
        }
    }
}

/// The topics of one task.
pub struct Topics {
    cluster: Cluster,
    /// Who makes topics, where that is another client than the producer's.
    admin: Option<ClientConfig>,
    creation: TopicCreation,
    dead_letters: Option<DeadLetters>,
    known: Vec<Topic>,
    places: HashMap<Arc<str>, usize>,
    /// Where the topic of the record before is: runs of one topic skip the hash.
    last: usize,
    sticky_bytes: usize,
    seed: u64,
}

impl Topics {
    /// `sticky_bytes` is how much goes to one partition before records without a key move on (`batch.size`).
    pub fn new(
        cluster: Cluster,
        admin: Option<ClientConfig>,
        creation: TopicCreation,
        sticky_bytes: usize,
        seed: u64,
    ) -> Self {
        Self {
            cluster,
            admin,
            creation,
            dead_letters: None,
            known: Vec::new(),
            places: HashMap::new(),
            last: 0,
            sticky_bytes,
            seed,
        }
    }

    /// One of them may be this one.
    #[must_use]
    pub fn with_dead_letters(mut self, dead_letters: Option<DeadLetters>) -> Self {
        self.dead_letters = dead_letters;
        self
    }

    /// Where the topic is, for [`Topics::at`]; `None` when it was not looked up within the last minutes.
    pub fn place(&mut self, name: &Arc<str>, now: Instant) -> Option<usize> {
        let is_last = self.known.get(self.last).is_some_and(|topic| topic.name == *name);
        let place = if is_last { self.last } else { *self.places.get(name)? };
        self.last = place;
        (now.saturating_duration_since(self.known[place].asked) < PARTITIONS_MAX_AGE).then_some(place)
    }

    /// The topic at a place that was told here. Panics at any other.
    pub fn at(&mut self, place: usize) -> &mut Topic {
        &mut self.known[place]
    }

    /// Looks the topic up, or makes it; its place.
    ///
    /// # Errors
    /// When it does not exist and can't be made, or can't be asked for.
    pub async fn look_up(&mut self, name: &Arc<str>, now: Instant) -> Result<usize, TaskFailure> {
        let found = self.cluster.topic(name).await.map_err(|error| {
            let advice = advice_on_rights(&error, name);
            let failure = TaskFailure::from(error);
            let message = format!("{}{advice}", failure.message());
            failure.with_message(message)
        })?;
        let partitions = match found {
            Some(metadata) => metadata.partitions.len(),
            None => self.make(name).await?,
        };
        let partitions = u32::try_from(partitions).unwrap_or(u32::MAX);
        if let Some(&place) = self.places.get(name) {
            self.known[place].partitions = partitions;
            self.known[place].asked = now;
            return Ok(place);
        }
        let place = self.known.len();
        if place >= TOPICS_MAX {
            return Err(TaskFailure::failed(format!("the task writes to more than {TOPICS_MAX} topics")));
        }
        let partitioner = Partitioner::new(self.sticky_bytes, self.seed);
        self.known.push(Topic { name: name.clone(), partitions, asked: now, partitioner });
        self.places.insert(name.clone(), place);
        self.last = place;
        Ok(place)
    }

    async fn make(&self, name: &Arc<str>) -> Result<usize, TaskFailure> {
        match &self.admin {
            None => self.make_by(&self.cluster, name).await?,
            Some(config) => {
                let cluster = Cluster::connect(config.clone()).await?;
                let made = self.make_by(&cluster, name).await;
                cluster.close().await;
                made?;
            }
        }
        match self.cluster.topic(name).await? {
            Some(metadata) => Ok(metadata.partitions.len()),
            None => Err(TaskFailure::lost(format!("topic {name:?} was made but is not in the brokers' metadata yet"))),
        }
    }

    async fn make_by(&self, cluster: &Cluster, name: &Arc<str>) -> Result<(), TaskFailure> {
        let admin = Admin::new(cluster.clone());
        let of_dead_letters = self.dead_letters.as_ref().filter(|letters| letters.topic == *name);
        let mut wanted =
            NewTopic { name: name.to_string(), partitions: None, replication_factor: None, configs: BTreeMap::new() };
        if let Some(letters) = of_dead_letters {
            wanted.partitions = Some(1);
            wanted.replication_factor = letters.replication_factor;
        } else if let Some(rule) = self.creation.rule_for(name) {
            wanted.partitions = rule.partitions;
            wanted.replication_factor = rule.replication_factor;
            wanted.configs = rule.configs.clone();
        } else if !broker_makes_topics(cluster, &admin).await {
            return Err(TaskFailure::failed(format!(
                "topic {name:?} does not exist and the brokers do not make topics by themselves; create it, or set \
                 topic.creation.default.partitions and topic.creation.default.replication.factor in the connector"
            )));
        }
        let properties = match of_dead_letters {
            Some(_) => dead_letters::REPLICATION_FACTOR,
            None => "the connector's topic.creation.* properties",
        };
        let prefix = match (of_dead_letters, self.creation.rule_for(name)) {
            (Some(_), _) => "errors.deadletterqueue.topic.",
            (None, Some(_)) => "topic.creation.*.",
            (None, None) => "topic.creation.default.",
        };
        let outcome = admin.create_topic(&wanted).await.map_err(|error| {
            let advice = wanted.advice(&error, prefix).map(|advice| format!("; {advice}"));
            let advice = advice.unwrap_or_else(|| advice_on_rights(&error, name));
            TaskFailure::failed(format!(
                "topic {name:?} does not exist and can't be made ({error}); create it, or change {properties}{advice}"
            ))
        })?;
        tracing::info!(topic = %name, ?outcome, "topic is there");
        Ok(())
    }
}

/// What to grant, where that is what is missing.
fn advice_on_rights(error: &Error, topic: &str) -> String {
    let advice = error.code().and_then(|code| acl::advice(code, &Resource::DataTopic(topic)));
    advice.map(|advice| format!("; {advice}")).unwrap_or_default()
}

/// Whether a Java worker's producer would have found the topic made for it. Brokers that don't tell are asked to make it.
async fn broker_makes_topics(cluster: &Cluster, admin: &Admin) -> bool {
    let Some(broker) = cluster.brokers().into_iter().next() else { return true };
    match admin.broker_configs(broker.id, &["auto.create.topics.enable"]).await {
        Ok(configs) => configs
            .get("auto.create.topics.enable")
            .and_then(|entry| entry.value.as_deref())
            .is_none_or(|value| !value.eq_ignore_ascii_case("false")),
        Err(error) => {
            tracing::debug!("auto.create.topics.enable can't be read: {error}");
            true
        }
    }
}
