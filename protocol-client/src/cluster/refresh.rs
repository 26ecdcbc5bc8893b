//! Asking for metadata: one request at a time, for everything that anybody wants by then.
//!
//! A caller notes its topics and waits for its turn. If a request that began after its note has succeeded meanwhile, that one
//! asked for its topics too. Whoever has the turn asks for all notes together; if it is dropped or fails, the next one asks.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::{MetadataRequest, TopicName};
use kafka_protocol::protocol::StrBytes;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep_until};

use super::Cluster;
use super::metadata::TopicAnswer;
use super::types::{Call, Purpose, Target, TopicMetadata};
use crate::config::MetadataRecovery;
use crate::error::Error;
use crate::wire::error_code::codes;

/// Requests keep at least this far apart in the long run, however many partitions move at once.
const REFRESH_INTERVAL_MIN: Duration = Duration::from_millis(50);
/// So many may come at once before that: whoever starts looks up a few topics one after the other, and each would wait.
const REFRESH_BURST: u32 = 8;
/// What is known of a topic counts for so long while a partition has no leader: it gets one when its broker comes back, and nobody
/// tells.
const LEADERLESS_AGE_MAX: Duration = Duration::from_millis(500);
/// A broker that does not answer such a question for this long is given up for another one, though it may only be slow: any
/// broker can answer, and the connection carries nothing else.
const LOOKUP_TIMEOUT_MAX: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(super) struct Refresh {
    turn: Semaphore,
    state: Mutex<RefreshState>,
}

#[derive(Debug, Default)]
struct RefreshState {
    wanted: BTreeSet<String>,
    /// Requests begun so far.
    begun: u64,
    /// The number of the last request that succeeded.
    succeeded: u64,
    pace: Pace,
}

/// How densely requests follow each other: a burst, then one in each interval.
#[derive(Debug, Default)]
struct Pace {
    /// When the requests so far would have been over, one in each interval.
    paid_until: Option<Instant>,
}

impl Pace {
    /// From when on the next request may go.
    fn free_at(&self) -> Option<Instant> {
        self.paid_until?.checked_sub(REFRESH_INTERVAL_MIN * (REFRESH_BURST - 1))
    }

    fn note(&mut self, now: Instant) {
        let from = self.paid_until.map_or(now, |until| until.max(now));
        self.paid_until = Some(from + REFRESH_INTERVAL_MIN);
    }
}

impl Default for Refresh {
    fn default() -> Self {
        Self { turn: Semaphore::new(1), state: Mutex::default() }
    }
}

impl Refresh {
    fn lock(&self) -> MutexGuard<'_, RefreshState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Cluster {
    /// Asks for these topics anew (with none: for brokers only). Concurrent calls share one request.
    ///
    /// # Errors
    /// When no broker can be asked.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing: another caller asks for itself.
    pub async fn refresh(&self, topics: &[&str]) -> Result<(), Error> {
        let refresh = &self.inner.refresh;
        let noted_at = {
            let mut state = refresh.lock();
            state.wanted.extend(topics.iter().map(|topic| (*topic).to_owned()));
            state.begun
        };
        // Never closed; if it were, the client would be.
        let _turn = refresh.turn.acquire().await.map_err(|_| Error::Closed)?;
        let free_at = {
            let state = refresh.lock();
            if state.succeeded > noted_at {
                return Ok(());
            }
            state.pace.free_at()
        };
        if let Some(free_at) = free_at {
            sleep_until(free_at).await;
        }
        let (number, wanted) = {
            let mut state = refresh.lock();
            state.wanted.extend(topics.iter().map(|topic| (*topic).to_owned()));
            state.begun += 1;
            state.pace.note(Instant::now());
            (state.begun, std::mem::take(&mut state.wanted))
        };
        self.ask(&wanted).await?;
        refresh.lock().succeeded = number;
        Ok(())
    }

