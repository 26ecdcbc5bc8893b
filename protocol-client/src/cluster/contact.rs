//! The first contact with a cluster: its bootstrap servers are tried until one tells of its brokers, or the patience is used up.
//!
//! A start that a person waits for is told in the log soon, and not only when all patience is used up, since what is wrong most
//! often is an address. Everything else that connects stays silent: its caller tells what comes of it.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use super::Cluster;
use crate::config::ClientConfig;
use crate::error::Error;

/// When a start that still waits says so first: after 2 s.
const FIRST_WORD: Duration = Duration::from_secs(2);
/// How often it says so again: every 30 s.
const NEXT_WORD: Duration = Duration::from_secs(30);

impl Cluster {
    /// Reaches the cluster through its bootstrap servers and learns its brokers.
    ///
    /// Tries all servers, again and again, until `default.api.timeout.ms`; but a mistake that waiting cannot mend (a TLS
    /// port, a port that is not Kafka's) on every server ends it at once.
    ///
    /// # Errors
    /// [`Error::NoBroker`] or [`Error::Timeout`] naming each server and what it met; [`Error::Config`] for a trust or key
    /// store that cannot be used.
    ///
    /// # Cancel safety
    /// Dropping the future closes what was opened.
    pub async fn connect(config: ClientConfig) -> Result<Self, Error> {
        let cluster = Self::unconnected(config).await?;
        cluster.learn_brokers(|_| {}).await?;
        Ok(cluster)
    }

    /// As [`Cluster::connect`], for a start that a person waits for: after 2 s, and then every 30 s, the log says which servers
    /// are tried, what they met last, and for how long they will be tried.
    ///
    /// # Errors
    /// As [`Cluster::connect`].
    ///
    /// # Cancel safety
    /// As [`Cluster::connect`].
    pub async fn connect_aloud(config: ClientConfig) -> Result<Self, Error> {
        let cluster = Self::unconnected(config).await?;
        let began = Instant::now();
        let met: Mutex<Option<Error>> = Mutex::default();
        {
            let learning = cluster
                .learn_brokers(|error| *met.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.clone()));
            tokio::pin!(learning);
            let mut word_at = began + FIRST_WORD;
            loop {
                match timeout_at(word_at, &mut learning).await {
                    Ok(learnt) => break learnt?,
                    Err(_) => {
                        let left = (began + cluster.patience()).saturating_duration_since(Instant::now());
                        cluster.say_that_it_waits(left, met.lock().unwrap_or_else(PoisonError::into_inner).as_ref());
                        word_at += NEXT_WORD;
                    }
                }
            }
        }
        if began.elapsed() > FIRST_WORD {
            tracing::info!("a broker is reached after {:.1} s", began.elapsed().as_secs_f32());
        }
        Ok(cluster)
    }

    /// Tries until a broker has told which there are; each failure is handed to `on_failure`.
    async fn learn_brokers(&self, on_failure: impl Fn(&Error)) -> Result<(), Error> {
        let mut retry = self.retry("connecting to the cluster", self.patience());
        loop {
            match self.refresh(&[]).await {
                Ok(()) => return Ok(()),
                Err(error) if error.retriable() => {
                    on_failure(&error);
                    retry.pause(error).await?;
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn say_that_it_waits(&self, left: Duration, met: Option<&Error>) {
        let servers: Vec<String> = self.config().bootstrap_servers.iter().map(ToString::to_string).collect();
        let (servers, left) = (servers.join(","), left.as_secs());
        match met {
            Some(error) => tracing::warn!(
                bootstrap = servers,
                "no broker is reached yet, trying for another {left} s (default.api.timeout.ms): {error}"
            ),
            None => tracing::warn!(
                bootstrap = servers,
                "no broker has answered yet, waiting for another {left} s (default.api.timeout.ms)"
            ),
        }
    }
}