    async fn ask(&self, topics: &BTreeSet<String>) -> Result<(), Error> {
        let call = self.lookup_call();
        let reply = self.call(call, |_| request(topics)).await?;
        let code = reply.body.error_code;
        let mut metadata = self.inner.lock_metadata();
        if code == codes::REBOOTSTRAP_REQUIRED && self.inner.config.metadata_recovery == MetadataRecovery::Rebootstrap {
            metadata.forget_brokers();
        }
        if code != codes::NONE {
            return Err(Error::broker("Metadata", code, "the cluster"));
        }
        tracing::debug!(topics = topics.len(), brokers = reply.body.brokers.len(), "metadata received");
        metadata.apply(reply.body, Instant::now());
        Ok(())
    }

    /// A topic from the cache; looked up when it is not there or older than `metadata.max.age.ms`, and after half a second while
    /// a partition of it has no leader.
    ///
    /// `None`: the brokers say that it does not exist. It never creates the topic. Partitions may be without a leader.
    ///
    /// # Errors
    /// When no broker can say within `default.api.timeout.ms`, or the topic may not be described.
    ///
    /// # Cancel safety
    /// As [`Cluster::refresh`].
    pub async fn topic(&self, name: &str) -> Result<Option<Arc<TopicMetadata>>, Error> {
        let mut retry = self.retry(format!("looking up topic {name}"), self.patience());
        loop {
            let cached = self.inner.lock_metadata().topic(name, Instant::now());
            if let Some((topic, updated)) = &cached
                && updated.elapsed() < self.max_age(topic)
            {
                return Ok(Some(Arc::clone(topic)));
            }
            let error = match (self.refresh(&[name]).await, cached) {
                (Ok(()), _) => match self.looked_up(name) {
                    Ok(topic) => return Ok(topic),
                    Err(error) => error,
                },
                // Old metadata is better than none while nobody answers.
                (Err(_), Some((topic, _))) => return Ok(Some(topic)),
                (Err(error), None) => error,
            };
            if !error.retriable() {
                return Err(error);
            }
            retry.pause(error).await?;
        }
    }

    fn max_age(&self, topic: &TopicMetadata) -> Duration {
        let is_led = topic.partitions.values().all(|partition| partition.leader.is_some());
        let max = self.inner.config.metadata_max_age;
        if is_led { max } else { max.min(LEADERLESS_AGE_MAX) }
    }

    /// How metadata and coordinators are asked for.
    pub(super) fn lookup_call(&self) -> Call {
        let timeout = self.inner.config.request_timeout.min(LOOKUP_TIMEOUT_MAX);
        Call { purpose: Purpose::Metadata, timeout: Some(timeout), ..Call::to(Target::Any) }
    }

    fn looked_up(&self, name: &str) -> Result<Option<Arc<TopicMetadata>>, Error> {
        let mut metadata = self.inner.lock_metadata();
        let absence = metadata.take_absence(name);
        if let Some((topic, _)) = metadata.topic(name, Instant::now()) {
            return Ok(Some(topic));
        }
        match absence {
            Some(TopicAnswer::Refused(code)) => {
                Err(self.with_user(Error::broker("Metadata", code, format!("topic {name}"))))
            }
            Some(_) => Ok(None),
            // Another caller took the absence: ask again.
            None => Err(Error::broker("Metadata", codes::LEADER_NOT_AVAILABLE, format!("topic {name}"))),
        }
    }
}

fn request(topics: &BTreeSet<String>) -> MetadataRequest {
    let topics = topics.iter().map(|topic| {
        let name = TopicName(StrBytes::from_string(topic.clone()));
        MetadataRequestTopic::default().with_name(Some(name))
    });
    MetadataRequest::default().with_topics(Some(topics.collect())).with_allow_auto_topic_creation(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_goes_at_once_and_the_rest_keep_their_distance() {
        let start = Instant::now();
        let mut pace = Pace::default();
        let mut now = start;
        let mut waits = Vec::new();
        for _ in 0..REFRESH_BURST + 3 {
            let goes = pace.free_at().map_or(now, |free| free.max(now));
            waits.push((goes - now).as_millis());
            now = goes;
            pace.note(now);
        }
        assert_eq!(waits[..8], [0; 8]);
        assert_eq!(waits[8..], [50, 50, 50]);
        // After a rest the burst is there again.
        now += Duration::from_secs(1);
        assert!(pace.free_at().is_none_or(|free| free <= now));
    }
}
